"""The random numbers of `nn`: one generator, and torch's default initial distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_state = {"generator": np.random.default_rng()}


def manual_seed(seed: int) -> np.random.Generator:
    """Start the generator of initial parameters and dropout masks anew from `seed`."""
    _state["generator"] = np.random.default_rng(seed)
    return _state["generator"]


def generator() -> np.random.Generator:
    """The generator in use."""
    return _state["generator"]


def fan_in_uniform(shape: tuple[int, ...], fan_in: int, dtype: Any = None) -> np.ndarray:
    """U(-1/sqrt(fan_in), 1/sqrt(fan_in)), the distribution of Linear and Conv2d in torch.

    Drawn in float64 and rounded, so that float32 and float64 layers start from the same numbers.
    """
    bound = 1.0 / math.sqrt(fan_in) if fan_in > 0 else 0.0
    return generator().uniform(-bound, bound, shape).astype(np.float32 if dtype is None else dtype)
