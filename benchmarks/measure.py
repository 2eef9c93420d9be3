"""Ratios of running times: contestants take turns, so what the machine does meets all of them."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SAMPLE_SECONDS = 0.002  # the least that one sample lasts; shorter calls are repeated
MIN_ROUNDS = 5


def nothing() -> None:
    """The `enter` of a contestant that needs no setting up."""


@dataclass
class Contestant:
    """Something to measure."""

    call: Callable[[], Any]
    enter: Callable[[], None] = nothing  # before each sample, not timed: number of threads


@dataclass
class Ratio:
    """How many times faster than the base: median and quartiles over the rounds."""

    median: float
    low: float
    high: float
    rounds: int


def _sample(contestant: Contestant, loops: int, clock: Callable[[], float]) -> float:
    """Seconds per call; one call before, not timed, takes what the one before left in the caches"""
    contestant.enter()
    contestant.call()
    call = contestant.call
    begin = clock()
    for _ in range(loops):
        call()
    return (clock() - begin) / loops


def _loops(contestant: Contestant, clock: Callable[[], float]) -> int:
    loops = 1
    while loops < 1_000_000 and _sample(contestant, loops, clock) * loops < SAMPLE_SECONDS:
        loops *= 2
    return loops


def ratios(
    contestants: Mapping[str, Contestant],
    base: str,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Ratio]:
    """Time of `base` over the time of each contestant, compared within each round.

    Rounds go on for about `seconds`, and at least MIN_ROUNDS of them; every other round runs in
    reverse order, so nobody always follows the same neighbour.
    """
    loops = {name: _loops(contestant, clock) for name, contestant in contestants.items()}
    order = list(contestants)
    faster: dict[str, list[float]] = {name: [] for name in order}
    rounds, begin = 0, clock()
    while rounds < MIN_ROUNDS or clock() - begin < seconds:
        took = {name: _sample(contestants[name], loops[name], clock) for name in order}
        for name in order:
            faster[name].append(took[base] / took[name])
        order.reverse()
        rounds += 1
    return {name: _summary(values) for name, values in faster.items()}


def _summary(values: list[float]) -> Ratio:
    low, median, high = statistics.quantiles(values, n=4)
    return Ratio(median, low, high, len(values))
