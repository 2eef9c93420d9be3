"""Run corpus programs with one rule of the tape broken.

    python -m tests.fault.rules RULE PROGRAM ...

Ends with 3 and a line at the first program that does not do what plain Python does, else with 0.
"""

import sys

from tests.corpus.engines import ENGINES
from tests.corpus.harness import compare, corpus, run
from tests.corpus.test_stress import engine

NOTICED = 3


def main(argv):
    rule, names = argv[0], argv[1:]
    programs = [(path, name) for path, name in corpus() if name in names]
    if len(programs) != len(names):
        sys.exit(f"not all of these are programs: {names}")
    for path, name in programs:
        stress = f"drop:{rule}" if rule else ""
        differences = compare(run(path, name, ENGINES["plain"]),
                              run(path, name, engine("eager", stress)))
        if differences:
            print(f"{name}: {differences.splitlines()[0]}")
            sys.exit(NOTICED)


if __name__ == "__main__":
    main(sys.argv[1:])
