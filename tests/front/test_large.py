"""Arrays longer than the blocks of kernels: reductions both ways, copies of short rows."""

import numpy as np
import pytest

from .test_lower import check, make

SHAPES = [(9000,), (1300, 70), (70, 1300), (3, 700, 5), (600, 1, 33), (1, 5000), (5000, 2)]
NAMES = ["max", "min", "argmax", "argmin", "sum"]


def data(rng, dtype, shape):
    """Whole numbers, few enough that extremes occur often, sums exact in any order."""
    return rng.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8", "u8", "f4", "f8"])
def test_reductions(dtype, shape, rng):
    for x in (data(rng, dtype, shape), data(rng, dtype, (*shape, 2))[..., 0]):
        for name in NAMES:
            for axis in (None, *range(len(shape))):
                check(make(f"x.{name}(axis={axis})", "x"), (x,), ulp=0)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_first_nan_and_late_extremes(dtype, rng):
    for place in (0, 1, 511, 512, 8191, 8192, 8999):
        x = data(rng, dtype, (9000,))
        x[place] = 1000
        y = x.copy()
        y[place:] = np.nan
        for name in ("max", "min", "argmax", "argmin"):
            check(make(f"x.{name}()", "x"), (x,), (-x,), (y,), ulp=0)


def test_any_and_all_at_every_place(rng):
    for place in (0, 1, 63, 64, 511, 512, 8191, 8192, 8999, None):
        x = np.zeros(9000, bool)
        if place is not None:
            x[place] = True
        for y in (x, x.reshape(90, 100), x.reshape(1000, 9)):
            check(make("(x.any(), x.any(axis=-1), x.any(axis=0))", "x"), (y,), (~y,), ulp=0)
            check(make("(x.all(), x.all(axis=-1), x.all(axis=0))", "x"), (y,), (~y,), ulp=0)
        check(make("x.any() & ~x.all()", "x"), (x,), (~x,), ulp=0, kernels=False)


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8"])
def test_copies_of_short_rows(dtype, rng):
    x = data(rng, dtype, (500, 3, 1, 7))
    for text in (
        "np.repeat(x, 2)",
        "np.repeat(x, 3, axis=1)",
        "np.tile(x, (1, 2, 3, 2))",
        "np.stack((x, x), axis=-1)",
        "np.stack((x, x, x), axis=2)",
        "np.concatenate((x, x[:, :1]), axis=1)",
        "np.pad(x, ((1, 1), (0, 1), (1, 0), (2, 2)))",
        "np.roll(x, 5)",
        "np.roll(x, (1, 2), (1, 3))",
        "x[[3, 1, 2]]",
        "np.take(x, [2, 0], axis=1)",
        "np.take(x, [6, 0, 3], axis=3)",
        "np.asarray(x[::-1, ::2, :, ::3]) * 1",
        "x.reshape(1500, 7).T.reshape(-1) * 1",
        "x.swapaxes(0, 3).reshape(7, -1) * 1",
    ):
        check(make(text, "x"), (x,), ulp=0)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f4", "f8"])
def test_long_ranges(dtype):
    for text in (
        "np.arange(7000) + x",
        "np.arange(5, 7005) * x",
        "np.tril(np.ones((90, 95), x.dtype)) * x[0]",
        "np.arange(0, 3500, 0.5) + x",
        "np.linspace(0, 1, 7000) * x",
    ):
        check(make(text, "x"), (np.full(7000, 2, dtype),), ulp=0)
