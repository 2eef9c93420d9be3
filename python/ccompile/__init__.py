"""Capture of array programs: record Python while it runs, compile, replay behind guards."""

from . import _gradtape as _gradtape
from ._api import GraphBreak, compile, counters, disable, list_backends, reset
from ._core import Graph, graph_break, is_compiling
from ._grad import GradientError, grad, value_and_grad
from ._selftest import check as _check
from .explain import explain

__all__ = [
    "Graph",
    "GradientError",
    "GraphBreak",
    "compile",
    "counters",
    "disable",
    "explain",
    "grad",
    "graph_break",
    "is_compiling",
    "list_backends",
    "reset",
    "value_and_grad",
]

_check()
