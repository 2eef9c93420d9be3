"""The engines a corpus program runs through: name -> function that gives the engine's callable.

"plain" is the function itself; every other engine is compared with it. To add an engine, add a row.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

STRESS = "exit:3,snap"  # every third guard fails, a snapshot before every instruction


def ccompile_compile() -> Callable[..., Any] | None:
    """`ccompile.compile`, or None where this build has none."""
    try:
        return getattr(importlib.import_module("ccompile"), "compile", None)
    except ImportError:
        return None


def available(engine: str) -> bool:
    """Whether this build has the engine's backend."""
    if engine == "plain":
        return True
    compile_ = ccompile_compile()
    backends = importlib.import_module("ccompile").list_backends() if compile_ else []
    return engine.partition("+")[0] in backends


def _backend(name: str, **options: Any) -> Callable[[Any], Any]:
    def engine(function: Any) -> Any:
        return ccompile_compile()(function, backend=name, options=options or None)

    return engine


ENGINES: dict[str, Callable[[Any], Any]] = {
    "plain": lambda function: function,
    "eager": _backend("eager"),
    "eager+stress": _backend("eager", stress=STRESS),
    "interp": _backend("interp"),
    "c": _backend("c"),
    "interp+stress": _backend("interp", stress=STRESS),
    "c+stress": _backend("c", stress=STRESS),
}
