"""The report of explain() as plain dataclasses; the numbers come from `_core`."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import _core


@dataclass(frozen=True)
class Operation:
    """One array operation of a graph and the line that asked for it."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Guard:
    """One check that a trace makes: what must hold, and the line that relied on it first."""

    text: str
    file: str
    line: int


@dataclass(frozen=True)
class Exit:
    """A place where a trace was left because the data or the program's state differed."""

    file: str
    line: int
    taken: int
    side_traces: int
    closed: bool  # plain Python goes on from here; no further side trace is recorded


@dataclass(frozen=True)
class Break:
    """Why a graph was interrupted: `kind` is "residual" (graph break), "stop" or "exit"."""

    id: int
    name: str
    kind: str
    explanation: str
    hint: str
    detail: str
    file: str
    line: int

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.file}:{self.line}: {self.explanation}{detail} [{self.id} {self.name}]"


@dataclass(frozen=True)
class Trace:
    """One recording: entry guards and the graphs between the calls that stay plain Python."""

    function: str
    file: str
    line: int
    rows: int
    residual: int  # calls and effects that a replay does as plain Python, in order
    loops: int
    entered: int
    completed: int
    guards: list[Guard]
    graphs: list[list[Operation]]
    exits: list[Exit]
    end: str  # name of the reason why the recording ended early; "" when it did not
    sides: list["Trace"]

    def walk(self) -> Iterator["Trace"]:
        """This trace and all side traces below it."""
        yield self
        for side in self.sides:
            yield from side.walk()


@dataclass(frozen=True)
class Plan:
    """Array operations that run as one: by kernels made for them, or by the framework, and why."""

    ops: int
    text: str  # the graph, or the reason why there are no kernels
    kernels: bool


def trace_from(row: dict[str, Any]) -> Trace:
    """A Trace from a dict of `_core.Callable._report()`."""
    return Trace(
        function=row["function"],
        file=row["file"],
        line=row["line"],
        rows=row["rows"],
        residual=row["residual"],
        loops=row["loops"],
        entered=row["entered"],
        completed=row["completed"],
        guards=[Guard(*guard) for guard in row["guards"]],
        graphs=[[Operation(*op) for op in ops] for ops in row["graphs"]],
        exits=[Exit(*exit) for exit in row["exits"]],
        end=row["end"][0] if row["end"] else "",
        sides=[trace_from(side) for side in row["sides"]],
    )


@dataclass
class Report:
    """What `explain(f)(*args)` found. `str()` of it is for a terminal; a notebook shows a page.

    result: what the last run returned.
    plans: how each piece of array work runs; empty for the backend "eager".
    counters: by how much `ccompile.counters(f)` grew during the runs.
    recompiles: one line for each trace that did not fit a call, with the guard that failed.
    """

    function: str
    backend: str
    runs: int
    traces: list[Trace]
    breaks: list[Break]
    recompiles: list[str]
    counters: dict[str, int]
    plans: list[Plan] = field(default_factory=list)
    note: str = ""  # why nothing was recorded, where that is known
    result: Any = field(default=None, repr=False)
    compiled: _core.Callable | None = field(default=None, repr=False)

    @property
    def all_traces(self) -> list[Trace]:
        """Root traces and side traces."""
        return [trace for root in self.traces for trace in root.walk()]

    @property
    def side_trace_count(self) -> int:
        """Number of side traces."""
        return len(self.all_traces) - len(self.traces)

    @property
    def graphs(self) -> list[list[Operation]]:
        """The array operations of each graph (launch), side traces included."""
        return [ops for trace in self.all_traces for ops in trace.graphs]

    @property
    def framework_plans(self) -> list[Plan]:
        """Array work without kernels of ours, with the reason."""
        return [plan for plan in self.plans if not plan.kernels]

    @property
    def graph_count(self) -> int:
        """Number of graphs."""
        return len(self.graphs)

    @property
    def op_count(self) -> int:
        """Number of array operations in all graphs."""
        return sum(len(ops) for ops in self.graphs)

    @property
    def guards(self) -> list[Guard]:
        """The guards of all traces."""
        return [guard for trace in self.all_traces for guard in trace.guards]

    @property
    def graph_breaks(self) -> list[Break]:
        """Calls that run as plain Python in the middle of a trace."""
        return [b for b in self.breaks if b.kind == "residual"]

    @property
    def graph_break_count(self) -> int:
        """Number of places that break a graph."""
        return len(self.graph_breaks)

    @property
    def stops(self) -> list[Break]:
        """Places where a recording ended before the function did."""
        return [b for b in self.breaks if b.kind not in ("residual", "exit")]

    @property
    def exits(self) -> list[Exit]:
        """Places where a trace was left in the middle."""
        return [exit for trace in self.all_traces for exit in trace.exits]

    def tapes(self) -> list[str]:
        """The text of every root trace with its side traces, as CCOMPILE_DUMP=tape gives it."""
        return [] if self.compiled is None else self.compiled._tapes()

    def summary(self) -> list[tuple[str, str]]:
        """The head of the report: (what, how many)."""
        return [
            ("backend", self.backend),
            ("runs of the function", str(self.runs)),
            ("traces", f"{len(self.traces)} and {self.side_trace_count} side traces"),
            ("graphs", f"{self.graph_count} with {self.op_count} array operations"),
            ("plans", f"{len(self.plans)}, {len(self.framework_plans)} left to the framework"),
            ("graph breaks", str(self.graph_break_count)),
            ("stops", str(len(self.stops))),
            ("exits", str(len(self.exits))),
            ("guards", str(len(self.guards))),
            ("recompiles", str(len(self.recompiles))),
        ]

    def __str__(self) -> str:
        lines = [f"ccompile.explain of {self.function}"]
        lines += [f"  {name + ':':<22}{text}" for name, text in self.summary()]
        lines += [f"  note: {self.note}"] if self.note else []
        for title, rows in (("Graph breaks", self.graph_breaks), ("Stops", self.stops)):
            lines += ["", title] if rows else []
            for row in rows:
                lines.append(f"  {row}")
                lines += [f"      hint: {row.hint}"] if row.hint else []
        if self.framework_plans:
            lines += ["", "Left to the framework"]
            lines += [f"  {plan.ops} operations: {plan.text}" for plan in self.framework_plans]
        if self.exits:
            lines += ["", "Exits"]
            lines += [f"  {exit_text(exit)}" for exit in self.exits]
        if self.recompiles:
            lines += ["", "Recompiles", *(f"  {text}" for text in self.recompiles)]
        for number, trace in enumerate(self.all_traces, 1):
            lines += ["", f"Trace {number}: {trace_title(trace)}"]
            for index, ops in enumerate(trace.graphs, 1):
                lines.append(f"  graph {index}: {ops_text(ops)}")
            lines += [f"  guard: {guard.text} (line {guard.line})" for guard in trace.guards]
        changed = {name: n for name, n in self.counters.items() if n}
        lines += ["", "Counters: " + (", ".join(f"{k} {n}" for k, n in changed.items()) or "none")]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from .html import page

        return page(self)


def exit_text(exit: Exit) -> str:
    """One line about an exit."""
    then = "plain Python goes on" if exit.closed else f"{exit.side_traces} side traces"
    return f"{exit.file}:{exit.line}: left {exit.taken} times; {then}"


def trace_title(trace: Trace) -> str:
    """One line about a trace."""
    end = f", ended early: {trace.end}" if trace.end else ""
    return (
        f"{trace.function} ({trace.file}:{trace.line}), {trace.rows} rows, "
        f"{trace.residual} plain calls or effects, entered {trace.entered} times{end}"
    )


def ops_text(ops: list[Operation]) -> str:
    """The operations of a graph with the lines that asked for them."""
    return ", ".join(f"{op.name} (line {op.line})" for op in ops)
