import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.errors import ConfigurationError
from simulator.randomness import Purpose
from simulator.traces import Trace, read_trace, read_values

ROWS = {
    "worker": [1, 0, 0, 1, 0],
    "step": [0, 2, 0, 1, 1],
    "seconds": [5.0, 3.0, 1.0, 6.5, 2.0],
}


@pytest.fixture(params=["csv", "parquet"])
def write(request, tmp_path):
    """Write columns as a file of either kind."""

    def write_columns(columns):
        path = tmp_path / f"trace.{request.param}"
        if request.param == "parquet":
            pq.write_table(pa.table(columns), path)
        else:
            lines = [columns, *zip(*columns.values(), strict=True)]
            path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
        return path

    return write_columns


def first(delays, worker, count):
    sample = delays.sampler(0, Purpose.COMPUTE)
    return [sample(worker, k) for k in range(count)]


def test_each_worker_replays_its_steps_in_order_and_again(write):
    delays = read_trace(write(ROWS), 2)

    assert first(delays, 0, 7) == [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]
    assert first(delays, 1, 5) == [5.0, 6.5, 5.0, 6.5, 5.0]
    assert not delays.is_random


def test_scale_multiplies(write):
    delays = read_trace(write(ROWS), 2, scale=[2.0, math.inf])

    assert first(delays, 0, 3) == [2.0, 4.0, 6.0]
    assert first(delays, 1, 1) == [math.inf]


def test_steps_may_have_gaps(write):
    delays = read_trace(write({"worker": [0, 0], "step": [40, 7], "seconds": [2, 1]}), 1)

    assert first(delays, 0, 3) == [1.0, 2.0, 1.0]


def test_fleet_may_choose_among_the_files_workers(write):
    delays = read_trace(write(ROWS), 3, workers=[1, 1, 0])

    assert [first(delays, worker, 1) for worker in range(3)] == [[5.0], [5.0], [1.0]]


def test_workers_of_the_file_that_nobody_chose_are_left_out(write):
    delays = read_trace(write(ROWS), 1, workers=[1])

    assert first(delays, 0, 2) == [5.0, 6.5]


def test_column_may_be_named_by_its_unit(write):
    columns = {"worker": [0], "step": [0], "compute_seconds": [4.0], "host": ["a"]}

    assert first(read_trace(write(columns), 1), 0, 1) == [4.0]


def test_column_may_be_given(write):
    columns = {"worker": [0], "step": [0], "seconds": [4.0], "elapsed": [9.0]}

    assert first(read_trace(write(columns), 1, column="elapsed"), 0, 1) == [9.0]


def test_values_of_the_only_column(write):
    assert read_values(write({"t": [1.5, 2.5]})).tolist() == [1.5, 2.5]


REFUSED = [
    ({"seconds": [1.0, 2.0, -3.0, 1.0, 1.0]}, r"(line 4|row 3), column 'seconds' = -3.0: expected"),
    ({"seconds": [1.0, math.nan, 3.0, 1.0, 1.0]}, r"(line 3|row 2), column 'seconds' = nan"),
    ({"seconds": ["1", "2", "x", "1", "1"]}, r"(line 4|row 3), column 'seconds' = x: expected a"),
    ({"seconds": ["1", "", "3", "1", "1"]}, r"(line 3|row 2), column 'seconds' is empty"),
    ({"worker": [0.5, 0, 0, 1, 0]}, r"(line 2|row 1), column 'worker' = 0.5: expected an integer"),
    ({"step": [-1, 0, 1, 2, 3]}, r"(line 2|row 1), column 'step' = -1: expected an integer >= 0"),
    ({"step": [0, 2, 2, 1, 1]}, r"worker 0, step 2 is there twice, first in (line 3|row 2)"),
    (
        {"worker": [2, 0, 0, 2, 0]},
        r"no rows for worker 1, .*fleet of 2 .*has worker 0, 2; workers = 'all'",
    ),
    ({"worker": [1, 2, 2, 1, 2]}, r"no rows for worker 0, .*has worker 1, 2 \(workers are number"),
    ({"worker": [1, 0, 0, 3, 2]}, r"worker 2, 3 too, .*set the fleet's workers to 4, or list"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_bad_cells_are_refused_with_their_place(write, change, message):
    path = write(ROWS | change)

    with pytest.raises(ConfigurationError, match=message) as caught:
        read_trace(path, 2)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("columns", "column", "message"),
    [
        ({"worker": [0], "step": [0], "time": [1]}, None, "no column 'seconds'; it has worker"),
        (
            {"worker": [0], "step": [0], "up_seconds": [1], "down_seconds": [1]},
            None,
            "columns up_seconds, down_seconds could all be meant; name one as `column`",
        ),
        ({"worker": [0], "seconds": [1]}, None, "no column 'step'; it has worker, seconds"),
        ({"step": [0], "seconds": [1]}, None, "no column 'worker'"),
        (ROWS, "secnds", r"no column 'secnds'; .* Did you mean 'seconds'\?"),
        ({"worker": [], "step": [], "seconds": []}, None, "no rows; expected at least one delay"),
    ],
)
def test_missing_columns_are_refused(write, columns, column, message):
    path = write(columns)

    with pytest.raises(ConfigurationError, match=message):
        read_trace(path, 1, column=column)


def test_all_workers_of_a_file_in_order_whatever_their_numbers(write):
    columns = {"worker": [6, 2, 6], "step": [0, 0, 1], "seconds": [3.0, 1.0, 4.0]}
    path = write(columns)
    ks = np.array([0, 0, 1], np.int32)

    trace = read_trace(path, 2, workers="all")
    got = trace.seconds(0, Purpose.COMPUTE, np.array([0, 1, 1], np.int32), ks)
    assert got.tolist() == [1.0, 3.0, 4.0]
    with pytest.raises(ConfigurationError, match="workers: 2 of the file's for 3 workers"):
        read_trace(path, 3, workers="all")


def test_workers_chosen_must_exist_and_be_as_many_as_the_fleet(write):
    path = write(ROWS)

    with pytest.raises(ConfigurationError, match="workers: 1 of the file's for 2 workers"):
        read_trace(path, 2, workers=[0])
    with pytest.raises(ConfigurationError, match="no rows for worker 9"):
        read_trace(path, 2, workers=[0, 9])


def test_long_lists_are_cut(write):
    with pytest.raises(ConfigurationError, match="9, 10, 11 and 988 more, which the fleet of 1000"):
        read_trace(write(ROWS), 1000)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "empty; expected column names in line 1"),
        ("t.csv", b"\n1\n", "empty; expected column names in line 1"),
        ("t.csv", b"0.5\n0.7\n", "line 1 has the number 0.5; expected column names"),
        ("t.csv", b"seconds,seconds\n1,2\n", "line 1 has two columns 'seconds'"),
        ("t.csv", b"worker,step,seconds\n0,0,1\n0,1\n", "line 3 has 2 cells; expected 3"),
        ("t.csv", b"seconds\n\xff\xfe\n", "not a UTF-8 text file"),
        ("t.csv", b'seconds\n"' + b"1" * 200_000 + b'"\n', "line 2: field larger than"),
        ("t.parquet", b"not parquet", "damaged"),
        ("t.parquet", b"", "damaged"),
        ("t.xlsx", b"", "expected a file that ends in .csv or .parquet"),
    ],
)
def test_unreadable_files_are_refused(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=message) as caught:
        read_values(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet"])
def test_missing_files_are_refused(tmp_path, name):
    with pytest.raises(ConfigurationError, match=rf"{name}: cannot read: [Nn]o such file"):
        read_values(tmp_path / name)


def test_a_directory_is_no_file(tmp_path):
    (tmp_path / "d.csv").mkdir()

    with pytest.raises(ConfigurationError, match="cannot read"):
        read_values(tmp_path / "d.csv")


def test_csv_may_have_a_byte_order_mark_blank_lines_and_spaces(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfworker, step, seconds\r\n0, 0, 1.5\r\n\r\n0, 1, bad\r\n")

    with pytest.raises(ConfigurationError, match="line 4, column 'seconds' =  bad"):
        read_trace(path, 1)


def test_truncated_parquet_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(ROWS), path)
    path.write_bytes(path.read_bytes()[:-20])

    with pytest.raises(ConfigurationError, match="damaged"):
        read_values(path)


def test_traces_made_in_python():
    delays = Trace([[1.0], [2.0, 3.0]])

    seconds = delays.seconds(0, Purpose.UP, np.array([1, 0, 1]), np.array([3, 9, 0]))

    assert seconds.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("recorded", "scale", "message"),
    [
        ([[1.0], []], None, r"recorded\[1\]: expected a non-empty flat list"),
        ([[1.0], [-1.0]], None, r"recorded\[1\]\[0\] = -1.0"),
        ([[1.0]], [1.0, 2.0], "scale: 2 numbers for 1 workers"),
        ([], None, "recorded: expected at least one worker"),
    ],
)
def test_impossible_traces_are_refused(recorded, scale, message):
    with pytest.raises(ConfigurationError, match=message):
        Trace(recorded, scale)
