"""Compiled torch modules: objects that are modules themselves.

torch is never imported here: where a program has a module, it has imported torch.
"""

import copy
import sys
from collections.abc import Callable
from typing import Any

from . import _core


def is_module(obj: Any) -> bool:
    """Is it a torch.nn.Module?"""
    torch_nn = sys.modules.get("torch.nn")
    return torch_nn is not None and isinstance(obj, torch_nn.Module)


class _Shared:
    """First base of the classes below: making one is no subclassing that a program would notice."""

    __slots__ = ()

    def __init_subclass__(cls, **_: Any) -> None:
        pass


def shared(module: Any, compiled: _core.Callable, rebuild: Callable[[Any], Any]) -> Any:
    """An object with the module's `__dict__`, of a subclass of its class; calls are `compiled`.

    So it is a module like any other (in containers, for optimizers, hooks, train() and eval()),
    and what is changed on either is changed on both. Calls run with the module itself as `self`.
    What the module's class knows and ours does not (slots, or a class that was put in its place, as
    parametrisations and lazy modules do) is asked of the module, and set there. Pickled, it is the
    module: nothing of ccompile is needed to load it. `rebuild` compiles another module in the same
    way, for copies.
    """
    cls = type(module)
    metaclass: Any = type(cls)
    names = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__call__": staticmethod(compiled),
        "__wrapped__": module,
        "__deepcopy__": lambda _, memo: rebuild(copy.deepcopy(module, memo)),
        "__copy__": lambda _: rebuild(copy.copy(module)),
        "__reduce_ex__": lambda _, protocol: module.__reduce_ex__(protocol),
        "__getattr__": lambda _, name: getattr(module, name),
        "__setattr__": lambda _, name, value: setattr(module, name, value),
        "__delattr__": lambda _, name: delattr(module, name),
        "__class__": property(lambda _: type(module)),
        "_ccompile_callable": compiled,
    }
    made = object.__new__(metaclass(cls.__name__, (_Shared, cls), names))
    object.__setattr__(made, "__dict__", module.__dict__)
    return made


def callable_of(fn: Any) -> Any:
    """The compiled callable behind an object that `shared` made; others as they are."""
    return type(fn).__dict__.get("_ccompile_callable", fn)
