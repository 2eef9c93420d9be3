"""The oracle: everything a program lets its caller see, and an exact comparison.

`observe` calls a program and records the value (types, dtypes, shapes, strides, flags, bits, which
parts are one object, which arrays share memory and where), the arguments and the file's globals as
they are afterwards, the exception (type, text, chain, traceback as function:line), standard output
and error, warnings (category, text, line) and NumPy's error state. NaNs are equal whatever their
payload; strides of axes of length 0 or 1 are not compared, as no program can use them. Warnings of
ccompile about itself ("ccompile: ...") are not the program's.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pathlib
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .program import Program

HERE = pathlib.Path(__file__).resolve().parent
CALLS = 4  # of each program, so that later calls meet what the first one has recorded

_ATOMS = (type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis),
          type(NotImplemented), np.dtype)
_NAMED = (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc,
          types.MethodDescriptorType, types.WrapperDescriptorType, type(np.sum))


@dataclass
class Bits:
    """Numbers to compare: a float by value and sign with NaNs alike, everything else exactly."""

    data: np.ndarray

    def differs(self, other: Bits, close: bool | float) -> str | None:
        """None when equal, else the first place that differs."""
        a, b = np.atleast_1d(self.data).ravel(), np.atleast_1d(other.data).ravel()
        if a.dtype != b.dtype or a.shape != b.shape:
            return None  # reported by the type or the shape beside it
        if a.dtype.kind == "O":
            equal = np.array([x is y or x == y for x, y in zip(a, b, strict=True)], bool)
        elif a.dtype.kind in "fc":
            width = 2 if a.dtype.kind == "c" else 1
            parts_a, parts_b = (x.view(x.real.dtype).reshape(x.size, width) for x in (a, b))
            same = (parts_a == parts_b) & (np.signbit(parts_a) == np.signbit(parts_b))
            same |= np.isnan(parts_a) & np.isnan(parts_b)
            if close:
                with np.errstate(all="ignore"):
                    eps = np.finfo(parts_a.dtype).eps
                    gap = np.abs(parts_a - parts_b)
                    size = np.maximum(np.abs(parts_a), np.abs(parts_b))
                    same |= gap <= (8 * eps * size if close is True else close * np.max(size))
            equal = same.all(axis=1)
        else:
            equal = np.array([x == y for x, y in zip(a.tolist(), b.tolist(), strict=True)], bool)
        if equal.all():
            return None
        at = int(np.flatnonzero(~equal)[0])
        return f"[{at}] {a[at]!r} != {b[at]!r} ({int((~equal).sum())} of {a.size} differ)"


class Describer:
    """Turns objects into trees of tuples; the n-th object met has the number n everywhere."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.kept: list[Any] = []  # what has been numbered stays alive, so ids stay unique
        self.arrays: list[tuple[int, np.ndarray]] = []

    def describe(self, x: Any) -> Any:
        """The tree of one object."""
        kind = type(x)
        if kind in (float, complex):
            return kind.__name__, Bits(np.array(x))
        if isinstance(x, _ATOMS) and not isinstance(x, np.generic) and (
                kind.__module__ in ("builtins", "numpy", "numpy.dtypes")):
            return kind.__name__, repr(x)
        if isinstance(x, _NAMED):
            return kind.__name__, getattr(x, "__qualname__", None) or x.__name__
        if id(x) in self.numbers:
            return "same as", self.numbers[id(x)]
        number = self.numbers[id(x)] = len(self.kept)
        self.kept.append(x)
        return (f"{kind.__qualname__}#{number}", *self._parts(x))

    def _parts(self, x: Any) -> Iterator[Any]:
        if isinstance(x, np.ndarray):
            yield from self._array(x)
        elif isinstance(x, np.generic):
            yield x.dtype.str, Bits(np.array(x))
        elif isinstance(x, dict):
            yield [(self.describe(k), self.describe(v)) for k, v in list(x.items())]
        elif isinstance(x, (set, frozenset)):
            yield sorted(repr(self.describe(y)) for y in x)
        elif isinstance(x, (list, tuple, deque)):
            yield [self.describe(y) for y in x]
        elif isinstance(x, BaseException):
            yield self.describe(x.args)
        elif isinstance(x, types.FunctionType):
            yield x.__qualname__, self.describe(x.__defaults__), self.describe(x.__kwdefaults__)
            yield [self._cell(cell) for cell in x.__closure__ or ()]
        elif isinstance(x, types.MethodType):
            yield self.describe(x.__func__), self.describe(x.__self__)
        elif isinstance(x, types.GeneratorType):
            yield x.__qualname__, "finished" if x.gi_frame is None else x.gi_frame.f_lineno
        if not isinstance(x, (types.FunctionType, types.MethodType)):
            yield from self._attributes(x)

    def _cell(self, cell: Any) -> Any:
        try:
            return self.describe(cell.cell_contents)
        except ValueError:
            return "empty cell"

    def _attributes(self, x: Any) -> Iterator[Any]:
        names = list(getattr(x, "__dict__", ()))
        for cls in type(x).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            names += [slots] if isinstance(slots, str) else slots
        for name in names:
            if not name.startswith("__"):
                yield name, self.describe(getattr(x, name, "unset"))

    def _array(self, x: np.ndarray) -> Iterator[Any]:
        strides = tuple(s if n > 1 else "*" for s, n in zip(x.strides, x.shape, strict=True))
        flags = x.flags
        yield x.dtype.str, x.shape, strides
        yield "".join(letter if on else "-" for letter, on in (
            ("C", flags.c_contiguous), ("F", flags.f_contiguous), ("O", flags.owndata),
            ("W", flags.writeable), ("A", flags.aligned)))
        for number, other in self.arrays:
            if x.size and other.size and np.shares_memory(x, other):
                start = x.__array_interface__["data"][0] - other.__array_interface__["data"][0]
                yield f"memory of #{number} at {start:+d}"
                break
        self.arrays.append((self.numbers[id(x)], x))
        if x.dtype.kind == "O":
            yield [self.describe(y) for y in x.ravel().tolist()]
        else:
            yield Bits(x.copy())


@dataclass
class Observation:
    """What one call showed, field by field."""

    fields: dict[str, Any] = field(default_factory=dict)
    close: bool | float = False


def _exception(error: BaseException | None, describer: Describer) -> Any:
    """Type, text, arguments, chain and traceback; the harness's own frame left out."""
    if error is None:
        return None
    chain: list[Any] = []
    seen = error
    while seen is not None and len(chain) < 8:
        trace = seen.__traceback__
        lines = []
        while trace is not None:
            code = trace.tb_frame.f_code
            if pathlib.Path(code.co_filename) != pathlib.Path(__file__):
                where = pathlib.Path(code.co_filename).name
                lines.append(f"{where}:{trace.tb_lineno} in {code.co_name}")
            trace = trace.tb_next
        how = "cause" if seen.__cause__ is not None else "context"
        following = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
        chain.append([type(seen).__qualname__, str(seen), lines, how if following else "end"])
        seen = following
    return chain, describer.describe(error.args)


def _globals(module: types.ModuleType, describer: Describer) -> list[Any]:
    """The file's global data: everything but functions, classes, modules and the declarations."""
    skip = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
    return [(name, describer.describe(value)) for name, value in vars(module).items()
            if not name.startswith("__") and name != "PROGRAMS" and not isinstance(value, skip)
            and not callable(value)]


def observe(function: Callable[..., Any], program: Program, module: types.ModuleType,
            number: int) -> Observation:
    """Call the program once and record all it shows."""
    out, err = io.StringIO(), io.StringIO()
    result, error = None, None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("ignore")
        args, kwargs = program.arguments(number)
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                result = program.drive(function, args, kwargs)
            except BaseException as caught:  # the program's own, whatever it is
                error = caught
    describer = Describer()
    fields = {
        "arguments": describer.describe(args),
        "keywords": describer.describe(kwargs),
        "globals": _globals(module, describer),
        "result": describer.describe(result),
        "exception": _exception(error, describer),
        "stdout": out.getvalue(),
        "stderr": err.getvalue(),
        "warnings": [(w.category.__name__, str(w.message), pathlib.Path(w.filename).name, w.lineno)
                     for w in warned
                     if not str(w.message).startswith("ccompile: ")],  # ours, about limits
        "numpy errors": sorted(np.geterr().items()),
        "handled": repr(sys.exc_info()[1]),
    }
    return Observation(fields, program.close)


@functools.cache
def _code(path: pathlib.Path) -> types.CodeType:
    return compile(path.read_text(encoding="utf-8"), str(path), "exec")


def forget() -> None:
    """Read files anew when they are loaded next."""
    _code.cache_clear()


def load(path: pathlib.Path) -> types.ModuleType:
    """A fresh copy of a corpus file, with globals of its own."""
    name = f"{__package__}.{path.stem}"  # the same in every copy: texts may contain it
    module = types.ModuleType(name)
    module.__file__, module.__package__ = str(path), __package__
    sys.modules[name] = module  # for dataclasses and pickle while it is loaded
    try:
        exec(_code(path), vars(module))
    finally:
        del sys.modules[name]
    return module


def run(path: pathlib.Path, name: str, engine: Callable[[Any], Any],
        calls: int = CALLS,
        around: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
        ) -> list[Observation]:
    """Observations of a program called several times in a row on one callable of the engine.

    around: entered for each call; a frame of a wrapper would show in the program's tracebacks.
    """
    module = load(path)
    program = next(p for p in module.PROGRAMS if p.name == name)
    function = engine(program.function)
    if program.decorated:
        setattr(module, name, function)
    calls = max(calls, len(program.makers) + 1)
    seen = []
    for i in range(calls):
        with around():
            seen.append(observe(function, program, module, i))
    return seen


def _differences(a: Any, b: Any, where: str, close: bool | float) -> Iterator[str]:
    if isinstance(a, Bits) and isinstance(b, Bits):
        text = a.differs(b, close)
        if text is not None:
            yield f"{where}{text}"
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            yield f"{where} {len(a)} items, not {len(b)}:\n    plain {a!r}\n    other {b!r}"
            return
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            label = f"{where}[{i}]"
            if isinstance(x, tuple) and x and isinstance(x[0], str):
                label = f"{where}[{i} {x[0]}]"
            yield from _differences(x, y, label, close)
    elif a != b:
        yield f"{where}: plain {a!r}, other {b!r}"


def compare(plain: list[Observation], other: list[Observation]) -> str:
    """Empty when both engines showed the same in every call, else a line per difference."""
    lines = []
    if len(plain) != len(other):
        lines.append(f"{len(plain)} calls, not {len(other)}")
    for i, (a, b) in enumerate(zip(plain, other, strict=False)):
        for key in a.fields:
            lines += [f"call {i + 1}, {line}"
                      for line in _differences(a.fields[key], b.fields[key], key, a.close)]
    return "\n".join(lines[:20])


def corpus() -> list[tuple[pathlib.Path, str]]:
    """(file, program name) of the whole corpus."""
    found = []
    for path in sorted(HERE.glob("programs_*.py")):
        found += [(path, program.name) for program in load(path).PROGRAMS]
    return found
