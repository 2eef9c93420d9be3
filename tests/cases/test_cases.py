"""Small programs that broke real compilers, each with the right answer, each in its own process.

A crash or a hang costs one test. $CCOMPILE_CASES names other engines, separated by commas.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.corpus.engines import ENGINES, ccompile_compile

HERE = pathlib.Path(__file__).resolve().parent
CASES = sorted(HERE.glob("[0-9]*.py"))
NAMES = os.environ.get("CCOMPILE_CASES", "plain,eager,interp,c").split(",")


def run(path, engine):
    command = [sys.executable, "-W", "ignore", "-m", "tests.cases.run_case", str(path), engine]
    return subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True,
                          timeout=180, check=False)


def test_there_are_cases():
    assert len(CASES) >= 50 and set(NAMES) <= set(ENGINES)


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_case(path, engine):
    if engine != "plain" and ccompile_compile() is None:
        pytest.skip("this build has no ccompile.compile")
    child = run(path, engine)
    assert child.returncode == 0 and child.stdout.splitlines()[-1:] == ["ok"], child.stderr[-3000:]


def test_a_failing_case_is_seen(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def case(compile):\n    assert compile(abs)(-1) == 2\n")
    child = run(bad, "plain")
    assert child.returncode != 0 and "AssertionError" in child.stderr
