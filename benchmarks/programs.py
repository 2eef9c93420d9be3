"""The programs, one row of PROGRAMS each.

A formula is a function of arrays that uses only names which NumPy, torch and jax.numpy share, so
that `under(formula, library)` is the same code over another library. A training step is a network
written with layers that ccompile.nn and torch.nn share, trained by Adam on cross-entropy.
"""

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def under(formula: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """The same code with another library under the name `np`; it may use no other global."""
    names = {"np": library, "__builtins__": __builtins__, "__name__": __name__}
    renamed = types.FunctionType(formula.__code__, names, formula.__name__)
    renamed.__defaults__ = formula.__defaults__
    return renamed


# -- Formulas -------------------------------------------------------------------


def sine(a):
    return np.sin(a) * 2 + a


def black_scholes(s, k, t, r=0.03, v=0.2):
    """Prices of calls and puts. The normal distribution is a polynomial, as NumPy has no erf."""
    spread = v * np.sqrt(t)
    d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / spread
    d2 = d1 - spread
    below = []
    for d in (d1, d2):
        u = 1.0 / (1.0 + 0.2316419 * np.abs(d))
        tail = u * (0.31938153 + u * (-0.356563782 + u * (
            1.781477937 + u * (-1.821255978 + u * 1.330274429))))
        tail = 0.3989422804014327 * np.exp(-0.5 * d * d) * tail
        below.append(np.where(d > 0, 1.0 - tail, tail))
    later = k * np.exp(-r * t)
    call = s * below[0] - later * below[1]
    return call, call - s + later


def softmax(x):
    e = np.exp(x - np.amax(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def stencil(a):
    """One sweep of a five-point smoothing."""
    c = a[1:-1, 1:-1]
    return c + 0.1 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4.0 * c)


# -- Networks -------------------------------------------------------------------


def mlp(nn):
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn(nn):
    """The network of examples/fashion_mnist.py."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.Linear(512, 10))


# -- The table ------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """A formula or a network, and the arrays it gets."""

    name: str
    arrays: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    formula: Callable[..., Any] | None = None
    network: Callable[[Any], Any] | None = None
    doc: str = ""

    def inputs(self) -> tuple[np.ndarray, ...]:
        """The same arrays each time."""
        return self.arrays(np.random.default_rng(0))


def _options(rng, n=1_000_000):
    return rng.uniform(20, 120, n), rng.uniform(20, 120, n), rng.uniform(0.1, 2, n)


def _batch(*shape):
    return lambda rng: (rng.standard_normal((64, *shape), np.float32), rng.integers(0, 10, 64))


PROGRAMS = {row.name: row for row in (
    Program("sine_4", lambda rng: (rng.random(4),), sine, doc="np.sin(a) * 2 + a, 4 elements"),
    Program("sine_1e3", lambda rng: (rng.random(1000),), sine, doc="the same, 1000 elements"),
    Program("sine_1e5", lambda rng: (rng.random(100_000),), sine, doc="the same, 1e5 elements"),
    Program("black_scholes", _options, black_scholes, doc="1e6 options, float64"),
    Program("softmax", lambda rng: (rng.standard_normal((512, 1000), np.float32),), softmax,
            doc="rows of 1000, float32"),
    Program("stencil", lambda rng: (rng.random((1024, 1024)),), stencil,
            doc="five points, 1024 x 1024, float64"),
    Program("mlp_step", _batch(784), network=mlp, doc="784-256-256-10, batch 64, Adam, float32"),
    Program("cnn_step", _batch(1, 28, 28), network=cnn,
            doc="the demo's network, batch 64, Adam, float32"),
)}
