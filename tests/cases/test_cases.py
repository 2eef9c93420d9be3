"""Small programs that broke real compilers, each with the right answer, each in its own process.

A crash or a hang costs one test. $CCOMPILE_CASES names other engines, separated by commas.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.corpus.engines import ENGINES, available

HERE = pathlib.Path(__file__).resolve().parent
CASES = sorted(HERE.glob("[0-9]*.py"))
NAMES = os.environ.get("CCOMPILE_CASES", "plain,eager,interp,c").split(",")


def run(path, engine):
    command = [sys.executable, "-W", "ignore", "-m", "tests.cases.run_case", str(path), engine]
    return subprocess.run(command, cwd=HERE.parent.parent, capture_output=True, text=True,
                          timeout=180, check=False)


def missing(path):
    """Packages that the case needs and that are not here."""
    needs = re.search(r"^# .*needs: *(.*)$", path.read_text(), re.MULTILINE)
    return [name for name in re.split(r"[ ,]+", needs[1] if needs else "")
            if name and importlib.util.find_spec(name) is None]


def test_there_are_cases():
    assert len(CASES) >= 70 and set(NAMES) <= set(ENGINES)


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("path", CASES, ids=[p.stem for p in CASES])
def test_case(path, engine):
    if not available(engine):
        pytest.skip(f"this build has no backend for {engine}")
    if absent := missing(path):
        pytest.skip(f"needs {', '.join(absent)}")
    child = run(path, engine)
    assert child.returncode == 0 and child.stdout.splitlines()[-1:] == ["ok"], child.stderr[-3000:]


def test_a_failing_case_is_seen(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def case(compile):\n    assert compile(abs)(-1) == 2\n")
    child = run(bad, "plain")
    assert child.returncode != 0 and "AssertionError" in child.stderr
