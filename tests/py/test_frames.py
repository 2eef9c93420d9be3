"""Frames made by hand: pushed, run from the middle, unwound, outlived by their frame objects."""

import gc
import inspect
import sys
import traceback
import weakref

import pytest


def inner(x):
    z = x + 1
    return z * 2


def middle(x):
    y = inner(x)
    return y + 100


def outer(x):
    pair = (x, middle(x))
    return pair


def specs_of(ext, units, x, where=0):
    """outer > middle > inner, inner about to run from `where`."""
    null = ext.NULL
    return (
        (outer, units(outer).after("CALL"), [x, null], [x]),
        (middle, units(middle).after("CALL"), [x, null], []),
        (inner, where, [x, null], []),
    )


def test_run_from_the_start(ext):
    assert ext.run((inner, 0, [20, ext.NULL], [])) == inner(20)


def test_run_from_the_middle(ext, units):
    at = units(inner).at("STORE_FAST")
    assert ext.run((inner, at, [20, ext.NULL], [5])) == 10


def test_nested_frames(ext, units):
    assert ext.run(*specs_of(ext, units, 20)) == outer(20)


def test_nested_frames_keep_no_references(ext, units, no_leak):
    specs = specs_of(ext, units, 12345678901)
    no_leak(lambda: ext.run(*specs))


class Mark(Exception):
    pass


def failing(x):
    y = x
    raise Mark(y)


def passing_on(x):
    a = failing(x)
    return a


def catching(x):
    try:
        v = passing_on(x)
    except Mark as error:
        return ("caught", error.args, sys.exc_info()[1] is error)
    finally:
        x = None
    return v


def cleaning(x, log):
    with Manager(log):
        v = passing_on(x)
    return v


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        self.log.append((kind, value.args, tb is not None))
        return False


def shape(error):
    return [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]


def failing_specs(ext, units, first, x, **more):
    null = ext.NULL
    names = first.__code__.co_nlocals
    slots = [x] + [more.get(n, null) for n in first.__code__.co_varnames[1:]]
    assert len(slots) == names
    return (
        (first, units(first).after("CALL", more.get("nth", 0)), slots, more.get("stack", [])),
        (passing_on, units(passing_on).after("CALL"), [x, null], []),
        (failing, 0, [x, null], []),
    )


def test_error_is_caught_by_an_outer_frame(ext, units):
    specs = failing_specs(ext, units, catching, 7)
    assert ext.run(*specs) == catching(7) == ("caught", (7,), True)
    assert sys.exc_info() == (None, None, None)


def test_error_passes_all_frames(ext, units):
    null = ext.NULL
    with pytest.raises(Mark) as plain:
        passing_on(3)
    with pytest.raises(Mark) as made:
        ext.run(
            (passing_on, units(passing_on).after("CALL"), [3, null], []),
            (failing, 0, [3, null], []),
        )
    assert shape(made.value)[1:] == shape(plain.value)[1:]
    assert made.value.__context__ is None


def test_error_in_a_with_block(ext, units):
    log, plain_log = [], []
    manager = Manager(log)
    with pytest.raises(Mark) as plain:
        cleaning(4, plain_log)
    specs = failing_specs(ext, units, cleaning, 4, log=log, nth=1, stack=[manager.__exit__])
    with pytest.raises(Mark) as made:
        ext.run(*specs)
    assert log == plain_log == [(Mark, (4,), True)]
    assert shape(made.value)[1:] == shape(plain.value)[1:]


def test_context_is_kept(ext, units):
    def in_except(x):
        try:
            raise KeyError(x)
        except KeyError:
            return ext.run(*failing_specs(ext, units, passing_twice, x))

    with pytest.raises(Mark) as made:
        in_except(1)
    assert isinstance(made.value.__context__, KeyError)
    assert made.value.__context__.__context__ is None


def passing_twice(x):
    return passing_on(x)


def test_errors_leave_nothing_behind(ext, units, no_leak):
    caught = failing_specs(ext, units, catching, 7)
    passed = failing_specs(ext, units, passing_twice, 7)

    def action():
        ext.run(*caught)
        try:
            ext.run(*passed)
        except Mark:
            pass

    no_leak(action)


def test_references_come_back(ext, units):
    class Thing:
        pass

    thing = Thing()
    before = sys.getrefcount(thing)
    for _ in range(20):
        with pytest.raises(Mark):
            ext.run(*failing_specs(ext, units, passing_twice, thing))
        assert ext.run((inner_identity, 0, [thing], [])) is thing
    gc.collect()
    assert sys.getrefcount(thing) == before


def test_functions_and_code_keep_their_counts(ext, units):
    at = units(inner).at("STORE_FAST")
    null = ext.NULL

    def action():
        ext.push_clear((inner, 0, [1, null], []), False)
        ext.push_clear((inner, at, [1, null], []), True).clear()
        ext.run((inner, 0, [1, null], []))
        ext.run((middle, units(middle).after("CALL"), [1, null], []), (inner, 0, [1, null], []))
        ext.unwind((inner, at, [1, null], []), KeyError(), False)
        ext.hooked("handoff", inner, inner, (1,), ())
        ext.hooked("clear", inner, inner, (1,), ())
        ext.hooked("object", inner, inner, (1,), ())
        with pytest.raises(LookupError):
            ext.hooked("error", inner, inner, (1,), ())
        gc.collect()

    def counts():
        return [sys.getrefcount(o) for o in (inner, inner.__code__, middle, middle.__code__)]

    action()
    before = counts()
    for _ in range(5):
        action()
    assert counts() == before


def inner_identity(x):
    return x


# -- The chain of frames -------------------------------------------------------------------------


def look(_x):
    frame = inspect.currentframe()
    found = []
    for _ in range(3):
        found.append((frame.f_code.co_name, frame.f_lineno, dict(frame.f_locals).get("x")))
        frame = frame.f_back
    return found, [(f.name, f.lineno) for f in traceback.extract_stack()[-3:]]


def calls_look(x):
    y = look(x)
    return y


def calls_calls_look(x):
    y = calls_look(x)
    return y


def test_frames_are_seen_as_usual(ext, units):
    null = ext.NULL
    made = ext.run(
        (calls_calls_look, units(calls_calls_look).after("CALL"), ["X", null], []),
        (calls_look, units(calls_look).after("CALL"), ["X", null], []),
        (look, 0, ["X"] + [null] * (look.__code__.co_nlocals - 1), []),
    )
    assert made[0] == calls_calls_look("X")[0]
    assert made[1] == calls_calls_look("X")[1]


def calls_look_over_lines(x):
    return (
        look(x),
        x,
    )


def test_a_suspended_frame_is_on_the_line_of_its_call(ext, units):
    null = ext.NULL
    made, _ = ext.run(
        (calls_look_over_lines, units(calls_look_over_lines).after("CALL"), ["X"], []),
        (look, 0, ["X"] + [null] * (look.__code__.co_nlocals - 1), []),
    )
    assert made[0][1] == calls_look_over_lines("X")[0][0][1]
    assert made[0][1][1] == calls_look_over_lines.__code__.co_firstlineno + 2


def keeps_frame(x):
    secret = [x]
    return sys._getframe(), secret


def calls_keeps_frame(x):
    mine = {"x": x}
    found = keeps_frame(x)
    return found, mine


def test_frame_objects_outlive_their_frames(ext, units):
    null = ext.NULL

    def run():
        return ext.run(
            (calls_keeps_frame, units(calls_keeps_frame).after("CALL"), [5, {"x": 5}, null], []),
            (keeps_frame, 0, [5, null], []),
        )

    (frame, secret), _ = run()
    (plain, _), _ = calls_keeps_frame(5)
    assert frame.f_locals == {"x": 5, "secret": secret}
    assert frame.f_locals["secret"] is secret
    assert frame.f_lineno == plain.f_lineno
    back = frame.f_back
    assert back.f_code is calls_keeps_frame.__code__
    assert back.f_locals["mine"] == {"x": 5}
    assert back.f_lineno == plain.f_back.f_lineno
    assert back.f_back.f_code is run.__code__
    assert gc.is_tracked(frame)


def test_an_unrun_frame_moves_into_its_object(ext, units):
    class Thing:
        pass

    on_stack = Thing()
    ref = weakref.ref(on_stack)
    at = units(inner).at("STORE_FAST")
    here = sys._getframe()
    frame = ext.push_clear((inner, at, ["local", ext.NULL], [on_stack]), True)
    del on_stack
    assert ref() is not None
    assert frame.f_code is inner.__code__
    assert frame.f_locals == {"x": "local"}
    assert frame.f_back is here
    assert frame.f_lineno == inner.__code__.co_firstlineno + 1
    frame.clear()
    assert ref() is None


def test_push_and_clear(ext, no_leak):
    spec = (inner, 0, [object(), object()], [object()])
    no_leak(lambda: ext.push_clear(spec, False))


def test_escaping_frames_do_not_leak(ext, units, no_leak):
    at = units(inner).at("STORE_FAST")
    null = ext.NULL
    suspended = (calls_keeps_frame, units(calls_keeps_frame).after("CALL"), [5, {}, null], [])

    def action():
        ext.push_clear((inner, at, [1, null], [[]]), True)
        ext.run(suspended, (keeps_frame, 0, [5, null], []))
        gc.collect()

    no_leak(action)


def test_frames_cross_chunks(ext, wide):
    state = ext.state()
    slots = [1] + [ext.NULL] * 6000
    for _ in range(5):
        assert ext.run((wide, 0, slots, [])) == 1
        assert ext.push_clear((wide, 0, slots, []), False) is None
        assert (
            ext.run(
                (wide, len(wide.__code__.co_code) // 2 - 1, slots, []),
                (deep, 0, [5, lambda n: n], []),
            )
            == 5
        )
    assert ext.state() == state


def deep(n, run):
    return run(n)


def test_deep_nesting(ext, units):
    def run(n):
        if n == 0:
            return 0
        return 1 + ext.run((deep, 0, [n - 1, run], []))

    assert run(60) == 60


def test_a_cell_and_a_closure(ext):
    def make(x):
        def get():
            return x + y

        y = 3
        return get

    get = make(4)
    assert ext.run((make, 0, ordered(ext, make, x=8), []))() == 11
    assert ext.run((get, 0, [ext.NULL, ext.NULL], [])) == 7


def ordered(ext, func, **values):
    co = func.__code__
    names = list(co.co_varnames) + [n for n in co.co_cellvars if n not in co.co_varnames]
    return [values.get(n, ext.NULL) for n in names]


def test_a_generator_made_by_a_pushed_frame(ext):
    def count(n):
        yield from range(n)

    made = ext.run((count, 0, [3], []))
    assert list(made) == [0, 1, 2]


def test_recursion_depth_is_counted(ext, units):
    def depth():
        return dig(0)

    def dig(n):
        try:
            return dig(n + 1)
        except RecursionError:
            return n

    def under(func):
        found = func()
        return found

    plain = under(depth)
    counted = ext.recurse(depth)
    null = ext.NULL
    made = ext.run(
        (under, units(under).after("CALL"), [depth, null], []), (depth, 0, [ext.NULL] * 1, [])
    )
    assert abs(counted - plain) <= 2
    assert abs(made - plain) <= 2
    assert depth() == depth()


def test_each_suspended_frame_counts_once(ext, units):
    def depth():
        return dig(0)

    def dig(n):
        try:
            return dig(n + 1)
        except RecursionError:
            return n

    def step(func, *rest):
        found = func(*rest)
        return found

    levels = 12
    plain = step(*[step] * (levels - 1), depth)
    one = (step, units(step).after("CALL_FUNCTION_EX"), [depth, (), ext.NULL], [])
    made = ext.run(*[one] * levels, (depth, 0, [ext.NULL], []))
    assert abs(made - plain) <= 3


def test_recursion_limit_is_met(ext):
    def again():
        return ext.recurse(again)

    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        again()
    with pytest.raises(RecursionError):
        again()


# -- Unwinding -----------------------------------------------------------------------------------


def guarded(x):
    for i in (1, 2):
        try:
            x = [i, x + 1]
        except ValueError as error:
            return error
    return x


def test_unwind_finds_the_handler(ext, units):
    null = ext.NULL
    u = units(guarded)
    error = ValueError("no")
    handler, stack, pending = ext.unwind(
        (guarded, u.at("BINARY_OP"), [1, 1, null], ["the iterator", 1, 2, 3]), error, False
    )
    assert handler == u.at("PUSH_EXC_INFO")
    assert stack == ["the iterator", error]
    assert pending is None
    entry = error.__traceback__
    assert entry.tb_frame.f_code is guarded.__code__
    assert entry.tb_lineno == guarded.__code__.co_firstlineno + 3
    assert entry.tb_lasti == u.at("BINARY_OP") * 2
    assert entry.tb_next is None


def test_unwind_normalises(ext, units):
    u = units(guarded)
    _, stack, _ = ext.unwind(
        (guarded, u.at("BINARY_OP"), [1, 1, ext.NULL], ["it"]), ValueError, False
    )
    assert type(stack[1]) is ValueError
    assert stack[1].__traceback__.tb_frame.f_code is guarded.__code__


def test_unwind_without_a_handler(ext, units):
    error = ValueError("no")
    at = units(inner).at("BINARY_OP")
    handler, stack, pending = ext.unwind((inner, at, [1, ext.NULL], [[], []]), error, False)
    assert (handler, stack) == (-1, [])
    assert pending is error
    assert error.__traceback__.tb_lineno == inner.__code__.co_firstlineno + 1


def test_unwind_of_a_raise_again(ext, units):
    error = ValueError("no")
    u = units(guarded)
    handler, stack, _ = ext.unwind(
        (guarded, u.at("BINARY_OP"), [1, 1, ext.NULL], ["it"]), error, True
    )
    assert handler == u.at("PUSH_EXC_INFO")
    assert stack == ["it", error]
    assert error.__traceback__ is None


def test_unwind_pushes_lasti(ext, units):
    u = units(guarded)
    unit = u.at("PUSH_EXC_INFO")
    depth, _, lasti = ext.handler(guarded.__code__, unit)
    assert lasti
    error = KeyError()
    _, stack, _ = ext.unwind(
        (guarded, unit, [1, 1, ext.NULL], list(range(depth)) + [9]), error, False
    )
    assert stack == [*range(depth), unit, error]


def test_unwind_does_not_leak(ext, units, no_leak):
    u = units(guarded)
    spec = (guarded, u.at("BINARY_OP"), [1, 1, ext.NULL], ["it", object(), object()])
    plain = (inner, units(inner).at("BINARY_OP"), [1, ext.NULL], [[], []])

    def action():
        ext.unwind(spec, ValueError("x"), False)
        ext.unwind(spec, ValueError, False)
        ext.unwind(plain, ValueError("x"), False)
        ext.unwind(plain, ValueError, True)

    no_leak(action)
