"""fullgraph=True: GraphBreak in the program's own frame, before what breaks the graph has run."""

import contextlib
import linecache
import pickle
import traceback

import numpy as np
import pytest

import ccompile


class Odd:
    """Operators in Python, which no graph can hold."""

    def __init__(self):
        self.asked = []

    def __add__(self, other):
        self.asked.append("add")
        return 1

    def __bool__(self):
        self.asked.append("bool")
        return True

    def __enter__(self):
        self.asked.append("enter")
        return self

    def __exit__(self, *exc):
        self.asked.append("exit")
        return False


ran = []


def note(x):
    ran.append("note")
    return x


hidden = ccompile.disable(note)


def count(n):
    ran.append("generator")
    yield n


def unknown_call(x):
    y = x + 1
    pickle.dumps(1, 2)  # BREAK
    ran.append("after")
    return y


def asked(x):
    ccompile.graph_break()  # BREAK
    ran.append("after")
    return x


def generator(x):
    total = 0
    for v in GENERATOR:  # BREAK
        ran.append("after")
        total += v
    return total + x


def disabled(x):
    return hidden(x)  # BREAK


def deep(x):
    return note(x)  # BREAK


def operator(x):
    return ODD + x  # BREAK


def truth(x):
    if ODD:  # BREAK
        return x
    return -x


def with_block(x):
    with ODD:  # BREAK
        return x


def nested(x):
    return unknown_call(x)


ODD = Odd()
GENERATOR = count(5)

CASES = {
    "UNKNOWN_CALL": unknown_call,
    "ASKED": asked,
    "GENERATOR": generator,
    "DISABLED": disabled,
}


def break_line(function):
    first = function.__code__.co_firstlineno
    lines = linecache.getlines(__file__)
    return next(n for n in range(first, len(lines) + 1) if "# BREAK" in lines[n - 1])


@pytest.fixture(autouse=True)
def clean():
    ran.clear()
    ODD.asked.clear()


@pytest.mark.parametrize("reason", CASES)
def test_reason_line_and_no_effect(reason):
    function = CASES[reason]
    f = ccompile.compile(function, fullgraph=True)
    for _ in range(4):  # it is heard of at each call, not only at the recording
        with pytest.raises(ccompile.GraphBreak) as caught:
            f(np.ones(3))
        error = caught.value
        assert (error.reason, error.filename) == (reason, __file__)
        assert error.lineno == break_line(function)
        assert f"{__file__}:{error.lineno}: " in str(error) and f"[{reason}]" in str(error)
        assert (error.hint in str(error)) and (error.hint or reason in ("ASKED", "DISABLED"))
        assert not ran
        last = traceback.extract_tb(error.__traceback__)[-1]
        assert (last.name, last.lineno) == (function.__name__, error.lineno)
    assert f._report() == [] and ccompile.counters(f)["replayed"] == 0


@pytest.mark.parametrize("function", [operator, truth, with_block])
def test_operators_in_python_do_not_run(function):
    f = ccompile.compile(function, fullgraph=True)
    for _ in range(2):
        with pytest.raises(ccompile.GraphBreak, match="USER_OPERATOR") as caught:
            f(np.ones(3))
        assert caught.value.lineno == break_line(function)
    assert not ODD.asked


def test_too_deep():
    f = ccompile.compile(deep, fullgraph=True, options={"inline_depth": 1})
    with pytest.raises(ccompile.GraphBreak, match="INLINE_DEPTH"):
        f(1)
    assert not ran
    assert ccompile.compile(deep, fullgraph=True)(1) == 1


def test_inside_an_inlined_call():
    f = ccompile.compile(nested, fullgraph=True)
    with pytest.raises(ccompile.GraphBreak) as caught:
        f(np.ones(2))
    names = [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["nested", "unknown_call"]


def test_try_sees_it_like_any_exception():
    seen = []

    def f(x):
        seen.append("before")
        try:
            y = x * 2
            seen.append("body")
            print("never")
            seen.append("not reached")
        except RuntimeError as error:
            seen.append(type(error))
            y = x * 3
        finally:
            seen.append("finally")
        return y

    g = ccompile.compile(f, fullgraph=True)
    for _ in range(3):
        assert g(np.ones(2)).tolist() == [3, 3]
    assert seen == ["before", "body", ccompile.GraphBreak, "finally"] * 3


def test_finally_and_effects_stand(capsys):
    box = {}

    def f(x):
        try:
            box["before"] = x.sum()
            print("never")
            box["after"] = 1
        finally:
            box["finally"] = 1

    with pytest.raises(ccompile.GraphBreak):
        ccompile.compile(f, fullgraph=True)(np.ones(4))
    assert box == {"before": 4.0, "finally": 1}
    assert capsys.readouterr().out == ""


def test_plain_effects_are_no_breaks():
    class Box:
        pass

    box, items, table = Box(), [], {}

    def f(x):
        y = np.sin(x)
        items.append(1)
        box.value = y
        table["k"] = y
        y[0] = 5.0
        return y.sum()

    g = ccompile.compile(f, fullgraph=True)
    x = np.arange(3.0)
    assert [g(x) for _ in range(3)] == [f(x)] * 3
    assert len(items) == 4 and ccompile.counters(g)["replayed"] == 2


def test_zip_and_enumerate_are_no_breaks():
    def f(xs, ks, d):
        total = [x * k for x, k in zip(xs, ks)]  # noqa: B905
        for i, (k, v) in enumerate(d.items()):
            total.append((i, k, v + 1))
        for i, x in enumerate(xs):
            total.append(x - i)
        return total

    g = ccompile.compile(f, fullgraph=True)
    args = [np.ones(2), np.ones(2)], [1, 2.5], {"a": np.ones(2), "b": np.zeros(2)}
    for _ in range(3):
        assert repr(g(*args)) == repr(f(*args))
    assert ccompile.counters(g)["replayed"] == 2


def test_a_fault_is_no_break():
    f = ccompile.compile(lambda x: np.log(x) + 1, fullgraph=True)
    x = np.array([0.0, 1.0])
    for _ in range(3):
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert f(x).tolist() == [-np.inf, 1.0]


def test_own_exceptions_stay_what_they_are():
    def f(x):
        return x + missing  # noqa: F821

    with pytest.raises(NameError, match="missing"):
        ccompile.compile(f, fullgraph=True)(1)

    def g(x):
        raise KeyError(x)

    class Own(ValueError):
        pass

    scope = {}
    exec("def h(x):\n    assert x is None, 'text'", scope)  # pytest rewrites its own asserts

    def k(x):
        try:
            raise Own(x) from KeyError(x)
        finally:
            x += 1

    for function, kind in ((g, KeyError), (scope["h"], AssertionError), (k, Own)):
        compiled = ccompile.compile(function, fullgraph=True)
        for _ in range(3):
            with pytest.raises(kind):
                compiled(1)


def test_stop():
    f = ccompile.compile(lambda x: x + x + x + x + x, fullgraph=True, options={"trace_limit": 2})
    with pytest.raises(ccompile.GraphBreak, match="TRACE_TOO_LONG") as caught:
        f(np.ones(2))
    assert "trace_limit" in caught.value.hint


def test_break_on_the_other_side_of_a_branch():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            return y
        print("never")
        return -y

    g = ccompile.compile(f, fullgraph=True)
    one = np.ones(2)
    for _ in range(3):
        assert g(one).tolist() == [2, 2]
    for _ in range(12):  # more often than any limit on side traces
        with pytest.raises(ccompile.GraphBreak, match="UNKNOWN_CALL"):
            g(-one)
    assert g(one).tolist() == [2, 2]


def test_without_fullgraph_nothing_raises(capsys):
    f = ccompile.compile(unknown_call)
    for _ in range(3):
        assert f(np.ones(1)).tolist() == [2.0]
    assert ran == ["after"] * 3
    assert ccompile.counters(f)["graph_breaks"] == 1


def test_pickle_of_the_exception():
    with pytest.raises(ccompile.GraphBreak) as caught:
        ccompile.compile(asked, fullgraph=True)(1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.reason, again.lineno) == ("ASKED", break_line(asked))


@pytest.mark.leaks
def test_leaks_nothing():
    f = ccompile.compile(with_block, fullgraph=True)
    for _ in range(20):
        with contextlib.suppress(ccompile.GraphBreak):
            f(np.ones(3))
