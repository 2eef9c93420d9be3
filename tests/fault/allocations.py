"""Run corpus programs while the n-th allocation of the C code in each call fails.

    python -m tests.fault.allocations ENGINE STEP LIMIT [WORD ...]

For each program whose "file.name" contains one of the words (all without words), n goes from 0 in
steps until no call reaches its n-th allocation, or to LIMIT. Whatever plain Python shows is shown:
a recording that runs out of memory is thrown away, a replay has what it needs before it begins.
Prints a line per difference and the number of runs; the program that runs is in the file named by
$CCOMPILE_FAULT_LAST, for crashes.
"""

import os
import pathlib
import sys

from ccompile import _core
from tests.corpus.engines import ENGINES
from tests.corpus.harness import compare, corpus, run


class FailingAt:
    """Allocation n of every `with` block fails; counts the blocks that were long enough."""

    def __init__(self, n):
        self.n, self.fired = n, 0

    def __call__(self):
        return self

    def __enter__(self):
        _core._testing.fail_alloc(self.n)

    def __exit__(self, *exc):
        self.fired += _core._testing.fail_alloc(-1)


def faults(engine, path, name, step, limit):
    """Yields (n, differences from plain) for one program."""
    plain = run(path, name, ENGINES["plain"])
    for n in range(0, limit, step):
        around = FailingAt(n)
        note = os.environ.get("CCOMPILE_FAULT_LAST")
        if note:
            pathlib.Path(note).write_text(f"{path.stem}.{name} with allocation {n}\n")
        yield n, compare(plain, run(path, name, ENGINES[engine], around=around))
        if not around.fired:
            return


def main(argv):
    engine, step, limit, words = argv[0], int(argv[1]), int(argv[2]), argv[3:]
    runs = 0
    for path, name in corpus():
        full = f"{path.stem}.{name}"
        if words and not any(word in full for word in words):
            continue
        for n, differences in faults(engine, path, name, step, limit):
            runs += 1
            if differences:
                print(f"{full} with allocation {n}:\n{differences}")
    print(f"{runs} runs")


if __name__ == "__main__":
    main(sys.argv[1:])
