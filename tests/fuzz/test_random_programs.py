"""Random programs: every engine shows what plain Python shows. More seeds: random_programs.py."""

import pytest

from tests.corpus.engines import ENGINES, available

from . import random_memory
from .random_programs import check, fails, reduced, source

SEEDS = range(40)


def test_programs_differ_and_repeat():
    texts = [source(seed) for seed in SEEDS]
    assert len(set(texts)) == len(texts) and texts == [source(seed) for seed in SEEDS]
    for text in texts:
        compile(text, "<program>", "exec")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_seed(seed, engine, tmp_path):
    if not available(engine):
        pytest.skip(f"this build has no backend for {engine}")
    text = f"python -m tests.fuzz.random_programs {engine} --reduce {seed}"
    assert not check(source(seed), engine, tmp_path), text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_seed_about_memory(seed, engine, tmp_path):
    if not available(engine):
        pytest.skip(f"this build has no backend for {engine}")
    text = f"python -m tests.fuzz.random_programs {engine} --memory --reduce {seed}"
    assert not check(random_memory.source(seed), engine, tmp_path), text


def test_a_wrong_engine_is_found_and_reduced(tmp_path, monkeypatch):
    def wrong(function):
        def call(*args):
            out = function(*args)
            return (*out[:-1], out[-1] + 1) if isinstance(out, tuple) and len(out) > 5 else out

        return call

    monkeypatch.setitem(ENGINES, "wrong", wrong)
    found = [seed for seed in SEEDS if check(source(seed), "wrong", tmp_path)]
    assert len(found) > len(SEEDS) // 2
    small = reduced(source(found[0]), lambda text: fails(text, "wrong"))
    body = small.partition("def program")[2].strip().splitlines()
    assert 1 < len(body) <= 4 and fails(small, "wrong") and not fails(small, "plain")
