"""Random programs about memory: arrays changed in place through names, views, `out=` and masks.

As random_programs.py, with few other constructs, so that many writes meet in one transaction. The
arguments may be one array, parts of one array, or apart; that changes from call to call.
"""

from __future__ import annotations

import random

HEAD = '''"""Made from seed {seed}."""
import numpy as np

from tests.corpus.program import Programs

PROGRAMS = Programs()
KEPT = []
G = np.arange(6.0)


def row(n, k, dtype=np.float64):
    return (np.arange(n) * k % 17).astype(dtype)


class Box:
    def __init__(self, v):
        self.v = v


BOX = Box(np.ones(6))


def bump(x, by=1):
    x += by
    return x


'''

SHARING = (
    "(row(6, {k}), row(6, {j}))", "(row(6, {k}), row(6, {j}))", "(lambda x: (x, x))(row(6, {k}))",
    "(lambda x: (x[2:], x[:-2]))(row(8, {k}))", "(lambda x: (x[::2], x[1::2]))(row(12, {k}))",
    "(lambda x: (x, x[::-1]))(row(6, {k}))", "(row(6, {k}, np.float32), row(6, {j}))",
    "(row(6, {k}), row(6, {j}, np.int64))", "(lambda x: (x[:6], x[6:]))(row(12, {k}))",
)


class Writer:
    """Writes one program; arrays of 6 elements have names of their own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.arrays = ["a", "b", "a", "b", "G", "BOX.v"]
        self.fresh = 0

    def pick(self, *items: str) -> str:
        return self.random.choice(items)

    def array(self) -> str:
        return self.random.choice(self.arrays)

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def part(self) -> str:
        """A key."""
        return self.pick("[1:]", "[:-1]", "[::2]", "[1:4]", "[-2:]", "[...]", "[::-1]", "[2]",
                         "[-1]")

    def value(self) -> str:
        """An expression of 6 elements, or a number."""
        x, y = self.array(), self.array()
        return self.pick(
            "2", "s", x, f"{x} + {y}", f"{x} * 2 - {y}", f"{x}[::-1]", f"np.maximum({x}, {y})",
            f"{x}[0]", f"{x}[2] + s", f"{x}.sum() % 7", f"np.where({x} > s, {x}, {y})",
            f"np.stack([{x}, {y}])[1]", f"{x}.reshape(2, 3).T.ravel()", f"np.roll({x}, 1)")

    def update(self) -> str:
        x, y, part = self.array(), self.array(), self.part()
        op = self.pick("+=", "-=", "*=", "+=")
        return self.pick(
            f"{x} {op} {self.value()}; {x} %= 17", f"{x} += {self.value()}", f"{x} %= 17",
            f"{x}[:] = {self.value()}", f"{x}{part} += {self.pick('1', 's', x + '[1]')}",
            f"{x}[1:] = {y}[:-1]", f"{x}[1:] -= {x}[:-1]", f"{x}[:3], {x}[3:] = {y}[3:], {y}[:3]",
            f"{x}{part} = {self.pick('3', 's', y + '[0]')}",
            f"{x}[{y} > {self.pick('3', 's')}] = 1",
            f"np.add({x}, {y}, out={self.pick(x, y)}, casting='unsafe')",
            f"np.subtract({x}[1:], 1, out={x}[:-1])", f"np.copyto({x}, {self.value()})",
            f"{x}.fill({self.pick('1', 's')})", f"bump({x}, {self.pick('1', 's', y)})",
            f"bump({x}[1:])", f"{x}.sort()", f"{x}[[0, 1]] += 1")

    def statement(self, depth: int) -> None:
        r = self.random.random()
        if r < 0.55:
            self.put(depth, self.update())
        elif r < 0.8:
            new, x = self.name(), self.array()
            self.put(depth, f"{new} = " + self.pick(
                f"{x} + 1", f"{x} * {self.array()} % 17", f"{x}[:]", f"{x}[::-1]", x, f"{x}.copy()",
                "np.zeros(6)", f"{x}.reshape(-1)", f"np.asarray({x})", f"bump({x})",
                f"np.concatenate([{x}[:3], {self.array()}[3:]])", f"{x}.reshape(2, 3).ravel()"))
            self.arrays.append(new)
        elif r < 0.86:
            self.put(depth, self.pick(
                f"KEPT.append({self.array()})", f"out.append({self.array()})",
                f"print({self.array()})",
                f"out.append({self.array()} * 1)", f"d = {{'x': {self.array()}}}; d['x'] += 1",
                f"BOX.v = {self.array()}", "(KEPT or [a])[-1][0] = 5"))
        elif r < 0.93 and depth < 3:
            self.put(depth, f"if {self.array()}.sum() % 5 > {self.random.randrange(4)}:")
            self.block(depth + 1)
        elif depth < 3:
            self.put(depth, f"for i{depth} in range({self.pick('2', '3', 's')}):")
            self.block(depth + 1)

    def block(self, depth: int) -> None:
        before = list(self.arrays)
        self.put(depth, "s = (s + 1) % 5")
        self.put(depth, f"{self.array()} %= 17")  # small whole numbers: sums are exact
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth)
        self.arrays = before

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)


def source(seed: int) -> str:
    """The text of the program of a seed."""
    w = Writer(seed)
    makers = []
    for _ in range(7):
        k, j = w.random.randrange(1, 6), w.random.randrange(1, 6)
        pair = w.random.choice(SHARING).format(k=k, j=j)
        makers.append(f"lambda: (*{pair}, {w.random.randrange(5)})")
    w.put(1, "global G")
    w.put(1, "out = []")
    for _ in range(14):
        w.statement(1)
    names = dict.fromkeys(w.arrays)
    w.put(1, f"return {', '.join(names)}, out, s")
    return (HEAD.format(seed=seed) + "@PROGRAMS.add(" + ",\n              ".join(makers)
            + ")\ndef program(a, b, s):\n" + "\n".join(w.lines) + "\n")
