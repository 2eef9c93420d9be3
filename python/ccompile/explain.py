"""explain(f)(*args): run a function and say what was compiled, what was not, and why."""

import inspect
from collections.abc import Callable
from typing import Any

from . import _core, _torch
from ._api import compile
from .report.model import Break, Plan, Report, trace_from


def explain(fn: Any, *, runs: int = 2, **options: Any) -> Callable[..., Report]:
    """A function that runs `fn` on its arguments, `runs` times, and returns a Report.

    The runs are real: what the function changes is changed, what it prints is printed. The first
    one records, the second one replays. An exception of the function passes through.

    fn: a compiled callable, whose traces stay; or anything that compile() takes.
    options: arguments of compile() for an `fn` that is not compiled yet.
    Raises TypeError for options of a compiled callable, ValueError for runs < 1.

        >>> import ccompile, numpy as np
        >>> report = ccompile.explain(lambda x: np.sin(x) + 1)(np.ones(4))
        >>> report.graph_count, report.op_count, report.graph_break_count
        (1, 2, 0)
    """
    if runs < 1:
        raise ValueError(f"explain() needs at least one run, not {runs}")
    fn = _torch.callable_of(fn)
    if isinstance(fn, _core.Callable):
        if options:
            raise TypeError("explain() of a compiled callable takes no options of compile()")
        compiled = fn
    else:
        compiled = _torch.callable_of(compile(fn, **options))

    def run(*args: Any, **kwargs: Any) -> Report:
        before = compiled._counters()
        result = None
        for _ in range(runs):
            result = compiled(*args, **kwargs)
        after = compiled._counters()
        return Report(
            function=_name(compiled.__wrapped__),
            backend=str(compiled._options.get("backend")),
            runs=runs,
            traces=[trace_from(row) for row in compiled._report()],
            breaks=[Break(*row) for row in compiled._breaks()],
            recompiles=compiled._misses(),
            counters={name: after[name] - before[name] for name in after},
            plans=[Plan(*row) for row in compiled._plans()],
            note=_note(compiled, after["recorded"]),
            result=result,
            compiled=compiled,
        )

    return run


def _name(wrapped: Any) -> str:
    name = getattr(wrapped, "__qualname__", None)
    return name if isinstance(name, str) else type(wrapped).__qualname__


def _note(compiled: _core.Callable, recorded: int) -> str:
    """Why nothing at all was recorded."""
    wrapped = compiled.__wrapped__
    if recorded:
        return ""
    if compiled._options.get("disable"):
        return "it is disabled: calls run as plain Python"
    if not _core.enabled():
        return "capture is off in this process, since a self-test failed: calls run as plain Python"
    code = inspect.unwrap(wrapped) if inspect.isroutine(wrapped) else type(wrapped).__call__
    if inspect.isgeneratorfunction(code) or inspect.iscoroutinefunction(code):
        return "generators and coroutines run as plain Python"
    if not inspect.isfunction(getattr(code, "__func__", code)):
        return "it is not a Python function: there is nothing to record"
    return "a debugger, profiler or tracer is active, or its arguments do not fit: plain Python ran"
