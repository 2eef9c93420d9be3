"""Scalars: big integers, float edge cases, counters, conversions, NumPy scalars and promotion."""

import math

import numpy as np

from .program import Programs

PROGRAMS = Programs()

STEP = [0]
INF, NAN = float("inf"), float("nan")


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


@PROGRAMS.add(lambda: (2**62,), lambda: (2**63 - 1,), lambda: (-2**63,), lambda: (3,))
def over_64_bits(n):
    m = n * 4 + 1
    return m, m // 3, m % 7, m >> 2, m & 0xFF, -m, m - n * 4, n + n, n - 1


@PROGRAMS.add(lambda: (10,), lambda: (30,), lambda: (3,))
def factorial_loop(n):
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r, r.bit_length(), math.log2(r)


@PROGRAMS.add(lambda: (2, 10), lambda: (2, 100), lambda: (2, -1), lambda: (0, 0), lambda: (-2, 3))
def integer_power(a, b):
    return a ** b, pow(a, b, 7) if b >= 0 else None


@PROGRAMS.add(lambda: (0, -1), lambda: (2, 0))
def zero_to_a_power(a, b):
    return a ** b


@PROGRAMS.add(lambda: (7, 2), lambda: (-7, 2), lambda: (7, -2), lambda: (-7, -2), lambda: (0, 5))
def floor_division_signs(a, b):
    return a // b, a % b, divmod(a, b), a / b, -(a // b), float(a) // b, float(a) % b


@PROGRAMS.add(lambda: (5, 3), lambda: (1, 64), lambda: (-1, 3), lambda: (12345, 0))
def shifts_and_bits(a, b):
    return a << b, a >> b, a & b, a | b, a ^ b, ~a, bin(a)


@PROGRAMS.add(lambda: (1, -1), lambda: (5, -3))
def negative_shift(a, b):
    return a << b


@PROGRAMS.add(lambda: (1.5, 0.0), lambda: (-0.0, 0.0), lambda: (INF, 1.0), lambda: (NAN, 1.0),
              lambda: (5e-324, 2.0), lambda: (1e308, 10.0))
def float_edges(a, b):
    return (a + b, a - b, a * b, -a, abs(a), a == a, a < b, a <= b, a != b, max(a, b), min(b, a),
            a * 10, bool(a), math.copysign(1, a), a == b)


@PROGRAMS.add(lambda: (1.0, 0.0), lambda: (0.0, 0.0), lambda: (1.0, 2.0))
def float_division_by_zero(a, b):
    return a / b


@PROGRAMS.add(lambda: (1e200, 2), lambda: (10.0, 400), lambda: (-8.0, 1 / 3), lambda: (0.0, -1.0))
def float_power(a, b):
    return a ** b


@PROGRAMS.add(lambda: (2.5,), lambda: (3.5,), lambda: (-2.5,), lambda: (1e16,), lambda: (2.675,))
def rounding(x):
    return (round(x), round(x, 2), int(x), math.floor(x), math.ceil(x), math.trunc(x), x // 1,
            x.is_integer(), round(12345, -2))


@PROGRAMS.add(lambda: (INF,), lambda: (NAN,), lambda: (1e30,))
def float_to_int(x):
    return int(x)


@PROGRAMS.add(lambda: (0.1,), lambda: (1e22,), lambda: (1 / 3,), lambda: (-0.0,), lambda: (NAN,))
def float_text(x):
    return repr(x), str(x), f"{x:.3e}", f"{x:g}", x.hex(), hash(x) == hash(x)


@PROGRAMS.add(lambda: (0.5,), lambda: (2.0,), lambda: (100.0,))
def math_functions(x):
    return (math.sqrt(x), math.exp(x), math.log(x), math.sin(x), math.atan2(x, 2), math.hypot(x, 3),
            math.gcd(12, 18), math.fsum([0.1] * 10), math.isclose(x, x + 1e-12), math.pi)


@PROGRAMS.add(lambda: (4.0,), lambda: (-1.0,), lambda: (0.0,))
def math_domain(x):
    return math.sqrt(x), math.log(x)


@PROGRAMS.add(lambda: (row(3),))
def step_counter(a):
    STEP[0] += 1
    return a * STEP[0], STEP[0]


@PROGRAMS.add(lambda: (row(3), 0.1), lambda: (row(3), 0.01), lambda: (row(3), 0.001),
              lambda: (row(3), 1))
def learning_rate_changes(a, lr):
    return a - lr * a, 1 - lr


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 2), lambda: (row(3), 50))
def bias_correction(a, t):
    return a / (1 - 0.5 ** t), 1 - 0.5 ** t


@PROGRAMS.add(lambda: (True, 2), lambda: (False, 2), lambda: (True, False))
def booleans_are_integers(a, b):
    return a + b, a * b, a & b, a | True, a ^ b, -a, ~int(a), a == 1, a is True, sum([a, a, b])


@PROGRAMS.add(lambda: (1 + 2j, 2), lambda: (0j, 1j), lambda: (1e200j, 3.0))
def complex_numbers(a, b):
    return a + b, a * b, a.real, a.imag, a.conjugate(), a == b, -a


@PROGRAMS.add(lambda: ("abc", 2), lambda: ("", 0), lambda: ("äöü", 3))
def strings(s, n):
    return (s * n, s.upper(), s[::-1], s.split("b"), s + str(n), s.encode(), len(s), s in "abcd",
            "-".join([s, s]), s.startswith("a"), s > "abb", ord(s[0]) if s else None)


@PROGRAMS.add(lambda: (b"ab", 1), lambda: (b"\xff", 0))
def bytes_and_bytearray(b, n):
    buf = bytearray(b)
    buf.append(n)
    return b + bytes([n]), buf, b[0], b.hex(), memoryview(buf)[-1]


@PROGRAMS.add(lambda: (np.float32(1.5), 2), lambda: (np.int8(100), 1), lambda: (np.float64(3), 1.5),
              lambda: (np.uint8(200), 5), lambda: (np.bool_(True), 1))
def numpy_scalar_arithmetic(x, k):
    return x + k, x * k, k - x if x.dtype != bool else None, x == k, x / 2, x ** 2, abs(x), type(x)


@PROGRAMS.add(lambda: (np.int8(127),), lambda: (np.int8(1),), lambda: (np.int8(-128),))
def numpy_scalar_overflow(x):
    return x + np.int8(1), -x, x * x, x // np.int8(-1)


@PROGRAMS.add(lambda: (np.int32(7), np.int32(0)), lambda: (np.int32(7), np.int32(2)),
              lambda: (np.float32(1), np.float32(0)))
def numpy_scalar_division(a, b):
    return a // b, a % b, a / b


@PROGRAMS.add(lambda: (np.ones(2, np.float32), 1.5), lambda: (np.ones(2, np.float32), 2),
              lambda: (np.ones(2, np.float32), np.float64(1.5)),
              lambda: (np.ones(2, np.float32), np.float32(1.5)),
              lambda: (np.ones(2, np.uint8), 3), lambda: (np.ones(2, np.uint8), True),
              lambda: (np.ones(2, np.int16), 2.5), lambda: (np.array([True, False]), 2))
def promotion(a, k):
    return a + k, k * a, a / k, a - np.asarray(k), a > k


@PROGRAMS.add(lambda: (np.ones(2, np.uint8), 255), lambda: (np.ones(2, np.uint8), 256),
              lambda: (np.ones(2, np.uint8), -1), lambda: (np.ones(2, np.int8), 2**70))
def python_int_out_of_range(a, k):
    return a + k


@PROGRAMS.add(lambda: (np.array(2.0),), lambda: (np.array(2),), lambda: (np.float64(2.0),),
              lambda: (2.0,))
def zero_dimensional(x):
    y = np.add(x, 1)
    return y, x + x, np.sqrt(x), x * np.ones(2), x * np.ones(2, np.float32), np.negative(x)


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), np.int64(1)), lambda: (row(3), True),
              lambda: (row(3), np.array(1)), lambda: (row(3), None))
def kinds_of_index(a, i):
    return a[i]


@PROGRAMS.add(lambda: (row(3),), lambda: (np.arange(3),), lambda: (np.arange(3) > 1,))
def scalars_out_of_arrays(a):
    x = a[1]
    return (x, type(x), float(x), int(x), bool(x), a.item(2), a.tolist(), x.item(), a[1:2].item(),
            x.shape, hash(x))


@PROGRAMS.add(lambda: (np.array([3]),), lambda: (np.array([1, 2]),), lambda: (np.array([]),))
def truth_of_arrays(a):
    if a:
        return "true", a
    return "false", a


@PROGRAMS.add(lambda: (0, 5), lambda: (2, 5), lambda: (3, 3))
def size_arithmetic(lo, hi):
    n = hi - lo
    a = np.zeros((n, n + 1))
    return a.shape, a.size * 2, a.shape[0] // 2, np.ones(a.shape[1] - 1), len(a) == n


@PROGRAMS.add(lambda: (1, 2), lambda: (1.0, 2.0), lambda: (1, 2.0), lambda: ("1", "2"),
              lambda: ([1], [2]))
def same_code_other_types(a, b):
    return a + b, a * 2, [a, b], a < b, a == b


@PROGRAMS.add(lambda: ("1", 2), lambda: (None, 1), lambda: ([1], 1), lambda: (1, 2))
def type_errors(a, b):
    return a + b


@PROGRAMS.add(lambda: ([0.1] * 10,), lambda: ([1e16, 1.0, -1e16],), lambda: ([1, 2.5, True],))
def builtin_reductions(xs):
    return sum(xs), max(xs), min(xs), any(xs), all(xs), sorted(xs), len(xs), sum(xs, 100)


@PROGRAMS.add(lambda: (3, 4), lambda: (-1, 4), lambda: (2**40, 1))
def loop_carried_kinds(a, n):
    x, y, z = a, 0.5, False
    for _ in range(n):
        x = x * 3 - 1
        y = y / 2 + x
        z = not z or x > y
    return x, y, z


@PROGRAMS.add(lambda: (2**53,), lambda: (2**53 + 1,), lambda: (10**400,), lambda: (-1,))
def int_float_conversion(n):
    return n == float(n), float(n) + 1, n / 2, n * 0.5, n < 1e300


@PROGRAMS.add(lambda: (255,), lambda: (10**30,), lambda: (-42,))
def int_text_and_methods(n):
    return (str(n), f"{n:x}", f"{n:,}", f"{n:+d}", n.bit_length(), int(str(n)), (n).__index__(),
            n.to_bytes(16, "little", signed=True), int("ff", 16), n.conjugate())
