"""Every program of the corpus through every engine: whatever plain Python shows, it shows."""

import functools

import pytest

from .engines import ENGINES, ccompile_compile
from .harness import compare, corpus, run

CASES = corpus()


@functools.cache
def plain(path, name):
    return run(path, name, ENGINES["plain"])


def test_names_are_unique():
    names = [(path.stem, name) for path, name in CASES]
    assert len(set(names)) == len(names) >= 150


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path,name", CASES, ids=[f"{p.stem[9:]}.{n}" for p, n in CASES])
def test_program(engine, path, name):
    if engine != "plain" and ccompile_compile() is None:
        pytest.skip("this build has no ccompile.compile")
    differences = compare(plain(path, name), run(path, name, ENGINES[engine]))
    assert not differences, f"{path.name}: {name}\n{differences}"
