"""Capture of array programs: record Python while it runs, compile, replay behind guards."""

from ._api import GraphBreak, compile, counters, disable, list_backends, reset
from ._core import graph_break, is_compiling
from ._grad import GradientError, grad, value_and_grad

__all__ = [
    "GradientError",
    "GraphBreak",
    "compile",
    "counters",
    "disable",
    "grad",
    "graph_break",
    "is_compiling",
    "list_backends",
    "reset",
    "value_and_grad",
]
