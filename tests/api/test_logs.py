"""CCOMPILE_LOGS: lines on sys.stderr of the calling thread, and silence otherwise."""

import io
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import ccompile
from ccompile import _core, config

HERE = __file__


def with_break(x):
    y = x + 1
    print(end="")
    return y * 2


def test_silence_by_default(capfd):
    f = ccompile.compile(with_break)
    for x in (np.ones(2), np.ones(2, "f4"), np.ones((2, 2))):
        f(x)
        f(x)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_each_break_once(capsys):
    with config.override(logs="graph_breaks"):
        f = ccompile.compile(with_break)
        f(np.ones(2))
        f(np.ones(2))
        f(np.ones(2, "f4"))
    lines = capsys.readouterr().err.splitlines()
    line = with_break.__code__.co_firstlineno + 2
    assert len(lines) == 1
    assert lines[0].startswith(f"ccompile graph_breaks: {HERE}:{line}: ")
    assert "(print) [UNKNOWN_CALL]; hint: " in lines[0]


def test_stops(capsys):
    with config.override(logs="stops"):
        f = ccompile.compile(lambda x: x + x + x + x, options={"trace_limit": 2})
        f(np.ones(2))
    assert "[TRACE_TOO_LONG]" in capsys.readouterr().err


CHANGES = {
    "dtype": (np.ones(2), np.ones(2, "f4"), "argument 'x' is float64[n], C order"),
    "rank": (np.ones(2), np.ones((2, 2)), "argument 'x' is float64[n], C order"),
    "type": (1, 1.5, "type of argument 'x' is int"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_recompiles_name_the_guard(capsys, name):
    first, second, text = CHANGES[name]
    f = ccompile.compile(lambda x: x + 1)
    with config.override(logs="recompiles"):
        f(first)
        assert capsys.readouterr().err == ""
        f(second)
    err = capsys.readouterr().err
    assert err.startswith("ccompile recompiles: ") and err.endswith(f"did not fit: {text}\n")
    assert f._misses() and text in f._misses()[0]


def test_recompile_paths(capsys):
    class Model:
        def __init__(self):
            self.layers = [{"w": np.ones(2)}]

    def f(model, x):
        return model.layers[0]["w"] * x

    model = Model()
    g = ccompile.compile(f)
    with config.override(logs="recompiles"):
        g(model, np.ones(2))
        model.layers[0]["w"] = np.ones(2, "f4")
        g(model, np.ones(2))
    assert "argument 'model'.layers[0]['w'] is float64[n]" in capsys.readouterr().err


def test_guards(capsys):
    with config.override(logs="guards"):
        ccompile.compile(lambda x: np.sin(x))(np.ones(2))
    err = capsys.readouterr().err
    assert "global 'np' is module numpy" in err
    assert "argument 'x' is float64[n], C order" in err


def test_exits(capsys):
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    g = ccompile.compile(f)
    g(np.ones(2))
    with config.override(logs="exits"):
        g(np.ones(2))
        assert capsys.readouterr().err == ""
        g(-np.ones(2))
    line = f.__code__.co_firstlineno + 1
    assert f"{HERE}:{line}: the trace was left, not so: " in capsys.readouterr().err


def test_limit(capsys):
    f = ccompile.compile(lambda x: x + 1, options={"recompile_limit": 1})
    f(np.ones(2))
    with (
        config.override(logs="recompiles"),
        pytest.warns(RuntimeWarning, match="argument 'x' is float64") as caught,
    ):
        assert f(1) == 2
        assert f(1.5) == 2.5
    assert len(caught) == 1 and "recompile_limit" in str(caught[0].message)
    assert "recompile_limit 1 is reached" in capsys.readouterr().err


def test_the_calling_thread_writes():
    class Stream(io.StringIO):
        def write(self, text):
            writers.add(threading.get_ident())
            return super().write(text)

    writers, stream, before = set(), Stream(), sys.stderr
    sys.stderr = stream
    try:
        with config.override(logs="graph_breaks"):
            thread = threading.Thread(target=ccompile.compile(with_break), args=(np.ones(2),))
            thread.start()
            thread.join()
    finally:
        sys.stderr = before
    assert writers == {thread.ident} and "UNKNOWN_CALL" in stream.getvalue()


def test_a_stream_that_fails_or_resets_does_no_harm():
    class Bad:
        def write(self, text):
            f._reset()
            raise OSError(text)

        def flush(self):
            raise OSError

    before = sys.stderr
    f = ccompile.compile(with_break)
    sys.stderr = Bad()
    try:
        with config.override(logs="all"):
            got = [f(np.full(2, k)).tolist() for k in (1.0, -1.0, 2, 3)]
    finally:
        sys.stderr = before
    assert got == [[4, 4], [0, 0], [6, 6], [8, 8]]


def test_an_exception_of_the_program_passes(capsys):
    def f(x):
        y = x + 1
        raise KeyError(y)

    with config.override(logs="all"), pytest.raises(KeyError):
        ccompile.compile(f)(np.ones(2))
    assert "[EXCEPTION]" in capsys.readouterr().err


def test_environment_variable():
    code = "import ccompile\nccompile.compile(lambda x: print(x))(1)"
    env = dict(os.environ, CCOMPILE_LOGS="graph_breaks")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True
    )
    assert done.stdout == "1\n"
    assert done.stderr.count("\n") == 1 and "<string>:2: " in done.stderr


def test_side_limit(capsys):
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    g = ccompile.compile(f, options={"side_limit": 0})
    g(np.ones(2))
    with config.override(logs="recompiles"):
        for _ in range(3):
            assert g(-np.ones(2)).tolist() == [-2, -2]
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "side_limit 0 or side_total" in err


def test_recordings_that_give_nothing(capsys):
    g = ccompile.compile(lambda: missing, options={"recompile_limit": 2})  # noqa: F821
    with config.override(logs="recompiles"):
        for _ in range(4):
            with pytest.raises(NameError):
                g()
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "nothing worth keeping was recorded in 2 calls" in err


class Loud:
    """Must not be asked for its repr by a report."""

    def __repr__(self):
        raise AssertionError("repr of the program's object")


class Holder:
    pair = (Loud(), 1)


def test_reports_run_no_code_of_the_program(capsys):
    f = ccompile.compile(lambda x, h: x + h.pair[1])
    with config.override(logs="all"):
        f(np.ones(2), Holder())
        Holder.pair = (Loud(), 2)
        f(np.ones(2), Holder())
    assert "<Holder>.pair" in capsys.readouterr().err
    assert f._tapes() and f._report()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_every_allocation_may_fail(capsys, fullgraph):
    def f(x):
        y = np.sin(x) * 2
        if fullgraph:
            ccompile.graph_break()
        return y + 1

    x = np.ones(3)
    want, n, failed = f(x).tolist(), 0, True
    with config.override(logs="all"):
        while failed and n < 2000:
            g = ccompile.compile(f, fullgraph=fullgraph)
            _core._testing.fail_alloc(n)
            try:
                for k in (x, x.astype("f4"), x):
                    got = g(k).tolist()
                    assert k is not x or got == want  # short of memory: plain Python
            except ccompile.GraphBreak:
                pass
            failed = _core._testing.fail_alloc(-1)
            n += 7
            g._report(), g._tapes(), g._breaks(), g._misses()
    assert 20 < n < 2000
