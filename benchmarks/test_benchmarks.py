"""The same contestants under pytest-benchmark, each alone; a group per program.

    python -m pytest benchmarks --benchmark-group-by=group
"""

import pytest

from .peers import PEERS, NoTwin, contestant
from .programs import PROGRAMS

pytest.importorskip("pytest_benchmark")


@pytest.mark.filterwarnings("default")  # other projects' compilers warn
@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_time(benchmark, program, peer):
    benchmark.group = program.name
    try:
        one, _ = contestant(peer, program)
    except NoTwin as reason:
        pytest.skip(str(reason))
    one.enter()
    benchmark(one.call)
