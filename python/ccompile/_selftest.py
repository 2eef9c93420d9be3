"""A dozen small programs, run at import through recorder and executor and compared with Python.

Interpreters are patched by distributions and debuggers; a frame that looks different from what the
C code was written for must be found here, not in the user's program. If anything differs, capture
is switched off for the process and one warning says what failed.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from . import _core

STRESS = "exit:2,snap"  # half of the guards fail, a snapshot before every instruction


def _arithmetic(n: int) -> Any:
    return (n * 3 + 1) // 2 - (n & 7), n % 5, -n, n * 0.5


def _loop(n: int) -> int:
    total = 0
    for i in range(40):
        total += i if i % 7 else n
    return total


def _while(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def _fails(n: int) -> int:
    if n > 1:
        raise ValueError(n)
    return n


def _handler(n: int) -> Any:
    try:
        return _fails(n), "no error"
    except ValueError as error:
        return error.args, "caught"
    finally:
        n += 1


def _closure(n: int) -> Any:
    def add(x: int) -> int:
        nonlocal n
        n += x
        return n

    return add(2), add(3), n


def _nested(n: int) -> int:
    def inner(x: int) -> int:
        y = x * 2
        return y if y > 9 else y + 100

    return inner(n) + inner(n + 4)


def _keywords(n: int, *rest: int, step: int = 2, **more: int) -> Any:
    return n, rest, step, more


def _call_keywords(n: int) -> Any:
    return _keywords(n, 1, 2, step=n, last=3), _keywords(n)


def _count(n: int) -> Iterator[int]:
    yield n
    yield n + 1


def _generator(n: int) -> Any:
    return [x * 2 for x in _count(n)], sum(_count(n))


class _Box:
    def __init__(self, n: int) -> None:
        self.n = n

    @property
    def twice(self) -> int:
        return self.n * 2


def _objects(n: int) -> Any:
    box = _Box(n)
    box.n += 1
    return box.twice, [box.n, n], {"n": n, **{"m": 2}}


def _unpack(n: int) -> Any:
    a, (b, *c) = n, (n + 1, n + 2, n + 3)
    return f"{a}-{b:>3}", c, (a, b) < (b, a), a in c


PROGRAMS: tuple[Callable[[int], Any], ...] = (
    _arithmetic,
    _loop,
    _while,
    _handler,
    _closure,
    _nested,
    _call_keywords,
    _generator,
    _objects,
    _unpack,
)
ARGUMENTS = (3, 3, 1, 6)


def failures(programs: tuple[Callable[[int], Any], ...] = PROGRAMS) -> list[str]:
    """What differs from plain Python, a line each; empty when all is well."""
    found = []
    for stress in ("", STRESS):
        texts = {"stress": stress, "recompile_limit": "64"}
        for program in programs:
            name = f"{program.__name__.strip('_')}{' (stressed)' if stress else ''}"
            run = _core.wrap(program, False, False, texts, {}, 0)
            for n in ARGUMENTS:
                try:
                    if run(n) != program(n):
                        found.append(f"{name}({n}) gave another result")
                except Exception as error:  # none of the programs raises
                    found.append(f"{name}({n}) raised {type(error).__name__}: {error}")
    return found


def check(programs: tuple[Callable[[int], Any], ...] = PROGRAMS) -> bool:
    """Run the programs; on a failure switch capture off and warn once. True when all is well."""
    talk = {name: _core.config_get(name) for name in ("logs", "dump")}
    for name in talk:
        _core.config_set(name, "")
    try:
        found = failures(programs)
    finally:
        for name, value in talk.items():
            _core.config_set(name, value)
    _core.clear_counters()
    if not found:
        return True
    _core.enable(False)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    warnings.warn(
        f"ccompile: the self-test failed, so programs run as plain Python: {found[0]}{more}",
        RuntimeWarning,
        stacklevel=3,
    )
    return False
