"""The n-th allocation fails, for every n: the program's own result all the same."""

import re

import pytest

from tests.support import child

CODE = "import sys; from tests.fault.allocations import main; main(sys.argv[1:])"

# of each kind of event: inlining, exits, loops, side traces, residual calls, exceptions, virtual
# objects, views and writes, kernels, gradients
WORDS = ["softmax", "power_iteration", "fibonacci", "flatten_nested", "generator_context_manager",
         "zero_to_a_power", "closure", "pair_by_number"]


def check(tmp_path, engine, step, limit, *words, timeout):
    last = tmp_path / "last"
    done = child(CODE, engine, str(step), str(limit), *words, timeout=timeout,
                 CCOMPILE_FAULT_LAST=str(last), CCOMPILE_STRESS=None)
    where = f" at {last.read_text()}" if last.exists() else ""
    assert done.returncode == 0, f"ended with {done.returncode}{where}\n{done.stderr}"
    lines = done.stdout.splitlines()
    assert len(lines) == 1, done.stdout
    return int(re.fullmatch(r"(\d+) runs", lines[0])[1])


@pytest.mark.parametrize("engine,step", [("eager", 1), ("eager+stress", 5), ("interp", 5)])
def test_some_programs(tmp_path, engine, step):
    assert check(tmp_path, engine, step, 100_000, *WORDS, timeout=300) > 300


@pytest.mark.parametrize("engine", ["eager", "interp"])
def test_gradients(tmp_path, engine):
    assert check(tmp_path, engine, 9, 100_000, "gradient_ties", timeout=300) > 25


@pytest.mark.slow
@pytest.mark.parametrize("engine,step", [("eager", 7), ("interp", 11), ("interp+stress", 41)])
def test_the_corpus(tmp_path, engine, step):
    assert check(tmp_path, engine, step, 100_000, timeout=900) > 1000
