"""Make csrc/kern/vmath_coef.h and csrc/kern/vmath_tables.h: every number vmath is built on.

Usage: python scripts/vmath/generate.py OUTDIR
"""

import pathlib
import struct
import sys
from collections.abc import Iterable

import mpmath as mp
from remez import fit, rounded

mp.mp.dps = 50
LN2 = mp.log(2)
ONE_PLUS = mp.mpf("1.001")      # fits reach a little past the interval the reduction promises


def _expq(r: mp.mpf) -> mp.mpf:
    if abs(r) < 1e-8:
        return mp.mpf(1) / 6 + r / 24
    return (mp.expm1(r) - r - r * r / 2) / r**3


def _exp_square(r: mp.mpf) -> mp.mpf:
    return (mp.expm1(r) - r) / r**2 if abs(r) > 1e-9 else mp.mpf(1) / 2 + r / 6


def _expm1_over(r: mp.mpf) -> mp.mpf:
    return mp.expm1(r) / r if r != 0 else mp.mpf(1)


def _log1p_cubic(r: mp.mpf) -> mp.mpf:
    return (mp.log1p(r) - r + r * r / 2) / r**3 if abs(r) > 1e-8 else mp.mpf(1) / 3 - r / 4


def _sin_tail(z: mp.mpf) -> mp.mpf:
    r = mp.sqrt(z)
    return (mp.sin(r) - r) / (r * z) if z > 1e-12 else -mp.mpf(1) / 6 + z / 120


def _cos_tail(z: mp.mpf) -> mp.mpf:
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > 1e-10 else mp.mpf(1) / 24 - z / 720


def _atan_tail(z: mp.mpf) -> mp.mpf:
    r = mp.sqrt(z)
    return (mp.atan(r) - r) / (r * z) if z > 1e-12 else -mp.mpf(1) / 3 + z / 5


def _log2_tail(z: mp.mpf) -> mp.mpf:
    s = mp.sqrt(z)
    tail = (2 * mp.atanh(s) - 2 * s) / (s * z) if z > 1e-12 else mp.mpf(2) / 3 + 2 * z / 5
    return tail / LN2


def _one(_: mp.mpf) -> mp.mpf:
    return mp.mpf(1)


def coefficient_rows() -> Iterable[tuple]:
    """(name, what it approximates, function, weight, lo, hi, degree[, bits]) of each polynomial."""
    half_ln2 = LN2 / 2 * ONE_PLUS
    quarter_pi = (mp.pi / 4 * ONE_PLUS) ** 2
    eighth_pi = mp.tan(mp.pi / 8) ** 2 * ONE_PLUS
    log_z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * ONE_PLUS
    yield ("EXPQ", "(e^r - 1 - r - r^2/2) / r^3", _expq, lambda r: max(abs(r), mp.mpf("1e-12"))
           ** 3 / mp.exp(r), -half_ln2, half_ln2, 8)
    yield ("EXPM1Q", "the same, for small results of e^r - 1", _expq,
           lambda r: r**2 / _expm1_over(r), -half_ln2, half_ln2, 9)
    yield ("LOGP", "(log1p(r) - r + r^2/2) / r^3", _log1p_cubic, lambda r: r**2,
           -mp.mpf(2) ** -7 * 1.02, mp.mpf(2) ** -7 * 1.02, 5)
    yield ("SINS", "(sin(r) - r) / r^3 in r^2", _sin_tail, lambda z: z, 0, quarter_pi, 5)
    yield ("COSC", "(cos(r) - 1 + r^2/2) / r^4 in r^2", _cos_tail, lambda z: z * z, 0,
           quarter_pi, 5)
    yield ("ATANP", "(atan(r) - r) / r^3 in r^2", _atan_tail, lambda z: z, 0, eighth_pi, 11)
    yield ("RCBRT", "u^(-1/3)", lambda u: mp.cbrt(1 / u), lambda u: mp.cbrt(u), 1, 2, 5)
    yield ("EXPS", "(e^r - 1 - r) / r^2, in binary32", _exp_square,
           lambda r: max(abs(r), mp.mpf("1e-12")) ** 2 / mp.exp(r), -half_ln2, half_ln2, 4, 24)
    yield ("EXPF", "(e^r - 1) / r, for float results of exp", _expm1_over,
           lambda r: max(abs(r), mp.mpf("1e-13")) / mp.exp(r), -half_ln2, half_ln2, 5)
    yield ("EXPM1F", "(e^r - 1) / r, for float results of tanh", _expm1_over,
           lambda r: 1 / _expm1_over(r), -half_ln2, half_ln2, 6)
    yield ("LOGS", "(log1p(f) - f + f^2/2) / f^3, in binary32", _log1p_cubic,
           lambda f: abs(f**3 / mp.log1p(f)) if abs(f) > 1e-8 else f * f,
           mp.sqrt(mp.mpf(0.5)) - 1, mp.sqrt(2) - 1, 8, 24)
    yield ("SINF", "as SINS, for float results", _sin_tail, lambda z: z, 0, quarter_pi, 2)
    yield ("COSF", "as COSC, for float results", _cos_tail, lambda z: z * z, 0, quarter_pi, 2)
    yield ("LOG2F", "(log2((1+s)/(1-s)) - 2 s/ln2) / s^3 in s^2, for float results of pow",
           _log2_tail, lambda z: z / 2, 0, log_z, 3)
    yield ("EXP2F", "2^r, for float results", lambda r: mp.mpf(2) ** r,
           lambda r: mp.mpf(2) ** -r, -0.501, 0.501, 7)


def hexed(value: mp.mpf) -> str:
    """The C literal of a number that is a binary64 after rounding."""
    return float(rounded(value)).hex()


def split(value: mp.mpf, bits: Iterable[int], down: bool = False) -> list[mp.mpf]:
    """The value as a sum of parts with that many significant bits each."""
    parts = []
    for count in bits:
        mantissa, exponent = mp.frexp(value)
        cut = mp.floor if down and not parts else mp.nint
        part = mp.mpf(int(cut(mp.ldexp(mantissa, count)))) * mp.mpf(2) ** (int(exponent) - count)
        parts.append(part)
        value -= part
    return parts


def constants() -> Iterable[tuple[str, str]]:
    """(name, literal) of each split constant."""
    log2e, log10e, lg2 = 1 / LN2, 1 / mp.log(10), LN2 / mp.log(10)
    for name, value, bits in (
        ("VM_LN2_", LN2, (42, 53)),             # k * VM_LN2_1 is exact for |k| < 2^11
        ("VM_LN2F_", LN2, (53, 53)),
        ("VM_LN2S_", LN2, (15, 24)),            # as floats; k * VM_LN2S_1 is exact for |k| < 2^9
        ("VM_LOG2E_", log2e, (26, 53)),         # a 27 bit head times VM_LOG2E_1 is exact
        ("VM_LOG10E_", log10e, (26, 53)),
        ("VM_LG2_", lg2, (42, 53)),
    ):
        for i, part in enumerate(split(value, bits), 1):
            yield f"{name}{i}", hexed(part)
    for i, part in enumerate(split(mp.pi / 2, (53, 53, 53), down=True), 1):
        yield f"VM_PIO2_{i}", hexed(part)
    for i, part in enumerate(split(mp.pi / 2, (33, 33, 33, 53), down=True), 1):
        yield f"VM_PIO2S_{i}", hexed(part)      # n * part is exact for |n| < 2^20
    for i, part in enumerate(split(mp.pi / 2, (33, 53), down=True), 1):
        yield f"VM_PIO2H_{i}", hexed(part)
    for i, part in enumerate(split(mp.pi / 4, (50, 53), down=True), 1):
        yield f"VM_PIO4_{i}", hexed(part)       # m * VM_PIO4_1 is exact for m <= 4
    yield "VM_LOG2E", hexed(log2e)
    yield "VM_TWO_OVER_PI", hexed(2 / mp.pi)
    yield "VM_CBRT_HALF", hexed(mp.cbrt(mp.mpf(1) / 2))
    yield "VM_CBRT_QUARTER", hexed(mp.cbrt(mp.mpf(1) / 4))


def coef_header() -> str:
    """Text of vmath_coef.h."""
    out = ["/* kern/vmath_coef.h - polynomials and split constants of kern/vmath.h.",
           " * Made by scripts/vmath/generate.py; own minimax fits. Never edited by hand. */",
           "#ifndef VM_COEF_H", "#define VM_COEF_H", ""]
    for name, text in constants():
        out.append(f"#define {name} {text}")
    for name, what, f, weight, lo, hi, degree, *bits in coefficient_rows():
        kind, suffix = ("float", "f") if bits else ("double", "")
        coef, best, after = fit(f, weight, lo, hi, degree, *bits)
        out += ["", f"/* {what} on [{mp.nstr(mp.mpf(lo), 6)}, {mp.nstr(mp.mpf(hi), 6)}]: minimax"
                f" 2^{mp.nstr(mp.log(best, 2), 4)}, rounded 2^{mp.nstr(mp.log(after, 2), 4)} */",
                f"VM_TABLE({kind}, VM_{name}, {degree + 1}) = {{"]
        out += [f"    {hexed(c)}{suffix}," for c in coef]
        out.append("};")
    return "\n".join(out + ["", "#endif", ""])


LOG_ROWS = 128
LOG_OFFSET = 0x3FE6955500000000
INV_BITS = 20       # 1/c is short, so that (32 high bits of z) / c is an exact product


def log_rows() -> Iterable[str]:
    """Rows {1/c, -log(1/c) rounded to 2^-42, its rest, 0} for the 128 parts of the binade."""
    for i in range(LOG_ROWS):
        ends = [LOG_OFFSET + ((i + j) << 45) for j in range(2)]
        lo, hi = (struct.unpack("d", struct.pack("q", bits))[0] for bits in ends)
        inv = rounded(mp.mpf(2) / (mp.mpf(lo) + mp.mpf(hi)), INV_BITS)
        if lo <= 1 <= hi or min(abs(lo - 1), abs(hi - 1)) < 2e-3:
            inv = mp.mpf(1)     # rows around 1: log(x) keeps its relative accuracy
        log = -mp.log(inv)
        head = mp.nint(log * mp.mpf(2) ** 42) / mp.mpf(2) ** 42
        yield f"    {hexed(inv)}, {hexed(head)}, {hexed(log - head)}, 0,"


def erf_rows() -> Iterable[str]:
    """Rows {erf(r), its rest, 2/sqrt(pi) exp(-r^2), 0} for r = i/128."""
    for i in range(769):
        r = mp.mpf(i) / 128
        value = mp.erf(r)
        head = rounded(value)
        slope = 2 / mp.sqrt(mp.pi) * mp.exp(-r * r)
        yield f"    {hexed(head)}, {hexed(value - head)}, {hexed(slope)}, 0,"


def two_over_pi_words(count: int = 20) -> Iterable[str]:
    """The first bits of 2/pi behind the point, 64 per word."""
    with mp.workprec(64 * count + 200):
        bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * count)))
    for i in range(count):
        yield f"    0x{bits >> (64 * (count - 1 - i)) & (2**64 - 1):016x}u,"


def table_header() -> str:
    """Text of vmath_tables.h."""
    return "\n".join([
        "/* kern/vmath_tables.h - tables of kern/vmath.h.",
        " * Made by scripts/vmath/generate.py. Never edited by hand. */",
        "#ifndef VM_TABLES_H", "#define VM_TABLES_H", "",
        f"#define VM_LOG_OFFSET 0x{LOG_OFFSET:x}", "",
        "/* {1/c, -log(1/c) as a multiple of 2^-42, the rest, 0} per 1/128 of a binade */",
        f"VM_TABLE(double, VM_LOG_TABLE, {4 * LOG_ROWS}) = {{", *log_rows(), "};", "",
        "/* bits of 2/pi, high first */",
        "VM_TABLE(vm_word, VM_TWO_OVER_PI_BITS, 20) = {", *two_over_pi_words(), "};", "",
        "/* {erf(r), the rest, 2/sqrt(pi) exp(-r^2), 0} for r = i/128 */",
        "VM_TABLE(double, VM_ERF_TABLE, 3076) = {", *erf_rows(), "};", "", "#endif", ""])


def main() -> None:
    """Write both headers into the folder named on the command line."""
    out = pathlib.Path(sys.argv[1])
    (out / "vmath_coef.h").write_text(coef_header())
    (out / "vmath_tables.h").write_text(table_header())


if __name__ == "__main__":
    main()
