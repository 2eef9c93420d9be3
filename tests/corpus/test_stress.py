"""Guards that fail: every n-th one inside a tape, over the corpus, with and without more snapshots.

With n = 1 there is nothing but first transactions that miss; with large n it is the n-th guard of
the first replay, so that the wide version makes each guard of most programs fail in its turn.
"""

import functools

import pytest

from .harness import compare, corpus, run
from .test_corpus import available, plain


def engine(backend, stress):
    import ccompile

    return functools.partial(ccompile.compile, backend=backend, options={"stress": stress})


def check(backend, stress):
    if not available(backend):
        pytest.skip(f"this build has no backend {backend}")
    failed = []
    for path, name in corpus():
        differences = compare(plain(path, name), run(path, name, engine(backend, stress)))
        if differences:
            failed.append(f"{path.name}: {name}\n{differences}")
    assert not failed, f"{len(failed)} programs under {stress}\n" + "\n".join(failed[:5])


@pytest.mark.parametrize("stress", ["exit:1", "exit:2,txn", "exit:7"])
def test_guards_fail(stress):
    check("eager", stress)


@pytest.mark.slow
@pytest.mark.parametrize("backend,more,every", [
    ("eager", "", [4, 5, 9, 11, 13, 16, 19, 22, 26, 31, 37, 44, 53]),
    ("interp", ",snap", [1, 2, 4, 5, 7, 11, 16, 23]),
    ("c", "", [1, 2, 5]),
])
def test_each_guard_fails(backend, more, every):
    for n in every:
        check(backend, f"exit:{n}{more}")


def test_the_switch_works():
    """A program without branches leaves its trace under stress, and does not without."""
    import ccompile

    def program(x):
        return x * 2 + 1

    exits = {}
    for stress in ("", "exit:1", "exit:5"):
        function = ccompile.compile(program, backend="eager", options={"stress": stress})
        for _ in range(20):
            assert function(3) == 7
        exits[stress] = 20 - ccompile.counters(function)["replayed"]
    assert exits[""] == 1 and exits["exit:1"] == 20 and 1 < exits["exit:5"] < 20
