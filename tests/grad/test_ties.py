"""Gradients where functions have a kink or a tie: torch's choices, plain and compiled.

A row: name -> (function, arguments, gradients of its sum). The functions take the library first,
NumPy or torch; where torch is installed, the table itself is compared with it.
"""

import math

import numpy as np
import pytest

import ccompile
from ccompile.nn import functional as F
from tests.support import compiled

NAN, INF = math.nan, math.inf


def amax(xp, x, dim):
    return xp.amax(x, axis=dim)


def pool(xp, x):
    if xp is np:
        return F.max_pool2d(x.reshape(1, 1, 2, 4), 2)
    return xp.nn.functional.max_pool2d(x.reshape(1, 1, 2, 4), 2)


def relu(xp, x):
    return F.relu(x) if xp is np else xp.relu(x)


def std(xp, x):
    return x.std() if xp is np else x.std(correction=0)


V = [0.0, -0.0, 1.5, -1.5]
A, B = [1.0, 2.0, 3.0, NAN, 4.0], [1.0, 3.0, 2.0, 1.0, NAN]

ROWS = {
    "abs": (lambda xp, x: xp.abs(x), [V], [[0, 0, 1, -1]]),
    "relu": (relu, [V], [[0, 0, 1, 0]]),
    "maximum": (lambda xp, a, b: xp.maximum(a, b), [A[:3], B[:3]], [[0.5, 0, 1], [0.5, 1, 0]]),
    "minimum": (lambda xp, a, b: xp.minimum(a, b), [A[:3], B[:3]], [[0.5, 1, 0], [0.5, 0, 1]]),
    "fmax": (lambda xp, a, b: xp.fmax(a, b), [A, B], [[1, 0, 1, 0, 1], [0, 1, 0, 1, 0]]),
    "fmin": (lambda xp, a, b: xp.fmin(a, b), [A, B], [[1, 1, 0, 0, 1], [0, 0, 1, 1, 0]]),
    "max": (lambda xp, x: x.max(), [[3.0, 1.0, 3.0, 3.0]], [[1 / 3, 0, 1 / 3, 1 / 3]]),
    "min": (lambda xp, x: x.min(), [[1.0, 1.0, 3.0]], [[0.5, 0.5, 0]]),
    "amax axis": (lambda xp, x: amax(xp, x.reshape(2, 2), 0), [[2.0, 1.0, 2.0, 0.0]],
                  [[0.5, 1, 0.5, 0]]),
    "clip": (lambda xp, x: xp.clip(x, 0.0, 1.0), [[0.0, 1.0, 0.5, 2.0, -1.0]], [[1, 1, 1, 0, 0]]),
    "clip one side": (lambda xp, x: xp.clip(x, None, 1.0), [[1.0, 2.0]], [[1, 0]]),
    "pool": (pool, [[1.0, 1.0, 0.0, 2.0, 1.0, 1.0, 2.0, 2.0]], [[1, 0, 0, 1, 0, 0, 0, 0]]),
    "pool of relu": (lambda xp, x: pool(xp, relu(xp, x)),
                     [[-1.0, -2.0, 3.0, 0.0, -0.0, -1.0, 3.0, 1.0]], [[0, 0, 1, 0, 0, 0, 0, 0]]),
    "where": (lambda xp, x: xp.where(x > 0, x * x, -x), [V], [[-1, -1, 3, -1]]),
    "sign": (lambda xp, x: xp.sign(x) * x, [V], [[0, 0, 1, -1]]),
    "floor": (lambda xp, x: xp.floor(x) * x, [[1.0, 1.5]], [[1, 1]]),
    "power 0": (lambda xp, x: x ** 0, [V], [[0, 0, 0, 0]]),
    "power 2": (lambda xp, x: x ** 2, [V], [[0, 0, 3, -3]]),
    "power of 0": (lambda xp, x: xp.power(0.0 * x, x) if xp is np else xp.pow(0.0 * x, x),
                   [[2.0, 3.0]], [[0, 0]]),
    "sqrt": (lambda xp, x: xp.sqrt(x), [[0.0, 4.0]], [[INF, 0.25]]),
    "std": (std, [[2.0, 2.0, 2.0]], [[0, 0, 0]]),
    "prod": (lambda xp, x: x.prod(), [[2.0, 0.0, 3.0]], [[0, 6, 0]]),
    "prod of two zeros": (lambda xp, x: x.prod(), [[2.0, 0.0, 0.0]], [[0, 0, 0]]),
    "copysign": (lambda xp, a, b: xp.copysign(a, b), [V, [-1.0] * 4], [[0, 0, -1, 1], [0] * 4]),
    "remainder": (lambda xp, x: xp.remainder(x, 1.0), [[0.0, 1.0, 1.25]], [[1, 1, 1]]),
    "fmod": (lambda xp, x: xp.fmod(x, 1.0), [[0.0, 1.0, -1.25]], [[1, 1, 1]]),
}


def loss(name):
    f = ROWS[name][0]
    return lambda *args: f(np, *args).sum()


@pytest.mark.parametrize("engine", ["plain", "eager", "interp", "c"])
@pytest.mark.parametrize("name", ROWS)
def test_choice(name, engine):
    _, args, want = ROWS[name]
    arrays = [np.array(x) for x in args]
    gradient = compiled(ccompile.grad(loss(name), tuple(range(len(args)))), engine)
    for _ in range(2):
        with np.errstate(all="ignore"):
            got = gradient(*arrays)
        for have, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(have, np.array(expected, float))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ROWS)
def test_table_is_torchs(name):
    torch = pytest.importorskip("torch")
    f, args, want = ROWS[name]
    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in args]
    f(torch, *tensors).sum().backward()
    for have, expected in zip(tensors, want, strict=True):
        np.testing.assert_array_equal(have.grad.numpy(), np.array(expected, float))
