"""Arrays changed in place: who shares memory, when a write is seen, what an exit leaves behind."""

import os
import signal

import numpy as np

from .program import Programs, call

PROGRAMS = Programs()

F32, F64, I8, I32, I64, BOOL = np.float32, np.float64, np.int8, np.int32, np.int64, np.bool_

SHARED = np.arange(4.0)
KEPT = []
SEEN = []


def row(n, start=0, dtype=F64):
    return np.arange(start, start + n).astype(dtype)


def grid(n=4, m=5, dtype=F64):
    return (np.arange(n * m) % 7).astype(dtype).reshape(n, m)


class Pair:
    def __init__(self, a, b):
        self.a = a
        self.b = b


# -- One array ---------------------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(6),), lambda: (row(5, 1, I32),))
def shifted_inside_itself(a):
    a[1:] += a[:-1]
    b = a.copy()
    b[1:] = b[:-1]
    b[:-1] = b[1:] * 2
    np.add(a[:-1], 1, out=a[1:])
    return a, b


@PROGRAMS.add(lambda: (row(6),), lambda: (row(7, -2),))
def added_to_its_mirror(a):
    a += a[::-1]
    a[::-1] -= 1
    a[:] = a[::-1]
    b = a + 1
    b -= b[::-1]
    return a, b


@PROGRAMS.add(lambda: (grid(4, 4),), lambda: (grid(3, 3, F32),))
def added_to_its_transpose(a):
    a += a.T
    b = a.T
    b *= 2
    b[0] = a[:, 1]
    return a, b, a * b


@PROGRAMS.add(lambda: (row(5),), lambda: (row(3, 1),))
def with_itself(a):
    a += a
    a *= a
    b = a - 1
    b /= b
    a -= a
    return a, b


@PROGRAMS.add(lambda: (row(5),), lambda: (row(4, 2, F32),))
def written_and_read_again(a):
    a += 1
    b = a * 2
    a *= 3
    c = a - b
    a[...] = c + a
    d = a / 2
    return a, b, c, d


@PROGRAMS.add(lambda: (row(6),), lambda: (row(5),))
def view_written_base_read(a):
    v = a[1:]
    v += 1
    b = a * 2
    v[1:] = b[2:]
    w = a[...]
    w -= 3
    return a, b, v + 0, w


@PROGRAMS.add(lambda: (row(6),), lambda: (row(5),))
def base_written_view_read(a):
    v, w, x = a[1:], a.reshape(-1), a[::2]
    a += 1
    b = v * 2
    a[0] = 9
    c = w + 1
    a[:2] = 4
    return b, c, x * 1, x.sum(), a


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(3, 4, F32),))
def rows_swapped(a):
    a[0], a[1] = a[1], a[0]
    b = a.copy()
    b[[0, 1]] = b[[1, 0]]
    c = b[0] + b[1]
    a[:, 0], a[:, 1] = a[:, 1].copy(), a[:, 0].copy()
    return a, b, c


@PROGRAMS.add(lambda: (row(6),), lambda: (row(8),))
def halves_swapped(a):
    a[::2], a[1::2] = a[1::2], a[::2]
    a[:2] += a[-2:]
    return a


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(3, 6).T,), lambda: (grid(6, 5)[::2, ::-1],))
def places_and_parts(a):
    a[1, 2] = 5
    a[-1] = a[0]
    a[:, 1] *= 2
    a[..., -1] += a[..., 0]
    a[1:-1, 1:-1] = 0.5
    a[0, 0] -= a[1, 2]
    a[None, 0] = 3
    a[:1, ...] += 1
    return a, a.sum()


@PROGRAMS.add(lambda: (row(8), 2), lambda: (row(8), 5), lambda: (row(8), -3), lambda: (row(3), 1))
def places_from_arguments(a, k):
    a[k] = 7
    a[k:] += 1
    a[:k] *= 2
    a[k] += a[0]
    return a


@PROGRAMS.add(lambda: (np.array(3.0),), lambda: (np.array(2, I32),))
def no_axes(a):
    a += 1
    b = a * 2
    a[...] = 5
    a[()] -= 1
    c = a + b
    np.add(a, 2, out=a)
    return a, b, c


@PROGRAMS.add(lambda: (np.zeros((0, 3)), np.zeros(0)), lambda: (np.zeros((2, 3)), np.ones(3)))
def empty(a, b):
    a += 1
    b[:] = 4
    a[...] = a * 2
    return a, b, a.sum()


@PROGRAMS.add(lambda: (np.array([True, False, True]), np.array([False, False, True])))
def booleans(a, b):
    a &= b
    b |= ~a
    a[0] = True
    b ^= a
    a[b] = False
    return a, b


@PROGRAMS.add(lambda: (row(4, 0, I8), 100), lambda: (row(4, 0, np.uint8), 3),
              lambda: (row(4, 0, I8), 300), lambda: (row(4, 0, I64), 1 << 40))
def integers_wrap(a, k):
    a += 120
    a -= k
    a *= 3
    a[0] = k
    a <<= 1
    return a


@PROGRAMS.add(lambda: (row(3) + 1j,), lambda: ((row(4) * 1j).astype(np.complex64),))
def complex_numbers(a):
    a += 1
    a *= 2j
    a.real[:] = 7
    b = a.imag
    b += 1
    a[0] = 3
    return a, b


@PROGRAMS.add(lambda: (row(3, 1, np.float16),), lambda: (row(3, 1, np.longdouble),))
def dtypes_without_kernels(a):
    a += 1
    a /= 3
    a[1:] = a[:-1]
    return a


@PROGRAMS.add(lambda: (row(4, 0, F32), row(4) / 3), lambda: (row(4, 0, F64), row(4, 1, F32)),
              lambda: (row(4, 0, I64), row(4, 0, I32)), lambda: (row(4, 0, F32), row(4, 0, I64)))
def dtypes_mixed(a, b):
    a += b
    a *= b
    a[1:] = b[1:]
    np.subtract(a, b, out=a)
    np.copyto(a[:2], b[:2])
    return a


@PROGRAMS.add(lambda: (row(4), 2), lambda: (row(4, 1), -1), lambda: (row(4, 1, F32), 0.5),
              lambda: (row(4, 1, I32), 2), lambda: (row(4, 1, I32), 3))
def powers(a, k):
    a **= k
    a **= 2
    a //= 3
    a %= 5
    return a


@PROGRAMS.add(lambda: (row(6),), lambda: (row(5, -2, F32),))
def masks(a):
    a[a > 2] = 0
    b = a + 1
    a[b < 2] += 5
    b[a > 3] = a[a > 3] * 2
    b[~(b > 1)] = b[0]
    return a, b


@PROGRAMS.add(lambda: (row(6),), lambda: (row(5, 1, F32),))
def places_from_an_array(a):
    i = np.array([0, 1, 0])
    a[i] += 1
    np.add.at(a, i, 1)
    b = a * 2
    a[[3, 2]] = b[[2, 3]]
    np.put(a, [1], 9)
    return a, b


@PROGRAMS.add(lambda: (np.array([3.0, 1.0, 2.0]),), lambda: (row(4)[::-1],))
def sorted_in_place(a):
    b = a + 1
    a.sort()
    c = a * b
    b.sort()
    b.partition(1)
    return a, b, c


@PROGRAMS.add(lambda: (row(4),), lambda: (grid(),), lambda: (grid()[:, ::2],))
def filled_and_copied(a):
    a.fill(2)
    b = a + 1
    np.copyto(a, b * 2)
    np.copyto(b, 5)
    b.fill(a.max())
    np.copyto(a, 1.5, where=a > 3)
    return a, b


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(3, 4, F32),))
def results_put_into_arrays(a):
    r = np.add(a, 1, a)
    s = np.maximum(a, 3, out=a)
    t = np.clip(a, 0, 5, out=a)
    u = a.clip(1, 4, out=a)
    v = np.sum(a, axis=0, out=np.empty(a.shape[1], a.dtype))
    w = np.cumsum(a, axis=1, out=a)
    x = np.multiply(2, 3, out=a[0])
    y = np.negative(a, out=(a,))
    z = np.add(a, 1, out=None)
    return [q is a for q in (r, s, t, u, w, y)], v, x, z, a


@PROGRAMS.add(lambda: (grid(4, 4),), lambda: (grid(3, 3, F32),))
def results_put_by_position(a):
    b = a.copy()
    out = np.zeros(len(a), a.dtype)
    np.cumsum(a, 0, None, a)
    c = a * 2
    np.dot(c, a, b)
    np.clip(a, 1, 9, a)
    a.clip(2, 8, a)
    d = np.sum(b, 0, None, out)
    np.max(b, 0, out)
    e = out + 1
    np.take(b, [0] * len(a), 0, b)
    np.add(a, 1, a)
    return a, b, c, d is out, e


@PROGRAMS.add(lambda: (grid(3, 3), grid(3, 3) + 1), lambda: (grid(2, 2, F32), grid(2, 2, F32)))
def products_in_place(a, b):
    a @= b
    np.matmul(a, b, out=b)
    np.dot(b, a, out=a)
    return a, b


# -- Several arrays ----------------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(4), row(4, 2)), lambda: (lambda x: (x, x))(row(4)),
              lambda: (lambda x: (x[1:], x[:-1]))(row(5)),
              lambda: (lambda x: (x[:2], x[2:]))(row(4)))
def two_arguments(a, b):
    a += 1
    c = b * 2
    b += a
    d = a + b
    a[0] = d[1]
    return a, b, c, d


@PROGRAMS.add(lambda: (row(4), row(4, 2)), lambda: (row(4), row(4, 2)), lambda: (row(4), row(4, 2)),
              lambda: (lambda x: (x, x[::-1]))(row(4)), lambda: (lambda x: (x, x))(row(4)))
def sharing_appears_later(a, b):
    a[1:] = b[:-1] * 3
    b -= a
    return a * b


@PROGRAMS.add(lambda: (row(4),), lambda: (SHARED,), lambda: (SHARED[1:],))
def argument_or_global(a):
    SHARED[:2] += 1
    b = a * 2
    a += 1
    return SHARED - 1, b


@PROGRAMS.add(lambda: (Pair(row(3), row(3, 1)),), lambda: (lambda x: (Pair(x, x),))(row(3)),
              lambda: (lambda x: (Pair(x, x[::-1]),))(row(3)))
def attributes(p):
    p.a += 1
    c = p.b * 2
    p.b *= c
    p.a[1:] = p.b[1:]
    return p.a is p.b, c, p.a + p.b


@PROGRAMS.add(lambda: ([row(3), row(3, 1)],), lambda: (lambda x: ([x, x],))(row(3)),
              lambda: (lambda x: ([x, x[:2]],))(row(3)))
def list_of_parameters(ps):
    for p in ps:
        p -= 0.5 * p
    for p in ps:
        p += ps[0][0]
    return ps, ps[0].sum()


@PROGRAMS.add(lambda: (row(3), [row(3, 1)]), lambda: (lambda x: (x, [x]))(row(3)))
def containers_of_arrays(a, xs):
    a += 1
    b = np.stack([a, a * 2])
    c = np.concatenate(xs)
    xs[0] *= 2
    d = np.concatenate([a, xs[0]])
    e = {"a": a, "b": xs[0]}
    a -= 1
    return b, c, d, e["a"] + e["b"], e


@PROGRAMS.add(lambda: (row(4), row(4, 1), row(4, 2)), lambda: (row(3), row(3), row(3)))
def three_arrays_in_turn(a, b, c):
    a += b
    b += c
    c += a
    a -= c
    b -= a
    c *= b
    return a + b + c


# -- Arrays that the program made --------------------------------------------------------------


@PROGRAMS.add(lambda: (row(4),), lambda: (row(3, 1, F32),))
def made_here(a):
    c = a + 1
    d = c
    d += 1
    e = [c]
    c *= 2
    f = c[1:]
    c -= 1
    f += 3
    e[0] += f[0]
    return c is d, e[0] is c, c, e, f, f.base is c


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5, 1, F32),))
def made_here_and_closed_over(a):
    c = a + 1

    def twice():
        return c * 2

    c += 1
    before = twice()

    def more(x):
        nonlocal c
        c += x
        return c

    r = more(2)
    return before, twice(), r is c


@PROGRAMS.add(lambda: (row(4),), lambda: (row(3),))
def made_here_and_shown(a):
    x = a * 2
    KEPT.append(x)
    y = KEPT[-1]
    y += 1
    z = x * 3
    x -= 1
    return z, y * 1, KEPT[-1] is x


@PROGRAMS.add(lambda: (row(4),), lambda: (row(3),))
def made_here_and_in_a_container(a):
    x = a * 2
    d = dict(sorted({"x": x, "k": 1}.items()))
    y = d["x"]
    y += 1
    z = x * 3
    box = Pair(x, [x])
    box.b[0][0] = 8
    return z, x + 1, box.a is y


@PROGRAMS.add(lambda: (row(6),), lambda: (row(4),))
def pieces_of_what_was_made(a):
    x = a * 2
    p, q = np.split(x, 2)
    p += 1
    b = x * 1
    x -= 1
    c = q * 2
    r = x.reshape(2, -1)
    r[0] = 5
    e = np.asarray(x)
    e += 1
    f = np.ascontiguousarray(x)
    f *= 2
    return b, c, x * 1, p, x.astype(F64, copy=False) is x


@PROGRAMS.add(lambda: (5,), lambda: (7,))
def filled_bit_by_bit(n):
    out = np.zeros(n)
    out[0] = 1
    out[1:] = np.arange(1, n)
    out[2:4] += out[1:3]
    out *= 2
    again = np.empty_like(out)
    again[:] = out
    again[-1] = 0
    return out, again


@PROGRAMS.add(lambda: (row(3, 1),), lambda: (row(3, 1, F32),))
def broadcast_results(a):
    b = np.broadcast_to(a, (2, 3)).copy()
    b += a
    b[...] = a[0]
    a[:] = b[1]
    c = np.zeros((2, 3), a.dtype)
    c += a
    c[:, 0] = [4, 5]
    return a, b, c


# -- When a write is seen ----------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(4), 1), lambda: (row(4), 5), lambda: (row(4), 2), lambda: (row(4), 9))
def write_then_branch(a, k):
    a += k
    if a.sum() > 20:
        a *= 2
    else:
        a[0] = -1
        if a[1] > 3:
            return a, "small"
    b = a + 1
    a -= b
    return a, b


@PROGRAMS.add(lambda: (row(4), row(4)), lambda: (row(4), row(3)), lambda: (row(4), None))
def write_then_exception(a, b):
    a += 1
    a[1:] *= 2
    c = a + 0
    a -= b
    return a, c


@PROGRAMS.add(lambda: (row(4), 2), lambda: (row(4), 7), lambda: (row(4), 3), lambda: (row(4), -9))
def write_then_bad_place(a, k):
    a += 1
    a[k] = 5
    a *= 2
    return a


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def write_then_print(a):
    a += 1
    print(a)
    a *= 2
    b = a + 1
    print(f"{a} {b}")
    b -= a
    return b


def look(a):
    SEEN.append(a.tolist())
    return a[0]


@PROGRAMS.add(lambda: (row(3), sorted), lambda: (row(3), look), lambda: (row(3), list))
def write_then_unknown_call(a, f):
    a += 1
    r = f(a)
    a -= 2
    b = a * 1
    return r, f(b), SEEN


@PROGRAMS.add(lambda: (np.array([1.0, 2.0]), np.array([1.0, 0.0])),
              lambda: (np.array([1.0, 2.0]), np.array([1.0, 2.0])))
def write_then_warning(a, b):
    a += 1
    b -= 1
    a /= b
    a *= 2
    return a, b


@PROGRAMS.add(lambda: (np.array([1.0, 2.0]), np.array([1.0, 0.5])),
              lambda: (np.array([1.0, 2.0]), np.array([1.0, 0.0])))
def write_then_raising_error_state(a, b):
    with np.errstate(all="raise"):
        try:
            a += 1
            a /= b
            a *= 2
        except FloatingPointError as e:
            return str(e), a, b
    return a, b


@PROGRAMS.add(lambda: (row(3, 1, F32), row(3) + 1e300), lambda: (row(3, 1, F32), row(3)))
def overflow_in_the_cast(a, b):
    a += b
    a[1:] = b[1:]
    return a


@PROGRAMS.add(lambda: (row(4, 0, I32), row(4, 0, I32)), lambda: (row(4, 1, I32), row(4, 2, I32)))
def division_by_zero_of_integers(a, b):
    a += 7
    a //= b
    b %= a
    return a, b


@PROGRAMS.add(lambda: (row(3, 0, I64), 1), lambda: (row(3, 0, I64), 0.5),
              lambda: (row(3, 0, BOOL), 1), lambda: (row(3), 2j))
def casts_that_are_refused(a, k):
    b = a + 0
    try:
        b += 1
        a += k
    except TypeError as e:
        return str(e), a, b
    return a, b


@PROGRAMS.add(lambda: (row(3, 0, I64), 1.5), lambda: (row(3, 0, I64), np.float32(2)),
              lambda: (row(3, 0, np.uint8), -1), lambda: (row(3, 0, BOOL), 2),
              lambda: (row(3), np.array([4.0])))
def stores_of_another_kind(a, v):
    a[0] = v
    a[1:] = v
    return a


@PROGRAMS.add(lambda: (row(3), True), lambda: (row(3), False), lambda: (row(3), True))
def read_only_in_the_middle(a, lock):
    a += 1
    v = a[1:]
    if lock:
        a.flags.writeable = False
    b = a * 2
    try:
        a += 1
        v += 1
    except ValueError as e:
        return str(e), a, b
    return a, b, v


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3),), lambda: (np.broadcast_to(row(3), (2, 3)),),
              lambda: (np.frombuffer(b"\0" * 16),))
def read_only_arguments(a):
    b = a + 1
    b += a
    a *= 2
    return b


@PROGRAMS.add(lambda: (row(6),), lambda: (row(4),))
def shape_changes(a):
    a += 1
    a.shape = (2, -1)
    a *= 2
    b = a + 1
    b.resize(3)
    b += 1
    return a, b


# -- Loops -------------------------------------------------------------------------------------


@PROGRAMS.add(lambda: (row(8), 5), lambda: (row(6), 3), lambda: (row(9), 1))
def jacobi(a, steps):
    b = a.copy()
    for _ in range(steps):
        b[1:-1] = 0.25 * (a[:-2] + 2 * a[1:-1] + a[2:])
        a[1:-1] = 0.25 * (b[:-2] + 2 * b[1:-1] + b[2:])
    return a, b


@PROGRAMS.add(lambda: (grid(6, 5), 4), lambda: (grid(4, 7), 2))
def jacobi_on_a_grid(a, steps):
    for _ in range(steps):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[0] += 1
    return a


@PROGRAMS.add(lambda: (row(5), 6), lambda: (row(4), 9))
def counted_down(a, k):
    n = 0
    while (a < k).any():
        a += 1
        a[a > k] = k
        n += 1
    return a, n


@PROGRAMS.add(lambda: (row(12), 5), lambda: (row(7), 2))
def element_by_element(a, k):
    for i in range(1, len(a)):
        a[i] = a[i - 1] + k
        a[i] %= 7
    s = 0.0
    for i in range(len(a)):
        s += a[i]
        a[i] -= 1
    return a, s


@PROGRAMS.add(lambda: (9,), lambda: (30,))
def two_names_in_a_loop(k):
    p = q = np.zeros(3)
    total = np.zeros(3)
    for i in range(k):
        p += i
        total = total + q
        p = p if i % 3 else q
    return p, q, total


@PROGRAMS.add(lambda: (12, 7), lambda: (20, 4))
def shown_in_a_turn_of_a_loop(k, when):
    x = np.zeros(3)
    s = np.zeros(3)
    kept = [np.ones(3)]
    for i in range(k):
        if i == when:
            kept[0] = x
            SEEN.append(kept)
        y = kept[0]
        y += 1
        s = s + x * 2
    return x, s


@PROGRAMS.add(lambda: (np.ones((4, 3)), row(4)), lambda: (grid(), row(5)))
def rows_of_a_loop(a, b):
    for i, x in enumerate(a):
        x *= i
        x += b[: len(x)]
        b[0] += x[0]
    return a, b


@PROGRAMS.add(lambda: (row(10),), lambda: (row(20),))
def accumulated(a):
    out = np.zeros_like(a)
    s = np.zeros(1)
    for i in range(len(a)):
        s += a[i]
        out[i] = s[0]
    return out


@PROGRAMS.add(lambda: (4,), lambda: (6,))
def written_by_a_helper(n):
    def bump(x, by=1):
        x += by
        return x

    a = np.zeros(3)
    for i in range(n):
        b = bump(a, i)
        bump(a[1:])
    return a, b is a


# -- Training ----------------------------------------------------------------------------------


def tables(names=3, dtype=F64):
    return [{f"p{i}": np.linspace(k, k + 1, 4 + i).astype(dtype) for i in range(names)}
            for k in range(4)]


def adam_step(p, g, m, v, t, lr=0.01, b1=0.9, b2=0.999):
    for name in p:
        m[name] *= b1
        m[name] += (1 - b1) * g[name]
        v[name] *= b2
        v[name] += (1 - b2) * g[name] * g[name]
        p[name] -= lr / (1 - b1**t) * m[name] / (np.sqrt(v[name] / (1 - b2**t)) + 1e-8)
    return p


@PROGRAMS.add(lambda: (*tables(), 1), lambda: (*tables(), 2), lambda: (*tables(3, F32), 3),
              close=True)
def adam(p, g, m, v, t):
    for k in range(3):
        adam_step(p, g, m, v, t + k)
    return p, m["p0"].sum()


@PROGRAMS.add(lambda: (row(3), row(3, 1)), lambda: (lambda x: (x, x))(row(3)))
def momentum_shares_the_gradient(p, g):
    for _ in range(3):
        buf = g
        buf *= 0.5
        p -= 0.1 * buf
        g += p
    return p, g


@PROGRAMS.add(lambda: (row(3), row(3), (3,)), lambda: (row(3), row(4), (4,)),
              lambda: (row(3), row(3), 3), lambda: (row(3), row(3), (3, None)))
def shapes_compared(a, b, shape):
    if a.shape != b.shape or shape == a.shape:
        b += 1
    return a.shape == shape, b.shape < (4, "x"), (a.shape, 1) == (b.shape, True), a, b


# -- Others that look --------------------------------------------------------------------------


def drive_signal(function, args, kwargs):
    (a,) = args
    old = signal.signal(signal.SIGUSR1, lambda *_: SEEN.append(a.copy()))
    try:
        return function(*args, **kwargs), list(SEEN)
    finally:
        signal.signal(signal.SIGUSR1, old)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),), drive=drive_signal)
def signal_after_a_write(a):
    for i in range(4):
        a += 1
        os.kill(os.getpid(), signal.SIGUSR1)
        a *= 2
        a -= i
    return a


@PROGRAMS.add(lambda: call(a=row(3)), lambda: call(a=row(4)))
def generator_looks(a):
    def pieces():
        for i in range(3):
            yield a[0] + i
            a[0] += 1

    total = 0.0
    for x in pieces():
        a += x
        total += a.sum()
    return a, total
