"""The demo where no compiler and no libgomp can be found: the same training, by the interpreter."""

import json

import numpy as np
import pytest

from tests.support import ROOT, child

from .test_fashion_mnist import data  # noqa: F401 - a fixture

PROGRAM = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
import fashion_mnist
import ccompile
from ccompile import _core

with contextlib.redirect_stdout(io.StringIO()):
    where = ["--mode", sys.argv[3], "--data", sys.argv[2]]
    (report,) = fashion_mnist.main([*where, "--epochs", "2", "--eager-steps", "0"]).values()
try:
    maps = open("/proc/self/maps").read()
except OSError:
    maps = ""
print(json.dumps({
    "losses": report.losses,
    "accuracy": report.accuracy,
    "counters": ccompile.counters(),
    "reason": _core.backend_info()["reason"],
    "gomp": "libgomp" in maps,
}))
"""


def run(folder, mode, **env):
    """What the demo did, in a process of its own."""
    done = child(PROGRAM, str(ROOT / "examples"), folder, mode, timeout=300, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.fixture(scope="module")
def plain(data):  # noqa: F811
    return run(data, "eager")[0]


def test_a_compiler_makes_no_difference(data, tmp_path):  # noqa: F811
    """To the bit: what the two backends compute is the same."""
    caches = [str(tmp_path / name) for name in ("c", "interp")]
    with_one = run(data, "graph", CCOMPILE_CACHE_DIR=caches[0], CCOMPILE_STRESS=None)[0]
    if with_one["reason"] == "NO_COMPILER":
        pytest.skip("no C compiler")
    without = run(data, "graph", PATH="", CC=None, CCOMPILE_CACHE_DIR=caches[1],
                  CCOMPILE_STRESS=None)[0]
    assert with_one["counters"]["compiled_kernels"] > 0
    assert with_one["losses"] == without["losses"]
    assert with_one["accuracy"] == without["accuracy"]


@pytest.mark.parametrize("team", ["pool", "serial"])
def test_training_without_a_compiler(data, plain, tmp_path, team):  # noqa: F811
    threads = {"pool": "2", "serial": "1"}[team]
    got, stderr = run(data, "graph", PATH="", CC=None, CCOMPILE_CACHE_DIR=str(tmp_path / "cache"),
                      CCOMPILE_NUM_THREADS=threads, CCOMPILE_STRESS=None, CCOMPILE_LOGS=None)
    assert not got["gomp"] and got["reason"] == "NO_COMPILER"
    assert got["counters"]["compiled_kernels"] == got["counters"]["cache_hits"] == 0
    assert got["counters"]["array_ops_in_kernels"] > 0
    assert got["accuracy"] == plain["accuracy"] > 0.9
    np.testing.assert_allclose(got["losses"], plain["losses"], rtol=0, atol=1e-4)
    assert "Error" not in stderr and "Warning" not in stderr, stderr
