"""The oracle sees what it must see: each planted difference is reported, equal runs are not."""

import pathlib
import sys
import warnings

import numpy as np
import pytest

from .harness import Describer, compare, load, observe
from .program import Program, Programs, call

HERE = pathlib.Path(__file__).with_name("program.py")
MODULE = load(HERE)


def seen(function, *makers, close=False):
    program = Program("p", function, makers or (tuple,), close)
    return [observe(function, program, MODULE, i) for i in range(len(program.makers))]


def differences(f, g, *makers, close=False):
    return compare(seen(f, *makers, close=close), seen(g, *makers, close=close))


def note(kind):
    warnings.warn("text", kind, stacklevel=1)


PLANTED = {
    "value": (lambda: 1, lambda: 2),
    "type": (lambda: 1, lambda: 1.0),
    "bool": (lambda: True, lambda: 1),
    "sign of zero": (lambda: 0.0, lambda: -0.0),
    "last bit": (lambda: 0.3, lambda: 0.1 + 0.2),
    "dtype": (lambda: np.ones(2), lambda: np.ones(2, np.float32)),
    "scalar kind": (lambda: np.float64(1), lambda: 1.0),
    "scalar or 0-d": (lambda: np.float64(1), lambda: np.array(1.0)),
    "shape": (lambda: np.ones(2), lambda: np.ones((2, 1))),
    "strides": (lambda: np.ones((2, 3)), lambda: np.ones((2, 3), order="F")),
    "writeable": (lambda: np.ones(2), lambda: np.broadcast_to(1.0, 2)),
    "bits": (lambda: np.ones(3), lambda: np.array([1, 1, np.nextafter(1, 2)])),
    "zero in array": (lambda: np.zeros(1), lambda: -np.zeros(1)),
    "complex part": (lambda: np.array([1j]), lambda: np.array([1 + 1j])),
    "text": (lambda: "a", lambda: "b"),
    "order of keys": (lambda: {1: 2, 3: 4}, lambda: {3: 4, 1: 2}),
    "list or tuple": (lambda: [1], lambda: (1,)),
    "length": (lambda: [1], lambda: [1, 1]),
    "none": (lambda: None, lambda: 0),
    "exception": (lambda: 1, lambda: 1 // 0),
    "exception type": (lambda: [][1], lambda: {}[1]),
    "stdout": (lambda: print("a"), lambda: print("b")),
    "stderr": (lambda: None, lambda: print("b", file=sys.stderr)),
    "warning": (lambda: None, lambda: note(UserWarning)),
    "warning kind": (lambda: note(DeprecationWarning), lambda: note(UserWarning)),
    "error state": (lambda: None, lambda: np.seterr(over="ignore") and None),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_difference_is_seen(name):
    f, g = PLANTED[name]
    with np.errstate():
        assert differences(f, g)
    with np.errstate():
        assert not differences(f, f)


def test_identity_is_seen():
    def same():
        a = np.ones(2)
        return a, a

    def other():
        return np.ones(2), np.ones(2)

    assert differences(same, other)
    assert differences(lambda a: a, lambda a: a.copy(), lambda: (np.ones(2),))
    assert differences(lambda a: [a], lambda a: [list(a)], lambda: ([1],))


def test_shared_memory_is_seen():
    def view():
        a = np.arange(4.0)
        return a, a[1:]

    def copy():
        a = np.arange(4.0)
        return a, np.arange(1.0, 4.0)

    def elsewhere():
        a = np.arange(4.0)
        return a, a[:3] + 1

    assert differences(view, copy) and differences(view, elsewhere)


def test_changed_arguments_and_keywords_are_seen():
    def quiet(a, k=None):
        return 0

    def loud(a, k=None):
        a[0] = 7
        return 0

    def louder(a, k=None):
        k["x"] = 1
        return 0

    def maker():
        return call(np.ones(2), k={})

    assert "arguments" in differences(quiet, loud, maker)
    assert "keywords" in differences(quiet, louder, maker)


def test_traceback_lines_are_seen():
    def first():
        raise ValueError("x")

    def second():

        raise ValueError("x")

    def chained():
        try:
            raise KeyError("k")
        except KeyError:
            raise ValueError("x")  # noqa: B904

    assert "in first" in differences(first, second)
    assert differences(first, chained)


def test_globals_are_seen():
    source = load(HERE)
    source.LOG = []
    program = Program("p", lambda: source.LOG.append(1), (tuple,))
    a = [observe(program.function, program, source, 0)]
    b = [observe(program.function, program, source, 0)]
    assert "globals" in compare(a, b)


def test_closures_and_attributes_are_seen():
    class Thing:
        def __init__(self, x):
            self.x = x

    def make(k):
        return lambda: k

    assert differences(lambda: Thing(1), lambda: Thing(2))
    assert differences(lambda: make(1), lambda: make(2))
    assert differences(lambda: make(1).__call__, lambda: Thing(1).__init__)


def test_nan_payload_is_not_compared():
    odd = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    assert odd.tobytes() != np.array([np.nan]).tobytes()
    assert not differences(lambda: np.array([np.nan]), odd.copy)
    assert not differences(lambda: float("nan"), lambda: float(odd[0]))


def test_close_allows_a_few_units_only():
    a, b, c = (lambda: np.array([0.3]), lambda: np.array([0.1 + 0.2]), lambda: np.array([0.3001]))
    assert differences(a, b) and not differences(a, b, close=True)
    assert differences(a, c, close=True)
    assert differences(lambda: np.array([1]), lambda: np.array([2]), close=True)
    assert not differences(lambda: 0.3, lambda: 0.1 + 0.2, close=True)


def test_cycles_end():
    def cycle():
        x = [1]
        x.append(x)
        return x, {"x": x}

    assert not differences(cycle, cycle)


def test_numbers_are_stable():
    d = Describer()
    x = [1]
    assert d.describe(x)[0] == "list#0"
    assert d.describe([x])[1] == [("same as", 0)]


def test_programs_keep_order_and_functions():
    programs = Programs()

    @programs.add(lambda: (1,), lambda: call(2, b=3), close=True)
    def f(a, b=0):
        return a + b

    assert f(1) == 1 and programs[0].name == "f" and programs[0].close
    assert programs[0].arguments(3) == ((2,), {"b": 3})
    assert programs[0].arguments(4) == ((1,), {})
