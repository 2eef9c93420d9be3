"""Sums, means and variances are NumPy's to the bit: what is added to what is the same.

Beyond this table the order is our own, with no larger error: columns of more than 512 rows, axes
that do not lie side by side in memory, and arrays that NumPy converts while it adds them.
"""

import numpy as np
import pytest

import ccompile

ROWS = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean(),
    "var": lambda a: a.var(),
    "std of each row": lambda a: a.std(axis=-1),
    "sum of each row": lambda a: a.sum(axis=-1),
    "sum of each column": lambda a: a.sum(axis=0),
    "mean of each column": lambda a: a.mean(axis=0),
    "sum of squares": lambda a: (a * a).sum(),
    "sum of doubled rows": lambda a: (a * 2).sum(axis=-1),
    "sum of a transpose": lambda a: a.T.sum(),
    "sum of every other": lambda a: a[..., ::2].sum(),
}

SHAPES = [
    (1,), (5,), (7,), (8,), (9,), (15,), (127,), (128,), (129,), (257,), (511,), (512,), (513,),
    (1000,), (4097,), (32768,), (32769,), (65537,), (100003,),
    (3, 4), (20, 5), (20, 9), (9, 20), (100, 300), (300, 100), (7, 1000), (512, 3), (64, 10),
    (100, 8), (100, 15), (100, 16),
]


@pytest.mark.parametrize("backend", ["interp", "c"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("row", ROWS)
def test_bits(row, dtype, backend):
    f = ROWS[row]
    compiled = ccompile.compile(f, backend=backend)
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        a = rng.standard_normal(shape).astype(dtype)
        for _ in range(2):
            got, want = compiled(a), f(a)
            assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), shape
    assert ccompile.counters()["array_ops_in_kernels"] > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product_of_a_block(dtype):
    compiled = ccompile.compile(lambda a: a.prod())
    for n in (1, 8, 100, 512):
        a = (1 + np.random.default_rng(n).standard_normal(n) / 64).astype(dtype)
        for _ in range(2):
            assert compiled(a) == a.prod()
