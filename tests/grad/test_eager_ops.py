"""Eager gradients of each NumPy operation against central differences in float64."""

import operator

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from ccompile import _autodiff, _gradrules  # noqa: F401
from ccompile._grad import grad, value_and_grad

RNG = np.random.default_rng(7)


def numeric(f, args, i, eps=1e-6):
    """Central differences of scalar f with respect to args[i]."""
    args = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    out = np.zeros_like(args[i])
    for k in np.ndindex(args[i].shape):
        keep = args[i][k]
        args[i][k] = keep + eps
        up = float(f(*args))
        args[i][k] = keep - eps
        down = float(f(*args))
        args[i][k] = keep
        out[k] = (up - down) / (2 * eps)
    return out


def check(op, *args, tol=2e-6):
    """Gradients of sum(op(*args) * weights) for every array argument; the value is op's own."""
    want = op(*args)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, np.shape(want))

    def f(*a):
        return np.sum(op(*a) * weights)

    value, grads = value_and_grad(f, tuple(range(len(args))))(*args)
    assert value == f(*args)
    for i, g in enumerate(grads):
        assert g.dtype == args[i].dtype and g.shape == args[i].shape
        np.testing.assert_allclose(g, numeric(f, args, i), rtol=tol, atol=tol)


def rand(*shape, lo=-2.0, hi=2.0):
    return RNG.uniform(lo, hi, shape)


UNARY = {
    np.negative: (-2, 2), np.positive: (-2, 2), np.absolute: (0.2, 2), np.fabs: (-2, -0.2),
    np.square: (-2, 2), np.sqrt: (0.3, 2), np.cbrt: (0.3, 2), np.reciprocal: (0.4, 2),
    np.exp: (-2, 2), np.exp2: (-2, 2), np.expm1: (-2, 2), np.log: (0.3, 2), np.log2: (0.3, 2),
    np.log10: (0.3, 2), np.log1p: (-0.5, 2), np.sin: (-2, 2), np.cos: (-2, 2), np.tan: (-1, 1),
    np.arcsin: (-0.8, 0.8), np.arccos: (-0.8, 0.8), np.arctan: (-2, 2), np.sinh: (-2, 2),
    np.cosh: (-2, 2), np.tanh: (-2, 2), np.arcsinh: (-2, 2), np.arccosh: (1.3, 3),
    np.arctanh: (-0.8, 0.8), np.deg2rad: (-2, 2), np.radians: (-2, 2), np.rad2deg: (-2, 2),
    np.degrees: (-2, 2), np.conjugate: (-2, 2),
}
BINARY = {
    np.add: (-2, 2), np.subtract: (-2, 2), np.multiply: (-2, 2), np.divide: (0.5, 2),
    np.power: (0.5, 2), np.float_power: (0.5, 2), operator.pow: (0.5, 2), np.maximum: (-2, 2),
    np.minimum: (-2, 2), np.fmax: (-2, 2), np.fmin: (-2, 2), np.arctan2: (0.5, 2),
    np.hypot: (0.5, 2), np.logaddexp: (-2, 2), np.logaddexp2: (-2, 2), np.remainder: (0.6, 0.9),
    np.fmod: (0.6, 0.9),
}


@pytest.mark.parametrize("op", UNARY, ids=lambda f: f.__name__)
def test_unary(op):
    lo, hi = UNARY[op]
    check(op, rand(3, 4, lo=lo, hi=hi))
    check(op, np.array(rand(lo=lo, hi=hi)))


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_binary_broadcasts(op):
    lo, hi = BINARY[op]
    check(op, rand(3, 4, lo=lo, hi=hi), rand(3, 4, lo=lo, hi=hi))
    check(op, rand(3, 1, lo=lo, hi=hi), rand(2, 1, 4, lo=lo, hi=hi))
    check(lambda a: op(a, 0.75), rand(3, lo=lo, hi=hi))
    check(lambda b: op(0.95, b), rand(3, lo=lo, hi=hi))


OPS = {
    "operators": (lambda a, b: (a + 2) * b - a / (b * b) + (-a) ** 2 + 2 ** b + a % 7.0,
                  rand(3), rand(3, lo=0.5)),
    "abs": (lambda a: abs(a), rand(4)),
    "matmul operator": (lambda a, b: a @ b, rand(3, 4), rand(4, 2)),
    "matmul batch": (np.matmul, rand(2, 1, 3, 4), rand(5, 4, 2)),
    "matmul vector left": (np.matmul, rand(4), rand(5, 4, 2)),
    "matmul vector right": (np.matmul, rand(2, 3, 4), rand(4)),
    "matmul vectors": (np.matmul, rand(4), rand(4)),
    "dot 2d": (np.dot, rand(3, 4), rand(4, 2)),
    "dot scalar": (np.dot, np.array(1.5), rand(4)),
    "dot nd": (np.dot, rand(2, 3, 4), rand(5, 4, 2)),
    "dot nd vector": (np.dot, rand(2, 3, 4), rand(4)),
    "dot method": (lambda a, b: a.dot(b), rand(3, 4), rand(4)),
    "inner": (np.inner, rand(3, 4), rand(2, 4)),
    "outer": (np.outer, rand(3), rand(2)),
    "vdot": (np.vdot, rand(3), rand(3)),
    "tensordot 1": (lambda a, b: np.tensordot(a, b, 1), rand(2, 3), rand(3, 4)),
    "tensordot 0": (lambda a, b: np.tensordot(a, b, 0), rand(2), rand(3)),
    "tensordot axes": (lambda a, b: np.tensordot(a, b, ((2, 0), (1, 2))), rand(2, 3, 4),
                       rand(5, 4, 2)),
    "einsum matmul": (lambda a, b: np.einsum("ij,jk->ik", a, b), rand(3, 4), rand(4, 2)),
    "einsum implicit": (lambda a, b: np.einsum("ij,jk", a, b), rand(3, 4), rand(4, 2)),
    "einsum sum out": (lambda a, b: np.einsum("ij,k->k", a, b), rand(3, 4), rand(2)),
    "einsum ellipsis": (lambda a, b: np.einsum("...ij,jk->...ik", a, b), rand(2, 3, 4),
                        rand(4, 2)),
    "einsum three": (lambda a, b, c: np.einsum("i,ij,j->", a, b, c), rand(3), rand(3, 4),
                     rand(4)),
    "where": (lambda a, b: np.where(np.arange(4) > 1, a, b), rand(3, 4), rand(4)),
    "where on value": (lambda a: np.where(a > 0, a * 3, -a), rand(3, 4)),
    "clip": (lambda a: np.clip(a, -1.0, 1.0), rand(30)),
    "clip method": (lambda a: a.clip(None, 0.5), rand(10)),
    "clip keywords": (lambda a, lo: np.clip(a, a_min=lo, a_max=None), rand(6), rand(6)),
    "clip bounds": (np.clip, rand(20), np.array(-0.7), np.array(0.9)),
    "astype": (lambda a: a.astype(np.float64) * 2, rand(3)),
    "copy": (lambda a: a.copy() * np.copy(a), rand(3)),
    "sum": (lambda a: a.sum(), rand(3, 4)),
    "sum axis": (lambda a: np.sum(a, axis=1), rand(3, 4)),
    "sum axes": (lambda a: np.sum(a, axis=(0, -1), keepdims=True), rand(2, 3, 4)),
    "add.reduce": (lambda a: np.add.reduce(a, axis=1), rand(3, 4)),
    "maximum.reduce": (lambda a: np.maximum.reduce(a), rand(3, 4)),
    "mean": (lambda a: a.mean(0), rand(3, 4)),
    "mean all": (lambda a: np.mean(a, keepdims=True), rand(3, 4)),
    "var": (lambda a: np.var(a, axis=1, ddof=1), rand(3, 4)),
    "std": (lambda a: a.std(axis=0, keepdims=True), rand(3, 4)),
    "max": (lambda a: a.max(), rand(3, 4)),
    "max axis": (lambda a: np.max(a, axis=1, keepdims=True), rand(3, 4)),
    "min axes": (lambda a: np.min(a, axis=(0, 2)), rand(2, 3, 4)),
    "amax": (lambda a: np.amax(a, axis=0), rand(3, 4)),
    "prod": (lambda a: np.prod(a), rand(5)),
    "prod axis": (lambda a: a.prod(axis=1), rand(3, 4)),
    "prod axes": (lambda a: np.prod(a, axis=(0, 2), keepdims=True), rand(2, 3, 2)),
    "prod zero": (lambda a: np.prod(a, axis=0), np.array([[0.0, 2.0], [3.0, 0.0], [1.5, 0.0]])),
    "cumsum": (lambda a: np.cumsum(a, axis=1), rand(3, 4)),
    "cumsum flat": (lambda a: a.cumsum(), rand(3, 2)),
    "sort": (lambda a: np.sort(a, axis=0), rand(5, 2)),
    "trace": (lambda a: np.trace(a), rand(3, 4)),
    "diff": (lambda a: np.diff(a, 2, axis=0), rand(5, 2)),
    "reshape": (lambda a: a.reshape(2, 6) * a.reshape((2, -1)), rand(3, 4)),
    "reshape F": (lambda a: np.reshape(a, (2, 6), order="F"), rand(3, 4)),
    "ravel": (lambda a: np.ravel(a) * a.flatten(), rand(3, 4)),
    "T": (lambda a: a.T * 2, rand(3, 4)),
    "mT": (lambda a: a.mT * 2, rand(2, 3, 4)),
    "transpose": (lambda a: a.transpose(2, 0, 1), rand(2, 3, 4)),
    "transpose negative": (lambda a: np.transpose(a, (-1, 0, 1)), rand(2, 3, 4)),
    "swapaxes": (lambda a: a.swapaxes(0, -1), rand(2, 3, 4)),
    "moveaxis": (lambda a: np.moveaxis(a, 0, -1), rand(2, 3, 4)),
    "expand_dims": (lambda a: np.expand_dims(a, 1), rand(3, 4)),
    "squeeze": (lambda a: np.squeeze(a, axis=1), rand(3, 1, 4)),
    "broadcast_to": (lambda a: np.broadcast_to(a, (2, 3, 4)), rand(3, 1)),
    "broadcast_arrays": (lambda a, b: np.multiply(*np.broadcast_arrays(a, b)), rand(3, 1),
                         rand(4)),
    "concatenate": (lambda a, b: np.concatenate([a, b], axis=1), rand(3, 2), rand(3, 4)),
    "concatenate flat": (lambda a, b: np.concatenate((a, b), axis=None), rand(3, 2), rand(2)),
    "concatenate constant": (lambda a: np.concatenate([a, np.ones(2)]), rand(3)),
    "concatenate twice": (lambda a: np.concatenate([a, a]), rand(3)),
    "stack": (lambda a, b: np.stack([a, b], axis=-1), rand(3), rand(3)),
    "vstack": (lambda a, b: np.vstack([a, b]), rand(3), rand(2, 3)),
    "hstack": (lambda a, b: np.hstack([a, b]), rand(3, 1), rand(3, 2)),
    "column_stack": (lambda a, b: np.column_stack([a, b]), rand(3), rand(3, 2)),
    "split": (lambda a: np.split(a, 3)[1] * np.split(a, [2, 4])[0], rand(6)),
    "array_split": (lambda a: np.array_split(a, 3, axis=1)[0], rand(2, 7)),
    "pad": (lambda a: np.pad(a, ((1, 2), (0, 1))), rand(3, 4)),
    "pad scalar": (lambda a: np.pad(a, 1, constant_values=3.0), rand(3, 4)),
    "flip": (lambda a: np.flip(a, 0), rand(3, 4)),
    "roll": (lambda a: np.roll(a, 2, axis=1), rand(3, 4)),
    "repeat": (lambda a: np.repeat(a, 3, axis=0), rand(3, 2)),
    "repeat counts": (lambda a: a.repeat([0, 2, 1]), rand(3)),
    "tile": (lambda a: np.tile(a, (2, 3)), rand(3, 2)),
    "rot90": (lambda a: np.rot90(a), rand(3, 2)),
    "take": (lambda a: np.take(a, [0, 2, 0], axis=1), rand(3, 4)),
    "take_along_axis": (lambda a: np.take_along_axis(a, np.array([[0], [1], [1]]), 1), rand(3, 2)),
    "diagonal": (lambda a: a.diagonal(), rand(3, 4)),
    "diag": (lambda a: np.diag(a, 1), rand(3, 4)),
    "tril": (lambda a: np.tril(a), rand(3, 4)),
    "triu": (lambda a: np.triu(a, 1), rand(3, 4)),
    "windows": (lambda a: sliding_window_view(a, (2, 3)), rand(4, 5)),
    "getitem basic": (lambda a: a[1] * a[:2, ::-1][0], rand(3, 4)),
    "getitem new axis": (lambda a: a[..., None, 1:], rand(3, 4)),
    "getitem integers": (lambda a: a[np.array([0, 2, 0]), np.array([1, 1, 1])], rand(3, 4)),
    "getitem list": (lambda a: a[[2, 2]], rand(3, 4)),
    "getitem mask": (lambda a: a[a > 0] * 2, rand(3, 4)),
    "iterate": (lambda a: sum(row * i for i, row in enumerate(a)), rand(3, 4)),
    "full scalar ops": (lambda a: np.exp(a.sum()) * a[0, 0], rand(2, 2)),
}


@pytest.mark.parametrize("name", OPS)
def test_function(name):
    check(*OPS[name])


def in_place(x, w):
    y = x * w
    y += 1.0
    y *= y
    y[1:] -= w[1:]
    y[0] = w[0] * 2
    v = y[2:]
    v *= w[2:]
    v[0] += x[0]
    v[0, 1] -= 0.5
    y[[0, 1]] = x[[1, 2]] * 3
    t = y.T
    y *= 1.5
    y[1:] = y[:-1]
    y += t.T * v[0] * v.reshape(4)[1]
    np.multiply(y, w, out=y)
    return y


def test_in_place_on_own_arrays():
    check(in_place, rand(4, 2), rand(4, 2))


def repeated_store(x, v):
    y = x * 1.0
    y[[0, 0, 2]] = v
    y[1:2] = v[:1]
    return y


def test_repeated_store_counts_the_last():
    check(repeated_store, rand(4), rand(3))


def test_in_place_keeps_the_dtype():
    def f(x):
        y = x * np.float32(1)
        y += np.arange(3.0)
        return y.sum()

    value, g = value_and_grad(f)(np.ones(3, np.float32))
    assert type(value) is np.float32 and g.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes_follow_the_inputs(dtype):
    x = np.array([0.5, 2.0], dtype)
    value, g = value_and_grad(lambda x: (x * 3 + np.tanh(x)).sum())(x)
    assert type(value) is dtype and g.dtype == dtype
    value, (g, h) = value_and_grad(lambda x, y: (x * y).sum(), (0, 1))(x, np.ones(2))
    assert g.dtype == dtype and h.dtype == np.float64


def test_all_rules_are_reached_by_a_test():
    known = set(UNARY) | set(BINARY)
    known |= {
        np.where, np.clip, np.copy, np.sum, np.mean, np.var, np.std, np.max, np.amax, np.min,
        np.amin, np.prod, np.cumsum, np.sort, np.dot, np.matmul, np.tensordot, np.einsum,
        np.reshape, np.squeeze, np.expand_dims, np.ravel, np.transpose, np.permute_dims,
        np.swapaxes, np.broadcast_to, np.concatenate, np.stack, np.pad, np.flip, np.fliplr,
        np.flipud, np.roll, np.rot90, np.repeat, np.tile, np.take, np.take_along_axis,
        np.diagonal, np.moveaxis, np.rollaxis, np.resize, np.delete, sliding_window_view,
        operator.getitem, np.copysign, _autodiff.astype, _autodiff.setitem,
    }
    extra = {f for f in _autodiff.RULES if not getattr(f, "__module__", "").startswith(
        "ccompile.nn")} - known
    assert not extra


@pytest.mark.parametrize("op", [np.fliplr, np.flipud, lambda a: np.rollaxis(a, 1),
                                lambda a: np.resize(a, (3, 5)), lambda a: np.delete(a, 1, 0),
                                lambda a: np.permute_dims(a, (1, 0)),
                                lambda a: np.copysign(a, -1.0), lambda a: np.amin(a, axis=0)])
def test_rare_movers(op):
    check(op, rand(3, 4))


def g1(f, *x):
    return grad(f)(np.array(x)).tolist()


def test_ties_are_torchs():
    assert g1(lambda x: np.abs(x).sum(), 0.0, -0.0, 2.0) == [0.0, 0.0, 1.0]
    assert g1(lambda x: np.maximum(x, 1.0).sum(), 1.0, 2.0, 0.0) == [0.5, 1.0, 0.0]
    assert g1(lambda x: np.minimum(x, 1.0).sum(), 1.0, 2.0, 0.0) == [0.5, 0.0, 1.0]
    assert g1(lambda x: x.max(), 3.0, 3.0, 1.0) == [0.5, 0.5, 0.0]
    assert g1(lambda x: x.min(), 3.0, 1.0, 1.0) == [0.0, 0.5, 0.5]
    assert g1(lambda x: np.clip(x, 0.0, 1.0).sum(), 0.0, 1.0, 1.5, -1.0) == [1.0, 1.0, 0.0, 0.0]
    assert g1(lambda x: (x ** 0).sum(), 0.0, 2.0) == [0.0, 0.0]
    assert g1(lambda x: (x ** 2).sum(), 0.0, 2.0) == [0.0, 4.0]
    assert g1(lambda x: (0.0 ** x).sum(), 2.0) == [0.0]
    assert g1(lambda x: np.sign(x).sum() + x.sum(), 0.5) == [1.0]
    assert g1(lambda x: x.std(), 2.0, 2.0) == [0.0, 0.0]
