"""Random array expressions: compiled as plain. More seeds: python -m tests.fuzz.random_arrays."""

import numpy as np
import pytest

import ccompile

from .random_arrays import Case, run_case


@pytest.mark.parametrize("block", range(10))
def test_interp(block):
    kernels = 0
    for seed in range(block * 60, block * 60 + 60):
        wrong, count = run_case(seed, "interp")
        assert wrong is None, wrong
        kernels += count > 0
    assert kernels > 20


@pytest.mark.parametrize("seed", range(40))
def test_c(seed):
    wrong, _ = run_case(seed, "c")
    assert wrong is None, wrong


def test_cases_repeat():
    assert [str(Case(seed)) for seed in range(50)] == [str(Case(seed)) for seed in range(50)]


@pytest.mark.parametrize("fault", ["value", "dtype", "order", "warning"])
def test_a_wrong_engine_is_found(fault, monkeypatch):
    def wrong(function, backend):
        def call(*args):
            if fault == "warning":
                with np.errstate(all="ignore"):
                    return function(*args)
            out = function(*args)
            if not isinstance(out, np.ndarray) or out.ndim < 2 or 1 in out.shape:
                return out
            if fault == "dtype":
                return out.astype(np.float16)
            if fault == "order":
                return np.array(out, order="F" if out.flags.c_contiguous else "C")
            return out ^ True if out.dtype == bool else out + 1

        return call

    monkeypatch.setattr(ccompile, "compile", wrong)
    monkeypatch.setattr(ccompile, "counters", lambda compiled: {"array_ops_in_kernels": 0})
    assert sum(run_case(seed, "none")[0] is not None for seed in range(60)) > 2
