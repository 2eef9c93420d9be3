"""explain(): graphs, guards, breaks, exits, recompiles, counters, and its two printed forms."""

import html.parser

import numpy as np
import pytest

import ccompile
from ccompile import _core


def program(x, k=1):
    y = np.sin(x) * k
    print(end="")
    z = y + 0.5
    if z.sum() > 0:
        return z @ z
    return z.sum()


LINE = program.__code__.co_firstlineno


def test_numbers():
    report = ccompile.explain(program, backend="eager")(np.ones(3))
    assert report.function == "program" and report.backend == "eager" and report.runs == 2
    assert len(report.traces) == 1 and report.side_trace_count == 0
    assert report.graph_count == len(report.graphs) >= 2
    names = [op.name for ops in report.graphs for op in ops]
    assert names[:3] == ["sin", "*", "+"] and "@" in names
    assert report.op_count == len(names)
    assert report.graphs[0][0].line == LINE + 1 and report.graphs[0][0].file == __file__
    assert report.counters["recorded"] == 1 and report.counters["replayed"] == 1
    assert report.result == program(np.ones(3))
    assert report.note == "" and report.recompiles == []


def test_breaks_guards_tapes():
    report = ccompile.explain(program)(np.ones(3))
    (found,) = report.graph_breaks
    assert (found.name, found.kind, found.line) == ("UNKNOWN_CALL", "residual", LINE + 2)
    assert found.detail == "print" and found.hint and found.explanation
    texts = [guard.text for guard in report.guards]
    assert "argument 'x' is float64[n], C order" in texts
    assert "global 'np' is module numpy" in texts
    assert report.stops == [] and report.exits == []
    assert len(report.tapes()) == 1 and report.tapes()[0].startswith("root, ")


def test_of_a_compiled_callable():
    f = ccompile.compile(program)
    f(np.ones(3))
    f(-2 * np.ones(3))
    f(np.ones(3, "f4"))
    report = ccompile.explain(f)(-2 * np.ones(3))
    assert len(report.traces) == 2 and report.side_trace_count >= 1
    assert len(report.recompiles) == 1 and "argument 'x'" in report.recompiles[0]
    assert report.exits and report.exits[0].taken >= 1
    assert report.counters["recorded"] == 0 and report.counters["replayed"] == 2
    with pytest.raises(TypeError):
        ccompile.explain(f, fullgraph=True)


@pytest.mark.parametrize("backend", ccompile.list_backends())
def test_plans(backend):
    report = ccompile.explain(lambda x: np.sort(np.sin(x) + 1) * 2, backend=backend)(np.ones(9))
    assert report.backend == backend
    if backend == "eager":
        assert report.plans == [] and report.counters["array_ops_in_kernels"] == 0
        return
    (left,) = report.framework_plans
    assert left.ops == 1 and left.text in str(report) and left.text in report._repr_html_()
    assert [plan.ops for plan in report.plans if plan.kernels] == [2, 1]
    assert "SIN" in report.plans[0].text and report.counters["array_ops_in_kernels"] > 0


def test_runs_are_real_and_counted():
    calls = []

    def f(x):
        calls.append(x)
        return x

    assert ccompile.explain(f)(3).result == 3 and calls == [3, 3]
    assert ccompile.explain(f, runs=1)(4).result == 4 and calls == [3, 3, 4]
    with pytest.raises(ValueError):
        ccompile.explain(f, runs=0)


def test_options_and_exceptions_pass():
    with pytest.raises(ccompile.GraphBreak):
        ccompile.explain(program, fullgraph=True)(np.ones(2))
    with pytest.raises(ZeroDivisionError):
        ccompile.explain(lambda x: 1 // x)(0)
    with pytest.raises(ValueError):
        ccompile.explain(program, backend="none such")


def test_stop():
    report = ccompile.explain(lambda x: x + x + x + x, options={"trace_limit": 2})(np.ones(2))
    assert [stop.name for stop in report.stops] == ["TRACE_TOO_LONG"]
    assert "TRACE_TOO_LONG" in str(report) and "hint: " in str(report)


def generator(x):
    yield x


class Model:
    def __call__(self, x):
        return x + 1


NOTES = {
    "disabled": (ccompile.disable(program), "disabled"),
    "generator": (generator, "generators"),
    "builtin": (abs, "not a Python function"),
    "class": (int, "not a Python function"),
}


@pytest.mark.parametrize("name", NOTES)
def test_note(name):
    f, text = NOTES[name]
    report = ccompile.explain(f)(np.ones(2) if name == "disabled" else 1)
    assert text in report.note and text in str(report) and report.traces == []


def test_objects_and_methods():
    report = ccompile.explain(Model())(np.ones(2))
    assert report.function == "Model" and report.graph_count == 1 and report.note == ""
    assert ccompile.explain(Model().__call__)(np.ones(2)).function == "Model.__call__"


def test_text():
    text = str(ccompile.explain(program)(np.ones(3)))
    for part in (
        "graph breaks:         1",
        "Trace 1: program",
        "graph 1: sin",
        "guard: ",
        "UNKNOWN_CALL",
    ):
        assert part in text
    assert f"{__file__}:{LINE + 2}: " in text


class Page(html.parser.HTMLParser):
    """Tags must nest; notes which ones there are and the text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.words, self.attrs = [], set(), [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attrs |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_page():
    def f(x):
        return x["<script>alert(1)</script>"] + 1

    report = ccompile.explain(f)({"<script>alert(1)</script>": np.ones(3)})
    page = Page()
    page.feed(report._repr_html_())
    page.close()
    assert page.open == [] and page.attrs <= {"style"}
    assert page.tags <= {"div", "b", "p", "table", "tr", "th", "td", "details", "summary"}
    text = "".join(page.words)
    assert (
        "['<script>alert(1)</script>']" in text and "<locals>.f" in text and "graph breaks" in text
    )


def test_report_lists_what_the_core_lists():
    f = ccompile.compile(program)
    f(np.ones(3))
    assert isinstance(f, _core.Callable)
    (row,) = f._report()
    assert (
        row["rows"]
        == f._tapes()[0].count("\n")
        - f._tapes()[0].count("\nsnap ")
        - (f._tapes()[0].count("\nvirt "))
        - 1
    )
