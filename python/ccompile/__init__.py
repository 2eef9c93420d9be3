"""Capture of array programs: record Python while it runs, compile, replay behind guards."""

from ._api import GraphBreak, compile, counters, disable, list_backends, reset
from ._core import graph_break, is_compiling

__all__ = [
    "GraphBreak",
    "compile",
    "counters",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "reset",
]
