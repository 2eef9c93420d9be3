"""Errors in ulp against mpmath stay below the bounds of vmath.def; exact cases are exact."""

import functools

import mpmath as mp
import numpy as np
import pytest

from tests.vmath.vmtest import (
    Fn,
    functions,
    lib,
    numpy_function,
    random_bits,
    specials,
    tier,
    variants,
)

POINTS = 1500       # per range; the reference costs 10 to 100 microseconds each


def _logaddexp(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    return mp.log(mp.exp(x) + mp.exp(y))


REFERENCE = {
    "exp": mp.exp, "exp2": lambda x: mp.mpf(2) ** x, "expm1": mp.expm1, "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.log(2), "log10": mp.log10, "log1p": mp.log1p,
    "sin": mp.sin, "cos": mp.cos, "tan": mp.tan, "asin": mp.asin, "acos": mp.acos,
    "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh, "asinh": mp.asinh,
    "acosh": mp.acosh, "atanh": mp.atanh, "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "erf": mp.erf, "pow": lambda x, y: x**y, "atan2": mp.atan2, "hypot": mp.hypot,
    "logaddexp": _logaddexp,
}
# ranges of interest: (lo, hi); the logarithmic ones are written as powers of two, "2^lo..2^hi"
DENSE = {
    "exp": [(-1, 1), (-745, 710), (-88, 89)], "exp2": [(-1, 1), (-1075, 1025), (-149, 128)],
    "expm1": [(-1, 1), (-0.5, 0.5), (-40, 710), "2^-30..2^0"],
    "log": [(0.5, 2), (0.99, 1.01), (0, 100)], "log2": [(0.5, 2), (0.99, 1.01), (0, 100)],
    "log10": [(0.5, 2), (0.99, 1.01), (0, 1000)],
    "log1p": [(-0.5, 1), (-1, 0), "2^-60..2^0", "-2^-60..2^0", (0, 1000)],
    "sin": [(-8, 8), (-1e5, 1e5), "2^15..2^40", "pi/2"], "cos": [(-8, 8), (-1e5, 1e5), "pi/2"],
    "tan": [(-8, 8), (-1e5, 1e5), "2^15..2^40", "pi/2"],
    "asin": [(-1, 1), (0.999, 1), "2^-30..2^0"], "acos": [(-1, 1), (0.999, 1), (-1, -0.999)],
    "atan": [(-1, 1), (-5, 5), "2^-30..2^60"],
    "sinh": [(-1, 1), (-30, 30), (-711, 711), "2^-30..2^0"],
    "cosh": [(-1, 1), (-30, 30), (-711, 711)],
    "tanh": [(-1, 1), (-20, 20), "2^-30..2^4"], "asinh": [(-1, 1), (-50, 50), "2^-30..2^40"],
    "acosh": [(1, 1.1), (1, 10), "2^0..2^40"], "atanh": [(-1, 1), (0.99, 1), "2^-30..2^0"],
    "cbrt": [(-8, 8)], "erf": [(-1, 1), (-6, 6), "2^-30..2^0"],
}


def one_range(spec: object, dtype: type, rng: np.random.Generator) -> np.ndarray:
    """POINTS numbers of a range of DENSE."""
    if spec == "pi/2":      # neighbours of multiples of pi/2: the reduction's hard cases
        k = np.concatenate([np.arange(1, POINTS // 2), rng.integers(1, 2**28, POINTS // 2)])
        x = (k * (np.pi / 2)).astype(dtype)
        return np.nextafter(x, rng.choice([0, np.inf], x.size).astype(dtype))
    if isinstance(spec, str):
        lo, hi = (float(part.lstrip("-").split("^")[1]) for part in spec.split(".."))
        x = np.exp2(rng.uniform(lo, hi, POINTS))
        return (-x if spec[0] == "-" else x).astype(dtype)
    return rng.uniform(*spec, POINTS).astype(dtype)


def pairs(name: str, dtype: type, rng: np.random.Generator) -> list[np.ndarray]:
    """Arguments of a function of two."""
    if name == "pow":
        top = 700 if dtype is np.float64 else 86
        x = np.concatenate([np.exp(rng.uniform(-top, top, POINTS)), rng.uniform(0.5, 2, POINTS),
                            1 + rng.uniform(-1, 1, POINTS) / 256])
        y = rng.uniform(-1, 1, x.size) * top / np.abs(np.log(x))
        return [x.astype(dtype), y.astype(dtype)]
    span = {"atan2": 300, "hypot": 60, "logaddexp": 5}[name] if dtype is np.float64 else 30
    x, y = (rng.choice([-1, 1], 3 * POINTS) * np.exp2(rng.uniform(-span, span, 3 * POINTS))
            for _ in range(2))
    y[:POINTS] = x[:POINTS] * rng.uniform(-3, 3, POINTS)
    return [x.astype(dtype), y.astype(dtype)]


@functools.cache
def arguments(fn: Fn, dtype: type) -> tuple[np.ndarray, ...]:
    """All the points of a function: random bits, specials, dense ranges."""
    rng = np.random.default_rng(20)
    bits = [random_bits(dtype, POINTS, rng) for _ in range(fn.nin)]
    special = specials(dtype)
    if fn.nin == 2:
        special = special[::2] if dtype is np.float64 else special
        grid = [a.ravel() for a in np.meshgrid(special, special)]
        parts = zip(bits, grid, pairs(fn.name, dtype, rng), strict=True)
        return tuple(np.concatenate(p) for p in parts)
    x = [*bits, special, *(one_range(s, dtype, rng) for s in DENSE[fn.name])]
    if dtype is np.float32:
        x.append(np.arange(0, 2**32, 9973, dtype=np.uint64).astype(np.uint32).view(dtype))
    return (np.concatenate(x),)


@functools.cache
def reference(fn: Fn) -> list[mp.mpf | None]:
    """Binary64: values to 40 digits and more; None where the function is not finite or real."""
    return [exact(fn.name, args)
            for args in zip(*(a.tolist() for a in arguments(fn, np.float64)), strict=True)]


def exact(name: str, args: tuple[float, ...]) -> mp.mpf | None:
    """One reference value."""
    if not np.isfinite(args).all():
        return None
    if name in ("exp", "exp2", "sinh", "cosh", "expm1") and abs(args[0]) > 2000:
        return None
    if name == "erf" and abs(args[0]) > 30:
        return mp.sign(args[0])
    if name == "tanh" and abs(args[0]) > 60:
        return mp.sign(args[0])
    if name == "pow" and (args[0] <= 0 or abs(mp.log(args[0]) * args[1]) > 2000):
        return None
    if name == "atan2" and 0 in args:
        return None
    if name == "logaddexp" and abs(args[0] - args[1]) > 1000:
        return mp.mpf(max(args))
    small = 1e-20 if name in ("expm1", "log1p", "asinh", "acosh", "tanh", "sinh", "atanh") else 0
    with mp.workdps(450 if 0 < abs(args[0]) < small else 75):
        try:
            value = REFERENCE[name](*map(mp.mpf, args))
        except (ValueError, ZeroDivisionError, OverflowError):
            return None
        return None if isinstance(value, mp.mpc) or not mp.isfinite(value) else value


def error(got: float, want: mp.mpf, scale: mp.mpf) -> mp.mpf:
    """|got - want| in binary64 ulp of `scale`; infinity where only one of the two overflows."""
    largest = mp.mpf(2) ** 1024 - mp.mpf(2) ** 970
    if np.isinf(got) or abs(want) > largest:
        off = abs(abs(want) - largest) / mp.mpf(2) ** 971
        return off if off < 1 else mp.mpf(0) if np.isinf(got) and abs(want) > largest else mp.inf
    exponent = int(mp.frexp(scale)[1]) if scale else -1021
    return abs(mp.mpf(got) - want) / mp.mpf(2) ** (max(exponent, -1021) - 53)


def worst_f64(fn: Fn, variant: str) -> tuple[float, tuple]:
    """The largest error and where it is."""
    args = arguments(fn, np.float64)
    got, _ = lib(variant).call(fn.name, *args)
    most, where = mp.mpf(0), ()
    for i, (g, want) in enumerate(zip(got.tolist(), reference(fn), strict=True)):
        if want is None:
            continue
        scale = abs(want)
        if fn.name == "logaddexp":
            scale = max(scale, *(abs(mp.mpf(float(a[i]))) for a in args))
        e = error(g, want, scale)
        if not e <= most:
            most, where = e, tuple(float(a[i]) for a in args)
    return float(most), where


def worst_f32(fn: Fn, variant: str) -> tuple[float, tuple]:
    """The largest error against NumPy's binary64 function, which is exact enough for floats."""
    args = arguments(fn, np.float32)
    got, _ = lib(variant).call(fn.name, *args)
    with np.errstate(all="ignore"):
        want = numpy_function(fn.name)(*(a.astype(np.float64) for a in args))
        scale = np.abs(want)
        if fn.name == "logaddexp":
            scale = np.maximum(scale, np.maximum(*np.abs(args)))
        ulp = np.exp2(np.maximum(np.frexp(scale)[1], -125) - 24.0)
        off = np.abs(got - want) / ulp
        over = np.isinf(got) | (np.abs(want) >= 2.0**128 - 2.0**103)
        agree = np.isnan(got) == np.isnan(want)
        off[over] = np.where(got[over] == want[over].astype(np.float32), 0, np.inf)[...]
    off[np.isnan(off)] = 0
    off[~agree] = np.inf
    i = int(off.argmax())
    return float(off[i]), tuple(float(a[i]) for a in args)


ROUNDED = [fn for fn in functions() if fn.f64 > 0]


def one_of_each_tier() -> list[str]:
    """Names of two variants: the other ones have the same bits (test_width.py)."""
    return list({tier(v): v for v in variants()}.values())


@pytest.mark.parametrize("fn", ROUNDED, ids=lambda fn: fn.name)
def test_f64_error_is_below_the_bound(fn: Fn) -> None:
    for variant in one_of_each_tier():
        most, where = worst_f64(fn, variant)
        assert most <= fn.f64, f"{variant}: {fn.name}{where} is off by {most:.3f} ulp"


@pytest.mark.parametrize("fn", ROUNDED, ids=lambda fn: fn.name)
def test_f32_error_is_below_the_bound(fn: Fn) -> None:
    for variant in one_of_each_tier():
        most, where = worst_f32(fn, variant)
        assert most <= fn.f32, f"{variant}: {fn.name}{where} is off by {most:.3f} ulp"
