"""Special values, exact cases and IEEE flags."""

import itertools
import math

import numpy as np
import pytest

from tests.vmath.vmtest import (
    DTYPES,
    Fn,
    functions,
    lib,
    numpy_function,
    random_bits,
    specials,
    variants,
)

DIVIDE, OVERFLOW, INVALID = 1, 2, 8
TWO = ("plain-w4", variants()[-1])      # one variant of each tier


def numpy_result(fn: Fn, args: list[np.ndarray]) -> np.ndarray:
    """What NumPy has for these arguments; floats of rounded functions by way of binary64."""
    dtype = args[0].dtype
    if fn.f32 > 0:
        args = [a.astype(np.float64) for a in args]
    with np.errstate(all="ignore"):
        return numpy_function(fn.name)(*args).astype(dtype)


def grid(fn: Fn, dtype: type) -> list[np.ndarray]:
    """All special values, or all pairs of them."""
    columns = itertools.product(specials(dtype), repeat=fn.nin)
    return [np.array(column, dtype) for column in zip(*columns, strict=True)]


def expected_flags(fn: Fn, args: tuple[float, ...], got: float) -> int:
    """The flags a result means, by Annex F: a pole, a result too large, a NaN out of numbers."""
    finite = all(map(math.isfinite, args))
    if math.isnan(got):
        return 0 if any(map(math.isnan, args)) else INVALID
    if not math.isinf(got) or not finite:
        return 0
    pole = (fn.name.startswith("log") and fn.name != "logaddexp") or fn.name == "atanh" \
        or (fn.name == "pow" and args[0] == 0) or (fn.name == "floor_divide" and args[1] == 0)
    return DIVIDE if pole else OVERFLOW


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", functions(), ids=lambda fn: fn.name)
def test_special_values_are_numpys(fn: Fn, dtype: type) -> None:
    args = grid(fn, dtype)
    want = numpy_result(fn, args)
    for variant in TWO:
        got, _ = lib(variant).call(fn.name, *args)
        # nan where NumPy has nan, inf where inf, the same signs and zeros, else close
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        number = ~np.isnan(want)
        got, there = got[number], want[number]
        np.testing.assert_array_equal(np.signbit(got), np.signbit(there))
        exact = ~np.isfinite(there) | (there == 0) | (fn.bound(dtype) == 0)
        np.testing.assert_array_equal(got[exact], there[exact])
        scale = np.abs(there[~exact])
        if fn.name == "logaddexp":      # its bound is relative to the arguments
            scale = np.maximum(scale, np.maximum(*np.abs(args))[number][~exact])
        ulp = np.maximum(scale * np.finfo(dtype).eps, np.finfo(dtype).smallest_subnormal)
        assert (np.abs(got[~exact] - there[~exact]) <= 2 * ulp).all()


@pytest.mark.parametrize("fn", [f for f in functions() if f.f64 == 0], ids=lambda fn: fn.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_functions_have_numpys_bits(fn: Fn, dtype: type) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([random_bits(dtype, 20000, rng), rng.uniform(-9, 9, 20000).astype(dtype),
                        rng.integers(-40, 40, 20000).astype(dtype) / 4])
    args = [x, rng.permutation(x)[: x.size]][: fn.nin]
    if fn.nin == 2:     # quotients of every size, and exact ones
        with np.errstate(all="ignore"):
            args[1][::3] = args[0][::3] / rng.integers(1, 1000, args[1][::3].size).astype(dtype)
    want = numpy_result(fn, args)
    for variant in TWO:
        got, _ = lib(variant).call(fn.name, *args)
        np.testing.assert_array_equal(got, want)
        keep = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[keep]), np.signbit(want[keep]))


def numpy_flags(fn: Fn, args: tuple[float, ...], dtype: type) -> int:
    """The flags NumPy reports, underflow aside."""
    seen = []
    old = np.seterrcall(lambda _, flags: seen.append(flags))
    with np.errstate(all="call", under="ignore"):
        getattr(np, fn.name)(*(np.array([a], dtype) for a in args))
    np.seterrcall(old)
    return sum(set(seen)) & (DIVIDE | OVERFLOW | INVALID)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", functions(), ids=lambda fn: fn.name)
def test_flags_of_single_elements(fn: Fn, dtype: type) -> None:
    as_numpy = fn.name in ("floor_divide", "remainder", "fmod", "logaddexp")
    step = fn.nin
    args = [a[::step] for a in grid(fn, dtype)]
    for values in zip(*(a.tolist() for a in args), strict=True):
        arrays = [np.array([v], dtype) for v in values]
        for variant in TWO:
            got, flags = lib(variant).call(fn.name, *arrays)
            want = numpy_flags(fn, values, dtype) if as_numpy \
                else expected_flags(fn, values, float(got[0]))
            assert flags == want, (variant, values, got)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", functions(), ids=lambda fn: fn.name)
def test_ordinary_elements_raise_nothing(fn: Fn, dtype: type) -> None:
    rng = np.random.default_rng(8)
    x = [random_bits(dtype, 40000, rng), rng.uniform(-1, 1, 40000).astype(dtype)]
    args = [np.concatenate(x)] if fn.nin == 1 else [np.concatenate(x), np.concatenate(x[::-1])]
    for variant in TWO:
        got, _ = lib(variant).call(fn.name, *args)
        fine = np.isfinite(got) & np.all([np.isfinite(a) for a in args], axis=0)
        if fn.name == "logaddexp":      # overflows where x - y does
            with np.errstate(all="ignore"):
                fine &= np.isfinite(args[0] - args[1])
        assert fine.sum() > 100
        _, flags = lib(variant).call(fn.name, *(a[fine] for a in args))
        assert flags == 0, variant
        quiet = [np.full(40, np.nan, dtype) for _ in args]
        wanted = INVALID if fn.name == "logaddexp" else 0       # as NumPy's comparison
        assert lib(variant).call(fn.name, *quiet)[1] == wanted


def ask(name: str, *args: object, dtype: type = np.float64) -> list[list[float]]:
    """The values under each tier."""
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype) for a in args))
    return [lib(v).call(name, *(np.ascontiguousarray(a) for a in arrays))[0] for v in TWO]


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_cases(dtype: type) -> None:
    whole = np.arange(-30, 31).astype(dtype)
    cubes = np.arange(-200, 201).astype(dtype)
    rng = np.random.default_rng(1)
    x = rng.uniform(-100, 100, 5000).astype(dtype)
    both = np.concatenate([x, specials(dtype)])

    def check(name: str, want: object, *args: object) -> None:
        for got in ask(name, *args, dtype=dtype):
            np.testing.assert_array_equal(got, np.broadcast_to(np.asarray(want, dtype), got.shape))

    check("exp", 1, [0.0, -0.0])
    check("exp2", np.exp2(whole), whole)
    check("log", 0, [1.0])
    check("log2", whole, np.exp2(whole))
    check("log10", np.arange(11), 10.0 ** np.arange(11))
    check("cos", 1, [0.0, -0.0])
    check("cosh", 1, [0.0])
    check("cbrt", cubes, cubes**3)
    check("hypot", 5 * cubes[200:], 3 * cubes[200:], 4 * cubes[200:])
    check("pow", both, both, 1.0)
    check("pow", 1, both, 0.0)
    with np.errstate(all="ignore"):
        check("pow", both * both, both, 2.0)
    bases = np.arange(2, 100).astype(dtype)
    for power in range(3, 8):
        fits = bases[bases**power < 2.0 ** (53 if dtype is np.float64 else 24)]
        check("pow", fits**power, fits, float(power))
        check("pow", (-fits) ** power, -fits, float(power))
    check("pow", bases, bases * bases, 0.5)


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh",
                                  "expm1", "log1p", "cbrt", "erf", "rint", "floor", "trunc"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_keeps_its_sign(name: str, dtype: type) -> None:
    for got in ask(name, [0.0, -0.0], dtype=dtype):
        assert got.tolist() == [0.0, 0.0]
        assert np.signbit(got).tolist() == [False, True]


def test_values_stay_in_range() -> None:
    rng = np.random.default_rng(4)
    x = (rng.integers(0, 10000, 50000) + 0.5) * np.pi + rng.uniform(-1, 1, 50000) * 1e-7
    for dtype in DTYPES:
        for name in ("sin", "cos", "tanh", "erf"):
            for got in ask(name, x, dtype=dtype) + ask(name, x - np.pi / 2, dtype=dtype):
                assert np.abs(got).max() <= 1
