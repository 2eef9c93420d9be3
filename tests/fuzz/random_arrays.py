"""Random array expressions over edge values, in all dtypes: compiled against plain NumPy.

    python -m tests.fuzz.random_arrays BACKEND --seeds A B

An expression is a tree of exact operations, perhaps with one inexact function on top, so that
results are compared by bits (or within a few units of the last place). Operands are arrays of the
corners of their dtype in many layouts, 0-d arrays, NumPy scalars and Python numbers, which keep
their types and change their values and lengths from call to call. Values, dtypes, shapes, layouts,
exceptions and warnings (category, text, line) must be NumPy's, under a random error state.
"""

import argparse
import random
import warnings

import numpy as np

import ccompile

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
BINARY = [
    *(f"({{a}} {op} {{b}})" for op in "+ - * / // % & | ^ < <= == != > >= << >>".split()),
    *(
        f"np.{name}({{a}}, {{b}})"
        for name in (
            "maximum minimum fmax fmin copysign fmod floor_divide remainder logical_and logical_or "
            "logical_xor left_shift right_shift add subtract multiply true_divide"
        ).split()
    ),
    "({a} ** {b})",
    "np.where({a}, {a}, {b})",
    "np.where({a} > {b}, {a}, {b})",
    "np.clip({a}, {b}, 100)",
    "np.clip({a}, 1, {b})",
    "np.clip({a}, {b}, {b})",
]
UNARY = [
    "(-{a})",
    "(~{a})",
    "abs({a})",
    "(+{a})",
    "np.sign({a})",
    "np.sqrt({a})",
    "np.square({a})",
    "np.reciprocal({a})",
    "np.floor({a})",
    "np.ceil({a})",
    "np.trunc({a})",
    "np.rint({a})",
    "np.isnan({a})",
    "np.isinf({a})",
    "np.isfinite({a})",
    "np.signbit({a})",
    "np.logical_not({a})",
    "({a} ** 2)",
    "({a} ** 1)",
    "({a} ** 0)",
    "({a} ** 0.5)",
    "({a} ** -1)",
    "np.fabs({a})",
    "np.clip({a}, -5, 5)",
    "np.clip({a}, -1000, 1000)",
    "np.clip({a}, 0, None)",
    "np.clip({a}, 5, -5)",
    "np.clip({a}, -0.0, 0.0)",
    "np.clip({a}, np.nan, 1)",
    "({a} + 1)",
    "(1 - {a})",
    "({a} * 2.5)",
    "(3 // {a})",
    "({a} // -1)",
    "({a} % -3)",
    "(7 % {a})",
    "({a} << 3)",
    "({a} >> 70)",
    "(1 << {a})",
    "({a} & 6)",
    "({a} == 300)",
    "({a} < -1)",
    "({a} * True)",
    "({a} / 0)",
    "({a} + 1e300)",
    "({a} * 2**40)",
    "(2 ** {a})",
    *(f"{{a}}.astype('{dtype}')" for dtype in DTYPES),
    "np.maximum({a}, 0)",
    "np.minimum({a}, -0.0)",
    "np.maximum({a}, np.nan)",
    "np.fmax({a}, np.nan)",
    "np.asarray({a})[..., ::-1]",
    "np.asarray({a}).T",
    "np.asarray({a})[None]",
    "np.asarray({a})[1:]",
    "np.asarray({a})[..., :2]",
]
SHAPE = [
    "np.roll({a}, 1)",
    "np.roll(np.asarray({a}), -1, axis=-1)",
    "np.tile({a}, 2)",
    "np.tile({a}, (2, 1))",
    "np.repeat({a}, 2)",
    "np.repeat(np.asarray({a}), 3, axis=0)",
    "np.flip({a})",
    "np.transpose({a})",
    "np.concatenate((np.asarray({a}), np.asarray({b})))",
    "np.concatenate((np.asarray({a}), np.asarray({b})), axis=None)",
    "np.stack((np.asarray({a}), np.asarray({b})))",
    "np.stack((np.asarray({a}), np.asarray({b})), axis=-1)",
    "np.vstack((np.asarray({a}), np.asarray({b})))",
    "np.hstack((np.asarray({a}), np.asarray({b})))",
    "np.append({a}, {b})",
    "np.diff({a})",
    "np.diff(np.asarray({a}), axis=0)",
    "np.tril(np.asarray({a}))",
    "np.triu(np.asarray({a}), 1)",
    "np.diag(np.asarray({a}))",
    "np.squeeze({a})",
    "np.expand_dims({a}, 0)",
    "np.moveaxis(np.asarray({a}), 0, -1)",
    "np.pad(np.asarray({a}), 1)",
    "np.ravel({a})",
    "np.asarray({a}).reshape(-1)",
    "np.asarray({a}).reshape(2, -1)",
    "np.atleast_2d({a})",
    "np.outer({a}, {b})",
    "np.where({a}, 1, 2)",
    "np.asarray({a})[[0, 1]]",
    "np.asarray({a})[..., [1, 0]]",
    "np.asarray({a})[:100]",
    "np.asarray({a})[-2:]",
    "np.asarray({a})[::-2]",
    "np.asarray({a})[np.asarray({b}) > 1]",
    "np.take({a}, [0, -1])",
    "np.zeros_like({a})",
    "np.arange(4) + {a}",
    "np.eye(4)[0] * {a}",
    "np.full(4, 2) + {a}",
    "np.asarray({a}).astype('i2') @ np.asarray({b}).astype('i4')",
    "np.inner(np.asarray({a}).astype('i8'), np.asarray({b}).astype('u1'))",
    "np.tensordot(np.asarray({a}).astype('i4'), np.asarray({b}).astype('i4'), axes=1)",
    "np.einsum('ij,kj->ik', np.asarray({a}).astype('i4'), np.asarray({b}).astype('i4'))",
]
REDUCE = [
    *(
        f"np.asarray({{a}}).{name}({axis})"
        for name in "max min argmax argmin any all".split()
        for axis in ("", "axis=0", "axis=-1")
    ),
    "np.count_nonzero({a})",
    "np.asarray({a}).max(axis=-1, keepdims=True)",
    "np.asarray({a}).astype('i4').sum(axis=0)",
    "np.asarray({a}).astype('i1').sum()",
    "np.asarray({a}).astype('u2').prod(axis=0)",
    "np.asarray({a}).astype('i8').cumsum()",
    "np.asarray({a}).cumsum(axis=0)",
    "np.asarray({a}).cumprod(axis=-1)",
    "np.asarray({a}).astype(bool).sum()",
    "np.asarray({a}).astype(bool).mean()",
    "np.ptp({a})",
]
INEXACT = [
    f"np.{name}({{a}})"
    for name in (
        "exp log sin cos tan tanh sinh cosh arctan arcsin arccos arcsinh arccosh arctanh cbrt exp2 "
        "expm1 log1p log2 log10"
    ).split()
] + ["np.arctan2({a}, {b})", "np.hypot({a}, {b})", "np.logaddexp({a}, {b})"]
MODES = ["warn", "ignore", "raise"]


def corners(rng, dtype, n):
    """n values of a dtype, many of them at its limits."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([rng.random() < 0.5 for _ in range(n)], bool)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        pool = [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 0.5, 7.0, -128.0, 255.0, 300.0]
        if rng.random() < 0.4:
            pool += [
                np.nan,
                np.inf,
                -np.inf,
                info.max,
                info.min,
                info.tiny,
                -info.tiny,
                1e10,
                1e20,
                2.0**31,
                2.0**63,
                -(2.0**63),
                2.0**64,
                info.smallest_subnormal,
            ]
    else:
        info = np.iinfo(dtype)
        pool = [0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100]
        if rng.random() < 0.6:
            pool += [info.min, info.max, info.max - 1, info.min + 1, info.max // 2]
        if info.min < 0:
            pool += [-1, -2, -7]
    return np.array([pool[rng.randrange(len(pool))] for _ in range(n)], dtype)


def operand(rng, kind, dtype, form, shape):
    """An operand of this kind; values and long axes are new ones each time."""
    if kind == "python":
        value = corners(rng, {"?": "?", "f": "f8"}.get(dtype[0], "i1"), 1)[0]
        return value.item()
    if kind == "scalar":
        return corners(rng, dtype, 1)[0]
    if kind == "0-d":
        return corners(rng, dtype, 1).reshape(())
    x = corners(rng, dtype, int(np.prod(shape))).reshape(shape)
    if form == "F":
        return np.asfortranarray(x)
    if form == "strided":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if form == "negative":
        return x[::-1].copy()[::-1]
    if form == "broadcast":
        return np.broadcast_to(x[:1], shape) if shape[0] else x
    return x


def expression(rng, depth, names):
    """A random tree of exact operations."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(names)
    if rng.random() < 0.55:
        a, b = (expression(rng, depth - 1, names) for _ in range(2))
        return rng.choice(BINARY).format(a=a, b=b)
    return rng.choice(UNARY).format(a=expression(rng, depth - 1, names))


class Case:
    """One expression, the kinds of its operands, and an error state."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        text = expression(rng, rng.choice([1, 1, 2, 2, 3]), ["x", "y"])
        self.ulp = 6 if "**" in text else 0
        roll = rng.random()
        if roll < 0.25:
            text = rng.choice(REDUCE).format(a=text)
        elif roll < 0.4 and self.ulp == 0:
            text = rng.choice(INEXACT).format(a=text, b=rng.choice("xy"))
            self.ulp = 6
        elif roll < 0.65:
            text = rng.choice(SHAPE).format(a=text, b=rng.choice("xy"))
            if rng.random() < 0.5:
                text = rng.choice(UNARY).format(a=text)
        elif roll < 0.75:
            text = f"({text}, {expression(rng, 2, ['x', 'y'])})"
        self.ulp = 6 if "**" in text else self.ulp
        self.text = text
        # which of two zeros wins there depends on the place in NumPy's own loops
        self.signs = not any(word in text for word in ("fmax", "fmin", ".max(", ".min("))
        self.kinds = [rng.choice(["array"] * 6 + ["python", "scalar", "0-d"]) for _ in range(2)]
        if "array" not in self.kinds:
            self.kinds[rng.randrange(2)] = "array"
        self.dtypes = [rng.choice(DTYPES) for _ in range(2)]
        self.forms = [
            rng.choice(["C", "C", "F", "strided", "negative", "broadcast"]) for _ in range(2)
        ]
        self.ranks = rng.choice([(1, 1), (2, 2), (2, 1), (1, 2), (3, 2)])
        self.modes = {k: rng.choice(MODES) for k in ("divide", "over", "invalid")}
        if rng.random() < 0.5:
            self.modes = dict.fromkeys(self.modes, "warn")
        self.modes["under"] = rng.choice(MODES + ["ignore"] * 9)  # others run without kernels
        scope = {"np": np}
        exec(f"def f(x, y):\n    z = x\n    return {text}\n", scope)
        self.function = scope["f"]

    def arguments(self):
        """Operands for one call."""
        n = self.rng.choice([5, 5, 9, 17, 33, 70, 3, 2, 1, 0])
        sizes = (2, 4, n)
        return [
            operand(self.rng, kind, dtype, form, (n,) if rank == 1 else sizes[3 - rank :])
            for kind, dtype, form, rank in zip(
                self.kinds, self.dtypes, self.forms, self.ranks, strict=True
            )
        ]

    def __str__(self):
        return f"{self.text}  {self.kinds} {self.dtypes} {self.forms} {self.ranks} {self.modes}"


def outcome(function, args, modes):
    """Result or exception, and the warnings."""
    with warnings.catch_warnings(record=True) as log, np.errstate(**modes):
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            result = type(error), str(error)
    return result, [(w.category, str(w.message), w.lineno) for w in log]


def differs(want, got, ulp, signs=True):
    """What is different, or None."""
    if type(want) is not type(got):
        return f"type {type(want)} {type(got)}"
    if isinstance(want, tuple) and not isinstance(want[0], type):
        return next(
            filter(None, (differs(w, g, ulp, signs) for w, g in zip(want, got, strict=True))), None
        )
    if isinstance(want, tuple):
        return None if want == got else f"exception {want} {got}"
    w, g = np.asarray(want), np.asarray(got)
    if w.dtype != g.dtype or w.shape != g.shape:
        return f"{w.dtype}{w.shape} {g.dtype}{g.shape}"
    if isinstance(want, np.ndarray):
        wide = [n > 1 for n in w.shape] if w.size else []
        if any(on and a != b for a, b, on in zip(w.strides, g.strides, wide, strict=False)):
            return f"strides {w.strides} {g.strides}"
        if (want.base is None) != (got.base is None):
            return "base"
    if w.dtype.kind != "f" or ulp == 0:
        if w.dtype.kind == "f":
            signed = (np.signbit(w) == np.signbit(g)) | (not signs)
            bad = ~((w == g) & signed | np.isnan(w) & np.isnan(g))
        else:
            bad = w != g
        return f"values {want!r} {got!r}" if bad.any() else None
    same = (w == g) | (np.isnan(w) & np.isnan(g))
    if same.all():
        return None
    with np.errstate(all="ignore"):
        near = np.abs(w - g) <= ulp * np.spacing(np.maximum(np.abs(w), np.abs(g)))
    return None if (same | near).all() else f"values {want!r} {got!r}"


def run_case(seed, backend, calls=6):
    """None, or what was different and where; the number of array operations in kernels."""
    case = Case(seed)
    compiled = ccompile.compile(case.function, backend=backend)
    for call in range(calls):
        args = case.arguments()
        want, warned = outcome(case.function, args, case.modes)
        got, warned_too = outcome(compiled, args, case.modes)
        wrong = differs(want, got, case.ulp, case.signs)
        if wrong is None and warned != warned_too:
            wrong = f"warnings {warned} {warned_too}"
        if wrong is not None:
            return f"seed {seed} call {call}: {case}\n  args {args!r}\n  {wrong}", 0
    return None, ccompile.counters(compiled)["array_ops_in_kernels"]


def main():
    """Run the seeds; print what differs and how many cases ran in kernels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("backend")
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 1000))
    options = parser.parse_args()
    bad = lowered = 0
    for seed in range(*options.seeds):
        wrong, kernels = run_case(seed, options.backend)
        lowered += kernels > 0
        if wrong is not None:
            bad += 1
            print(wrong, flush=True)
    print(f"{bad} differ, {lowered} of {options.seeds[1] - options.seeds[0]} had kernels")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
