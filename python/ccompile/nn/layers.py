"""Layers and containers; torch's names, argument orders and initial distributions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from . import functional as F
from .init import fan_in_uniform
from .module import Module, Parameter

Array = Any


class Linear(Module):
    """x (..., in_features) -> x @ weight.T + bias, weight (out_features, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        shape = (out_features, in_features)
        self.weight = Parameter(fan_in_uniform(shape, in_features, dtype))
        self.register_parameter(
            "bias", fan_in_uniform((out_features,), in_features, dtype) if bias else None)

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class Conv2d(Module):
    """2-d cross-correlation of (N, in_channels, H, W); weight (out, in / groups, KH, KW)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int],
                 stride: int | tuple[int, int] = 1, padding: int | tuple[int, int] | str = 0,
                 dilation: int | tuple[int, int] = 1, groups: int = 1, bias: bool = True, *,
                 dtype: Any = None) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError("in_channels and out_channels must be divisible by groups")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = F._pair(kernel_size)
        self.stride = F._pair(stride)
        self.padding = padding if isinstance(padding, str) else F._pair(padding)
        self.dilation = F._pair(dilation)
        self.groups = groups
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        fan_in = shape[1] * shape[2] * shape[3]
        self.weight = Parameter(fan_in_uniform(shape, fan_in, dtype))
        self.register_parameter(
            "bias", fan_in_uniform((out_channels,), fan_in, dtype) if bias else None)

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation,
                        self.groups)

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        text = (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                f"stride={self.stride}")
        for name, default in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)!r}"
        return text if self.bias is not None else text + ", bias=False"


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.relu(input)


class MaxPool2d(Module):
    """Largest value of each window; stride defaults to kernel_size."""

    def __init__(self, kernel_size: int | tuple[int, int],
                 stride: int | tuple[int, int] | None = None,
                 padding: int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
                f"dilation={self.dilation}")


class Flatten(Module):
    """Merge dimensions start_dim to end_dim; by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Dropout(Module):
    """Zero each element with probability p while training; `nn.manual_seed` seeds it."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout: p must be between 0 and 1, got {p}")
        self.p = p

    def forward(self, input: Array) -> Array:
        """Apply the layer."""
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        return f"p={self.p}"


class CrossEntropyLoss(Module):
    """Cross entropy of logits (N, C) and integer classes (N,); see functional.cross_entropy."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Array, target: Array) -> Array:
        """The loss."""
        return F.cross_entropy(input, target, reduction=self.reduction)


class _Numbered(Module):
    """Submodules as attributes "0", "1", ...; `_names` holds these names in order."""

    def __init__(self, modules: Iterable[Module]) -> None:
        super().__init__()
        self._names: list[str] = []
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module")
        name = str(len(self._names))
        setattr(self, name, module)
        self._names.append(name)
        return self

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Module]:
        return iter([getattr(self, name) for name in self._names])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            chosen = [getattr(self, name) for name in self._names[index]]
            return type(self)(*chosen) if isinstance(self, Sequential) else type(self)(chosen)
        return getattr(self, self._names[index])

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._names[index], module)


class Sequential(_Numbered):
    """Modules applied one after the other."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, input: Array) -> Array:
        """Apply all modules in order."""
        for name in self._names:
            input = getattr(self, name)(input)
        return input


class ModuleList(_Numbered):
    """A list of submodules; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__(modules)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self


__all__ = ["Conv2d", "CrossEntropyLoss", "Dropout", "Flatten", "Linear", "MaxPool2d",
           "ModuleList", "ReLU", "Sequential"]
