"""What the recorder needs to differentiate along the tape: three functions it calls by name.

A call of a `value_and_grad` object inside a compiled function is recorded as the plain function on
plain arrays; then one more array operation, a `Backward`, gives the gradients. Its graph is the
derivative of the recorded graph; as a framework call it runs the recorded operations once more, on
`_autodiff.Var` operands, so that both ways have one definition.

- `plan(vg, args)`: before the function is recorded;
- `collect(vg, args, n)`: on the tape, at every call: the leaves;
- `Backward(...)`: made when the function has returned.

A call that is not of this simple kind has no plan and runs in eager mode.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import MethodDescriptorType
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._autodiff import backward, is_var, leaf
from ._grad import Grad, ValueAndGrad

# a tree: the index of a leaf, or a dict, list or tuple of trees; a Module is one by its names
Tree = int | dict[Any, Any] | list[Any] | tuple[Any, ...]


Operand = tuple[str, Any]  # of an operation of the tape; see Backward


class Plan(NamedTuple):
    """One call; `opened` and `trees` are parallel to `numbers`."""

    key: str
    leaves: list[np.ndarray]
    numbers: tuple[int, ...]  # positions of the differentiated arguments, not negative
    opened: list[Any]  # what the function is given for each
    opened_trees: list[Tree | None]  # the same in indices of leaves; None: the argument itself
    grad_trees: list[Tree]
    owners: list[tuple[Any, str, int]]  # (Module, attribute, index of the leaf)
    one: bool  # argnums is a number: the gradients are no tuple


class _Walk:
    """The leaves of the differentiated arguments, in the order of `_grad._Inputs`."""

    def __init__(self) -> None:
        self.leaves: list[Any] = []
        self.owners: list[tuple[Any, str, int]] = []
        self.shared: dict[int, int] = {}  # id of a Module's array -> its leaf
        self.names: list[Any] = []  # all that decides the structure, for the key

    def leaf(self, value: Any) -> int:
        self.leaves.append(value)
        return len(self.leaves) - 1

    def tree(self, value: Any) -> Tree:
        if type(value) is dict:
            self.names.append(("dict", *value))
            return {k: self.tree(v) for k, v in value.items()}
        if type(value) in (list, tuple):
            self.names.append((type(value).__name__, len(value)))
            items = [self.tree(v) for v in value]
            return items if type(value) is list else tuple(items)
        self.names.append("leaf")
        return self.leaf(value)

    def module(self, module: Any) -> Tree:
        found: dict[str, int] = {}
        for name, owner, attribute in module.__ccompile_parameters__():
            array = vars(owner)[attribute]
            if id(array) not in self.shared:
                self.shared[id(array)] = self.leaf(array)
            index = self.shared[id(array)]
            self.owners.append((owner, attribute, index))
            self.names.append((name, index))
            if index not in found.values():
                found[name] = index
        return found

    def argument(self, value: Any) -> tuple[bool, Tree]:
        """Whether it is a Module, and its tree."""
        if hasattr(type(value), "__ccompile_parameters__"):
            self.names.append("module")
            return True, self.module(value)
        return False, self.tree(value)


def _key(vg: ValueAndGrad, walk: _Walk) -> str:
    return repr((vg.argnums, vg.has_aux, walk.names))


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind == "f"


def _filled(tree: Any, leaves: Sequence[Any]) -> Any:
    if type(tree) is dict:
        return {k: _filled(v, leaves) for k, v in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)([_filled(v, leaves) for v in tree])
    return leaves[tree]


def plan(vg: ValueAndGrad, args: tuple[Any, ...]) -> Plan | None:
    """How to record `vg(*args)`; None: it has to run in eager mode."""
    one = isinstance(vg.argnums, int)
    asked: Any = (vg.argnums,) if one else vg.argnums
    if not all(-len(args) <= n < len(args) for n in asked):
        return None
    numbers = tuple(n % len(args) for n in asked)
    walk = _Walk()
    found = [walk.argument(args[n]) for n in numbers]
    if len(set(numbers)) < len(numbers) or not all(_is_plain(x) for x in walk.leaves):
        return None
    opened = [args[n] if module else _filled(tree, walk.leaves)
              for n, (module, tree) in zip(numbers, found, strict=True)]
    return Plan(_key(vg, walk), walk.leaves, numbers, opened,
                [None if module else tree for module, tree in found],
                [tree for _, tree in found], walk.owners, one)


def collect(vg: ValueAndGrad, args: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """(key, leaf 0, ..., leaf n - 1) of the differentiated arguments; the key says if they fit."""
    walk = _Walk()
    for value in args:
        walk.argument(value)
    if len(walk.leaves) != n:
        return ("", *[None] * n)
    return (_key(vg, walk), *walk.leaves)


# -- Operations of the tape on differentiated values -------------------------------------------

_BINARY = (  # in the order of CPython's NB_ numbers; the in-place ones follow in the same order
    operator.add, operator.and_, operator.floordiv, operator.lshift, operator.matmul,
    operator.mul, operator.mod, operator.or_, operator.pow, operator.rshift, operator.sub,
    operator.truediv, operator.xor,
)
_UNARY = (operator.neg, operator.pos, operator.invert, operator.not_)


def _call(fn: Any, *args: Any, **kwargs: Any) -> Any:
    if isinstance(fn, MethodDescriptorType) and is_var(args[0]):
        return getattr(args[0], fn.__name__)(*args[1:], **kwargs)
    return fn(*args, **kwargs)


_KINDS: dict[str, Callable[[int], Callable[..., Any]]] = {
    "BINARY": lambda oparg: _BINARY[oparg % len(_BINARY)],
    "UNARY": lambda oparg: _UNARY[oparg],
    "GETITEM": lambda oparg: operator.getitem,
    "GETATTR": lambda oparg: getattr,
    "CALL": lambda oparg: _call,
}


class Backward:
    """The gradients of a recorded loss, as an operation on arrays.

    ops: (kind, oparg, operands, names of the last ones) in order. An operand is ("input", i),
        ("result", i) of an earlier op, ("const", object), or ("tuple" | "list" | "slice",
        operands).
    loss: the operand that is the loss. nleaves: how many inputs, from the first, are
        differentiated.
    """

    def __init__(self, ops: list[Any], loss: Operand, nleaves: int) -> None:
        self._ops = [(_KINDS[kind](oparg), operands, names) for kind, oparg, operands, names in ops]
        self._loss = loss
        self._nleaves = nleaves

    def __call__(self, *inputs: Any) -> tuple[np.ndarray, ...]:
        """One array per leaf, of its shape and dtype, in C order."""
        leaves = [leaf(x) for x in inputs[:self._nleaves]]
        known: dict[str, list[Any]] = {"input": [*leaves, *inputs[self._nleaves:]], "result": []}
        for fn, operands, names in self._ops:
            values = [_value(x, known) for x in operands]
            split = len(values) - len(names)
            named = dict(zip(names, values[split:], strict=True))
            known["result"].append(fn(*values[:split], **named))
        return tuple(backward(_value(self._loss, known), leaves))


def _value(operand: Operand, known: dict[str, list[Any]]) -> Any:
    kind, what = operand
    if kind in known:
        return known[kind][what]
    if kind == "const":
        return what
    items = [_value(x, known) for x in what]
    return slice(*items) if kind == "slice" else tuple(items) if kind == "tuple" else items


_core.set_grad_hooks((ValueAndGrad, Grad, plan, collect, Backward))
