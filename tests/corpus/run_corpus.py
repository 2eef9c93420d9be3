"""Run the corpus through one engine, each program in a process of its own.

    python -m tests.corpus.run_corpus [ENGINE] [-k SUBSTRING] [-v]

A crash or a hang costs one program. Prints a line per program that differs from plain Python, and
the counters of the engine with -v.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import sys

from .engines import ENGINES
from .harness import compare, corpus, run

SECONDS = 60  # per program


def in_child(path: pathlib.Path, name: str, engine: str) -> tuple[int, str]:
    """(wait status, text) of one program in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        status = 1
        try:
            text = compare(run(path, name, ENGINES["plain"]), run(path, name, ENGINES[engine]))
            counters = getattr(sys.modules.get("ccompile"), "counters", dict)()
            text += "\n" + ", ".join(f"{k} {v}" for k, v in counters.items() if v)
            os.write(writing, text.encode("utf-8", "replace")[:60_000])
            status = 2 if text.partition("\n")[0] else 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    return os.waitpid(child, 0)[1], text


def main() -> int:
    """Run what was asked for; 0 when nothing differed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", nargs="?", default="eager", choices=sorted(ENGINES))
    parser.add_argument("-k", default="", metavar="SUBSTRING")
    parser.add_argument("-v", action="store_true", help="also programs that agree, with counters")
    options = parser.parse_args()
    good = bad = 0
    for path, name in corpus():
        label = f"{path.stem[9:]}.{name}"
        if options.k not in label:
            continue
        status, text = in_child(path, name, options.engine)
        if status == 0:
            good += 1
            if options.v:
                print("ok  ", label, text.strip())
            continue
        bad += 1
        code = os.waitstatus_to_exitcode(status)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else text.strip()
        print("FAIL", label, how or f"exit {code}", flush=True)
    print(f"{good} agree with plain Python, {bad} do not")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
