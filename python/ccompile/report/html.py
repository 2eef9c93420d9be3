"""A report as one piece of HTML for notebooks: no scripts, no links, every text escaped."""

from collections.abc import Sequence
from html import escape

from .model import Break, Report, Trace, exit_text, ops_text, trace_title

_STYLE = "border-collapse:collapse;margin:.3em 0 .8em"
_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of plain texts; nothing for no rows."""
    if not rows:
        return ""
    top = "".join(f'<th style="{_CELL}">{escape(text)}</th>' for text in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in row) + "</tr>"
        for row in rows
    )
    return f'<table style="{_STYLE}"><tr>{top}</tr>{body}</table>'


def _section(title: str, body: str) -> str:
    return f"<b>{escape(title)}</b>{body}" if body else ""


def _breaks(rows: list[Break]) -> str:
    return _table(
        ("where", "reason", "what", "hint"),
        [
            (
                f"{row.file}:{row.line}",
                f"{row.id} {row.name}",
                row.explanation + (f" ({row.detail})" if row.detail else ""),
                row.hint,
            )
            for row in rows
        ],
    )


def _trace(number: int, trace: Trace) -> str:
    graphs = [(str(i), ops_text(ops)) for i, ops in enumerate(trace.graphs, 1)]
    guards = [(guard.text, f"{guard.file}:{guard.line}") for guard in trace.guards]
    return (
        f"<details><summary>Trace {number}: {escape(trace_title(trace))}</summary>"
        + _table(("graph", "array operations"), graphs)
        + _table(("guard", "for"), guards)
        + "</details>"
    )


def page(report: Report) -> str:
    """The whole report."""
    counters = [(name, str(n)) for name, n in report.counters.items() if n]
    parts = [
        f"<div><b>ccompile.explain of {escape(report.function)}</b>",
        _table(("", ""), list(report.summary())),
        f"<p>{escape(report.note)}</p>" if report.note else "",
        _section("Graph breaks", _breaks(report.graph_breaks)),
        _section("Stops", _breaks(report.stops)),
        _section(
            "Left to the framework",
            _table(
                ("operations", "reason"),
                [(str(plan.ops), plan.text) for plan in report.framework_plans],
            ),
        ),
        _section("Exits", _table(("",), [(exit_text(exit),) for exit in report.exits])),
        _section("Recompiles", _table(("",), [(text,) for text in report.recompiles])),
        *(_trace(number, trace) for number, trace in enumerate(report.all_traces, 1)),
        _section("Counters", _table(("counter", "during the runs"), counters)),
        "</div>",
    ]
    return "".join(parts)
