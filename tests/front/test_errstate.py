"""Floating-point errors that the program asks to hear of, on every backend."""

import warnings

import numpy as np
import pytest

import ccompile


def heard(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with np.errstate(all="warn"):
            function(*args)
    return [str(w.message) for w in caught]


@pytest.mark.parametrize("backend", ccompile.list_backends())
@pytest.mark.parametrize("small", [1e-300, 1e-200, 1.0])
def test_underflow_is_reported_as_plain(backend, small):
    def product(a, b):
        return np.exp(a * b) * (a * b)

    compiled = ccompile.compile(product, backend=backend)
    x = np.array([small, 1.0])
    for _ in range(3):  # recorded and replayed while underflow is ignored
        compiled(x, x)
    for _ in range(3):
        assert heard(compiled, x, x) == heard(product, x, x)
