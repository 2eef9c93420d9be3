"""Programs that are right only while a rule of the tape is kept; see tests/fault/test_rules.py."""

import _signal
import _thread
import sys

import numpy as np

import ccompile

from .program import Programs

PROGRAMS = Programs()


def row(n, start=0.0):
    return np.arange(n, dtype=np.float64) + start


# -- Guards -------------------------------------------------------------------


class Scale:
    factor = 2.0


def scale(**own):
    made = Scale()
    vars(made).update(own)
    return made


@PROGRAMS.add(lambda: (row(3), scale()), lambda: (row(3), scale(factor=5.0)),
              lambda: (row(3), scale(other=1)))
def instance_attribute_appears(a, made):
    return a * made.factor


class Box:
    def __init__(self, size):
        self.size = size


def box(length=None):
    """A Box, whose class has a length from now on, or has none."""
    if length is None:
        if "__len__" in vars(Box):
            del Box.__len__
    else:
        Box.__len__ = lambda self: length
    return Box(3)


@PROGRAMS.add(lambda: (row(3), box()), lambda: (row(3), box(0)), lambda: (row(3), box(2)))
def class_gets_a_length(a, thing):
    return a * thing.size if thing else a - 1


class Noisy:
    """Says from where it is added."""

    def __init__(self, log):
        self.log = log

    def __add__(self, other):
        self.log.append(sys._getframe(1).f_code.co_name)
        return 7.0

    __radd__ = __add__


def with_noisy(kind):
    log = []
    items = [Noisy(log), 2.0]
    return (row(2), np.array(items, object) if kind == "array" else items, log)


@PROGRAMS.add(lambda: (row(2), [1.0, 2.0], []), lambda: with_noisy("list"))
def list_of_unknown_objects(a, items, log):
    return np.add(items, a), log


@PROGRAMS.add(lambda: (row(2), row(2), []), lambda: with_noisy("array"))
def array_of_unknown_objects(a, items, log):
    return items + a, log


@PROGRAMS.add(lambda: (3,), lambda: (-1,), lambda: (2**40 - 2**40,))
def power_of_a_negative_number(n):
    p = 2 ** n
    return type(p).__name__, p + 1, isinstance(p, int)


# -- Snapshots ------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(3),), lambda: (-row(3),), lambda: (row(3, 4.0),))
def list_with_two_names(a):
    one = [1]
    two = one
    if a.sum() > 2:
        one.append(2)
    else:
        two.append(3)
    return one, two, one is two


@PROGRAMS.add(lambda: (row(3),), lambda: (-row(3),), lambda: (row(3, -1.5),))
def list_grows_between_branches(a):
    seen = []
    if a[0] >= 0:
        seen.append("first")
    if a[1] >= 0:
        seen.append("second")
    if a[2] >= 0:
        seen.append("third")
    return seen


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def frame_is_kept(a):
    frame = sys._getframe()
    late = a.sum() + 1
    return frame.f_locals["late"], frame.f_code.co_name, late


# -- Foreign code -----------------------------------------------------------------


FACTOR = 1


class Bump:
    """Its death changes a global."""

    def __del__(self):
        global FACTOR
        FACTOR += 1


def make_bump(kind=[Bump]):  # noqa: B006 - an unknown callee to the recorder
    return kind[0].__new__(kind[0])


@PROGRAMS.add(lambda: (row(3),))
def finaliser_changes_a_global(a):
    made = make_bump()
    before = FACTOR
    made = None  # noqa: F841
    return a * before, FACTOR


USR1 = int(_signal.SIGUSR1)


@PROGRAMS.add(lambda: ([],), lambda: ([1],))
def signal_is_served_between_two_calls(log):
    old = _signal.signal(USR1, lambda *_: log.append("handler"))
    _thread.interrupt_main(USR1)
    log.append("next")
    _signal.signal(USR1, old)
    return log


def refuse(number, frame):
    raise ValueError(f"{number - USR1} in {frame.f_code.co_name}")


@PROGRAMS.add(lambda: ([], False), lambda: ([], True), lambda: ([], False), lambda: ([], True))
def signal_handler_raises_behind_a_call(log, early):
    old = _signal.signal(USR1, refuse)
    try:
        log.append("first")
        if early:
            _thread.interrupt_main(USR1)
        log.append("second")
        _thread.interrupt_main(USR1)
        log.append("third")
    finally:
        _signal.signal(USR1, old)
    return log


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def traces_are_forgotten_while_running(a):
    b = a + 1
    ccompile.reset()
    return b * 2, a.sum()


# -- Loops --------------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(3), row(3, 5.0), 5), lambda: (row(3), row(3, 1.0), 8))
def swap_in_a_loop(a, b, n):
    while n > 0:
        a, b = b, a
        n -= 1
    return a, b
