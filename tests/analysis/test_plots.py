import io
import math
import subprocess
import sys

import numpy as np
import pytest
from analysis_data import LOSS, REWARD, write_run
from matplotlib.style import context

from analysis import plots, style
from analysis.plots import POSITIONS, draw, lines_of, plot_run
from simulator.errors import ConfigurationError
from simulator.records import MethodRecord, Metric, RunDirectory, RunRow

LABELS = (
    *("Rennala NIGT", "AFedPG", "Synchronised NIGT", "Asynchronous PG", "Delay-adaptive ASGD"),
    *("Ringmaster ASGD", "Backup workers", "Buffered ASGD of 16 with a long name, and longer"),
)
TIMES = np.linspace(0, 10, 21)


def data(n_methods=2, n_seeds=3, values=lambda method, seed: TIMES * (1 + method) + seed):
    return {LABELS[m]: {s: (TIMES, values(m, s)) for s in range(n_seeds)} for m in range(n_methods)}


def figure_of(run, positions=("seconds",), size="column", log=False):
    return draw(run, run.curves(), run.metric(), positions, size, log)


def test_a_run_is_drawn_from_its_directory_alone(tmp_path):
    run = write_run(tmp_path / "run", data())
    paths = plot_run(run.path)
    names = [f"return-vs-{position}" for position in POSITIONS] + ["return-overview"]
    assert paths == [
        run.path / "plots" / f"{name}.{kind}" for name in names for kind in ("png", "pdf")
    ]
    for path in paths:
        assert path.read_bytes()[:4] == (b"%PDF" if path.suffix == ".pdf" else b"\x89PNG")
    assert b"/CIDFontType2" in paths[1].read_bytes() or b"/Type42" in paths[1].read_bytes()


def test_figures_are_as_wide_as_the_column_and_the_same_every_time(tmp_path, monkeypatch):
    import matplotlib as mpl

    monkeypatch.setattr(plots, "POSITIONS", {"seconds": "Simulated time (s)"})
    run = write_run(tmp_path / "run", data())
    first = plot_run(run, tmp_path / "one", size="page")
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "figure.dpi": 50}):
        second = plot_run(run, tmp_path / "two", size="page")
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    width = int.from_bytes(first[0].read_bytes()[16:20], "big")
    assert width == round(6.9 * 200)


def test_drawing_leaves_matplotlib_as_it_was(tmp_path):
    run = write_run(tmp_path / "run", data(1, 1))
    code = (
        "import sys, matplotlib as mpl; before = dict(mpl.rcParams.copy());"
        "from analysis import plots; plots.POSITIONS = {'seconds': 's'};"
        "plots.plot_run(sys.argv[1]);"
        "assert 'matplotlib.pyplot' not in sys.modules;"
        "assert dict(mpl.rcParams.copy()) == before"
    )
    subprocess.run([sys.executable, "-c", code, str(run.path)], check=True)


def test_importing_the_module_imports_no_matplotlib():
    code = "import sys, analysis.plots; assert not {'matplotlib', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("size", ["column", "page"])
@pytest.mark.parametrize("n_methods", [1, 2, 5, 8])
@pytest.mark.parametrize("positions", [("seconds",), tuple(POSITIONS)])
def test_nothing_overlaps_and_nothing_is_cut(tmp_path, size, n_methods, positions):
    long_name = Metric("return", "Mean undiscounted return over evaluation", "points", True)
    run = write_run(
        tmp_path / "a run with a name so long that it wraps", data(n_methods), long_name
    )
    with context(["default", style.RC]):
        figure = figure_of(run, positions, size)
        figure.draw_without_rendering()
    (legend,) = figure.legends
    parts = [panel.get_tightbbox() for panel in figure.axes]
    parts += [legend.get_window_extent(), figure._suptitle.get_window_extent()]
    whole = figure.bbox
    for index, part in enumerate(parts):
        assert whole.x0 <= part.x0 + 1 < part.x1 - 1 <= whole.x1
        assert whole.y0 <= part.y0 + 1 < part.y1 - 1 <= whole.y1
        for other in parts[index + 1 :]:
            assert not part.padded(-1).overlaps(other.padded(-1))
    for panel in figure.axes:
        assert panel.get_window_extent().height > 0.9 * figure.dpi


def test_every_axis_says_what_and_in_which_unit(tmp_path):
    run = write_run(tmp_path / "run", data(), Metric("gap", "Loss gap", "J", False))
    figure = figure_of(run, tuple(POSITIONS))
    assert [panel.get_ylabel() for panel in figure.axes] == ["Loss gap (J)"] * 3
    assert [panel.get_xlabel() for panel in figure.axes] == [
        "Simulated time (s)",
        "Gradients used",
        "Vectors sent by workers",
    ]
    assert figure._suptitle.get_text() == "run\nmedian and 20–80 % of 3 seeds"
    one = write_run(tmp_path / "one", data(n_seeds=1))
    assert figure_of(one)._suptitle.get_text() == "one\none seed"


def test_lines_are_medians_against_each_position(tmp_path):
    run = write_run(tmp_path / "run", data())
    line = lines_of(run, run.curves(), REWARD, "gradients")[1]
    assert line.grid[-1] == 100
    assert line.band.median[-1] == 21
    assert line.band.low[-1] == pytest.approx(20.4)


def test_an_unfinished_method_does_not_shift_the_styles(tmp_path):
    run = write_run(tmp_path / "run", {"a": {}, "b": {0: (TIMES, TIMES)}})
    (panel,) = figure_of(run).axes
    (line,) = panel.get_lines()
    assert line.get_color() == style.COLOURS[1]


def test_styles_differ_in_greyscale_and_without_colour():
    assert len({style.line_style(index) for index in range(64)}) == 64
    looks = [style.line_style(index) for index in range(8)]
    assert len({look.dash for look in looks}) == len({look.marker for look in looks}) == 8
    lightness = [luminance(look.colour) ** (1 / 3) for look in looks]
    assert min(np.diff(lightness)) > 0.05
    assert lightness[-1] < 0.85  # still visible on white


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def half_nan(method, seed):
    values = TIMES + method
    return np.where(TIMES < 5, values, math.nan) if method else values


@pytest.mark.parametrize(
    "seeds",
    [
        {0: ([0.0], [3.0])},
        {0: ([0.0], [math.nan])},
        {0: (TIMES, np.full(21, math.nan)), 1: (TIMES, TIMES)},
        {0: (TIMES, np.full(21, math.inf))},
        {0: (TIMES, np.full(21, 1e30))},
        {0: (TIMES, np.zeros(21))},
        {0: (TIMES * 1e9, TIMES)},
        {0: (TIMES * 1e-9, TIMES)},
    ],
)
@pytest.mark.filterwarnings("error")
def test_odd_curves_are_drawn(tmp_path, seeds):
    run = write_run(tmp_path / "run", {"a": seeds, "b": {0: ([0.0, 1.0], [1.0, 2.0])}}, LOSS)
    log = plots._choose_log(run.curves(), LOSS, None)
    figure_of(run, log=log).savefig(io.BytesIO(), format="png")


def test_a_method_that_diverged_says_so(tmp_path):
    run = write_run(tmp_path / "run", data(2, 3, half_nan))
    labels = [line.label for line in lines_of(run, run.curves(), REWARD, "seconds")]
    assert labels == ["Rennala Nigt", "Afedpg (diverged)"]


def test_labels_are_drawn_as_written(tmp_path):
    run = write_run(tmp_path / "$x_1 $\\frac", {"50$ and $\\oops": {0: (TIMES, TIMES)}})
    figure_of(run).savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(
    ("metric", "first", "last", "expected"),
    [
        (LOSS, 1.0, 0.001, True),
        (LOSS, 1.0, 0.1, False),
        (LOSS, 1.0, 0.0, False),
        (LOSS, 1.0, -1.0, False),
        (REWARD, 1.0, 0.001, False),
    ],
)
def test_loss_gaps_of_many_decades_are_logarithmic(tmp_path, metric, first, last, expected):
    run = write_run(tmp_path / "run", {"a": {0: ([0.0, 1.0], [first, last])}}, metric)
    assert plots._choose_log(run.curves(), metric, None) is expected
    assert plots._choose_log(run.curves(), metric, True) is True
    assert plots._choose_log(run.curves(), metric, False) is False
    (panel,) = figure_of(run, log=expected).axes
    assert panel.get_yscale() == ("log" if expected else "linear")


@pytest.mark.parametrize(
    ("largest", "value", "text"),
    [(8000, 8000, "8000"), (2e4, 8000, "8k"), (2e4, 0, "0"), (3e7, 1.5e7, "15M"), (1, 0.5, "0.5")],
)
def test_numbers_along_an_axis_are_short(largest, value, text):
    assert plots._number_format(largest)(value, None) == text


def test_what_can_not_be_drawn_is_said(tmp_path):
    run = write_run(tmp_path / "run", {"a": {0: (TIMES, -TIMES)}})
    with pytest.raises(ConfigurationError, match=r"size = 'colum'.*Did you mean 'column'"):
        plot_run(run, size="colum")
    with pytest.raises(ConfigurationError, match="Did you mean 'return'"):
        plot_run(run, metric="returns")
    with pytest.raises(ConfigurationError, match="never positive"):
        plot_run(run, log=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file: cannot write figures"):
        plot_run(run, out=tmp_path / "file")


def test_a_run_without_curves_has_nothing_to_draw(tmp_path):
    run = RunDirectory.create(
        tmp_path,
        name="x",
        scenario="",
        metrics=[REWARD],
        methods=[MethodRecord("a", "A", "c", "u")],
    )
    run.write(RunRow("a", 0, error="no luck"))
    with pytest.raises(ConfigurationError, match="nothing to draw: no method has finished"):
        plot_run(tmp_path)
