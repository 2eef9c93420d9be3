"""The rows of coverage.py against NumPy, in every dtype and layout, and which of them are kernels.

`coverage.golden` has one line per row: the dtypes for which all array work of the row ran in
kernels. A row that is no longer lowered changes its line, so it fails; `--update-golden` rewrites
the file.
"""

import pathlib
import warnings

import numpy as np
import pytest

import ccompile

from .coverage import TOL, rows
from .test_lower import make, run, same

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
SOME = ["?", "i1", "i4", "u8", "f4", "f8"]
OPERANDS = "x y v m b i"
GOLDEN = pathlib.Path(__file__).with_name("coverage.golden")
ROWS = list(rows())


def data(dtype, shape, seed):
    """Small whole numbers above 0: nothing overflows, divides by zero or gives a NaN."""
    x = ((np.arange(int(np.prod(shape))) * 7 + seed * 3) % 5 + 1).reshape(shape)
    return x.astype(dtype)


def operands(dtype, form):
    """The operands of a row with x and y in one of the forms of memory."""
    x, y = data(dtype, (6, 4), 0), data(dtype, (6, 4), 1)
    v, m, i = data(dtype, (4,), 2), np.arange(6) % 3 != 1, np.array([0, 3, 5, 1, 2, 4])
    b = (np.arange(24) % 3 > 0).reshape(6, 4)
    if form == "F":
        x, y = np.asfortranarray(x), np.asfortranarray(y)
    elif form == "mixed":
        y = np.asfortranarray(y)
    elif form == "strided":
        x, y = np.repeat(x, 2, axis=1)[:, ::2], np.repeat(y, 3, axis=0)[::3]
    elif form == "negative":
        x, y = x[::-1].copy()[::-1], y[:, ::-1].copy()[:, ::-1]
    elif form == "broadcast":
        x, y = np.broadcast_to(x[0], (6, 4)), np.broadcast_to(y[:, :1], (6, 4))
    elif form == "0-d":
        x, y = x[1, 1:2].reshape(()), y[1, 1:2].reshape(())
        m, b = m[0], b[0, 1]
    elif form == "scalar":
        x, y = x[1, 1], y[1, 1]
    elif form == "empty":
        x, y, b, m, i = x[:0], y[:0], b[:0], m[:0], i[:0]
    elif form == "one":
        x, y, b, m, i = x[:1], y[:1], b[:1], m[:1], i[:1]
    return x, y, v, m, b, i


def once(text, args, ulp, backend="interp"):
    """Record, then replay twice; whether all array work was done by kernels."""
    function = make(text, OPERANDS)
    compiled = ccompile.compile(function, backend=backend)
    want, warned = run(function, args)
    for _ in range(3):
        got, warned_too = run(compiled, args)
        compare(want, got, ulp)
        assert warned == warned_too, (warned, warned_too)
    count = ccompile.counters(compiled)
    framework = ("array_ops_extern", "array_ops_residual", "graph_breaks", "fallback")
    return count["array_ops_in_kernels"] > 0 and not any(count[name] for name in framework)


def compare(want, got, ulp):
    """As test_lower.same, also of lists; sums of floats may be off by much near zero."""
    assert type(want) is type(got), (want, got)
    if isinstance(want, list | tuple):
        assert len(want) == len(got)
        for w, g in zip(want, got, strict=True):
            compare(w, g, ulp)
    elif isinstance(want, str | type):
        assert want == got
    else:
        same(want, got, ulp)


def lowered(text, ulp):
    """The dtypes in which a row is all kernels."""
    return [dtype for dtype in DTYPES if once(text, operands(dtype, "C"), ulp)]


@pytest.fixture(scope="module")
def table(request):
    """Lines of the golden file by row."""
    update = request.config.getoption("--update-golden")
    if update:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = [f"{text} | {' '.join(lowered(text, ulp))}".rstrip() for ulp, text in ROWS]
        GOLDEN.write_text("\n".join(lines) + "\n")
    pairs = (line.rpartition(" |") for line in GOLDEN.read_text().splitlines())
    return {text: dtypes.split() for text, _, dtypes in pairs}


@pytest.mark.parametrize("ulp,text", ROWS, ids=[text for _, text in ROWS])
def test_kernels(ulp, text, table):
    assert lowered(text, ulp) == table[text]


@pytest.mark.parametrize(
    "form", ["F", "mixed", "strided", "negative", "broadcast", "0-d", "scalar", "empty", "one"]
)
@pytest.mark.parametrize("ulp,text", ROWS, ids=[text for _, text in ROWS])
def test_forms(ulp, text, form):
    for dtype in SOME:
        once(text, operands(dtype, form), ulp)


def test_every_row_is_in_the_table(table):
    assert list(table) == [text for _, text in ROWS]


def test_delta_degrees_of_freedom():
    """A `ddof` that leaves nothing warns at the caller's line, also when it or the size changes."""
    function = make("x.var(axis=0, ddof=d)", "x d")
    compiled = ccompile.compile(function, backend="interp")
    for rows_, d in ((5, 1), (5, 1), (2, 1), (1, 1), (5, 1), (5, 7), (1, 0), (0, 0), (5, 1)):
        x = data("f8", (rows_, 3), 0)
        want, warned = run(function, (x, d))
        got, warned_too = run(compiled, (x, d))
        same(want, got, TOL)
        assert warned == warned_too
    assert ccompile.counters(compiled)["array_ops_in_kernels"] >= 3


def test_library_function_that_is_replaced(monkeypatch):
    """np.ones runs whole, but what has its name is looked up by each call."""
    compiled = ccompile.compile(make("np.ones(3) + x", "x"), backend="interp")
    x = data("f8", (3,), 0)
    for _ in range(3):
        assert (compiled(x) == x + 1).all()
    monkeypatch.setattr(np, "ones", lambda n: np.full(n, 5.0))
    for _ in range(3):
        assert (compiled(x) == x + 5).all()


def test_wrapped_results():
    """tensordot gives a view of an array that nobody else has; so do we."""
    compiled = ccompile.compile(make("np.tensordot(x, x, axes=1)", "x"), backend="interp")
    for _ in range(3):
        z = compiled(data("f8", (4, 4), 0))
        assert z.base is not None and z.base.base is None and z.flags.writeable
    assert ccompile.counters(compiled)["array_ops_in_kernels"] > 0
