"""bytecode.def of the running Python: each opcode has a handler or a numbered stop."""

import contextlib
import dis
import re

import pytest

import ccompile
from ccompile import _core
from tests.support import ROOT

REAL = 256  # numbers from here on are the compiler's own and never in co_code
# read by the recording loop itself, or never in co_code, which shows the code as it was compiled
LOOP = {"EXTENDED_ARG"}
HIDDEN = {"CACHE", "RESERVED", "ENTER_EXECUTOR"}

ROWS = _core._testing.opcodes()
HANDLERS = re.findall(r"^REC_OP\((\w+)\)", (ROOT / "csrc/trace/handlers.def").read_text(), re.M)


def wanted():
    return {name: op for name, op in dis.opmap.items()
            if op < REAL and name not in LOOP | HIDDEN and not name.startswith("INSTRUMENTED_")}


def reasons():
    """{number: name} of reason.def, as the C enumeration counts."""
    rows = re.findall(r"^CC_REASON\((\w+)", (ROOT / "csrc/base/reason.def").read_text(), re.M)
    return dict(enumerate(rows))


def test_every_opcode_has_a_row():
    table = {name: op for name, op, _, _ in ROWS}
    assert len(table) == len(ROWS)
    assert table == wanted()


def test_every_row_is_a_handler_or_a_numbered_stop():
    names = reasons()
    for name, _, handler, reason in ROWS:
        if handler is None:
            assert names.get(reason) in ("BYTECODE", "EXCEPTION"), name
        else:
            assert handler in HANDLERS and reason == 0, name


def test_every_handler_serves_some_version():
    named = set()
    for path in ROOT.glob("csrc/py/v3*/bytecode.def"):
        named |= set(re.findall(r"^BYTECODE\(\w+,\s*(\w+)\)", path.read_text(), re.M))
    assert sorted(HANDLERS) == sorted(named)


def builds_a_class(x):
    y = x + 1

    class Local:
        pass

    return y, Local.__name__


def raises(x):
    y = x + 1
    if y > 0:
        raise ValueError(y)
    return y


@pytest.mark.parametrize("function,opcode", [
    (builds_a_class, "LOAD_BUILD_CLASS"),
    (raises, "RAISE_VARARGS"),
])
def test_a_stop_is_reported_with_its_reason(function, opcode):
    stops = {name: reason for name, _, handler, reason in ROWS if handler is None}
    if opcode not in stops:
        pytest.skip(f"{opcode} has a handler")
    compiled = ccompile.compile(function)
    with contextlib.suppress(ValueError):
        compiled(1)
    assert [row["end"][0] for row in compiled._report()] == [reasons()[stops[opcode]]]
