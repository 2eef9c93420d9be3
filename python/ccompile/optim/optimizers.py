"""SGD, Adam and AdamW.

An optimizer holds the parameter arrays by reference and updates them in place. `step(grads)` takes
the dict that `ccompile.value_and_grad` gives for a Module. All state arrays exist from the start,
so that the first step runs the same code as every later one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def _named(params: Any) -> tuple[dict[str, np.ndarray], bool]:
    """Parameters by name, and whether the caller named them."""
    if hasattr(params, "named_parameters"):
        return dict(params.named_parameters()), True
    if isinstance(params, np.ndarray):
        raise TypeError("expected a Module or an iterable of arrays, got one array")
    items = list(params.items()) if isinstance(params, Mapping) else list(params)
    named = bool(items) and isinstance(items[0], tuple)
    out = dict(items) if named else {str(i): array for i, array in enumerate(items)}
    if not out:
        raise ValueError("the optimizer got no parameters")
    for name, array in out.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            raise TypeError(f"parameter {name} must be an array of floating dtype")
    return out, named


def _check(**ranges: Any) -> None:
    for name, (value, good) in ranges.items():
        if not good:
            raise ValueError(f"Invalid {name}: {value}")


class Optimizer:
    """Base class. params: a Module, its parameters(), (name, array) pairs, or a dict of arrays."""

    _hyper: tuple[str, ...] = ()  # attributes saved in the state_dict
    _slots: tuple[str, ...] = ()  # attributes that map a name to a state array

    def __init__(self, params: Any, lr: float) -> None:
        _check(lr=(lr, lr >= 0.0))
        self.params, self._are_named = _named(params)
        self.lr = lr
        self.steps = 0

    def _zeros(self) -> dict[str, np.ndarray]:
        return {name: np.zeros_like(array) for name, array in self.params.items()}

    def _matched(self, grads: Mapping[str, np.ndarray] | Iterable[np.ndarray]
                 ) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """(name, parameter, gradient) of each parameter."""
        if self._are_named:
            missing = [name for name in self.params if name not in grads]
            if missing:
                raise KeyError(f"no gradient for parameter(s) {', '.join(missing)}")
            rows = [(name, p, grads[name]) for name, p in self.params.items()]
        else:
            values = list(grads.values() if isinstance(grads, Mapping) else grads)
            if len(values) != len(self.params):
                raise ValueError(f"{len(values)} gradients for {len(self.params)} parameters; give"
                                 " the optimizer named_parameters() to match them by name")
            rows = [(name, p, g) for (name, p), g in zip(self.params.items(), values, strict=True)]
        for name, p, g in rows:
            if g.shape != p.shape:
                raise ValueError(f"gradient of {name} has shape {g.shape}, expected {p.shape}")
        return rows

    def step(self, grads: Mapping[str, np.ndarray] | Iterable[np.ndarray]) -> None:
        """Update every parameter in place.

        grads: gradients by state_dict name; names the optimizer does not hold are ignored. For an
        optimizer made from bare arrays: gradients in the order of these arrays.
        Raises KeyError for a missing gradient, ValueError for a wrong shape or number.
        """
        raise NotImplementedError(f"{type(self).__name__} has no step method")

    def state_dict(self) -> dict[str, Any]:
        """The settings, the step count, and the state arrays themselves (not copies)."""
        return {
            "hyper": {name: getattr(self, name) for name in self._hyper},
            "steps": self.steps,
            "state": {slot: dict(getattr(self, slot)) for slot in self._slots},
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over settings and step count, and copy the arrays into the state, in place."""
        state = state_dict["state"]
        if set(state_dict["hyper"]) != set(self._hyper):
            raise ValueError("the state_dict does not fit: it is another optimizer's")
        for slot in self._slots:
            own = getattr(self, slot)
            if slot not in state or list(state[slot]) != list(own):
                raise ValueError(f"the state_dict does not fit: {slot} has other parameters")
            for name, array in own.items():
                if np.shape(state[slot][name]) != array.shape:
                    raise ValueError(f"the state_dict does not fit: {slot} of {name} has shape"
                                     f" {np.shape(state[slot][name])}, expected {array.shape}")
        for slot in self._slots:
            for name, array in getattr(self, slot).items():
                array[...] = state[slot][name]
        for name in self._hyper:
            setattr(self, name, state_dict["hyper"][name])
        self.steps = state_dict["steps"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, dampening, weight decay, Nesterov's variant."""

    _hyper = ("lr", "momentum", "dampening", "weight_decay", "nesterov")

    def __init__(self, params: Any, lr: float = 1e-3, momentum: float = 0.0,
                 dampening: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False
                 ) -> None:
        super().__init__(params, lr)
        _check(momentum=(momentum, momentum >= 0.0),
               weight_decay=(weight_decay, weight_decay >= 0.0))
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        if momentum != 0.0:
            self._slots = ("momentum_buffer",)
            self.momentum_buffer = self._zeros()

    def step(self, grads: Mapping[str, np.ndarray] | Iterable[np.ndarray]) -> None:
        """Update every parameter in place; see Optimizer.step."""
        kept = 1.0 - self.dampening if self.steps else 1.0  # the first step is not dampened
        for name, p, g in self._matched(grads):
            if self.weight_decay != 0.0:
                g = g + self.weight_decay * p
            if self.momentum != 0.0:
                buffer = self.momentum_buffer[name]
                buffer *= self.momentum
                buffer += kept * g
                g = g + self.momentum * buffer if self.nesterov else buffer
            p -= self.lr * g
        self.steps += 1


class Adam(Optimizer):
    """Adam; weight decay is added to the gradient."""

    _hyper = ("lr", "betas", "eps", "weight_decay")
    _slots = ("exp_avg", "exp_avg_sq")

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__(params, lr)
        _check(eps=(eps, eps >= 0.0), betas=(betas, all(0.0 <= b < 1.0 for b in betas)),
               weight_decay=(weight_decay, weight_decay >= 0.0))
        self.betas = tuple(betas)
        self.eps = eps
        self.weight_decay = weight_decay
        self.exp_avg = self._zeros()
        self.exp_avg_sq = self._zeros()

    def _decayed(self, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The gradient after weight decay."""
        return g + self.weight_decay * p if self.weight_decay != 0.0 else g

    def step(self, grads: Mapping[str, np.ndarray] | Iterable[np.ndarray]) -> None:
        """Update every parameter in place; see Optimizer.step."""
        rows = self._matched(grads)
        self.steps += 1
        beta1, beta2 = self.betas
        step_size = self.lr / (1.0 - beta1 ** self.steps)
        scale = math.sqrt(1.0 - beta2 ** self.steps)
        for name, p, g in rows:
            g = self._decayed(p, g)
            m, v = self.exp_avg[name], self.exp_avg_sq[name]
            m += (g - m) * (1.0 - beta1)
            v *= beta2
            v += (1.0 - beta2) * g * g
            p -= step_size * m / (np.sqrt(v) / scale + self.eps)


class AdamW(Adam):
    """Adam with weight decay applied to the parameter itself."""

    def __init__(self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

    def _decayed(self, p: np.ndarray, g: np.ndarray) -> np.ndarray:
        p *= 1.0 - self.lr * self.weight_decay
        return g
