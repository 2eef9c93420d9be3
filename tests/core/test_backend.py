"""Backend "c" in processes of their own: cold and warm starts, no compiler, Ctrl-C."""

import json
import os

import pytest

from tests.support import child

PROGRAM = """
import json, sys
import numpy as np
import ccompile
from ccompile import _core

def work(x, y):
    a = np.exp(x) * y + 1
    return a.sum(axis=0), np.tanh(y) * x - a

rng = np.random.default_rng(1)
x, y = rng.standard_normal((2, 70, 33))
engines = [ccompile.compile(work, backend=name) for name in ("c", "interp")]
for fn in engines:
    fn(x, y)
c, interp = ([part.tobytes() for part in fn(x, y)] for fn in engines)
count = engines[0]._counters()
print(json.dumps({
    "same": c == interp,
    "compiled": count["compiled_kernels"],
    "hits": count["cache_hits"],
    "kernels": count["array_ops_in_kernels"],
    "reason": _core.backend_info()["reason"],
    "cache": _core.backend_info()["cache"],
}))
"""


def run(cache, **env):
    """What the program printed with this cache directory."""
    env = {"CC": None, "CCOMPILE_LOGS": None, **env}
    done = child(PROGRAM, CCOMPILE_CACHE_DIR=str(cache), **env)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    got = json.loads(done.stdout)
    assert got["same"] and got["kernels"] > 0
    return got


@pytest.fixture
def cache(tmp_path):
    """A cache that the program has filled; skips where there is no compiler."""
    got = run(tmp_path / "cache")
    if got["reason"] == "NO_COMPILER":
        pytest.skip("no C compiler")
    assert got["compiled"] > 0 and got["hits"] == 0
    return tmp_path / "cache"


def test_warm_start_needs_no_compiler(cache):
    got = run(cache, PATH="")
    assert got["compiled"] == 0 and got["hits"] > 0 and got["reason"] is None


def test_no_compiler_means_interpreter(tmp_path):
    got = run(tmp_path / "cache", PATH="")
    assert (got["compiled"], got["hits"], got["reason"]) == (0, 0, "NO_COMPILER")


def test_broken_compiler_means_interpreter(tmp_path):
    got = run(tmp_path / "cache", CC="/bin/false")
    assert (got["compiled"], got["hits"], got["reason"]) == (0, 0, "NO_COMPILER")


def test_unusable_directory_is_replaced_and_removed(cache):
    got = run("/dev/null/cache")
    assert got["compiled"] > 0 and got["reason"] == "CACHE_UNSAFE"
    assert not os.path.exists(got["cache"])


INTERRUPT = """
import os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us without it
import numpy as np
import ccompile

slow, cc = sys.argv[1:]
double = ccompile.compile(lambda x: np.exp(x) * 2, backend="c")
double(np.ones(9))                      # the compiler is known from here on
open(slow, "w").close()
work = ccompile.compile(lambda x: np.tanh(x) - 3, backend="c")
threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    work(np.ones(9))
    print("no interrupt")
except KeyboardInterrupt:
    print("interrupted")
os.unlink(slow)
print(abs(work(np.ones(9))[0] - np.tanh(1.0) + 3) < 1e-14, work._counters()["compiled_kernels"])
more = ccompile.compile(lambda x: np.tanh(x) - 5, backend="c")
more(np.ones(9))
print(more._counters()["compiled_kernels"])
"""


def test_interrupt_during_compilation(cache, tmp_path):
    slow, cc = tmp_path / "slow", tmp_path / "fake-cc"
    cc.write_text(f'#!/bin/sh\n[ -e {slow} ] && exec sleep 60\nexec cc "$@"\n')
    cc.chmod(0o700)
    done = child(INTERRUPT, str(slow), str(cc), CC=str(cc), CCOMPILE_LOGS="kernels",
                 CCOMPILE_CACHE_DIR=str(cache), timeout=50)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["interrupted", "True 0", "1"]
    assert "ccompile: compiling 1 kernel, 2 s" in done.stderr
