"""Options, fixtures and hooks of the whole suite.

--update-golden   rewrite the expected fields of golden files instead of comparing
--seed N          seed of the `rng` fixture; by default it follows from the test's name
@pytest.mark.leaks  run the test four times; the interpreter's block count must not keep growing
"""

import array
import gc
import sys
import zlib

import numpy as np
import pytest

from tests.support import golden_read, golden_write


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")
    parser.addoption("--seed", type=int, default=None, help="seed of the rng fixture")


# -- Seeds --------------------------------------------------------------------


@pytest.fixture
def seed(request):
    """The test's seed; printed when the test fails."""
    given = request.config.getoption("--seed")
    value = zlib.crc32(request.node.nodeid.encode()) if given is None else given
    request.node.user_properties.append(("seed", value))
    return value


@pytest.fixture
def rng(seed):
    """A NumPy generator made from the test's seed."""
    return np.random.default_rng(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    seeds = [value for key, value in item.user_properties if key == "seed"]
    if report.failed and seeds:
        report.sections.append(("seed", f"--seed {seeds[0]}"))
    return report


# -- Golden files -------------------------------------------------------------


class Golden:
    """Compares fields of golden files, or rewrites them under --update-golden."""

    def __init__(self, update):
        self.update = update

    def field(self, where, key):
        """Text of a field of the case `where`, an item of support.golden_cases()."""
        return self._find(where)[2].fields[key]

    def check(self, where, actual, key="out"):
        """The field must equal `actual`."""
        head, cases, case = self._find(where)
        if self.update:
            case.fields[key] = actual
            golden_write(where[0], head, cases)
        assert case.fields.get(key) == actual, f"{where[0].name}: {where[1]}"

    @staticmethod
    def _find(where):
        head, cases = golden_read(where[0])
        return head, cases, next(case for case in cases if case.name == where[1])


@pytest.fixture
def golden(request):
    """Access to golden files; see Golden."""
    return Golden(request.config.getoption("--update-golden"))


# -- Leaks --------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if pyfuncitem.get_closest_marker("leaks") is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    args = {name: pyfuncitem.funcargs[name] for name in names}
    blocks = array.array("q", [0] * 4)  # a list would count its own integers
    for run in range(4):  # the first run fills caches
        pyfuncitem.obj(**args)
        gc.collect()
        blocks[run] = sys.getallocatedblocks()  # 0 under PYTHONMALLOC=malloc: nothing to compare
    grown = [after - before for before, after in zip(blocks[1:], blocks[2:], strict=False)]
    if min(grown) > 0:
        pytest.fail(f"leak: memory blocks grew by {grown} in the last runs", pytrace=False)
    return True
