"""`grad` and `value_and_grad`: gradients of a function of arrays, trees of arrays, or Modules.

Here is the eager mode: the function runs as plain Python on `_autodiff.Var` operands. Inside a
compiled function the recorder knows `ValueAndGrad` objects by their type and differentiates along
the tape instead.

A Module argument is any object whose class has `__ccompile_parameters__()`, which yields
(name, owner, attribute) of each parameter. While the function runs its attributes hold `Var`
objects; afterwards, also after an exception, they hold the very same arrays as before.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._autodiff import GradientError, Var, backward, is_var, leaf, plain, user_line

__all__ = ["GradientError", "grad", "value_and_grad", "ValueAndGrad", "Grad"]

_modules_in_use = threading.RLock()  # a Module's attributes are exchanged while a function runs


class _Inputs:
    """The differentiated leaves of one call, found in trees and Modules."""

    def __init__(self) -> None:
        self.leaves: list[Var] = []
        self.owners: list[tuple[dict[str, Any], str, Any]] = []  # what to put back
        self.modules: list[Any] = []
        self.shared: dict[int, int] = {}  # id of a Module's array -> its leaf

    def open(self, tree: Any, where: str) -> tuple[Any, Callable[[list[Any]], Any]]:
        """The tree with a Var at each leaf, and a function from all gradients to its gradient."""
        if type(tree) is dict:
            return self._open_items(tree.items(), lambda items: dict(items), where)
        if type(tree) is list:
            return self._open_items(enumerate(tree), lambda items: [v for _, v in items], where)
        if isinstance(tree, tuple) and not is_var(tree):
            make = type(tree)._make if hasattr(type(tree), "_make") else type(tree)
            return self._open_items(enumerate(tree), lambda items: make([v for _, v in items]),
                                    where)
        if hasattr(type(tree), "__ccompile_parameters__"):
            return tree, self._open_module(tree, where)
        self.leaves.append(_leaf(tree, where))
        index = len(self.leaves) - 1
        return self.leaves[index], lambda grads: grads[index]

    def _open_items(self, items: Any, make: Any, where: str) -> tuple[Any, Any]:
        opened = [(k, self.open(v, f"{where}[{k!r}]")) for k, v in items]
        tree = make([(k, value) for k, (value, _) in opened])
        return tree, lambda grads: make([(k, close(grads)) for k, (_, close) in opened])

    def _open_module(self, module: Any, where: str) -> Callable[[list[Any]], Any]:
        self.modules.append(module)
        indices: dict[str, int] = {}
        for name, owner, attribute in list(module.__ccompile_parameters__()):
            array = vars(owner)[attribute]
            if not any(array is x for x in self.leaves):  # else: a shared submodule
                if id(array) not in self.shared:
                    self.leaves.append(_leaf(array, f"{where}.{name}"))
                    self.shared[id(array)] = len(self.leaves) - 1
                self.owners.append((vars(owner), attribute, array))
                vars(owner)[attribute] = self.leaves[self.shared[id(array)]]
            index = next(i for i, x in enumerate(self.leaves) if x is vars(owner)[attribute])
            if index not in indices.values():
                indices[name] = index
        return lambda grads: {name: grads[i] for name, i in indices.items()}

    def close(self) -> None:
        """Give the Modules their arrays back, and plain values to what the function stored."""
        for namespace, attribute, array in self.owners:
            if attribute not in namespace or type(namespace[attribute]) is Var:
                namespace[attribute] = array
        for module in self.modules:
            for part in module.modules():
                for name, value in vars(part).items():
                    if type(value) is Var:
                        vars(part)[name] = plain(value)


def _leaf(value: Any, where: str) -> Var:
    if is_var(value):
        raise GradientError(f"{where} is already being differentiated; a gradient of a gradient"
                            f" is not supported (at {user_line()})")
    if not (type(value) is float or isinstance(value, (np.ndarray, np.generic))):
        raise GradientError(f"{where} is of type {type(value).__name__}; grad differentiates arrays"
                            f" and trees of dict, list, tuple and Module (at {user_line()})")
    dtype = np.result_type(value)
    if dtype.kind != "f":
        raise GradientError(f"{where} has dtype {dtype}; only real floating-point inputs can be"
                            f" differentiated (at {user_line()})")
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        raise GradientError(f"{where} is a {type(value).__name__}; only plain arrays can be"
                            f" differentiated (at {user_line()})")
    return leaf(value)


def _plain_tree(tree: Any) -> Any:
    """The same tree with plain values in place of differentiated ones."""
    if type(tree) is dict:
        return {k: _plain_tree(v) for k, v in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)([_plain_tree(v) for v in tree])
    if type(tree) is not Var and isinstance(tree, tuple) and hasattr(type(tree), "_make"):
        return type(tree)._make([_plain_tree(v) for v in tree])
    return plain(tree)


def _check_loss(loss: Any, has_aux: bool) -> None:
    hint = "" if has_aux or not isinstance(loss, tuple) else "; has_aux=True allows (loss, aux)"
    if type(loss) is not Var:
        if isinstance(loss, (float, np.ndarray, np.generic)) and np.ndim(loss) == 0:
            raise GradientError("the loss does not depend on any differentiated input"
                                f" (at {user_line()})")
        shape = f" of shape {loss.shape}" if isinstance(loss, np.ndarray) else ""
        raise GradientError(f"the loss must be a scalar, got {type(loss).__name__}{shape}{hint}"
                            f" (at {user_line()})")
    if loss.shape != ():
        raise GradientError(f"the loss must be a scalar, got an array of shape {loss.shape}"
                            f" (at {user_line()})")


class ValueAndGrad:
    """Callable made by `value_and_grad`; see there."""

    def __init__(self, f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> None:
        if not callable(f):
            raise TypeError(f"expected a callable, got {type(f).__name__}")
        self.f = f
        self.argnums = argnums if isinstance(argnums, int) else tuple(argnums)
        self.has_aux = bool(has_aux)
        functools.update_wrapper(self, f, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """(value, gradients), or ((value, aux), gradients) with has_aux."""
        one = isinstance(self.argnums, int)
        numbers = (self.argnums,) if one else self.argnums
        inputs = _Inputs()
        opened = list(args)
        closers = []
        with _modules_in_use:
            try:
                for n in numbers:
                    if not -len(args) <= n < len(args):
                        raise GradientError(f"argnums {n} names no positional argument of a call"
                                            f" with {len(args)} (at {user_line()})")
                    opened[n], close = inputs.open(args[n], f"argument {n % len(args)}")
                    closers.append(close)
                result = self.f(*opened, **kwargs)
            except ValueError as error:  # NumPy's own text for a store of a scalar Var
                if isinstance(error.__cause__, GradientError):
                    raise error.__cause__ from None
                raise
            finally:
                inputs.close()
        loss, aux = result, None
        if self.has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise GradientError(f"with has_aux=True the function must return (loss, aux)"
                                    f" (at {user_line()})")
            loss, aux = result
        _check_loss(loss, self.has_aux)
        found = backward(loss, inputs.leaves)
        grads = tuple(close(found) for close in closers)
        value = (plain(loss), _plain_tree(aux)) if self.has_aux else plain(loss)
        return value, grads[0] if one else grads


class Grad(ValueAndGrad):
    """Callable made by `grad`; see there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """gradients, or (gradients, aux) with has_aux."""
        value, grads = super().__call__(*args, **kwargs)
        return (grads, value[1]) if self.has_aux else grads


def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> ValueAndGrad:
    """A function that returns `f`'s scalar value and its gradient.

    f:        function of arrays (real floating dtype), of trees (dict, list, tuple) of arrays, or
              of `nn.Module` objects, that returns a scalar, or (scalar, aux) with `has_aux`.
    argnums:  position, or positions, of the differentiated arguments.
    Returns (value, gradients): each gradient has the tree of its argument and the shape and dtype
    of each leaf; for a Module it is a dict from state_dict name to array; for several argnums it
    is a tuple. With `has_aux`: ((value, aux), gradients).
    Raises GradientError for a loss that is not a scalar or depends on no input, for integer,
    boolean or complex leaves, and where a differentiated value enters an operation without a rule
    or is turned into a Python number.

    >>> value_and_grad(lambda w: (w * w).sum())(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    return ValueAndGrad(f, argnums, has_aux)


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Grad:
    """As `value_and_grad`, returning only the gradients, or (gradients, aux) with `has_aux`."""
    return Grad(f, argnums, has_aux)
