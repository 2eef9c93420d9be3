"""Arrays: every function of the front end in several dtypes; views, in-place, out=, overlap.

Reductions of floats use data whose sums are exact in any order, so that their bits are fixed;
programs with transcendental functions are marked close.
"""

import numpy as np

from .program import Programs

PROGRAMS = Programs()

F32, F64, I64, I32, U8, BOOL = (np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_)


def row(n, start=0, dtype=np.float64):
    return np.arange(start, start + n).astype(dtype)


def grid(dtype=np.float64, rows=3, cols=4):
    return (np.arange(rows * cols).reshape(rows, cols) % 7 + 1).astype(dtype)


def each(*dtypes):
    """A maker per dtype, of one 2-d array."""
    return [lambda dtype=dtype: (grid(dtype),) for dtype in dtypes]


def pairs(*dtypes):
    """A maker per dtype, of two 2-d arrays."""
    return [lambda dtype=dtype: (grid(dtype), grid(dtype)[::-1].copy()) for dtype in dtypes]


NUMBERS = (F32, F64, I64, I32, U8)

# -- elementwise ------------------------------------------------------------------------------


@PROGRAMS.add(*pairs(*NUMBERS))
def arithmetic(a, b):
    return a + b, a - b, a * b, a / b, a // b, a % b, -a, +a, abs(a), divmod(a, b)


@PROGRAMS.add(*pairs(*NUMBERS, BOOL))
def comparisons(a, b):
    return a == b, a != b, a < b, a <= b, a > b, a >= b, np.equal(a, b), np.greater(a, 2)


@PROGRAMS.add(*pairs(*NUMBERS, BOOL))
def logical(a, b):
    return (np.logical_and(a, b), np.logical_or(a, b), np.logical_xor(a, b), np.logical_not(a),
            np.isnan(a), np.isfinite(a), np.isinf(b))


@PROGRAMS.add(*pairs(I64, I32, U8, BOOL))
def bitwise(a, b):
    shifts = () if a.dtype == bool else (a << (b & 3), a >> (b & 3))
    return a & b, a | b, a ^ b, ~a, np.invert(a), *shifts


@PROGRAMS.add(*pairs(F32, I64))
def bitwise_of_floats_fails(a, b):
    return a & b


@PROGRAMS.add(lambda: (np.array([-2.5, -0.5, 0.5, 1.5, 2.5, -0.0, np.inf, np.nan]),),
              lambda: (np.array([-2.5, 0.5, 1e10, np.nan], F32),), lambda: (row(4, -2, I32),))
def rounding_functions(a):
    return (np.floor(a), np.ceil(a), np.trunc(a), np.rint(a), np.round(a, 1), a.round(), np.sign(a),
            np.fabs(a), np.around(a))


@PROGRAMS.add(*each(F32, F64, I64), close=True)
def exponentials(a):
    return (np.exp(a), np.exp2(a), np.expm1(a), np.log(a), np.log2(a), np.log10(a), np.log1p(a),
            np.sqrt(a), np.cbrt(a), np.square(a), np.reciprocal(a))


@PROGRAMS.add(*each(F32, F64, I64), close=True)
def trigonometry(a):
    b = a / 8
    return (np.sin(a), np.cos(a), np.tan(b), np.arcsin(b), np.arccos(b), np.arctan(a),
            np.arctan2(a, b), np.hypot(a, b), np.deg2rad(a), np.degrees(b))


@PROGRAMS.add(*each(F32, F64, I64), close=True)
def hyperbolic(a):
    b = a / 8
    return (np.sinh(b), np.cosh(b), np.tanh(a), np.arcsinh(a), np.arccosh(a), np.arctanh(b))


@PROGRAMS.add(lambda: (np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-320, 800.0, -800.0]),),
              lambda: (np.array([np.inf, np.nan, -0.0, 1e-42, 90.0], F32),), close=True)
def special_values(a):
    with np.errstate(all="ignore"):
        return (np.exp(a), np.log(a), np.sin(a), np.tanh(a), np.sqrt(a), 1 / a, a * 0, a - a,
                np.arctan(a), np.log1p(a), np.expm1(a))


@PROGRAMS.add(lambda: (np.array([0.0, 1.0, 2.0, -1.0]),), lambda: (np.array([0.0, 1.0], F32),))
def exact_points(a):
    return (np.exp(a * 0), np.log(a * 0 + 1), np.sin(a * 0), np.cos(a * 0), np.tanh(a * 0),
            np.sqrt(np.square(a)), np.exp2(a), np.power(a, 2), a ** 2, a ** 0)


@PROGRAMS.add(*pairs(F32, F64, I64, U8), close=True)
def powers(a, b):
    return a ** 2, a ** b, a ** 3, 2 ** a, a ** 0.5, np.power(a, b), np.float_power(a, 2)


@PROGRAMS.add(lambda: (row(3, 1, I64), -1), lambda: (row(3, 1, I64), 2))
def negative_integer_power(a, k):
    return a ** k


@PROGRAMS.add(*pairs(*NUMBERS))
def minima_and_maxima(a, b):
    return np.maximum(a, b), np.minimum(a, 3), np.fmax(a, b), np.fmin(a, b), np.clip(a, 2, 5)


@PROGRAMS.add(lambda: (np.array([1.0, np.nan, -0.0, 0.0]), np.array([np.nan, 2.0, 0.0, -0.0])))
def nan_in_minmax(a, b):
    # NumPy's fmax gives the zero of one operand or the other by the element's place
    return (np.maximum(a, b), np.minimum(a, b), np.fmax(a, b) + 0.0, a.max(), a.argmax(), a.min(),
            np.sort(a))


@PROGRAMS.add(lambda: (row(5, -2), 0, 1), lambda: (row(5, -2, I32), -1, None),
              lambda: (row(5, -2), row(5), 3), lambda: (row(5, -2, F32), None, 0.5))
def clip_bounds(a, lo, hi):
    return np.clip(a, lo, hi), a.clip(min=lo, max=hi)


@PROGRAMS.add(lambda: (row(4), row(4, 10), True), lambda: (row(4, 0, I32), 2.5, False),
              lambda: (row(3, 0, F32), np.array([[1], [2]], F32), np.array([True, False, True])))
def where_forms(a, b, c):
    return np.where(c, a, b), np.where(a > 1, a, b), np.where(a > 1)


@PROGRAMS.add(*each(F64, F32, I64, U8, BOOL))
def casts(a):
    with np.errstate(invalid="ignore"):
        return [a.astype(t) for t in (F64, F32, I64, I32, U8, BOOL, np.float16, np.complex128)]


@PROGRAMS.add(lambda: (np.array([1.9, -1.9, 255.5, 0.1]),), lambda: (np.array([0.0, 7.0], F32),))
def cast_details(a):
    same = a.astype(a.dtype, copy=False)
    return a.astype(I32), a.astype(bool), same is a, a.astype(a.dtype) is a


@PROGRAMS.add(lambda: (np.array([1.0, np.nan]),), lambda: (np.array([1e20, -5.0]),))
def invalid_cast_warns(a):
    return a.astype(I32)


@PROGRAMS.add(lambda: (np.array([-128, 7, -7, 0], np.int8), np.int8(-1)),
              lambda: (np.array([-(2**31), 5], I32), I32(-1)),
              lambda: (np.array([5, -5], I64), I64(0)))
def integer_division_edges(a, k):
    with np.errstate(all="ignore"):
        return a // k, a % k, np.fmod(a, k), np.abs(a), -a


@PROGRAMS.add(lambda: (np.array([5, 0]), np.array([0, 0])), lambda: (np.array([5]), np.array([2])))
def integer_division_warns(a, b):
    return a // b, a % b


@PROGRAMS.add(lambda: (np.array([5.0, -5.0, 0.0]), 3.0), lambda: (np.array([5.0, -5.5]), -3.0),
              lambda: (np.array([1e10, -1.0], F32), F32(0.3)))
def float_remainders(a, k):
    return a % k, a // k, np.fmod(a, k), np.remainder(a, k)


@PROGRAMS.add(*[lambda p=p, q=q: (grid(p), grid(q)) for p in (F32, I32, U8, BOOL)
                for q in (F64, I64, np.int8)])
def mixed_dtypes(a, b):
    return a + b, a * b, a / (b.astype(I64) + 1), np.maximum(a, b), a > b, np.where(a > 2, a, b)


@PROGRAMS.add(lambda: (row(3), row(4)[:, None]), lambda: (row(3), np.ones((2, 1, 3))),
              lambda: (np.ones((1, 3)), np.ones((0, 1))), lambda: (np.array(2.0), row(3)),
              lambda: (np.ones((2, 1)), row(2)))
def broadcasting(a, b):
    return a + b, a * b > 1, np.broadcast_shapes(a.shape, b.shape)


@PROGRAMS.add(lambda: (np.asfortranarray(grid()), grid()), lambda: (grid().T, grid().T),
              lambda: (grid()[::-1, ::2], grid()[:, 1::2]), lambda: (grid()[:, :1], grid()))
def result_layout(a, b):
    return a * 2, a + b, np.sin(a) * 0, a > b, a.copy(), a.copy("K"), a.astype(F32), -a.T


@PROGRAMS.add(lambda: (row(3, 1, np.float16),), lambda: (row(3, 1, np.complex64),),
              lambda: (row(3, 1, np.int16),), lambda: (row(3, 1, np.uint64),),
              lambda: (row(3, 1, np.longdouble),))
def rare_dtypes(a):
    return a + 1, a * a, a.sum(), a / 2, np.sqrt(a) * 0, a == 2


@PROGRAMS.add(lambda: (np.array(["a", "bb"]),), lambda: (np.array([1, "x", None], object),),
              lambda: (np.array(["2020-01-01", "2021-05-05"], "M8[D]"),))
def other_kinds_of_arrays(a):
    return a[::-1], a == a[0], a.shape, a.tolist()


@PROGRAMS.add(lambda: (np.zeros(2, [("x", "f8"), ("y", "i4")]),))
def structured(a):
    a["x"] = [1.5, 2.5]
    a["y"] += 3
    return a, a["x"] * 2, a[0]


@PROGRAMS.add(lambda: (row(1000), row(1000, 3)), lambda: (row(1001), row(1001)),
              lambda: (row(7), row(7)), lambda: (row(0), row(0)))
def long_chain(a, b):
    c = (a * 2 + b) / 4 - a
    d = np.where(c > 3, c * c, -c) + np.abs(a - b)
    e = np.maximum(np.minimum(d, 100), -100).astype(I64) % 9
    return c, d, e


@PROGRAMS.add(lambda: (row(100_000, 0, F32),), lambda: (row(100_001, 0, F32),))
def large_arrays(a):
    b = a * 0.5 + 1
    return b[::9999], (b > 100).sum(), b.max(), (a % 2).sum()


# -- reductions -------------------------------------------------------------------------------


@PROGRAMS.add(*each(F64, F32, I64, I32, U8, BOOL))
def sums(a):
    return (a.sum(), a.sum(axis=0), np.sum(a, axis=1, keepdims=True), np.sum(a, axis=(0, 1)),
            a.sum(dtype=F64), np.sum(a, axis=-1, dtype=I64), np.add.reduce(a))


@PROGRAMS.add(*each(F64, F32, I64, U8, BOOL), close=True)
def products_and_means(a):
    return (a.prod(), a.prod(axis=1), a.mean(), a.mean(axis=0, keepdims=True),
            np.mean(a, axis=1, dtype=F64))


@PROGRAMS.add(*each(F64, F32, I64, U8), close=True)
def spreads(a):
    return a.var(), a.std(axis=0), np.var(a, axis=1, ddof=1), np.std(a, keepdims=True)


@PROGRAMS.add(*each(F64, F32, I64, U8, BOOL))
def extremes(a):
    return (a.max(), a.min(axis=0), np.max(a, axis=1, keepdims=True), np.amin(a, axis=(0, 1)),
            a.argmax(), a.argmin(axis=0), np.argmax(a, axis=1, keepdims=True), np.ptp(a))


@PROGRAMS.add(*each(F64, I64, BOOL))
def any_and_all(a):
    return a.any(), a.all(axis=0), np.any(a > 3, axis=1, keepdims=True), np.count_nonzero(a)


@PROGRAMS.add(*each(F64, F32, I64, U8, BOOL))
def cumulative(a):
    return (np.cumsum(a), a.cumsum(axis=0), np.cumsum(a, axis=1, dtype=F64), np.cumprod(a[:, :2]),
            np.add.accumulate(a))


@PROGRAMS.add(lambda: (np.empty((0, 3)),), lambda: (np.empty((2, 0), I32),), lambda: (np.ones(1),),
              lambda: (np.array(5.0),))
def reductions_of_empty(a):
    return a.sum(), a.sum(axis=0), a.prod(), a.any(), a.all(), np.cumsum(a), a.sum(axis=-1)


@PROGRAMS.add(lambda: (np.empty(0),), lambda: (np.ones(1),), lambda: (np.empty(0),))
def max_of_empty_fails(a):
    return a.max()


@PROGRAMS.add(lambda: (np.empty(0),), lambda: (np.ones(1),))
def mean_of_empty_warns(a):
    return a.mean()


@PROGRAMS.add(lambda: (grid(), 2), lambda: (grid(), 5), lambda: (grid(), -2))
def bad_axis(a, axis):
    return a.sum(axis=axis)


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(F32),))
def reductions_with_options(a):
    out = np.zeros(4, a.dtype)
    return (np.sum(a, axis=0, out=out) is out, out, np.sum(a, where=a > 2), a.sum(initial=10),
            np.max(a, initial=100), a.max(axis=0, where=a > 1, initial=0))


@PROGRAMS.add(lambda: (np.asfortranarray(grid(F64, 5, 7)),), lambda: (grid(F64, 5, 7).T,),
              lambda: (grid(F64, 6, 8)[::2, ::-3],))
def reductions_of_views(a):
    return a.sum(), a.sum(axis=0), a.max(axis=1), a.argmin(), a.argmax(axis=0), a.cumsum()


# -- products ----------------------------------------------------------------------------------


@PROGRAMS.add(*[lambda t=t: (grid(t), grid(t, 4, 2)) for t in (F64, F32, I64, U8, BOOL)])
def matrix_products(a, b):
    return a @ b, np.matmul(a, b), np.dot(a, b), a.dot(b[:, 0]), a[0] @ b, a[0] @ b[:, 1]


@PROGRAMS.add(lambda: (np.ones((2, 3, 4)), np.ones((4, 5))), lambda: (np.ones((3, 4)), np.ones(4)),
              lambda: (np.ones((2, 1, 3, 4), F32), np.ones((5, 4, 2), F32)),
              lambda: (np.ones((3, 0)), np.ones((0, 2))))
def batched_matmul(a, b):
    return a @ b, a @ b * 2 + 1


@PROGRAMS.add(lambda: (grid(), grid()), lambda: (grid(), grid().T))
def matmul_shape_error(a, b):
    return a @ b


@PROGRAMS.add(lambda: (grid().T, grid()), lambda: (grid(F32)[:, ::2], grid(F32)[1:, ::2].T),
              lambda: (np.asfortranarray(grid()), grid(F64, 4, 3)))
def matmul_of_views(a, b):
    return a @ b if a.shape[1] == b.shape[0] else a.T @ b


@PROGRAMS.add(lambda: (grid(), grid(F64, 4, 2)), lambda: (grid(F32), grid(F32, 4, 5)))
def einsum_and_tensordot(a, b):
    return (np.einsum("ij,jk->ik", a, b), np.einsum("ij->j", a), np.einsum("ij,ij->", a, a),
            np.einsum("ij,jk->ki", a, b), np.tensordot(a, b, 1), np.tensordot(a, a, ((0,), (0,))),
            np.outer(a[0], b[0]), np.inner(a, a), np.trace(a))


@PROGRAMS.add(lambda: (grid(), grid(F64, 4, 3)), lambda: (grid(), grid(F64, 4, 3)))
def matmul_out_and_in_place(a, b):
    c = np.zeros((3, 3))
    d = np.matmul(a, b, out=c)
    c @= c
    return d is c, c


@PROGRAMS.add(lambda: (row(3, 1), 2), lambda: (row(3, 1, F32), 3), close=True)
def linear_algebra(a, k):
    m = np.diag(a) + 0.0
    return np.linalg.det(m) > 0, np.linalg.inv(m) @ m, np.linalg.norm(a * 0), m * k


# -- shapes -------------------------------------------------------------------------------------


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(I32),), lambda: (np.asfortranarray(grid()),),
              lambda: (grid(F64, 4, 3).T,))
def reshapes(a):
    return (a.reshape(4, 3), a.reshape(-1), a.reshape(2, -1, 2), np.ravel(a), a.flatten(),
            np.reshape(a, (6, 2), order="F"), a.ravel() is a, a.reshape(a.shape))


@PROGRAMS.add(lambda: (np.ones((2, 3, 4)),), lambda: (np.ones((1, 3, 1), F32),))
def transposes(a):
    return (a.T, a.transpose(1, 0, 2), np.swapaxes(a, 0, 2), np.moveaxis(a, 0, -1),
            np.expand_dims(a, 1), np.squeeze(a[:1]), a[:, None], np.transpose(a, (2, 0, 1)))


@PROGRAMS.add(lambda: (row(3),), lambda: (np.ones((2, 1), I32),))
def broadcast_to(a):
    b = np.broadcast_to(a, (4, 2, 3) if a.ndim == 1 else (2, 5))
    return b, b.flags.writeable, b + 1


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2, 0, I32),))
def write_into_broadcast_fails(a):
    b = np.broadcast_to(a, (2, len(a)))
    b[0] = 1
    return b


@PROGRAMS.add(*pairs(F64, F32, I64, BOOL))
def joins(a, b):
    return (np.concatenate([a, b]), np.concatenate((a, b), axis=1), np.stack([a, b]),
            np.stack([a, b], axis=-1), np.vstack([a, b]), np.hstack([a, b]),
            np.concatenate([a, b], axis=None), np.concatenate([a.astype(F32), b]))


@PROGRAMS.add(lambda: ([row(2), row(3)],), lambda: ([row(2)],), lambda: ([],),
              lambda: ([row(2), grid()],))
def concatenate_lists(xs):
    return np.concatenate(xs)


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(I32),))
def splits(a):
    return np.split(a, 2, axis=1), np.array_split(a, 2), np.split(a, [1, 3], axis=1)


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(F64, 3, 5),))
def split_that_does_not_divide(a):
    return np.split(a, 2, axis=1)


@PROGRAMS.add(*each(F64, I32, BOOL))
def padding_and_flipping(a):
    return (np.pad(a, 1), np.pad(a, ((1, 0), (0, 2)), constant_values=1), np.flip(a),
            np.flip(a, 0), np.roll(a, 1), np.roll(a, -1, axis=1), np.pad(a, 1, mode="edge"))


@PROGRAMS.add(*each(F64, I32))
def repeats(a):
    return np.repeat(a, 2), np.repeat(a, [1, 0, 2], axis=0), np.tile(a, 2), np.tile(a, (2, 1, 1))


@PROGRAMS.add(lambda: ((2, 3), F64), lambda: (3, F32), lambda: ((0, 2), I64), lambda: ((), BOOL))
def creation(shape, dtype):
    return (np.zeros(shape, dtype), np.ones(shape, dtype=dtype), np.full(shape, 1, dtype),
            np.empty(shape, dtype).shape, np.zeros_like(np.ones(shape, dtype)),
            np.full_like(np.ones(shape, dtype), 1), np.ones_like(np.ones(shape), dtype=dtype))


@PROGRAMS.add(lambda: (0, 5, 1), lambda: (5, 0, -2), lambda: (0.0, 1.0, 0.25), lambda: (2, 2, 1))
def ranges(lo, hi, step):
    return (np.arange(lo, hi, step), np.arange(hi), np.eye(3), np.eye(2, 3, k=1, dtype=F32),
            np.arange(3, dtype=U8), np.linspace(0, 1, 5), np.identity(2))


@PROGRAMS.add(lambda: ([1, 2, 3],), lambda: ([1.5, 2],), lambda: ([[1], [2]],), lambda: (5,))
def arrays_from_lists(xs):
    return np.array(xs), np.asarray(xs, F32), np.array([xs, xs]), np.array(xs, ndmin=3)


# -- reading and writing ---------------------------------------------------------------------------


@PROGRAMS.add(lambda: (grid(F64, 4, 5),), lambda: (np.asfortranarray(grid(I32, 4, 5)),))
def basic_slices(a):
    return (a[1], a[-1, 2], a[1:3], a[::2, ::-1], a[..., 0], a[:, None, 1:2], a[3:1], a[1:-1, 1:-1],
            a[()], a[2][1:], a[::-1][0])


@PROGRAMS.add(lambda: (row(6), 1, 4, 2), lambda: (row(6), -3, None, None),
              lambda: (row(6), 5, 0, -1), lambda: (row(6), 10, 20, 1))
def slices_from_arguments(a, lo, hi, step):
    return a[lo:hi:step], a[slice(lo, hi)], a[:hi] * 2


@PROGRAMS.add(lambda: (grid(),), lambda: (grid(I32),), lambda: (np.asfortranarray(grid(F32)),))
def slice_stores(a):
    a[0] = 5
    a[1:, ::2] = a[1:, 1::2]
    a[:, -1] += 1
    a[2, 1] = 7
    a[..., 0] *= 2
    return a


@PROGRAMS.add(lambda: (row(4, 0, I32), 2.7), lambda: (row(4, 0, U8), 3), lambda: (row(4), True))
def stores_cast(a, v):
    a[0] = v
    a[1:3] = [v, v + 1]
    return a


@PROGRAMS.add(lambda: (row(4), row(3)), lambda: (row(4), row(2)), lambda: (row(4), row(1)))
def store_of_wrong_shape(a, b):
    a[1:3] = b
    return a


@PROGRAMS.add(lambda: (row(5), np.array([0, 3, 3])), lambda: (row(5), np.array([[1], [-1]])),
              lambda: (row(5), np.array([4, 7])), lambda: (row(5), np.array([], int)))
def integer_gather(a, i):
    return a[i], np.take(a, i), a[i] * 2


@PROGRAMS.add(lambda: (grid(), np.array([0, 2]), np.array([1, 1])),
              lambda: (grid(), np.array([2, 2]), np.array([0, 3])))
def gather_two_axes(a, i, j):
    return a[i, j], a[i], a[:, j], a[i[:, None], j], np.take(a, j, axis=1)


@PROGRAMS.add(lambda: (row(5), np.array([0, 3, 3])), lambda: (row(6), np.array([1, 1, 1])))
def scatter(a, i):
    b = a.copy()
    b[i] = row(3, 50)
    a[i] += 10
    c = np.zeros(6)
    np.add.at(c, i, 1.5)
    np.add.at(c, i, row(3))
    return a, b, c


@PROGRAMS.add(lambda: (row(6),), lambda: (row(9),))
def masks(a):
    m = a % 2 == 0
    picked = a[m]
    picked += 100
    a[m] = -1
    a[a > 3] *= 10
    return a, picked, m.nonzero(), a[~m]


@PROGRAMS.add(lambda: (grid(), grid() > 3), lambda: (grid(I32), grid() > 9))
def mask_two_dimensional(a, m):
    b = a[m]
    a[m] = 0
    return a, b, a[m.any(axis=1)]


@PROGRAMS.add(lambda: (row(4), row(4, 10)), lambda: (row(3, 0, F32), row(3, 1, F32)),
              lambda: (row(4, 0, I64), row(4, 1, I64)))
def in_place_operators(a, b):
    c = a
    a += b
    a -= 1
    a *= 3
    a //= 2
    a **= 2
    a %= 7
    return a is c, a, b


@PROGRAMS.add(lambda: (row(3, 0, I64), 1.5), lambda: (row(3, 0, F32), 1.5),
              lambda: (row(3, 0, I64), 2), lambda: (row(3, 0, F32), np.ones(3)))
def in_place_casting(a, k):
    a += k
    a /= 2
    return a


@PROGRAMS.add(lambda: (row(3), grid(F64, 2, 3)), lambda: (row(3), row(3)))
def in_place_broadcast_fails(a, b):
    a += b
    return a


@PROGRAMS.add(lambda: (row(5),), lambda: (row(8),), lambda: (row(2),))
def overlapping_copies(a):
    a[1:] = a[:-1]
    a[:-1] = a[1:]
    a[::-1] = a
    return a


@PROGRAMS.add(lambda: (row(5, 1),), lambda: (row(8, 1),))
def overlapping_arithmetic(a):
    a[1:] += a[:-1]
    a += a[::-1]
    np.multiply(a[:-1], 2, out=a[1:])
    a[:2] -= a[1:3]
    return a


@PROGRAMS.add(lambda: (grid(F64, 4, 4),), lambda: (grid(I64, 3, 3),))
def in_place_with_own_transpose(a):
    a += a.T
    a *= a.T
    a[:] = a.T
    return a, a.T.argmin(), a.T


@PROGRAMS.add(lambda: (row(4), row(4)), lambda: (lambda x: (x, x))(row(4)),
              lambda: (lambda x: (x[1:], x[:-1]))(row(5)))
def maybe_aliased_arguments(a, b):
    a += 1
    c = b * 2
    b -= a
    return a, b, c, np.shares_memory(a, b)


@PROGRAMS.add(lambda: (row(4),), lambda: (row(6, 0, F32),))
def views_see_writes(a):
    v, w, t = a[1:], a[::2], a.reshape(2, -1)
    a += 10
    v[0] = -1
    w *= 2
    t[1] = t[0]
    return a, v, w, t, v.base is a


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5, 0, F32),))
def out_argument(a):
    out = np.empty_like(a)
    r = np.add(a, 1, out=out)
    np.multiply(out, out, out=out)
    np.sqrt(a, out=a)
    return r is out, out, a * 0


@PROGRAMS.add(lambda: (row(4), F32), lambda: (row(4), I32), lambda: (row(4), F64))
def out_of_another_dtype(a, dtype):
    out = np.zeros(4, dtype)
    np.add(a, 0.5, out=out)
    return out


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5),))
def ufunc_options(a):
    out = np.full(len(a), 9.0)
    np.add(a, 1, out=out, where=a > 1)
    return (out, np.add(a, 1, dtype=F32), np.multiply.outer(a, a), np.add.reduceat(a, [0, 2]),
            np.frexp(a)[1], np.modf(a + 0.5))


@PROGRAMS.add(lambda: (row(4),), lambda: (row(3),))
def read_only_arrays(a):
    a.flags.writeable = False
    b = a + 1
    try:
        a += 1
    except ValueError as e:
        return str(e), b, a
    return b


@PROGRAMS.add(lambda: (row(4),), lambda: (row(3),))
def views_and_results_returned(a):
    b = a * 2
    return b, b[1:], b, a[:1], a, b.reshape(-1, 1)


@PROGRAMS.add(lambda: (row(8, 0, F64),), lambda: (row(4, 0, F64),))
def view_of_bits(a):
    b = a.view(I64)
    c = a.view(U8)[::8]
    b[0] = 1
    return a, b, c, a.tobytes()[:4]


@PROGRAMS.add(lambda: (np.array([True, False]).view(U8) * 3,), lambda: (np.array([0, 1], U8),))
def booleans_with_odd_bytes(u):
    b = u.view(BOOL)
    return b + 1, b.astype(I32), b & True, ~b, b == True  # noqa: E712


@PROGRAMS.add(lambda: (grid()[:, ::2],), lambda: (grid()[::-1],), lambda: (grid().T[1:],))
def writes_through_odd_strides(a):
    a += 1
    a[0] = a[-1]
    return a, a.base, np.ascontiguousarray(a), np.copy(a)


@PROGRAMS.add(lambda: (row(5),), lambda: (np.array([3.0, 1.0, 2.0]),))
def sorting(a):
    b = a[::-1].copy()
    b.sort()
    return (b, np.sort(a), np.argsort(-a, kind="stable"), np.unique(a % 2), np.searchsorted(b, 1.5),
            np.flatnonzero(a > 1), np.diff(a), np.median(a))


@PROGRAMS.add(lambda: (np.ma.masked_array([1.0, 2.0], [True, False]),),
              lambda: (np.matrix([[1.0, 2.0], [3.0, 4.0]]),), lambda: (row(2),))
def subclasses(a):
    return a + 1, a * a, a.sum(), type(a).__name__


@PROGRAMS.add(lambda: (3,), lambda: (5,))
def seeded_random(n):
    rng = np.random.default_rng(n)
    a = rng.random(n)
    np.random.seed(n)
    return a, rng.integers(0, 9, n), np.random.rand(n), rng.permutation(n)


@PROGRAMS.add(lambda: (row(3), row(3), 0), lambda: (row(3), row(3), 1), lambda: (row(3), row(3), 2))
def write_then_leave(a, b, k):
    a *= 2
    if (a.sum() + k) % 2 == 0:
        b += a
        return b
    b -= a
    if k == 1:
        raise KeyError(k)
    return a


@PROGRAMS.add(lambda: (row(6),), lambda: (row(4),))
def many_small_writes(a):
    for i in range(len(a)):
        a[i] = a[i - 1] + i
    return a, a[-1]
