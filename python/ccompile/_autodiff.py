"""Reverse-mode differentiation of plain NumPy code that is not compiled.

A `Var` stands for one differentiated array. NumPy's own protocols (`__array_ufunc__`,
`__array_function__`) and the operators bring every operation on it here; the operation runs on
the plain values, and a node with one pullback per differentiated operand is recorded.

Needs `_gradrules` for the table of rules. Never returns a silent zero: an operation without a rule,
and every way to take the number out of a `Var`, raises `GradientError` with the user's file:line.

Invariants: the index of a node is greater than those of its parents, so one walk in descending
order sees every use of a node before the node. The value of a `Var` is never written in place: an
in-place operation gives the `Var`, its base and all live views of the base new values and nodes.
"""

from __future__ import annotations

import inspect
import itertools
import operator
import os
import sys
import weakref
from collections.abc import Callable
from heapq import heappop, heappush
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_indices = itertools.count()

Pullback = Callable[[Any], Any]


class GradientError(TypeError):
    """A value cannot be differentiated here; the message names the file and line."""


class Rule(NamedTuple):
    """How to differentiate one function.

    `pullbacks(result, *args, **kwargs)` gives one pullback (or None) per positional argument; for
    an argument that is a list the pullback returns a list. `forward`, where given, replaces the
    function and returns (result, saved); `pullbacks` then receives `saved` in place of the result.
    `saves` says that pullbacks read argument values, so plain arrays are copied when recorded.
    """

    pullbacks: Callable[..., tuple[Pullback | None, ...]]
    forward: Callable[..., tuple[Any, Any]] | None = None
    saves: bool = True


RULES: dict[Any, Rule] = {}  # function -> how to differentiate it
CONSTANT: set[Any] = set()  # functions whose derivative is zero almost everywhere
COMPOSITE: dict[Any, Callable[..., Any]] = {}  # function -> the same in terms of others


def user_line() -> str:
    """file:line of the innermost frame outside ccompile and NumPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_PACKAGE, _NUMPY, "<__array_function__")):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "<unknown>:0"


def _error(text: str) -> GradientError:
    return GradientError(f"{text} (at {user_line()})")


def _name(fn: Any) -> str:
    module = getattr(fn, "__module__", None) or "numpy"
    if isinstance(fn, np.ufunc):
        module = "numpy"
    return f"{module}.{getattr(fn, '__name__', repr(fn))}"


class Node:
    """One recorded operation: its operands' nodes and the pullback to each."""

    __slots__ = ("index", "shape", "dtype", "edges")

    def __init__(self, value: Any, edges: list[tuple[Any, Pullback]]) -> None:
        self.index = next(_indices)
        self.shape = np.shape(value)
        self.dtype = np.result_type(value)
        self.edges = edges


def unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum `g` over the axes along which an operand of this shape was broadcast."""
    if np.shape(g) == shape:
        return g
    g = np.sum(g, axis=tuple(range(np.ndim(g) - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    g = np.sum(g, axis=axes, keepdims=True) if axes else g
    return np.broadcast_to(g, shape)


class Var(np.lib.mixins.NDArrayOperatorsMixin):
    """A differentiated array inside `grad`: acts as the array and records what is done to it."""

    __slots__ = ("_value", "_node", "_is_leaf", "_base", "_made", "_views", "__weakref__")

    def __init__(self, value: Any, node: Node, is_leaf: bool = False) -> None:
        self._value = value
        self._node = node
        self._is_leaf = is_leaf
        self._base: Var | None = None  # this is a view of it, made by record(*self._made)
        self._made: Any = None  # (function, args, kwargs)
        self._views: list[weakref.ref[Var]] = []

    # -- what it looks like ---------------------------------------------------------------

    # user code that asks isinstance(x, np.ndarray) sees the array
    __class__: Any = property(lambda self: type(self._value))

    shape = property(lambda self: np.shape(self._value))
    ndim = property(lambda self: np.ndim(self._value))
    size = property(lambda self: np.size(self._value))
    dtype = property(lambda self: np.result_type(self._value))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    T = property(lambda self: np.transpose(self))
    mT = property(lambda self: np.swapaxes(self, -1, -2))
    real = property(lambda self: self)

    def __len__(self) -> int:
        return len(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __repr__(self) -> str:
        return repr(self._value)

    def __str__(self) -> str:
        return str(self._value)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            raise _error(f"ndarray.{name} has no gradient rule")
        raise AttributeError(f"{type(self._value).__name__!r} object has no attribute {name!r}")

    # -- ways to lose the gradient: all refused ----------------------------------------------

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise _error("a differentiated array is made a plain one (np.array, np.asarray or a store"
                     " into a plain array), which would lose its gradient; np.stack, np.where"
                     " and out-of-place code keep it")

    def __float__(self) -> float:
        raise _error("float() of a differentiated value would lose its gradient;"
                     " return it with has_aux=True instead")

    def item(self, *args: Any) -> float:
        """Refused: a Python number carries no gradient."""
        raise _error(".item() of a differentiated value would lose its gradient;"
                     " return it with has_aux=True instead")

    def tolist(self) -> Any:
        """Refused: Python numbers carry no gradient."""
        raise _error(".tolist() of a differentiated array would lose its gradient;"
                     " return it with has_aux=True instead")

    # -- operations -------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", (None,))
        fn: Any = ufunc if method == "__call__" else (ufunc, method)
        if method == "at":
            raise _error(f"{_name(ufunc)}.at with a differentiated array has no gradient rule")
        if out[0] is None:
            return record(fn, inputs, kwargs)
        if len(out) > 1 or type(out[0]) is not Var:
            if fn in CONSTANT:
                return ufunc(*[plain(x) for x in inputs], out=out, **kwargs)
            raise _error(f"{_name(ufunc)} writes a differentiated value into a plain array,"
                         " which would lose its gradient")
        out[0]._assign(record(fn, inputs, kwargs), _name(ufunc))
        return out[0]

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if type(kwargs.get("out")) is Var:
            out = kwargs["out"]
            rest = {k: v for k, v in kwargs.items() if k != "out"}
            out._assign(record(func, args, rest), _name(func))
            return out
        return record(func, args, kwargs)

    def _assign(self, new: Any, what: str, writer: Any = None) -> None:
        """Take over the value and the node of `new`, as an in-place operation does.

        A view made by basic indexing writes through to its base; all other live views of the
        same memory are made anew. Refused for arguments and for views made by other means.
        """
        if self._is_leaf or self._made is not None and self._made[0] is not operator.getitem:
            raise _error(f"{what} writes in place into a differentiated array that is an argument,"
                         " or a reshaped or transposed view; use out-of-place code")
        if not np.can_cast(new.dtype, self.dtype, "same_kind"):
            raise TypeError(f"Cannot cast {what} output from {new.dtype!r} to {self.dtype!r}"
                            " with casting rule 'same_kind'")
        if new.dtype != self.dtype:
            new = record(astype, (new, self.dtype), {})
        if new.shape != self.shape:
            new = record(np.copy, (np.broadcast_to(new, self.shape),), {})
        if self._base is not None:
            stored = record(setitem, (self._base, self._made[1][1], new), {})
            self._base._assign(stored, what, self)
        self._replace(new, writer)

    def _replace(self, new: Any, writer: Any) -> None:
        self._value, self._node = plain(new), _node_of(new)
        for reference in self._views:
            view = reference()
            if view is not None and view is not writer:
                view._replace(record(*view._made), None)

    def __getitem__(self, index: Any) -> Any:
        return record(operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        if (type(value) is Var and value._base is self and is_basic(index)
                and value._made[0] is operator.getitem and value._made[1][1] == index):
            return  # the second half of x[index] += y, which has written through already
        self._assign(record(setitem, (self, index, value), {}), "a store")

    def __pow__(self, other: Any) -> Any:
        return record(operator.pow, (self, other), {})

    def __rpow__(self, other: Any) -> Any:
        return record(operator.pow, (other, self), {})

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __copy__(self) -> Any:
        return record(np.copy, (self,), {})

    def __deepcopy__(self, memo: Any) -> Any:
        return record(np.copy, (self,), {})

    def copy(self, order: str = "C") -> Any:
        """As ndarray.copy."""
        return record(np.copy, (self,), {})

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> Any:
        """As ndarray.astype; a cast to integers or booleans gives a plain array."""
        if np.dtype(dtype).kind != "f":
            return self._value.astype(dtype, order, casting, subok, copy)
        return record(astype, (self, dtype), {})

    def reshape(self, *shape: Any, order: Any = "C") -> Any:
        """As ndarray.reshape."""
        return record(np.reshape, (self, shape[0] if len(shape) == 1 else shape, order), {})

    def transpose(self, *axes: Any) -> Any:
        """As ndarray.transpose."""
        order: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return record(np.transpose, (self, order), {})

    def flatten(self, order: str = "C") -> Any:
        """As ndarray.flatten."""
        return record(np.copy, (record(np.ravel, (self, order), {}),), {})

    def dot(self, other: Any) -> Any:
        """As ndarray.dot."""
        return np.dot(self, other)


def _method(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Var, *args: Any, **kwargs: Any) -> Any:
        return fn(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"As ndarray.{name}."
    return method


for _attr in ("sum mean prod max min var std cumsum ravel swapaxes squeeze clip repeat take argmax"
              " argmin argsort nonzero any all round diagonal trace").split():
    setattr(Var, _attr, _method(_attr, getattr(np, _attr)))


def plain(x: Any) -> Any:
    """The value behind a `Var`; any other object as it is."""
    return x._value if type(x) is Var else x


def is_basic(index: Any) -> bool:
    """True for an index of integers, slices, None and Ellipsis only."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(i is None or i is Ellipsis or isinstance(i, (int, np.integer, slice))
               and not isinstance(i, (bool, np.bool_)) for i in parts)


def is_var(*args: Any) -> bool:
    """True when any argument is a differentiated array."""
    for x in args:
        if type(x) is Var:
            return True
    return False


def _node_of(x: Any) -> Node:
    return x._node if type(x) is Var else Node(x, [])


def _unwrap(x: Any) -> Any:
    """Plain value of an argument, looking into lists and tuples."""
    if type(x) is Var:
        return x._value
    if type(x) in (list, tuple) and _holds_var(x):
        return type(x)([_unwrap(y) for y in x])
    return x


def _holds_var(x: Any) -> bool:
    if type(x) is Var:
        return True
    return type(x) in (list, tuple, dict) and any(
        _holds_var(y) for y in (x.values() if type(x) is dict else x))


def _frozen(x: Any) -> Any:
    """A copy of a plain array that the program could change before the backward pass."""
    if type(x) is np.ndarray:
        return x.copy() if x.flags.writeable else x
    if type(x) in (list, tuple):
        return type(x)([_frozen(y) for y in x])
    return x


def _by_position(rule: Rule, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Move keyword arguments that hold a `Var` into their positions."""
    names = list(inspect.signature(rule.pullbacks).parameters)[1:]
    parameters = inspect.signature(rule.pullbacks).parameters
    last = max(names.index(k) if k in names else -1 for k, v in kwargs.items() if _holds_var(v))
    if last < 0:
        return args, kwargs
    args = list(args)
    kwargs = dict(kwargs)
    for name in names[len(args):last + 1]:
        args.append(kwargs.pop(name, parameters[name].default))
    return tuple(args), kwargs


def _bound_rule(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Rule, Any, Any]:
    """The rule of `fn` with arguments it accepts, else a GradientError."""
    rule = RULES.get(fn)
    what = _name(fn) if type(fn) is not tuple else f"{_name(fn[0])}.{fn[1]}"
    if rule is None:
        raise _error(f"{what} of a differentiated value has no gradient rule")
    if any(_holds_var(v) for v in kwargs.values()):
        args, kwargs = _by_position(rule, args, kwargs)
    parameters = inspect.signature(rule.pullbacks).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for key, value in kwargs.items():
        if not (key in parameters or takes_any) or _holds_var(value):
            raise _error(f"{what} with {key}= has no gradient rule")
    if len(args) + 1 > len(parameters) and not any(
            p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        raise _error(f"{what} with {len(args)} positional arguments has no gradient rule")
    return rule, args, kwargs


def record(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run `fn` on plain values and record its pullbacks; the result is a `Var` (or constant)."""
    if fn in COMPOSITE:
        return COMPOSITE[fn](*args, **kwargs)
    call = fn if type(fn) is not tuple else getattr(*fn)
    if fn in CONSTANT:
        return call(*[_unwrap(x) for x in args], **{k: _unwrap(v) for k, v in kwargs.items()})
    rule, args, kwargs = _bound_rule(fn, args, kwargs)
    values = tuple(_unwrap(x) for x in args)
    if rule.forward is not None:
        result, saved = rule.forward(*values, **kwargs)
    else:
        result = saved = call(*values, **kwargs)
    if np.result_type(result).kind != "f":
        raise _error(f"{_name(call)} of a differentiated value gives {np.result_type(result)},"
                     " which has no gradient")
    if rule.saves:
        values = tuple(v if _holds_var(a) else _frozen(v)
                       for v, a in zip(values, args, strict=True))
    pulls = rule.pullbacks(saved, *values, **kwargs)
    edges: list[tuple[Any, Pullback]] = []
    out = Var(result, Node(result, edges))
    for i, arg in enumerate(args):
        if not _holds_var(arg):
            continue
        pull = pulls[i] if i < len(pulls) else None
        if pull is None:
            raise _error(f"{_name(call)} has no gradient for argument {i + 1}")
        if type(arg) is Var:
            edges.append((arg._node, pull))
        else:
            edges.append(([x._node if type(x) is Var else None for x in arg], pull))
        for x in (arg,) if type(arg) is Var else arg:
            if type(x) is Var and np.may_share_memory(result, x._value):
                out._base, out._made = x, (fn, args, kwargs)
                x._views = [view for view in x._views if view() is not None] + [weakref.ref(out)]
    return out


def leaf(value: Any) -> Var:
    """A differentiated input: an array, NumPy scalar or Python float of real floating dtype."""
    return Var(value, Node(value, []), is_leaf=True)


def backward(loss: Var, leaves: list[Var]) -> list[Any]:
    """Gradients of a scalar `loss` for each leaf, in the leaf's dtype and shape."""
    grads: dict[int, Any] = {loss._node.index: np.ones((), loss.dtype)}
    nodes: dict[int, Node] = {loss._node.index: loss._node}
    heap = [-loss._node.index]
    keep = {x._node.index for x in leaves}
    done: dict[int, Any] = {}

    def add(node: Node, g: Any) -> None:
        g = unbroadcast(np.asarray(g), node.shape)
        g = g if g.dtype == node.dtype else g.astype(node.dtype)
        if node.index in grads:
            grads[node.index] = grads[node.index] + g
        else:
            grads[node.index] = g
            nodes[node.index] = node
            heappush(heap, -node.index)

    with np.errstate(all="ignore"):
        while heap:
            index = -heappop(heap)
            g, node = grads.pop(index), nodes.pop(index)
            if index in keep:
                done[index] = g
            for parent, pull in node.edges:
                if type(parent) is Node:
                    add(parent, pull(g))
                else:
                    for p, part in zip(parent, pull(g), strict=True):
                        if p is not None:
                            add(p, part)
    out = []
    for x in leaves:
        g = done.get(x._node.index)
        g = np.zeros(x.shape, x.dtype) if g is None else np.array(g, order="C")
        out.append(float(g) if isinstance(x._value, float) and type(x._value) is float else g)
    return out


def astype(x: Any, dtype: Any) -> Any:
    """x.astype(dtype), as a function that has a rule."""
    return np.asarray(x).astype(dtype)[()] if np.ndim(x) == 0 else x.astype(dtype)


def setitem(x: Any, index: Any, value: Any) -> Any:
    """A copy of x with x[index] = value, as a function that has a rule."""
    x = np.array(x)
    x[index] = value
    return x


from . import _gradrules  # noqa: E402, F401  (fills the three tables)
