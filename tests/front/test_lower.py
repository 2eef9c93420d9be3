"""Backend "interp" against plain NumPy: values, types, shapes, memory order, warnings, counters."""

import itertools
import warnings

import numpy as np
import pytest

import ccompile

DTYPES = [np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float32, np.float64]
FLOATS = [np.float32, np.float64]


def data(dtype, shape, seed=0):
    """Numbers that are small, so that few operations overflow, in any dtype."""
    n = int(np.prod(shape))
    x = (np.arange(n) * 7 + seed * 3) % 11
    if np.issubdtype(dtype, np.floating):
        return (x.reshape(shape) / 4 - 1.125).astype(dtype)
    if np.issubdtype(dtype, np.signedinteger):
        return (x.reshape(shape) - 4).astype(dtype)
    return x.reshape(shape).astype(dtype)


def gap(a, b):
    """Largest distance in units of the last place; zeros of either sign are one."""
    with np.errstate(all="ignore"):
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        if not bad.any():
            return 0.0
        a, b = a[bad], b[bad]
        if not (np.isfinite(a) & np.isfinite(b)).all():
            return np.inf
        return float((np.abs(a - b) / np.spacing(np.maximum(np.abs(a), np.abs(b)))).max())


def same(want, got, ulp):
    """Assert that `got` is what NumPy gives, floats within `ulp` units."""
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert len(want) == len(got)
        for w, g in zip(want, got, strict=True):
            same(w, g, ulp)
        return
    w, g = np.asarray(want), np.asarray(got)
    assert g.dtype == w.dtype and g.shape == w.shape
    if isinstance(want, np.ndarray):
        wide = [n > 1 for n in w.shape]
        strides = list(zip(w.strides, g.strides, wide, strict=True))
        assert [a for a, _, on in strides if on] == [b for _, b, on in strides if on]
        assert g.flags.owndata == w.flags.owndata and g.flags.writeable == w.flags.writeable
    if w.dtype.kind == "f":
        if ulp == 0:
            assert (np.signbit(w) == np.signbit(g))[~np.isnan(w)].all()
        assert gap(w, g) <= ulp, (w, g)
    else:
        assert (w == g).all(), (w, g)


def run(function, args):
    """Result, or the exception, and the warnings."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message), w.lineno) for w in log]


def check(function, *argsets, ulp=0, kernels=True):
    """Call with all arguments, twice; the second time, at least, is a replay."""
    compiled = ccompile.compile(function, backend="interp")
    for args in argsets * 2:
        want, warned = run(function, args)
        got, warned_too = run(compiled, args)
        same(want, got, ulp)
        assert warned_too == warned
    count = ccompile.counters(compiled)
    if kernels:
        assert count["array_ops_in_kernels"] > 0, compiled._plans()
    return count


def make(text, names="x y"):
    """A function of the given expression."""
    scope = {"np": np}
    exec(f"def f({', '.join(names.split())}):\n    return {text}\n", scope)
    return scope["f"]


# -- Elementwise ---------------------------------------------------------------

BINARY = [
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "x // y",
    "x % y",
    "np.fmod(x, y)",
    "x & y",
    "x | y",
    "x ^ y",
    "x << (y & 7)",
    "x >> (y & 7)",
    "x < y",
    "x <= y",
    "x == y",
    "x != y",
    "x > y",
    "x >= y",
    "np.maximum(x, y)",
    "np.minimum(x, y)",
    "np.logical_and(x, y)",
    "np.logical_or(x, y)",
    "np.logical_xor(x, y)",
    "np.add(x, y) * 2",
    "np.where(x > y, x, y)",
    "np.copysign(x, y)",
]
UNARY = [
    "-x",
    "(+x) * 3",
    "~x",
    "abs(x)",
    "np.abs(x)",
    "np.sign(x)",
    "np.square(x)",
    "x ** 2",
    "x * x",
    "np.floor(x)",
    "np.ceil(x)",
    "np.trunc(x)",
    "np.rint(x)",
    "np.isnan(x)",
    "np.isfinite(x)",
    "np.isinf(x)",
    "np.signbit(x)",
    "np.logical_not(x)",
    "np.reciprocal(x)",
    "np.fabs(x)",
    "np.clip(x, 1, 3)",
    "x.clip(1, None)",
    "np.clip(x, None, 2)",
    "np.where(x, 1, 0)",
    "x.astype(np.float64) + 1",
    "x.astype('f4') * 2",
    "x.astype(np.int16) + 1",
    "x.astype(bool) | False",
    "np.sqrt(x)",
]
ULP = [
    "np.exp(x)",
    "np.exp2(x)",
    "np.expm1(x)",
    "np.log(x)",
    "np.log2(x)",
    "np.log10(x)",
    "np.log1p(x)",
    "np.sin(x)",
    "np.cos(x)",
    "np.tan(x)",
    "np.arcsin(x / 4)",
    "np.arccos(x / 4)",
    "np.arctan(x)",
    "np.sinh(x)",
    "np.cosh(x)",
    "np.tanh(x)",
    "np.arcsinh(x)",
    "np.arccosh(x)",
    "np.arctanh(x / 4)",
    "np.cbrt(x)",
    "np.arctan2(x, x + 1)",
    "np.hypot(x, x + 1)",
    "np.logaddexp(x, x + 1)",
    "x ** 3",
    "x ** 1.5",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", BINARY)
def test_binary(text, dtype):
    sets = [(data(dtype, (n, 3)), data(dtype, (n, 3), 1)) for n in (2, 5, 40)]
    check(make(text), *sets, kernels=dtype in FLOATS and not any(op in text for op in "&|^<>"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", UNARY)
def test_unary(text, dtype):
    sets = [(data(dtype, (n, 3)),) for n in (2, 5, 40)]
    check(
        make(text, "x"), *sets, kernels=dtype in FLOATS and "~" not in text and "sqrt" not in text
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ULP)
def test_functions(text, dtype):
    sets = [(data(dtype, (n, 3)),) for n in (2, 5, 40)]
    with np.errstate(all="ignore"):
        check(make(text, "x"), *sets, ulp=4, kernels=dtype in FLOATS)


@pytest.mark.parametrize("a,b", list(itertools.permutations(DTYPES, 2)))
def test_mixed_dtypes(a, b):
    x, y = data(a, (4, 3)), data(b, (4, 3), 1)
    for text in ("x + y", "x * y > x", "np.where(x > 0, x, y)", "np.maximum(x, y)"):
        check(make(text), (x, y), kernels=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [0, 1, 3, -2, 300, 2.5, True, 2**40, 10**30, float("nan")])
@pytest.mark.parametrize("text", ["x + k", "x * k", "x < k", "x == k", "np.maximum(x, k)", "k - x"])
def test_python_numbers(text, number, dtype):
    x = data(dtype, (4, 3))
    check(make(text, "x k"), (x, number), kernels=False)
    check(
        make(text.replace("k", f"({number!r})".replace("nan", "np.nan")), "x"), (x,), kernels=False
    )


def test_python_int_that_changes():
    count = check(make("x + k", "x k"), *[(data(np.uint8, (5,)), k) for k in (2, 250, 0, 255)])
    assert count["recorded"] == 1 and count["side_exits"] == 0
    check(make("x + k", "x k"), *[(data(np.uint8, (5,)), k) for k in (2, 256, -1, 3)])


def test_python_int_out_of_range():
    count = check(
        make("x < k", "x k"),
        *[(data(np.uint8, (5,)), k) for k in (300, 301, -1, 10**30)] * 3,
        kernels=False,
    )
    assert count["recorded"] == 1 and count["side_exits"] == 0
    count = check(make("x < k", "x k"), *[(data(np.uint8, (5,)), k) for k in (3, 2, 255)])
    assert count["recorded"] == 1 and count["side_exits"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_scalars(dtype):
    x = data(np.float32, (4, 3))
    for text in ("x + k", "x * k", "np.where(x > k, x, k)", "(x + 1) * np.float32(k)"):
        check(make(text, "x k"), *[(x, data(dtype, (5,))[i]) for i in (1, 2, 3)], kernels=False)


@pytest.mark.parametrize(
    "text", ["x + 1", "x * y + x", "np.sqrt(abs(x)) - y", "np.where(x > y, x, 2)"]
)
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_layouts(text, dtype):
    shape = (4, 5, 3)
    base = data(dtype, (9, 11, 7))
    forms = [
        data(dtype, shape),
        np.asfortranarray(data(dtype, shape)),
        base[1:5, 3:8, 2:5],
        base[1:9:2, 10:0:-2, ::-3],
        data(dtype, (3, 5, 4)).T,
        data(dtype, (5, 4, 3)).swapaxes(0, 1),
        data(dtype, (1, 5, 1)),
        data(dtype, (3,)),
        data(dtype, ()),
        data(dtype, (5, 1)),
        np.broadcast_to(data(dtype, (5, 1)), shape),
    ]
    for x, y in itertools.product(forms, forms):
        check(make(text), (x, y), kernels=False)


def test_zero_sizes_and_ones():
    function = make("(x + 1) * y")
    for shape in [(0,), (1,), (0, 3), (3, 0), (1, 1), (1, 0, 2)]:
        check(function, (np.ones(shape), 2.0), (np.ones(shape), 3.0), kernels=False)


def test_sizes_are_free():
    count = check(
        make("(x * 2 + y).sum(axis=0)"),
        *[
            (data(np.float64, (n, m)), data(np.float64, (m,)))
            for n, m in ((2, 3), (3, 3), (7, 5), (100, 2))
        ],
        ulp=64,
    )
    assert count["recorded"] == 1 and count["replayed"] == 7


def test_shapes_that_stop_fitting():
    a, b = data(np.float64, (4, 3)), data(np.float64, (3, 4))
    check(make("x + y * 2"), (a, a), (a, b), (b, b), (a, a[:1]), (a, a[0]), (b, a), (a, a))


def test_one_array_twice_and_constants():
    x = data(np.float64, (6,))
    check(make("(x + y, x * 2, x * 2)"), (x, x), (x, x + 1))


def test_unaligned_and_swapped_arrays():
    raw = np.zeros(8 * 6 + 1, np.uint8)
    odd = raw[1:].view(np.float64)
    odd[:] = data(np.float64, (6,))
    for x in (odd, odd.astype(">f8")):
        count = check(make("x * 2 + 1", "x"), *[(x,)] * 6, kernels=False)
        assert count["recorded"] == 1
    good = data(np.float64, (6,))
    check(make("x * 2 + 1", "x"), (good,), (odd,), (good,), (odd,))


# -- Warnings and errors -------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x / y",
        "np.sqrt(x) + y",
        "np.log(x * y)",
        "x.astype(np.int32) + 1",
        "x * y * 1e308",
        "x // y",
        "x % y",
    ],
)
def test_warnings(text):
    calm = np.array([1.0, 2.0, 3.0])
    wild = [np.array([0.0, 1.0, -1.0]), np.array([np.inf, 1.0, 2.0]), np.array([1e300, 1e10, 3.0])]
    sets = [(calm, calm)] + [p for w in wild for p in ((calm, w), (w, calm), (calm, calm))]
    check(make(text), *sets, kernels=False)


def test_errstate():
    def function(x, how):
        with np.errstate(divide=how, invalid=how):
            return 1 / x + np.sqrt(x)

    good, bad = np.array([1.0, 2.0]), np.array([0.0, -1.0])
    check(
        function,
        *[(x, how) for x in (good, bad, good) for how in ("ignore", "warn", "raise")],
        kernels=False,
    )


def test_integer_faults():
    for dtype in (np.int32, np.int64):
        lowest = np.iinfo(dtype).min
        x, y = np.array([5, lowest, 7], dtype), np.array([2, 3, 4], dtype)
        check(
            make("x // y + x % y"),
            (x, y),
            (x, y),
            (x, y - 2),
            (x, y - 3),
            (x, np.array([2, -1, 1], dtype)),
        )
        check(make("x ** y"), (y, y), (y, -y), kernels=False)


def test_casts_of_numbers_warn():
    for make_number in (np.array, np.float64):
        sets = [(data(np.float64, (5,)), make_number(k)) for k in (1.5, np.nan, 2.5, np.inf)]
        check(make("x * 2 + np.int32(y)"), *sets, kernels=False)
        check(make("x * 2 + y.astype(np.int32)"), *sets, kernels=False)
        sets = [(data(np.float32, (5,)), make_number(k)) for k in (1.5, 1e300, 2.5)]
        check(make("x * np.float32(y)"), *sets, kernels=False)
    check(make("x * y"), *[(data(np.float32, (5,)), k) for k in (1.5, 1e300, 2.5)], kernels=False)


def test_ignored_integer_faults():
    def function(x, y):
        with np.errstate(all="ignore"):
            return x // y + x % y

    for dtype in (np.int8, np.int32, np.int64, np.uint8):
        low = np.iinfo(dtype).min
        x, y = np.array([5, low, 7, 0], dtype), np.array([2, 3, 0, 0], dtype)
        count = check(function, (x, y), (x, -y), (x, np.array([0, 0, 1, 2], dtype)))
        assert count["recorded"] == 1 and count["faults"] == 0


def test_weakref_callback_calls_again():
    import weakref

    compiled = ccompile.compile(make("x * 2 + 1", "x"), backend="interp")
    seen = []

    def function(x, n):
        for _ in range(n):
            x = x * 0.5 + 1
            seen.append(weakref.ref(x, lambda ref: again(3)))
        return x

    def again(n):
        if len(seen) < 200:
            outer(np.ones(4), n)

    outer = ccompile.compile(function, backend="interp")
    for n in (3, 20, 20):
        assert (outer(np.ones(4), n) == function(np.ones(4), n)).all()
    assert (compiled(np.ones(3)) == 3).all()


# -- Reductions ----------------------------------------------------------------

REDUCTIONS = [
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "argmax",
    "argmin",
    "any",
    "all",
    "cumsum",
    "cumprod",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    sets = [(data(dtype, (n, 4, 3)),) for n in (2, 5, 23)]
    scan, arg = name.startswith("cum"), name.startswith("arg")
    kernels = not (arg and dtype is np.bool_)
    axes = ["", "axis=0", "axis=1", "axis=-1", "axis=None"] + ["axis=(0, 2)", "axis=(1, -1)"] * (
        not scan and not arg
    )
    ulp = 200 if name in ("var", "std") else 40
    for axis in axes:
        check(make(f"np.{name}(x, {axis})", "x"), *sets, ulp=ulp, kernels=kernels)
        check(make(f"x.{name}({axis})", "x"), *sets, ulp=ulp, kernels=kernels)
        if not scan:
            more = f"{axis}, keepdims=True".lstrip(", ")
            check(make(f"x.{name}({more})", "x"), *sets, ulp=ulp, kernels=kernels)
    check(make(f"x.{name}() * 2", "x"), (data(dtype, (30,)),), ulp=ulp, kernels=False)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "std", "argmax", "any", "cumsum"])
def test_reductions_of_layouts(name):
    base = data(np.float64, (9, 11, 7))
    for x in (
        np.asfortranarray(base),
        base.T,
        base[::2, ::-1, 1:],
        base.swapaxes(0, 1),
        base[:, :1],
    ):
        for axis in (0, 1, 2):
            check(make(f"x.{name}(axis={axis})", "x"), (x,), ulp=200, kernels=False)


def test_reduction_dtypes():
    for text in (
        "x.sum(dtype=np.float64)",
        "x.sum(axis=0, dtype='f4')",
        "x.mean(dtype=np.float64)",
        "x.prod(dtype=np.int64)",
        "np.cumsum(x, dtype=np.float64)",
    ):
        for dtype in (np.int8, np.uint8, np.float32):
            check(make(text, "x"), (data(dtype, (4, 3)),), ulp=8, kernels=False)


def test_nan_and_extremes():
    x = np.array([[1.0, np.nan, -0.0], [3.0, -np.inf, 0.0]])
    for text in (
        "x.max(axis=0)",
        "x.min(axis=1)",
        "x.argmax(axis=0)",
        "x.argmin()",
        "np.sum(x, axis=0)",
    ):
        check(make(text, "x"), (x,))


def test_bools_of_any_byte():
    x = data(np.float64, (4, 3))
    b, c = ((np.arange(12) % n).astype(np.uint8).view(bool).reshape(4, 3) for n in (5, 3))
    for text in (
        "np.where(b, x, -x)",
        "~b",
        "b & c",
        "b ^ c",
        "b == c",
        "b < c",
        "b + c",
        "b.sum(axis=0)",
        "b.argmax(axis=0)",
        "b.any(axis=0)",
        "b * x",
        "b.astype(int)",
        "b.max(axis=1)",
        "b.mean()",
    ):
        check(make(text, "b c x"), (b, c, x), ulp=4, kernels="arg" not in text)


# -- Shapes --------------------------------------------------------------------

SHAPES = [
    "(x.T * 2).sum(axis=0)",
    "x.reshape(-1) + 1",
    "x.reshape(-1, 3) * 2",
    "x.reshape((x.shape[0], 3)) - 1",
    "x.ravel() * 2",
    "x.flatten() + 1",
    "x.transpose(1, 0) + 1",
    "np.transpose(x) + 1",
    "x.swapaxes(0, 1) * 3",
    "np.expand_dims(x, 1) + x",
    "(x[:, None] + x[None]).sum(axis=2)",
    "x[1:] - x[:-1]",
    "x[:, 1] * 2",
    "x[:, -1] + x[0, 0]",
    "x[::2] * 2",
    "x[::-1] + x",
    "x[0] * x[1]",
    "x[1:, ::2] + 1",
    "x[..., 0] + 1",
    "x[-2:] * 2",
    "x[1, 2] * x",
    "x[-1, 0] + x",
    "np.flip(x, 0) + x",
    "np.flip(x) * 2",
    "np.roll(x, 1, axis=0)",
    "np.roll(x, -2, axis=1) + x",
    "np.concatenate((x, x * 2))",
    "np.concatenate([x, x + 1], axis=1)",
    "np.stack((x, x * 2))",
    "np.stack([x, x], axis=-1)",
    "np.squeeze(x[:, :1]) + 1",
    "np.pad(x, 1)",
    "np.pad(x + 1, ((1, 0), (2, 3)))",
    "np.pad(x, ((0, 1), (1, 0)), constant_values=7)",
    "np.zeros_like(x) + x",
    "np.full_like(x, 3) * x",
    "np.ones(3) * x",
    "np.arange(3) + x",
    "np.zeros((x.shape[0], 1)) + x",
    "x.mT + 1",
    "np.eye(3) + x[0]",
]


COMPOSED = [
    "np.diff(x)",
    "np.diff(x, axis=0) * 2",
    "np.outer(x[0], x[1])",
    "np.outer(x[0], x[:, 0]) + 1",
    "np.count_nonzero(x > 0) + x",
    "np.count_nonzero(x) * x",
    "np.round(x / 2)",
    "(x * 0.3).round()",
]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize("text", SHAPES + COMPOSED)
def test_shapes(text, dtype):
    sets = [(data(dtype, (n, 3)),) for n in (5, 4, 12)]
    check(make(text, "x"), *sets, ulp=8)


@pytest.mark.parametrize("text", SHAPES + COMPOSED)
def test_shapes_of_layouts(text):
    base = data(np.float64, (6, 9))
    for x in (np.asfortranarray(base[:, :3]), base[:, ::3], base.T[:, ::2], base[::-1, 3:6]):
        check(make(text, "x"), (x,), ulp=8, kernels=False)


def test_short_axes():
    for text in SHAPES + COMPOSED:
        for shape in ((2, 3), (1, 3), (2, 3)):
            check(make(text, "x"), (data(np.float64, shape),), kernels=False, ulp=8)
    for text in ("x[1:] * 2", "x[:-1] + 1", "x[2:].sum()", "x[:3] + 1", "np.roll(x, 2) + 1"):
        check(make(text, "x"), *[(data(np.float64, (n,)),) for n in (6, 4, 3, 2, 1, 5)], ulp=8)


def test_bounds_at_run_time():
    x = data(np.float64, (12, 5))
    counts = [
        check(
            make("x[i:j] * 2 + x[i:j]", "x i j"), *[(x, i, j) for i, j in ((2, 9), (0, 12), (3, 5))]
        ),
        check(
            make("x[i:, :j].sum(axis=0)", "x i j"),
            *[(x, i, j) for i, j in ((2, 3), (0, 5), (9, 4))],
            ulp=8,
        ),
        check(make("x[i] * x[j, 1]", "x i j"), *[(x, i, j) for i, j in ((2, 9), (0, 11), (10, 3))]),
    ]
    assert all(c["recorded"] == 1 and c["side_exits"] == 0 for c in counts)
    for text in ("x[i:j] * 2", "x[i] * 2 + x[j]", "x[:, i:j] + 1", "x[i:j:2] * 2"):
        check(
            make(text, "x i j"),
            *[(x, i, j) for i, j in ((1, 4), (0, 0), (-3, -1), (4, 1), (2, 100), (3, 4), (1, 5))],
            kernels=False,
        )


def test_shapes_and_dtypes_of_arrays():
    for dtype in (np.float32, np.float64, np.int32):
        sets = [(data(np.float64, (n, 6)), data(dtype, (n * 2, 3))) for n in (4, 7, 5)]
        for text in (
            "x.reshape(y.shape) + y",
            "np.zeros(y.shape) + y",
            "x.astype(y.dtype) * 2",
            "np.zeros(x.shape, y.dtype) + 1",
            "np.broadcast_to(x[0], x.shape) + x",
            "x.reshape(y.shape[0], y.shape[1]) * y",
            "(x * 2).copy() + 1",
            "np.sum(x, dtype=y.dtype)" if dtype is not np.int32 else "x.sum()",
        ):
            count = check(make(text), *sets, ulp=40)
            assert (text, count["recorded"], count["array_ops_extern"]) == (text, 1, 0)


def test_small_things_stay_with_numpy():
    count = check(make("x[0] + x[1] * 2", "x"), (data(np.float64, (9,)),), kernels=False)
    assert count["array_ops_in_kernels"] == 0


def test_views_that_are_seen():
    def function(x):
        y = x * 2
        return y, y.T, y[1:], y.reshape(-1)

    x = data(np.float64, (4, 3))
    compiled = ccompile.compile(function, backend="interp")
    for _ in range(3):
        y, turned, tail, flat = compiled(x)
        y[1, 1] = 77
        assert turned[1, 1] == tail[0, 1] == flat[4] == 77
        assert (x == data(np.float64, (4, 3))).all()


def test_results_are_fresh():
    compiled = ccompile.compile(make("(+x, x.copy(), x.astype(float))", "x"), backend="interp")
    x = data(np.float64, (4, 3))
    for _ in range(3):
        results = compiled(x)
        assert all(not np.shares_memory(r, x) for r in results)
        assert all(not np.shares_memory(a, b) for a, b in itertools.combinations(results, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("places", [np.int64, np.int32, np.uint8])
def test_gather(dtype, places):
    x = data(dtype, (7, 4))
    at = np.array([[0, 3], [6, 1]], places)
    for text in ("x[y] * 2", "x[:, y[0] - y[0]] * 2", "np.take(x, y, axis=0) * 2"):
        check(make(text), (x, at), kernels=False)
    bad = np.array([0, 7], places)
    check(make("x[y]"), (x, at[0]), (x, bad), (x, at[0]))


def test_negative_places():
    x = data(np.float64, (7, 4))
    check(make("x[y] + 1"), (x, np.array([-1, -7, 3])), (x, np.array([-8, 0, 0])))


# -- Products ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_matmul(dtype):
    shapes = [
        ((4, 5), (5, 3)),
        ((5,), (5, 3)),
        ((4, 5), (5,)),
        ((5,), (5,)),
        ((2, 4, 5), (5, 3)),
        ((2, 4, 5), (2, 5, 3)),
        ((1, 4, 5), (3, 5, 2)),
    ]
    for a, b in shapes:
        x, y = data(dtype, a), data(dtype, b, 1)
        check(make("x @ y"), (x, y), ulp=16)
        check(make("np.matmul(x, y) + 1"), (x, y), ulp=16)
        if len(a) < 3:
            check(make("np.dot(x, y)"), (x, y), ulp=16)
            check(make("x.dot(y) * 2"), (x, y), ulp=16)
    x = data(dtype, (4, 5))
    check(make("x.T @ x", "x"), (x,), (data(dtype, (7, 2)),), ulp=16)
    check(make("x @ x.T", "x"), (np.asfortranarray(x),), ulp=16)


# -- Numbers -------------------------------------------------------------------


def test_truth_and_numbers():
    def function(x):
        total = (x * 2).sum()
        if total > 3:
            return float(total), bool(total), x.max().item()
        return total, int((x > 0).sum())

    check(function, (np.ones(4),), (np.zeros(4),), (np.ones(6),))


def test_conditions():
    def function(x, y):
        n = 0
        if (x * y).sum() > 3:
            n += 1
        if not (x - y).any():
            n += 2
        while (x * x).max() < 40:
            x = x * 2
            n += 10
        return x, n if x[0] == 8 else -n

    check(
        function,
        (np.ones(4), np.ones(4)),
        (np.full(3, 2.0), np.ones(3)),
        (np.full(3, 0.5), np.ones(3)),
    )


def test_number_of_one_element():
    for text in ("float(x * 2)", "bool(x - 1)", "(x + 1).item()", "int(x * 2)"):
        for shape in ((), (1,), (1, 1)):
            if shape and "item" not in text and "bool" not in text:
                continue
            check(make(text, "x"), (np.full(shape, 1.5),), (np.full(shape, 2.5),), kernels=False)


def test_loop_carries_arrays():
    def function(x, n):
        for _ in range(n):
            x = x * 0.5 + 1
        return x

    count = check(function, *[(data(np.float64, (6,)), n) for n in (30, 3, 60)])
    assert count["array_ops_in_kernels"] > 100


def test_rows_without_kernels_are_told():
    def function(x):
        return np.sort(x * 2) + 1

    count = check(function, (data(np.float64, (9,)),))
    assert count["array_ops_extern"] == 1 and count["array_ops_in_kernels"] == 2
