"""The self-test at import: passes here, is quick, and switches capture off when it fails."""

import os
import subprocess
import sys

import pytest

import ccompile
from ccompile import _core, _selftest


@pytest.fixture
def capture_on():
    yield
    _core.enable(True)


def test_passes_and_records():
    before = _core.counters()
    assert _selftest.failures() == []
    after = _core.counters()
    for name in ("recorded", "replayed", "side_exits", "graph_breaks"):
        assert after[name] > before[name], name


@pytest.mark.parametrize("program", _selftest.PROGRAMS, ids=lambda p: p.__name__)
def test_each_program_is_recorded(program):
    f = ccompile.compile(program)
    for n in _selftest.ARGUMENTS:
        assert f(n) == program(n)
    assert ccompile.counters(f)["recorded"] > 0
    assert ccompile.counters(f)["fallback"] == 0


def changing():
    calls = []

    def gives_another_result(n):
        calls.append(n)
        return len(calls)

    return gives_another_result


def fails(n):
    raise OSError(n)


@pytest.mark.parametrize("program", [changing(), fails], ids=["result", "exception"])
def test_seeded_failure(capture_on, program):
    programs = (*_selftest.PROGRAMS, program)
    with pytest.warns(RuntimeWarning, match=program.__name__) as caught:
        assert not _selftest.check(programs)
    assert len(caught) == 1 and not _core.enabled()
    f = ccompile.compile(lambda x: x + 1)
    assert [f(1), f(1)] == [2, 2]
    assert ccompile.counters(f)["recorded"] == 0 and ccompile.counters(f)["fallback"] == 2
    assert "self-test" in ccompile.explain(f)(1).note


def test_import_is_quiet_and_leaves_no_trace():
    code = (
        "import ccompile\n"
        "from ccompile import _core, _selftest\n"
        "assert _core.enabled() and not any(ccompile.counters().values())\n"
        "assert _core.config_get('logs') == 'graph_breaks,guards'\n"
        "assert _selftest.check()\n"
    )
    env = {"CCOMPILE_LOGS": "graph_breaks,guards", "CCOMPILE_RECOMPILE_LIMIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
