"""Dealing runs: who gets what, without any process."""

from __future__ import annotations

from sweep_data import small_specs

from scenarios.backends.dealer import Dealer


def dealt(dealer: Dealer, process: int) -> list[tuple[str, int]]:
    return [(spec.method.coordinator, spec.seed) for spec in dealer.deal(process)]


def test_every_run_is_dealt_once():
    specs = small_specs(seeds=10)
    dealer = Dealer(2)
    dealer.add(specs)
    seen = []
    for turn in range(100):
        for spec in dealer.deal(turn % 2):
            seen.append(spec.key)
            dealer.took(spec, 0.01)
    assert sorted(seen) == sorted(spec.key for spec in specs)
    assert dealer.left() == 0


def test_processes_take_different_families_and_stay():
    dealer = Dealer(2)
    dealer.add(small_specs(seeds=3))
    assert dealt(dealer, 0) == [("rennala", 0)]
    assert dealt(dealer, 1) == [("asynchronous", 0)]
    assert dealt(dealer, 0) == [("rennala", 1)]


def test_runs_of_known_length_come_in_chunks():
    specs = small_specs(seeds=200)
    dealer = Dealer(2)
    dealer.add(specs)
    for _ in range(2):
        [spec] = dealer.deal(0)
        dealer.took(spec, 0.05)
    assert len(dealer.deal(0)) == 20  # a second's work


def test_helping_waits_until_it_is_known_to_pay():
    dealer = Dealer(2)
    dealer.add(small_specs(methods__1=None, seeds=6))
    [first] = dealer.deal(0)
    assert dealer.deal(1) == []
    dealer.took(first, 5.0)  # most of it compiling, perhaps
    assert dealer.deal(1) == []
    [second] = dealer.deal(0)
    dealer.took(second, 0.1)
    assert dealer.deal(1) == []  # 4 runs, 0.4 s: not worth compiling for 5 s
    [third] = dealer.deal(0)[:1]
    dealer.took(third, 3.0)
    assert len(dealer.deal(1)) == 1


def test_suspects_are_dealt_one_at_a_time():
    specs = small_specs(methods__1=None, seeds=40)
    dealer = Dealer(1)
    dealer.add(specs)
    for _ in range(2):
        [spec] = dealer.deal(0)
        dealer.took(spec, 0.01)
    chunk = dealer.deal(0)
    assert len(chunk) > 4
    dealer.give_back(chunk[4:])
    dealer.give_back(chunk[1:4], are_suspect=True)
    assert [dealer.deal(0) for _ in range(3)] == [[suspect] for suspect in chunk[1:4]]
    assert len(dealer.deal(0)) > 1


def test_what_a_process_leaves_is_dealt_again_first():
    dealer = Dealer(1)
    dealer.add(small_specs(seeds=3))
    left = dealer.deal(0)
    dealer.forget(0)
    dealer.give_back(left)
    assert dealer.deal(0) == left
