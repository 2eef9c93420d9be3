"""compile() and its companions: torch.compile's names and meanings."""

import copy
import importlib.metadata
import sys
import weakref
from collections.abc import Callable
from typing import Any

from . import _core, _torch

BACKENDS = ("eager", "interp", "c")  # in the order of CoreBackend of csrc/core/state.h
ENTRY_POINTS = "ccompile.backends"  # group of entry points: name -> backend function

_live: weakref.WeakSet[_core.Callable] = weakref.WeakSet()  # for reset()


class GraphBreak(RuntimeError):
    """A call could not stay one graph and `fullgraph=True` asked for that.

    The text has the file, the line, the reason and a hint; so have the attributes. What the program
    did before it stands.
    """

    reason: str = ""  # name of the reason, as in explain()
    filename: str = ""
    lineno: int = 0
    hint: str = ""


GraphBreak.__module__ = "ccompile"
_core.set_break_type(GraphBreak)


def list_backends() -> list[str]:
    """Names that `compile(backend=...)` takes: ours, then those of installed packages."""
    return [*BACKENDS, *(p.name for p in importlib.metadata.entry_points(group=ENTRY_POINTS))]


def _backend(given: Any) -> tuple[int, Any]:
    """The number of a backend, and the program's own function or the name."""
    if given in BACKENDS:
        return BACKENDS.index(given), given
    if isinstance(given, str):
        found = list(importlib.metadata.entry_points(group=ENTRY_POINTS, name=given))
        if not found:
            raise ValueError(f"no backend {given!r}; there are {', '.join(list_backends())}")
        given = found[0].load()
    if not callable(given):
        raise TypeError(f"a backend is a name or a callable, not {type(given).__name__}")
    return len(BACKENDS), given


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "c",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A callable that gives `model`'s own results, faster where it can.

    model: a function, a bound method or an object with a Python `__call__`; without it,
        a decorator. What a torch.nn.Module gives is a module, too: of a subclass of its class, with
        the same parameters, hooks and attributes.
    fullgraph: raise GraphBreak where the program cannot stay one graph.
    dynamic: None and True keep array sizes free; False fixes them.
    backend: a name of list_backends(), or a function (graph, example_inputs) -> function. It is
        asked once for every graph: `graph` is a `ccompile.Graph` (str() is its text, a call runs
        it), example_inputs a list of arrays and numbers like those that it will get (of zeros and
        ones). What it gives is called with the inputs, positionally, and gives a sequence of the
        graph's results; when it raises, the error is shown and the graph itself runs.
    mode: accepted as torch.compile does ("default", "reduce-overhead", "max-autotune"); no effect.
    options: {name: value} of the options that `ccompile.config` calls callable.
    disable: return something that runs the plain program.
    Raises TypeError for a model or backend that cannot be called, ValueError for an unknown backend
    or option.
    """
    given = {
        "fullgraph": fullgraph,
        "dynamic": dynamic,
        "backend": backend,
        "mode": mode,
        "options": options,
        "disable": disable,
    }
    if model is None:
        return lambda fn: compile(fn, **given)  # type: ignore[arg-type]
    if not callable(model):
        raise TypeError(f"compile() needs something that can be called, not {type(model).__name__}")
    number, given["backend"] = _backend(backend)
    model = _torch.callable_of(model)
    if isinstance(model, _core.Callable):
        model = model.__wrapped__
    texts = {name: _text(value) for name, value in (options or {}).items()}
    compiled = _core.wrap(model, fullgraph, disable, texts, given, number)
    _live.add(compiled)
    if _torch.is_module(model):
        return _torch.shared(model, compiled, lambda other: compile(other, **given))  # type: ignore[arg-type]
    return compiled


def disable(fn: Callable[..., Any] | None = None) -> Any:
    """`fn` as a callable that compiled code calls as plain Python. Without `fn`, a decorator."""
    if fn is None:
        return disable
    return compile(fn, disable=True)


def reset(fn: Any = None) -> None:
    """Forget the traces of a compiled callable; without `fn`, of all of them. Counters stay."""
    for compiled in list(_live) if fn is None else [fn]:
        _torch.callable_of(compiled)._reset()


def counters(fn: Any = None) -> dict[str, int]:
    """What happened so far, in the process or in one compiled callable."""
    return _core.counters() if fn is None else _torch.callable_of(fn)._counters()


def _reduce(fn: Any) -> Any:
    """Pickle by name where the name finds this object (a decorated function), else by parts."""
    wrapped = fn.__wrapped__
    module = sys.modules.get(getattr(wrapped, "__module__", None) or "")
    found: Any = module
    for part in getattr(wrapped, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    if found is fn:
        return wrapped.__qualname__
    return _rebuild, (wrapped, fn._options)


def _rebuild(wrapped: Any, given: dict[str, Any]) -> Any:
    return compile(wrapped, **given)


def _deepcopy(fn: Any, memo: dict[int, Any]) -> Any:
    return compile(copy.deepcopy(fn.__wrapped__, memo), **fn._options)
