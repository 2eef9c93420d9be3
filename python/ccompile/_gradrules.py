"""The gradient rules of NumPy functions: three tables that `_autodiff` reads.

A rule receives the result and the plain arguments and returns one pullback per positional argument
(None: that argument cannot be differentiated). A pullback may return a gradient that is still
broadcast; the caller sums it to the operand's shape and casts it to the operand's dtype.

Ties are torch's: maximum/minimum of equal operands halve the gradient, max/min share it evenly,
clip passes it on the bounds, abs at 0 gives 0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ._autodiff import (
    COMPOSITE,
    CONSTANT,
    RULES,
    Rule,
    _error,
    astype,
    is_basic,
    is_var,
    plain,
    setitem,
)

_LN2, _LN10 = float(np.log(2.0)), float(np.log(10.0))


def _rule(*functions: Any, saves: bool = True) -> Callable[[Any], Any]:
    def register(pullbacks: Any) -> Any:
        for fn in functions:
            RULES[fn] = Rule(pullbacks, saves=saves)
        return pullbacks

    return register


def _composite(*functions: Any) -> Callable[[Any], Any]:
    def register(body: Any) -> Any:
        for fn in functions:
            COMPOSITE[fn] = body
        return body

    return register


# -- piecewise constant or about shapes only ----------------------------------------------------

CONSTANT.update((
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.logical_and, np.logical_or, np.logical_xor, np.logical_not, np.isnan, np.isfinite,
    np.isinf, np.signbit, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.floor_divide,
    np.spacing, np.nextafter,
    np.zeros_like, np.ones_like, np.empty_like, np.shape, np.ndim, np.size, np.argmax, np.argmin,
    np.argsort, np.argwhere, np.nonzero, np.flatnonzero, np.count_nonzero, np.round, np.around,
    np.isclose, np.allclose, np.array_equal, np.array_equiv, np.searchsorted, np.digitize,
    np.result_type, np.can_cast, np.any, np.all, np.iscomplexobj, np.isrealobj, np.may_share_memory,
    np.shares_memory, np.array_str, np.array_repr, np.array2string, np.isneginf, np.isposinf,
    np.nanargmax, np.nanargmin, np.fix, np.lexsort, np.min_scalar_type, np.common_type,
    (np.logical_and, "reduce"), (np.logical_or, "reduce"),
))

# -- elementwise ----------------------------------------------------------------------------------

_UNARY: dict[Any, Callable[[Any, Any], Any]] = {  # derivative from (result, argument)
    np.negative: lambda y, x: -1.0,
    np.positive: lambda y, x: 1.0,
    np.conjugate: lambda y, x: 1.0,
    np.absolute: lambda y, x: np.sign(x),
    np.fabs: lambda y, x: np.sign(x),
    np.square: lambda y, x: 2.0 * x,
    np.sqrt: lambda y, x: 0.5 / y,
    np.cbrt: lambda y, x: 1.0 / (3.0 * y * y),
    np.reciprocal: lambda y, x: -y * y,
    np.exp: lambda y, x: y,
    np.exp2: lambda y, x: y * _LN2,
    np.expm1: lambda y, x: y + 1.0,
    np.log: lambda y, x: 1.0 / x,
    np.log2: lambda y, x: 1.0 / (x * _LN2),
    np.log10: lambda y, x: 1.0 / (x * _LN10),
    np.log1p: lambda y, x: 1.0 / (1.0 + x),
    np.sin: lambda y, x: np.cos(x),
    np.cos: lambda y, x: -np.sin(x),
    np.tan: lambda y, x: 1.0 + y * y,
    np.arcsin: lambda y, x: 1.0 / np.sqrt(1.0 - x * x),
    np.arccos: lambda y, x: -1.0 / np.sqrt(1.0 - x * x),
    np.arctan: lambda y, x: 1.0 / (1.0 + x * x),
    np.sinh: lambda y, x: np.cosh(x),
    np.cosh: lambda y, x: np.sinh(x),
    np.tanh: lambda y, x: 1.0 - y * y,
    np.arcsinh: lambda y, x: 1.0 / np.sqrt(x * x + 1.0),
    np.arccosh: lambda y, x: 1.0 / np.sqrt(x * x - 1.0),
    np.arctanh: lambda y, x: 1.0 / (1.0 - x * x),
    np.deg2rad: lambda y, x: np.pi / 180.0,
    np.radians: lambda y, x: np.pi / 180.0,
    np.rad2deg: lambda y, x: 180.0 / np.pi,
    np.degrees: lambda y, x: 180.0 / np.pi,
}


def _unary(derivative: Callable[[Any, Any], Any]) -> Rule:
    def pullbacks(y: Any, x: Any) -> Any:
        return (lambda g: g * derivative(y, x),)

    return Rule(pullbacks)


RULES.update({fn: _unary(derivative) for fn, derivative in _UNARY.items()})


@_rule(np.add, saves=False)
def _add(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g, lambda g: g


@_rule(np.subtract, saves=False)
def _subtract(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g, lambda g: -g


@_rule(np.multiply)
def _multiply(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g * b, lambda g: g * a


@_rule(np.divide)
def _divide(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g / b, lambda g: -g * out / b


@_rule(np.power, np.float_power, operator.pow)
def _power(out: Any, a: Any, b: Any) -> Any:
    def to_base(g: Any) -> Any:
        return np.where(np.equal(b, 0), 0.0, g * (b * np.power(a, np.subtract(b, 1.0))))

    def to_exponent(g: Any) -> Any:
        flat = np.logical_and(np.equal(a, 0), np.greater_equal(b, 0))
        return g * np.where(flat, 0.0, out * np.log(a))

    return to_base, to_exponent


@_rule(np.maximum)
def _maximum(out: Any, a: Any, b: Any) -> Any:
    def share(g: Any, lost: Any) -> Any:
        return np.where(lost, 0.0, np.where(np.equal(a, b), g / 2, g))

    return lambda g: share(g, np.less(a, b)), lambda g: share(g, np.greater(a, b))


@_rule(np.minimum)
def _minimum(out: Any, a: Any, b: Any) -> Any:
    def share(g: Any, lost: Any) -> Any:
        return np.where(lost, 0.0, np.where(np.equal(a, b), g / 2, g))

    return lambda g: share(g, np.greater(a, b)), lambda g: share(g, np.less(a, b))


@_rule(np.fmax)
def _fmax(out: Any, a: Any, b: Any) -> Any:
    first = np.logical_or(np.greater_equal(a, b), np.isnan(b))
    return lambda g: np.where(first, g, 0.0), lambda g: np.where(first, 0.0, g)


@_rule(np.fmin)
def _fmin(out: Any, a: Any, b: Any) -> Any:
    first = np.logical_or(np.less_equal(a, b), np.isnan(b))
    return lambda g: np.where(first, g, 0.0), lambda g: np.where(first, 0.0, g)


@_rule(np.arctan2)
def _arctan2(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g * b / (a * a + b * b), lambda g: -g * a / (a * a + b * b)


@_rule(np.hypot)
def _hypot(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g * (a / out), lambda g: g * (b / out)


@_rule(np.logaddexp)
def _logaddexp(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g * np.exp(a - out), lambda g: g * np.exp(b - out)


@_rule(np.logaddexp2)
def _logaddexp2(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g * np.exp2(a - out), lambda g: g * np.exp2(b - out)


@_rule(np.remainder)
def _remainder(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g, lambda g: -g * np.floor_divide(a, b)


@_rule(np.fmod)
def _fmod(out: Any, a: Any, b: Any) -> Any:
    return lambda g: g, lambda g: -g * np.trunc(np.divide(a, b))


@_rule(np.copysign)
def _copysign(out: Any, a: Any, b: Any) -> Any:
    return (lambda g: np.where(np.equal(a, 0), 0.0, g * np.sign(a) * np.copysign(1.0, b)),
            lambda g: np.zeros_like(g))


@_rule(np.where)
def _where(out: Any, condition: Any, x: Any, y: Any) -> Any:
    return (None, lambda g: np.where(condition, g, 0.0), lambda g: np.where(condition, 0.0, g))


@_rule(np.clip)
def _clip(out: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None,
          max: Any = None) -> Any:
    lo = a_min if a_min is not None else min
    hi = a_max if a_max is not None else max
    above = True if lo is None else np.greater_equal(a, lo)
    below = True if hi is None else np.less_equal(a, hi)
    inside = np.logical_and(above, below)
    crossed = False if lo is None or hi is None else np.greater(lo, hi)
    at_lo = np.logical_and(np.logical_not(above), np.logical_not(crossed))
    at_hi = np.logical_or(np.logical_and(np.logical_not(below), True), crossed)
    return (lambda g: np.where(inside, g, 0.0), lambda g: np.where(at_lo, g, 0.0),
            lambda g: np.where(at_hi, g, 0.0))


@_rule(astype, saves=False)
def _astype(out: Any, x: Any, dtype: Any) -> Any:
    return lambda g: g, None


@_rule(np.copy, saves=False)
def _copy(out: Any, a: Any, order: Any = "K", subok: bool = False) -> Any:
    return (lambda g: g,)


# -- reductions and scans -------------------------------------------------------------------------


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axis = axis if isinstance(axis, tuple) else (axis,)
    return tuple(operator.index(i) % ndim for i in axis) if ndim else ()


def _spread(g: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Insert the reduced axes again, with length 1."""
    shape = np.shape(x)
    axes = _axes(axis, len(shape))
    return np.reshape(g, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _count(x: Any, axis: Any) -> int:
    count = 1
    for i in _axes(axis, np.ndim(x)):
        count *= np.shape(x)[i]
    return count


@_rule(np.sum, saves=False)
def _sum(out: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    return (lambda g: np.broadcast_to(_spread(g, a, axis, keepdims), np.shape(a)),)


@_rule(np.mean, saves=False)
def _mean(out: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    n = _count(a, axis)
    return (lambda g: np.broadcast_to(_spread(g, a, axis, keepdims) / n, np.shape(a)),)


def _centred(a: Any, axis: Any) -> Any:
    return a - np.mean(a, axis=axis, keepdims=True)


@_rule(np.var)
def _var(out: Any, a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0,
         keepdims: bool = False, correction: Any = None) -> Any:
    n = _count(a, axis) - (ddof if correction is None else correction)
    return (lambda g: _spread(g, a, axis, keepdims) * (2.0 / n) * _centred(a, axis),)


@_rule(np.std)
def _std(out: Any, a: Any, axis: Any = None, dtype: Any = None, *, ddof: int = 0,
         keepdims: bool = False, correction: Any = None) -> Any:
    n = _count(a, axis) - (ddof if correction is None else correction)

    def pull(g: Any) -> Any:
        s = _spread(out, a, axis, keepdims)
        scaled = _spread(g, a, axis, keepdims) * _centred(a, axis) / (n * s)
        return np.where(s == 0, 0.0, scaled)

    return (pull,)


@_rule(np.max, np.amax, np.min, np.amin)
def _max(out: Any, a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    def pull(g: Any) -> Any:
        best = a == _spread(out, a, axis, keepdims)
        count = best.sum(axis=axis, keepdims=True, dtype=np.asarray(g).dtype)
        return _spread(g, a, axis, keepdims) / count * best

    return (pull,)


@_rule(np.prod)
def _prod(out: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Any:
    axes = _axes(axis, np.ndim(a))

    def pull(g: Any) -> Any:
        moved = np.moveaxis(a, axes, range(-len(axes), 0)) if axes else np.asarray(a)
        flat = moved.reshape(moved.shape[:moved.ndim - len(axes)] + (-1,))
        ones = np.ones_like(flat[..., :1])
        left = np.cumprod(np.concatenate((ones, flat[..., :-1]), -1), -1)
        right = np.cumprod(np.concatenate((ones, flat[..., :0:-1]), -1), -1)[..., ::-1]
        others = (left * right).reshape(moved.shape)
        others = np.moveaxis(others, range(-len(axes), 0), axes) if axes else others
        return _spread(g, a, axis, keepdims) * others

    return (pull,)


@_rule(np.cumsum, saves=False)
def _cumsum(out: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    def pull(g: Any) -> Any:
        k = 0 if axis is None else axis
        return np.flip(np.cumsum(np.flip(g, k), axis=k), k).reshape(np.shape(a))

    return (pull,)


def _reduce(fn: Any) -> Callable[..., Any]:
    def body(a: Any, axis: Any = 0, dtype: Any = None, **kwargs: Any) -> Any:
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
        if dtype is not None:
            kwargs["dtype"] = dtype
        return fn(a, axis=axis, **kwargs)

    return body


def _accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Any:
    return np.cumsum(a, axis, dtype)


def _outer(fn: Any) -> Callable[[Any, Any], Any]:
    return lambda a, b: fn(np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)


COMPOSITE.update({
    (np.add, "reduce"): _reduce(np.sum),
    (np.multiply, "reduce"): _reduce(np.prod),
    (np.maximum, "reduce"): _reduce(np.max),
    (np.minimum, "reduce"): _reduce(np.min),
    (np.add, "accumulate"): _accumulate,
    (np.add, "outer"): _outer(np.add),
    (np.subtract, "outer"): _outer(np.subtract),
    (np.multiply, "outer"): _outer(np.multiply),
})


@_rule(np.sort)
def _sort(out: Any, a: Any, axis: Any = -1) -> Any:
    def pull(g: Any) -> Any:
        flat, k = (np.ravel(a), 0) if axis is None else (a, axis)
        gx = np.zeros_like(flat)
        np.put_along_axis(gx, np.argsort(flat, k, kind="stable"), g, k)
        return gx.reshape(np.shape(a))

    return (pull,)


# -- products --------------------------------------------------------------------------------------


@_rule(np.matmul)
def _matmul(out: Any, a: Any, b: Any) -> Any:
    rows = a[None, :] if a.ndim == 1 else a
    cols = b[:, None] if b.ndim == 1 else b

    def full(g: Any) -> Any:
        g = np.expand_dims(g, -1) if b.ndim == 1 else g
        return np.expand_dims(g, -2) if a.ndim == 1 else g

    def to_a(g: Any) -> Any:
        g = np.matmul(full(g), np.swapaxes(cols, -1, -2))
        return g.sum(tuple(range(g.ndim - 1))) if a.ndim == 1 else g

    def to_b(g: Any) -> Any:
        g = np.matmul(np.swapaxes(rows, -1, -2), full(g))
        return g.sum(tuple(range(g.ndim - 2)))[:, 0] if b.ndim == 1 else g

    return to_a, to_b


@_rule(np.dot)
def _dot(out: Any, a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return _multiply(out, a, b)
    if np.ndim(b) == 1 or np.ndim(a) <= 2 and np.ndim(b) == 2:
        return _matmul(out, a, b)
    return _tensordot(out, a, b, ((-1,), (-2,)))[:2]


COMPOSITE[np.outer] = lambda a, b: np.multiply(np.ravel(a)[:, None], np.ravel(b)[None, :])
COMPOSITE[np.inner] = lambda a, b: (
    np.multiply(a, b) if np.ndim(a) == 0 or np.ndim(b) == 0
    else np.tensordot(a, b, axes=((-1,), (-1,))))
COMPOSITE[np.vdot] = lambda a, b: np.dot(np.ravel(a), np.ravel(b))


@_rule(np.tensordot)
def _tensordot(out: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    if isinstance(axes, int):
        ax, bx = tuple(range(np.ndim(a) - axes, np.ndim(a))), tuple(range(axes))
    else:
        ax, bx = (_axes(tuple(k) if np.iterable(k) else k, x.ndim) for k, x in
                  zip(axes, (a, b), strict=True))
    free_a = [i for i in range(np.ndim(a)) if i not in ax]
    free_b = [i for i in range(np.ndim(b)) if i not in bx]

    def to_a(g: Any) -> Any:
        ga = np.tensordot(g, b, (range(len(free_a), np.ndim(g)), free_b))
        order = free_a + [ax[i] for i in np.argsort(bx)]
        return np.transpose(ga, np.argsort(order))

    def to_b(g: Any) -> Any:
        gb = np.tensordot(a, g, (free_a, range(len(free_a))))
        order = [bx[i] for i in np.argsort(ax)] + free_b
        return np.transpose(gb, np.argsort(order))

    return to_a, to_b


def _einsum_letters(subscripts: str, operands: tuple[Any, ...]) -> tuple[list[str], str]:
    """Explicit subscripts of the operands and the result, the ellipsis written as letters."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        used = "".join(terms).replace(".", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(c for c in set(used) if used.count(c) == 1))
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in subscripts]
    depth = max([np.ndim(x) - len(t.replace("...", ""))
                 for t, x in zip(terms, operands, strict=True) if "..." in t], default=0)
    for i, (term, x) in enumerate(zip(terms, operands, strict=True)):
        n = np.ndim(x) - len(term.replace("...", ""))
        terms[i] = term.replace("...", "".join(spare[depth - n:depth]))
    return terms, right.replace("...", "".join(spare[:depth]))


@_rule(np.einsum)
def _einsum(out: Any, subscripts: Any, *operands: Any, optimize: Any = False) -> Any:
    if not isinstance(subscripts, str):
        raise _error("numpy.einsum with index lists has no gradient rule; use a subscript string")
    terms, right = _einsum_letters(subscripts, operands)
    if any(len(set(t)) != len(t) for t in terms):
        raise _error("numpy.einsum with a repeated index in one operand has no gradient rule")

    def to(i: int) -> Any:
        def pull(g: Any) -> Any:
            rest = [x for k, x in enumerate(operands) if k != i]
            names = [t for k, t in enumerate(terms) if k != i]
            shape = np.shape(operands[i])
            have = set(right + "".join(names))
            kept = "".join(c for c in terms[i] if c in have)
            g = np.einsum(",".join([right, *names]) + "->" + kept, g, *rest, optimize=True)
            g = np.reshape(g, tuple(np.shape(g)[kept.index(c)] if c in kept else 1
                                    for c in terms[i]))
            return np.broadcast_to(g, tuple(max(m, n) for m, n in zip(g.shape, shape, strict=True)))

        return pull

    return (None, *[to(i) for i in range(len(operands))])


# -- shapes and places ---------------------------------------------------------------------------


@_rule(np.reshape, np.squeeze, np.expand_dims, saves=False)
def _reshape(out: Any, a: Any, shape: Any = None, order: Any = "C", *, axis: Any = None) -> Any:
    return (lambda g: np.reshape(g, np.shape(a), order=order if order in "CF" else "C"),)


@_rule(np.ravel, saves=False)
def _ravel(out: Any, a: Any, order: Any = "C") -> Any:
    if order not in "CF":
        raise _error(f"numpy.ravel with order={order!r} has no gradient rule")
    return (lambda g: np.reshape(g, np.shape(a), order=order),)


@_rule(np.transpose, np.permute_dims, saves=False)
def _transpose(out: Any, a: Any, axes: Any = None) -> Any:
    back = None if axes is None else np.argsort(_axes(tuple(axes), np.ndim(a)))
    return (lambda g: np.transpose(g, back),)


@_rule(np.swapaxes, saves=False)
def _swapaxes(out: Any, a: Any, axis1: int, axis2: int) -> Any:
    return (lambda g: np.swapaxes(g, axis1, axis2),)


@_rule(np.broadcast_to, saves=False)
def _broadcast_to(out: Any, array: Any, shape: Any, subok: bool = False) -> Any:
    return (lambda g: g,)


@_rule(np.concatenate, saves=False)
def _concatenate(out: Any, arrays: Any, axis: Any = 0) -> Any:
    def pull(g: Any) -> Any:
        parts = [np.ravel(x) for x in arrays] if axis is None else arrays
        ends = np.cumsum([np.shape(x)[axis or 0] for x in parts])
        pieces = np.split(g, ends[:-1], axis or 0)
        return [p.reshape(np.shape(x)) for p, x in zip(pieces, arrays, strict=True)]

    return (pull,)


@_rule(np.stack, saves=False)
def _stack(out: Any, arrays: Any, axis: int = 0) -> Any:
    return (lambda g: list(np.moveaxis(g, axis, 0)),)


def _at_least(n: int) -> Callable[[Any], Any]:
    def lift(x: Any) -> Any:
        shape = np.shape(x)
        if len(shape) >= n:
            return x
        return np.reshape(x, (1,) * (n - len(shape)) + shape)

    return lift


COMPOSITE[np.atleast_1d] = _at_least(1)
COMPOSITE[np.atleast_2d] = _at_least(2)
COMPOSITE[np.vstack] = lambda tup: np.concatenate([_at_least(2)(x) for x in tup], 0)
COMPOSITE[np.hstack] = lambda tup: np.concatenate(
    [_at_least(1)(x) for x in tup], 0 if all(np.ndim(x) <= 1 for x in tup) else 1)
COMPOSITE[np.column_stack] = lambda tup: np.concatenate(
    [np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x for x in tup], 1)
COMPOSITE[np.trace] = lambda a, offset=0, axis1=0, axis2=1: np.sum(
    np.diagonal(a, offset, axis1, axis2), axis=-1)
COMPOSITE[np.broadcast_arrays] = lambda *args: tuple(
    np.broadcast_to(x, np.broadcast_shapes(*[np.shape(y) for y in args])) for x in args)
COMPOSITE[np.linalg.matmul] = lambda a, b: np.matmul(a, b)


@_composite(np.diff)
def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    head = [slice(None)] * np.ndim(a)
    tail = list(head)
    head[axis], tail[axis] = slice(1, None), slice(None, -1)
    for _ in range(n):
        a = a[tuple(head)] - a[tuple(tail)]
    return a


def _split_by(fn: Any) -> Callable[..., Any]:
    def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        places = np.arange(np.shape(ary)[axis])
        index = [slice(None)] * np.ndim(ary)
        out = []
        for part in fn(places, indices_or_sections):
            index[axis] = slice(int(part[0]), int(part[-1]) + 1) if len(part) else slice(0, 0)
            out.append(ary[tuple(index)])
        return out

    return split


COMPOSITE[np.split] = _split_by(np.split)
COMPOSITE[np.array_split] = _split_by(np.array_split)


@_rule(np.pad, saves=False)
def _pad(out: Any, array: Any, pad_width: Any, mode: Any = "constant", *,
         constant_values: Any = 0) -> Any:
    if mode != "constant":
        raise _error(f"numpy.pad with mode={mode!r} has no gradient rule")
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - array.ndim, 0)) for i in range(array.ndim)]
        pad_width = [p if np.iterable(p) else (p, p) for p in pad_width]
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2))
    inner = tuple(slice(int(w[0]), int(w[0]) + n) for w, n in zip(widths, array.shape, strict=True))
    return (lambda g: g[inner],)


@_rule(operator.getitem)
def _getitem(out: Any, x: Any, index: Any) -> Any:
    def pull(g: Any) -> Any:
        gx = np.zeros(np.shape(x), np.asarray(g).dtype)
        if is_basic(index):
            gx[index] = g
        else:
            np.add.at(gx, index, g)
        return gx

    return pull, None


@_rule(setitem)
def _setitem(out: Any, x: Any, index: Any, value: Any) -> Any:
    def to_x(g: Any) -> Any:
        gx = np.array(g)
        gx[index] = 0
        return gx

    def to_value(g: Any) -> Any:
        if not is_basic(index):    # of repeated places only the last store counts
            owner = np.full(np.shape(g), -1)
            size = np.size(owner[index])
            owner[index] = np.arange(size).reshape(np.shape(owner[index]))
            mine = owner[index] == np.arange(size).reshape(np.shape(owner[index]))
            return _fold(np.where(mine, g[index], 0.0), np.shape(value))
        return _fold(g[index], np.shape(value))

    return to_x, None, to_value


def _fold(g: Any, shape: tuple[int, ...]) -> Any:
    """A stored value may have more leading axes of length 1 than the place it is stored to."""
    extra = len(shape) - np.ndim(g)
    return np.reshape(g, (1,) * extra + np.shape(g)) if extra > 0 else g


def _gather(*functions: Any) -> None:
    """Functions that only move elements: the pullback adds each one back to its origin."""

    def make(fn: Any) -> Any:
        def pullbacks(out: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
            def pull(g: Any) -> Any:
                origin = fn(np.arange(np.size(a)).reshape(np.shape(a)), *args, **kwargs)
                sums = np.bincount(np.ravel(origin), np.ravel(g), np.size(a))
                return sums.reshape(np.shape(a))

            return (pull,)

        return pullbacks

    for fn in functions:
        RULES[fn] = Rule(make(fn), saves=True)


_gather(np.flip, np.fliplr, np.flipud, np.roll, np.rot90, np.repeat, np.tile, np.take,
        np.take_along_axis, np.diagonal, np.moveaxis, np.rollaxis, np.resize, np.delete,
        sliding_window_view)
COMPOSITE[np.tril] = lambda m, k=0: np.where(np.tri(m.shape[-2], m.shape[-1], k, bool), m, 0.0)
COMPOSITE[np.triu] = lambda m, k=0: np.where(np.tri(m.shape[-2], m.shape[-1], k - 1, bool), 0.0, m)


@_composite(np.diag)
def _diag(v: Any, k: int = 0) -> Any:
    if np.ndim(v) == 2:
        return np.diagonal(v, k)
    raise _error("numpy.diag of a vector has no gradient rule; multiply np.eye instead")


@_composite(np.full_like)
def _full_like(a: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    if is_var(fill_value):
        raise _error("numpy.full_like with a differentiated value has no gradient rule;"
                     " use np.broadcast_to")
    return np.full_like(plain(a), fill_value, dtype, **kwargs)
