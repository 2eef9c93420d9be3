"""Random Python programs over arrays, from a seed, and their comparison through an engine.

    python -m tests.fuzz.random_programs [ENGINE] [--memory] [--seeds FIRST LAST]
                                         [--show|--reduce SEED]

A program mixes array expressions, in-place writes, views, scalars, branches on data, loops, nested
functions, exceptions, printing, lists and globals. Numbers are small whole floats, kept in range by
`% 17`, so every engine must give the same bits. Programs end: loops are counted.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import signal
import sys
import tempfile
from collections.abc import Callable

from tests.corpus.engines import ENGINES
from tests.corpus.harness import compare, forget, run

from . import random_memory

CALLS = 8
HEAD = '''"""Made from seed {seed}."""
import numpy as np

from tests.corpus.program import Programs

PROGRAMS = Programs()
COUNT = 0
LOG = []


def row(n, k):
    return (np.arange(n) * k % 17).astype(np.float64)


class Box:
    def __init__(self, v):
        self.v = v
        self.hits = 0

    def add(self, x):
        self.hits += 1
        self.v = (self.v + x) % 17
        return self.v


BOX = Box(1.0)


def helper(x, k=2, *rest, flip=False):
    y = x * k + len(rest)
    if flip:
        y = y[::-1]
    if y.sum() % 5 == 4:
        raise ValueError(f"helper {{float(y.sum()):.0f}}")
    return y % 17


'''


class Writer:
    """Writes one program; the state is what names exist and how deep the block is."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.arrays = ["a", "b"]
        self.scalars = ["k", "s"]
        self.fresh = 0
        self.budget = 26
        self.in_loop = 0

    def pick(self, *items: str) -> str:
        return self.random.choice(items)

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def scalar(self) -> str:
        a, s = self.random.choice(self.arrays), self.random.choice(self.scalars)
        return self.pick(
            s, s, f"({s} + 1)", f"({s} * 3 % 17)", f"{a}.sum() % 17", f"len({a})", f"{a}.max()",
            f"{a}[0]", f"{a}[-1]", f"float({a}[1])", f"int({a}.min())", "2", "0.5", f"BOX.add({s})",
            "len(LOG) % 5", "COUNT", f"({a} > {s}).sum()", f"xs[{self.random.randrange(2)}]")

    def array(self) -> str:
        a, b = self.random.choice(self.arrays), self.random.choice(self.arrays)
        s = self.scalar()
        return self.pick(
            f"({a} + {b}) % 17", f"({a} - {b})", f"({a} * {s}) % 17", f"{a} + {s}", f"-{a}",
            f"np.maximum({a}, {b})", f"np.where({a} > {s}, {a}, {b})", f"np.abs({a} - {s})",
            f"np.clip({a}, 0, {s})", f"{a}.copy()", f"{a}[::-1]", f"np.roll({a}, 1)",
            f"({a} // 2)", f"({a} > {b}).astype(np.float64)", f"helper({a}, {s})",
            f"helper({a}, 1, {s}, flip=True)", f"np.cumsum({a}) % 17", f"({a} @ {b}) % 17 + {a}",
            f"np.concatenate([{a}[1:], {a}[:1]])", f"{a}.reshape(-1)", f"{a} % 7",
            f"np.stack([{a}, {b}])[{self.random.randrange(2)}]", f"inner({a})")

    def condition(self) -> str:
        a, s = self.random.choice(self.arrays), self.scalar()
        return self.pick(
            f"{a}.sum() > {s}", f"{s} > 3", f"{a}[0] == {s}", f"({a} > {s}).any()", "xs",
            f"k % 2 == {self.random.randrange(2)}", f"len({a}) > 4", f"not {s}",
            f"{a}[0] < {a}[-1] and {s} != 2", f"isinstance({s}, int)", "COUNT % 2")

    def block(self, depth: int, lines: int) -> None:
        before = len(self.lines), list(self.arrays), list(self.scalars)
        for _ in range(lines):
            self.statement(depth)
        if len(self.lines) == before[0]:
            self.lines.append("    " * depth + "pass")
        self.arrays, self.scalars = before[1], before[2]  # names bound in a block may be unbound

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int) -> None:
        self.budget -= 1
        r = self.random.random()
        if depth < 4 and self.budget > 0 and r < 0.32:
            self.compound(depth)
            return
        a = self.random.choice(self.arrays)
        if r < 0.52:
            target = self.name() if self.random.random() < 0.5 else a
            self.put(depth, f"{target} = {self.array()}")
            if target not in self.arrays:
                self.arrays.append(target)
        elif r < 0.66:
            self.put(depth, self.pick(
                f"{a} += {self.scalar()}", f"{a} *= 2", f"{a} %= 17", f"{a}[0] = {self.scalar()}",
                f"{a}[1:] = {a}[:-1]", f"{a}[:2] += {self.scalar()}", f"{a} += {a}[::-1]",
                f"{a}[{a} > {self.scalar()}] = 1", f"{a}[[0, 1]] = {a}[[1, 0]]",
                f"np.add({a}, 1, out={a})", f"{a}[...] = {self.array()}"))
        elif r < 0.78:
            target = self.name() if self.random.random() < 0.6 else "s"
            self.put(depth, f"{target} = {self.scalar()}")
            if target not in self.scalars:
                self.scalars.append(target)
        elif r < 0.9:
            self.put(depth, self.pick(
                f"LOG.append({self.scalar()})", f"xs.append({self.scalar()})", "COUNT += 1",
                f"print({self.scalar()}, {a}[:2])", f"BOX.v = {self.scalar()}",
                f"out.append({a})", f"out.append({a}[1:])", f"box[{self.scalar()!r}] = {a}",
                f"w = {a}[1:]; w += 1", f"assert {self.condition()}, 'no'",
                f"out += [x * 2 for x in xs if x != {self.scalar()}]",
                f"LOG.append(f'{{{self.scalar()}}}')", f"total({self.scalar()})"))
        elif self.in_loop and r < 0.95:
            self.put(depth, f"if {self.condition()}:")
            self.put(depth + 1, self.pick("break", "continue"))
        elif r < 0.97:
            self.put(depth, f"if {self.condition()}:")
            self.put(depth + 1, self.pick(f"return {a}, out", "return out", "raise KeyError(k)"))
        else:
            self.put(depth, f"{a} = {a} + {self.scalar()} / 4 * 4")

    def compound(self, depth: int) -> None:
        lines = self.random.randint(1, 3)
        kind = self.random.randrange(6)
        if kind == 0:
            self.put(depth, f"if {self.condition()}:")
            self.block(depth + 1, lines)
            if self.random.random() < 0.6:
                self.put(depth, "else:")
                self.block(depth + 1, lines)
        elif kind in (1, 2):
            i = self.name()
            self.put(depth, self.pick(
                f"for {i} in range({self.random.randint(1, 4)}):", f"for {i} in range(k % 4):",
                f"for {i} in xs[:3]:", f"for {i} in {self.random.choice(self.arrays)}[:3]:",
                f"for {i}, _ in enumerate(xs[:4]):", f"for {i}, _ in zip(xs[:], (1, 2)):"))
            kept = list(self.scalars)
            self.scalars.append(i)
            self.in_loop += 1
            self.block(depth + 1, lines)
            self.in_loop -= 1
            self.scalars = kept
            if self.random.random() < 0.2:
                self.put(depth, "else:")
                self.block(depth + 1, 1)
        elif kind == 3:
            i = self.name()
            self.put(depth, f"{i} = {self.random.randint(1, 5)}")
            self.put(depth, f"while {i} > 0 and {self.condition()}:")
            self.put(depth + 1, f"{i} -= 1")
            self.in_loop += 1
            self.block(depth + 1, lines)
            self.in_loop -= 1
        elif kind == 4:
            self.put(depth, "try:")
            self.block(depth + 1, lines)
            self.put(depth, self.pick("except ValueError as e:", "except (KeyError, ValueError):",
                                      "except Exception:"))
            self.block(depth + 1, 1)
            if self.random.random() < 0.4:
                self.put(depth, "finally:")
                loop, self.in_loop = self.in_loop, 0
                self.put(depth + 1, "LOG.append('f')")
                self.in_loop = loop
        else:
            self.put(depth, self.pick("with np.errstate(all='ignore'):",
                                      "with np.errstate(divide='raise'):"))
            self.block(depth + 1, lines)


def source(seed: int) -> str:
    """The text of the program of a seed."""
    w = Writer(seed)
    makers = []
    for _ in range(CALLS - 1):
        n, k = w.random.choice((3, 3, 3, 5, 8)), w.random.randrange(6)
        xs = [w.random.choice((1, 2, 3, 0.5)) for _ in range(w.random.choice((2, 2, 3)))]
        s = w.random.choice((1, 2, 2.5, 4, -1))
        alias = "(lambda x: (x, x))(row({0}, 3))" if w.random.random() < 0.15 else (
            "(row({0}, 3), row({0}, {1}))")
        makers.append(f"lambda: (*{alias.format(n, k + 1)}, {k}, {s}, {xs})")
    w.put(1, "global COUNT")
    w.put(1, "out = []")
    w.put(1, "box = {}")
    w.put(1, "seen = 0")
    w.put(1, "")
    w.put(1, "def inner(x, c=k):")
    w.put(2, "return (x + c * s) % 17")
    w.put(1, "")
    w.put(1, "def total(x):")
    w.put(2, "nonlocal seen")
    w.put(2, "seen += x")
    w.put(1, "")
    while w.budget > 0:
        w.statement(1)
    w.put(1, f"return {', '.join(w.arrays)}, {', '.join(w.scalars)}, out, box, seen")
    return (HEAD.format(seed=seed) + "@PROGRAMS.add(" + ",\n              ".join(makers)
            + ")\ndef program(a, b, k, s, xs):\n" + "\n".join(w.lines) + "\n")


def check(text: str, engine: str, folder: pathlib.Path) -> str:
    """Empty when the engine shows what plain Python shows, else the differences.

    A text that does not compile, or has no program, shows nothing and differs in nothing.
    """
    path = folder / "fuzzed.py"
    path.write_text(text, encoding="utf-8")
    forget()
    try:
        plain = run(path, "program", ENGINES["plain"])
    except (SyntaxError, NameError, StopIteration):
        return ""
    return compare(plain, run(path, "program", ENGINES[engine]))


def in_child(text: str, engine: str, seconds: int = 60) -> str:
    """`check` in a process of its own: the differences, or how the process ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        status = 1
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.write(writing, check(text, engine, pathlib.Path(folder)).encode()[:60_000])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
        found = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return found if code == 0 else f"exit {code}"


def fails(text: str, engine: str) -> bool:
    """Whether the engine differs; a program that does not end, as half of one may, does not."""
    return in_child(text, engine, 4) not in ("", f"exit {-signal.SIGALRM}")


def reduced(text: str, fails: Callable[[str], bool]) -> str:
    """The program with lines and blocks left out, as long as it still fails."""
    head, mark, body = text.partition("def program")
    lines = body.splitlines()
    size = len(lines)
    while size > 0:
        i = 1
        while i < len(lines):
            shorter = lines[:i] + lines[i + size:]
            if fails(head + mark + "\n".join(shorter) + "\n"):
                lines = shorter
            else:
                i += 1
        size //= 2
    return head + mark + "\n".join(lines) + "\n"


def main() -> int:
    """Run many seeds, each in a process of its own; 0 when all agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", nargs="?", default="eager", choices=sorted(ENGINES))
    parser.add_argument("--memory", action="store_true", help="programs of random_memory.py")
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 100))
    parser.add_argument("--show", type=int, metavar="SEED", help="print the program and stop")
    parser.add_argument("--reduce", type=int, metavar="SEED", help="print a smaller one")
    options = parser.parse_args()
    made = random_memory.source if options.memory else source
    if options.show is not None:
        print(made(options.show))
        return 0
    if options.reduce is not None:
        small = reduced(made(options.reduce), lambda text: fails(text, options.engine))
        print(small + in_child(small, options.engine))
        return 0
    bad = 0
    for seed in range(*options.seeds):
        found = in_child(made(seed), options.engine)
        bad += bool(found)
        if found:
            print(f"seed {seed}: {found}", flush=True)
    print(f"{bad} of {options.seeds[1] - options.seeds[0]} seeds differ from plain Python")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
