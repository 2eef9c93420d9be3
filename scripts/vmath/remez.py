"""Weighted Remez fits on a Chebyshev grid, with coefficients rounded to 53 or 24 bits."""

from collections.abc import Callable, Sequence

import mpmath as mp

Real = Callable[[mp.mpf], mp.mpf]
GRID = 600


def _alternating_extrema(errors: list[mp.mpf], wanted: int) -> list[int]:
    """Index of the largest error of each run of one sign, trimmed to the wanted number."""
    runs: list[list[int]] = [[0]]
    for i in range(1, len(errors)):
        if (errors[i] > 0) == (errors[runs[-1][0]] > 0):
            runs[-1].append(i)
        else:
            runs.append([i])
    peaks = [max(run, key=lambda i: abs(errors[i])) for run in runs]
    while len(peaks) > wanted:
        peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
    return peaks


def remez(f: Real, weight: Real, lo: mp.mpf, hi: mp.mpf, degree: int) -> tuple[list, mp.mpf]:
    """Coefficients (low first) that minimise max |weight * (f - p)| on [lo, hi]; that maximum."""
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    x = [mid - half * mp.cos(mp.pi * mp.mpf(i) / (GRID - 1)) for i in range(GRID)]
    fx = [f(v) for v in x]
    wx = [weight(v) for v in x]
    n = degree + 2
    points = [round(i * (GRID - 1) / (n - 1)) for i in range(n)]
    coef: list = []
    worst = mp.mpf(0)
    for _ in range(12):
        a, b = mp.matrix(n, n), mp.matrix(n, 1)
        for row, i in enumerate(points):
            for col in range(degree + 1):
                a[row, col] = x[i] ** col
            a[row, n - 1] = (-1) ** row / wx[i]
            b[row] = fx[i]
        solved = mp.lu_solve(a, b)
        coef = [solved[i] for i in range(degree + 1)]
        errors = [wx[i] * (fx[i] - mp.polyval(coef[::-1], x[i])) for i in range(GRID)]
        worst = max(abs(e) for e in errors)
        points = _alternating_extrema(errors, n)
        if len(points) < n or worst < abs(solved[n - 1]) * mp.mpf("1.001"):
            break
    return coef, worst


def rounded(value: mp.mpf, bits: int = 53) -> mp.mpf:
    """The value with that many significant bits, to nearest."""
    if value == 0:
        return mp.mpf(0)
    mantissa, exponent = mp.frexp(value)
    return mp.mpf(int(mp.nint(mp.ldexp(mantissa, bits)))) * mp.mpf(2) ** (int(exponent) - bits)


def fit(
    f: Real, weight: Real, lo: float, hi: float, degree: int, bits: int = 53
) -> tuple[Sequence[mp.mpf], mp.mpf, mp.mpf]:
    """Rounded coefficients, the minimax error, and the error with rounded coefficients."""
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    if lo == 0:
        lo = hi * mp.mpf("1e-5")
    exact, best = remez(f, weight, lo, hi, degree)
    coef = [rounded(c, bits) for c in exact]
    points = [lo + (hi - lo) * mp.mpf(i) / 997 + mp.mpf(10) ** -13 for i in range(998)]
    after = max(abs(weight(x) * (f(x) - mp.polyval(coef[::-1], x))) for x in points)
    return coef, best, after
