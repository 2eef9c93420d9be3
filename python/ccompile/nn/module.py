"""`Module`: a tree of layers whose parameters are plain ndarrays held as attributes.

What is a parameter is decided by registration, as in torch:

- `self.weight = Parameter(array)`, or `self.register_parameter("weight", array)`: a parameter;
- `self.register_buffer("mean", array)`: a buffer, part of the state_dict but without gradient;
- `self.child = module`: a submodule; its names get the prefix "child.";
- any other attribute, arrays too, is the program's own and in no list.

The registered attribute itself is an exact `numpy.ndarray`: `vars(module)["weight"]` is the array,
there is no wrapper and no look-up. Assigning another array to a registered name replaces the
parameter; assigning None removes it from the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np


class Parameter:
    """Marks an array as a parameter while it is assigned to an attribute of a Module.

    data: array of floating dtype. An exact ndarray is used as it is, anything else is converted.
    """

    __slots__ = ("data",)

    def __init__(self, data: Any) -> None:
        array = np.asarray(data)
        if array.dtype.kind != "f":
            raise TypeError(f"a parameter must be of floating dtype, got {array.dtype}")
        self.data = array


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` left out."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """Base class of all layers and models; subclasses define `forward`."""

    training: bool

    def __init__(self) -> None:
        self.training = True
        self._parameters: dict[str, None] = {}  # names, in order of registration
        self._buffers: dict[str, bool] = {}  # name -> saved in the state_dict

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `forward`."""
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; defined by the subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    # -- registration -----------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is Parameter:
            self.register_parameter(name, value.data)
            return
        if isinstance(value, Module) and "_parameters" not in vars(self):
            raise AttributeError("call super().__init__() before assigning a submodule")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._parameters.pop(name, None)
        self._buffers.pop(name, None)

    def register_parameter(self, name: str, array: np.ndarray | None) -> None:
        """Make `array` the parameter `name`; None reserves the name (a layer without bias)."""
        self._check_name(name, "parameter")
        data = None if array is None else Parameter(array).data
        self._buffers.pop(name, None)
        self._parameters[name] = None
        object.__setattr__(self, name, data)

    def register_buffer(self, name: str, array: np.ndarray | None, persistent: bool = True) -> None:
        """Make `array` the buffer `name`; it is in the state_dict when `persistent`."""
        self._check_name(name, "buffer")
        self._parameters.pop(name, None)
        self._buffers[name] = persistent
        object.__setattr__(self, name, None if array is None else np.asarray(array))

    def _check_name(self, name: str, what: str) -> None:
        if "_parameters" not in vars(self):
            raise AttributeError(f"call super().__init__() before assigning a {what}")
        if not name or "." in name:
            raise KeyError(f"{what} name must be a non-empty string without '.', got {name!r}")

    # -- walks --------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of each direct submodule."""
        for name, value in list(vars(self).items()):
            if isinstance(value, Module):
                yield name, value

    def children(self) -> Iterator[Module]:
        """Each direct submodule."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """(dotted name, module) of this module and all below it, each module once."""
        return self._walk(prefix, set())

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (module for _, module in self.named_modules())

    def _walk(self, prefix: str, seen: set[int] | None) -> Iterator[tuple[str, Module]]:
        if seen is not None:
            if id(self) in seen:
                return
            seen.add(id(self))
        yield prefix, self
        for name, module in self.named_children():
            yield from module._walk(f"{prefix}.{name}" if prefix else name, seen)

    def _entries(self, parameters: bool, buffers: bool) -> Iterator[tuple[str, Module, str]]:
        """(dotted name, owner, attribute) of what is registered, shared ones under every name."""
        for prefix, module in self._walk("", None):
            names = list(module._parameters) if parameters else []
            names += [name for name, saved in module._buffers.items() if saved] if buffers else []
            for name in names:
                if getattr(module, name) is not None:
                    yield f"{prefix}.{name}" if prefix else name, module, name

    def __ccompile_parameters__(self) -> Iterator[tuple[str, Module, str]]:
        """(state_dict name, owner, attribute) of each parameter, for `ccompile.grad`."""
        return self._entries(True, False)

    def named_parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        """(dotted name, array) of each parameter; a shared array once, under its first name."""
        seen: set[int] = set()
        for name, module, attribute in self._entries(True, False):
            array = getattr(module, attribute)
            if id(array) not in seen:
                seen.add(id(array))
                yield name, array

    def parameters(self) -> Iterator[np.ndarray]:
        """Each parameter array, once."""
        return (array for _, array in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, np.ndarray]]:
        """(dotted name, array) of each buffer."""
        for prefix, module in self.named_modules():
            for name in module._buffers:
                if getattr(module, name) is not None:
                    yield f"{prefix}.{name}" if prefix else name, getattr(module, name)

    def buffers(self) -> Iterator[np.ndarray]:
        """Each buffer array."""
        return (array for _, array in self.named_buffers())

    # -- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, np.ndarray]:
        """name -> array of all parameters and saved buffers; the arrays themselves, not copies."""
        return {name: getattr(module, attribute)
                for name, module, attribute in self._entries(True, True)}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True
                        ) -> IncompatibleKeys:
        """Copy values into the arrays of this module, in place.

        Raises RuntimeError, before anything is written, for a shape that differs and, when
        `strict`, for missing or unexpected names. Returns (missing_keys, unexpected_keys).
        """
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        errors = []
        if strict and missing:
            errors.append("Missing key(s) in state_dict: " + ", ".join(map(repr, missing)))
        if strict and unexpected:
            errors.append("Unexpected key(s) in state_dict: " + ", ".join(map(repr, unexpected)))
        for name, array in own.items():
            if name in state_dict and np.shape(state_dict[name]) != array.shape:
                errors.append(f"size mismatch for {name}: {np.shape(state_dict[name])} in the"
                              f" state_dict, {array.shape} in the module")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(errors))
        for name, array in own.items():
            if name in state_dict:
                array[...] = state_dict[name]
        return IncompatibleKeys(missing, unexpected)

    def train(self, mode: bool = True) -> Module:
        """Set `training` of this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """train(False)."""
        return self.train(False)

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Call `fn` on every submodule, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def astype(self, dtype: Any) -> Module:
        """Replace every parameter and floating buffer by a copy of this floating dtype."""
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"a module holds floating dtypes, got {np.dtype(dtype)}")
        copies: dict[int, np.ndarray] = {}
        for module in self.modules():
            for name in (*module._parameters, *module._buffers):
                array = getattr(module, name)
                if array is not None and array.dtype.kind == "f":
                    if id(array) not in copies:
                        copies[id(array)] = array.astype(dtype)
                    object.__setattr__(module, name, copies[id(array)])
        return self

    def float(self) -> Module:
        """astype(float32)."""
        return self.astype(np.float32)

    def double(self) -> Module:
        """astype(float64)."""
        return self.astype(np.float64)

    # -- text ------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """The arguments shown by repr."""
        return ""

    def __repr__(self) -> str:
        lines = [f"({name}): " + repr(module).replace("\n", "\n  ")
                 for name, module in self.named_children()]
        if not lines:
            return f"{type(self).__name__}({self.extra_repr()})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"
