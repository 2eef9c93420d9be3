"""Run one case in this process: python -m tests.cases.run_case FILE ENGINE [REPEAT].

ENGINE is a row of tests/corpus/engines.py. The case runs REPEAT times (default 3), so that the
later runs meet what the first has recorded. Prints "ok" at the end; a failure is an exception.
"""

import importlib.util
import pathlib
import sys

from tests.corpus.engines import ENGINES


def main(file: str, engine: str, repeat: str = "3") -> None:
    """Load the case and run it."""
    path = pathlib.Path(file)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for _ in range(int(repeat)):
        module.case(ENGINES[engine])
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
