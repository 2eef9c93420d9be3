"""Every allocation of py/ may fail: the answer is MemoryError and nothing stays behind."""

import gc
import sys

import pytest

testcapi = pytest.importorskip("_testcapi")


def function(a, b=2, *rest, c=3, **more):
    return (a, b, rest, c, more)


def guarded(x):
    try:
        y = x + 1
    except ValueError:
        return "handled"
    return y


def fail_each(action):
    """Run `action` with the n-th allocation failing, n = 0, 1, ... until it succeeds."""
    gc.disable()  # a collection would meet the failing allocation
    try:
        for n in range(200):
            testcapi.set_nomemory(n, n + 1)
            try:
                res = action()
            except MemoryError:
                continue
            finally:
                testcapi.remove_mem_hooks()
            return n, res
    finally:
        gc.enable()
    raise AssertionError("never succeeds")


def test_bind(ext, no_leak):
    values = (object(), object(), object(), 5)
    names = ("z",)

    def action():
        return fail_each(lambda: ext.bind(function, values, names))

    n, slots = action()
    assert n >= 1
    assert slots == [values[0], values[1], 3, (values[2],), {"z": 5}]
    no_leak(action)


def test_bind_refuses_under_pressure(ext):
    assert fail_each(lambda: ext.bind(function, (), ()))[1] == 0


def test_push(ext, wide, no_leak):
    spec = (wide, 0, [object()] + [ext.NULL] * 6000, [])

    def action():
        """Too wide for the current chunk, and no new one to be had."""
        try:
            ext.without_arenas(spec)
        except MemoryError:
            return True

    state = ext.state()
    assert action()
    assert ext.state() == state
    assert ext.push_clear(spec, False) is None
    no_leak(action)


def test_unwind(ext, units, no_leak):
    at = units(guarded).at("BINARY_OP")
    state = ext.state()

    def once():
        return ext.unwind((guarded, at, [1, ext.NULL], [[], []]), ValueError("x"), False)[0]

    def action():
        return fail_each(once)[1]

    assert action() in (-1, units(guarded).at("PUSH_EXC_INFO"))
    assert ext.state() == state
    no_leak(action)


def test_the_reference_count_of_none(ext, units):
    before = sys.getrefcount(None)
    for _ in range(100):
        fail_each(lambda: ext.bind(function, (None, None, None, None), ("z",)))
        ext.push_clear((guarded, 0, [None, None], [None]), False)
    assert abs(sys.getrefcount(None) - before) < 20
