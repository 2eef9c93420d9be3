"""The suite's own tools can fail: leaks, seeds and golden files."""

import sys

import pytest

from tests.support import Case, child, golden_cases, golden_read, golden_write

CONFTEST = "from tests.conftest import *\n"


@pytest.fixture
def suite(pytester):
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nmarkers = leaks: x\n")
    return pytester


@pytest.mark.skipif(sys.getallocatedblocks() == 0, reason="PYTHONMALLOC=malloc counts nothing")
def test_leak_is_found(suite):
    suite.makepyfile(
        """
        import pytest

        KEPT = []

        @pytest.mark.leaks
        def test_keeps():
            KEPT.append([object() for _ in range(100)])

        @pytest.mark.leaks
        def test_clean(rng):
            rng.standard_normal(100).tolist()
        """
    )
    result = suite.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*leak: memory blocks grew*"])


def test_seed_is_printed_and_repeats(suite):
    suite.makepyfile(
        """
        def test_draw(rng):
            assert rng.integers(1 << 40) == -1
        """
    )
    result = suite.runpytest("--seed", "77")
    result.stdout.fnmatch_lines(["*--seed 77*"])
    drawn = [
        [line for line in suite.runpytest(*seed).outlines if "assert" in line and "==" in line]
        for seed in [(), (), ("--seed", "1")]
    ]
    assert drawn[0] == drawn[1] != drawn[2]


GOLDEN = """\
# comment
=== one
pass: algebra dce
in:
  %1 = PARAM

  ret %1
out:
  old

=== two
out:
"""
GOLDEN_TEST = """
import pytest
from tests.support import golden_cases

@pytest.mark.parametrize("where", golden_cases(__file__, "x.golden"), ids=str)
def test_case(golden, where):
    golden.check(where, "new\\n  line\\n" if where[1] == "one" else "")
"""


def test_golden_fails_then_rewrites(suite):
    path = suite.path / "x.golden"
    path.write_text(GOLDEN)
    suite.makepyfile(GOLDEN_TEST)
    suite.runpytest().assert_outcomes(passed=1, failed=1)
    assert path.read_text() == GOLDEN
    suite.runpytest("--update-golden").assert_outcomes(passed=2)
    assert path.read_text() == GOLDEN.replace("  old\n", "  new\n    line\n")
    suite.runpytest().assert_outcomes(passed=2)


def test_golden_round_trip(tmp_path):
    path = tmp_path / "x.golden"
    cases = [Case("a b", {"pass": "dce", "in": "one\n\n  two\n"}), Case("c", {"out": ""})]
    golden_write(path, ["# head", ""], cases)
    assert golden_read(path) == (["# head", ""], cases)
    assert golden_cases(str(tmp_path / "test_x.py"), "x.golden") == [(path, "a b"), (path, "c")]
    path.write_text("=== a\n  indented without a field\n")
    with pytest.raises(ValueError, match="x.golden:2:"):
        golden_read(path)


def test_child_sees_the_environment(monkeypatch):
    monkeypatch.setenv("CCOMPILE_GONE", "1")
    code = "import os; print(os.getenv('CCOMPILE_SET'), os.getenv('CCOMPILE_GONE'))"
    done = child(code, CCOMPILE_SET="yes", CCOMPILE_GONE=None)
    assert (done.returncode, done.stdout, done.stderr) == (0, "yes None\n", "")
