"""How a corpus file declares its programs.

    PROGRAMS = Programs()

    @PROGRAMS.add(lambda: (np.ones(3), 2), lambda: call(np.ones(4), k=3))
    def scale(a, k):
        return a * k

Each argument maker builds fresh arguments: a tuple, or `call(...)` where there are keywords. The
makers are used in turn, for at least four calls. A file may use its own globals freely: each engine
runs a fresh copy of the file. What it may not use is anything that differs from run to run (times,
ids, addresses, unseeded random numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Maker = Callable[[], Any]


def call(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with keywords, as a maker returns them."""
    return _Call((args, kwargs))


class _Call(tuple):
    """Marks (args, kwargs), apart from a plain tuple of positional arguments."""


def plain_drive(function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """One call."""
    return function(*args, **kwargs)


@dataclass
class Program:
    """One function of the corpus and how to call it."""

    name: str
    function: Callable[..., Any]
    makers: tuple[Maker, ...]
    close: bool = False  # floats may differ by a few units in the last place
    decorated: bool = False  # the global of its name is the engine's callable, as under @compile
    drive: Callable[[Callable[..., Any], tuple, dict], Any] = plain_drive

    def arguments(self, i: int) -> tuple[tuple, dict]:
        """Fresh arguments of call number i."""
        made = self.makers[i % len(self.makers)]()
        return tuple(made) if type(made) is _Call else (tuple(made), {})


class Programs(list):
    """The programs of a file, in order."""

    def add(self, *makers: Maker, **options: Any) -> Callable[[Any], Any]:
        """Decorator that adds a function with its argument makers and leaves it unchanged."""

        def register(function: Any) -> Any:
            self.append(Program(function.__name__, function, makers or (tuple,), **options))
            return function

        return register
