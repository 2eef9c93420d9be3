"""The benchmarks run, their contestants compute the same, and the arithmetic of ratios is right."""

import json

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import peers, programs
from benchmarks.measure import MIN_ROUNDS, Contestant, ratios
from benchmarks.programs import PROGRAMS, Program, under


class Clock:
    """A clock that contestants push forward."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def __call__(self):
        return self.now

    def contestant(self, name, seconds):
        def call():
            self.calls.append(name)
            self.now += seconds

        return Contestant(call)


def test_ratios_are_those_of_the_times():
    clock = Clock()
    row = {name: clock.contestant(name, s) for name, s in (("a", 1.0), ("b", 0.25), ("c", 2.0))}
    got = ratios(row, "a", 0.0, clock)
    assert {name: r.median for name, r in got.items()} == {"a": 1.0, "b": 4.0, "c": 0.5}
    assert all(r.low == r.median == r.high and r.rounds == MIN_ROUNDS for r in got.values())


def test_every_other_round_runs_in_reverse():
    clock = Clock()
    row = {name: clock.contestant(name, 1.0) for name in "abc"}
    ratios(row, "a", 0.0, clock)
    rounds = "".join(clock.calls[-6 * MIN_ROUNDS:])  # a call before each, then one sample
    assert rounds.startswith("aabbccccbbaaaabbcc")


def test_a_drift_of_the_machine_cancels():
    """A machine that slows down meanwhile gives the same ratio."""
    clock, speed = Clock(), [1.0]

    def slow_down():
        clock.now += speed[0]
        speed[0] *= 1.0 if clock.now < 20 else 1.02

    row = {"a": Contestant(slow_down), "b": Contestant(slow_down)}
    got = ratios(row, "a", 200.0, clock)["b"]
    assert got.rounds > MIN_ROUNDS and got.median == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("peer", ["ccompile", "interp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_own_contestants_agree_with_plain(name, peer):
    program = PROGRAMS[name]
    if program.network is not None:  # in full these take seconds
        program = Program(name, lambda rng: tuple(x[:4] for x in PROGRAMS[name].arrays(rng)),
                          network=program.network)
    elif name == "black_scholes":
        program = Program(name, lambda rng: programs._options(rng, 999), formula=program.formula)
    plain = peers.PEERS["plain"].prepare(program).call()
    call = peers.PEERS[peer].prepare(program).call
    assert peers.agrees(call(), plain)
    if program.formula is not None:
        assert peers.agrees(call(), plain)  # a replay


def test_disagreement_is_noticed():
    assert not peers.agrees(np.zeros(3), np.ones(3))
    assert not peers.agrees(np.zeros(3), np.zeros(4))
    assert not peers.agrees((np.zeros(3),), (np.zeros(3), np.zeros(3)))
    wrong = peers.Peer("wrong", lambda program: Contestant(lambda: np.zeros(4)))
    with pytest.raises(peers.NoTwin, match="differs"):
        peers.contestant(wrong, PROGRAMS["sine_4"], np.ones(4))
    absent = peers.Peer("absent", peers.PEERS["plain"].prepare, ("no_such_module",))
    with pytest.raises(peers.NoTwin, match="not installed: no_such_module"):
        peers.contestant(absent, PROGRAMS["sine_4"])


def test_own_failures_are_not_hidden():
    def broken(program):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        peers.contestant(peers.Peer("broken", broken), PROGRAMS["sine_4"])


def test_formulas_run_over_another_library():
    class Library:
        sin = staticmethod(lambda a: 10 * a)

    assert under(programs.sine, Library)(2.0) == 42.0


def test_command_line(capsys, tmp_path):
    file = tmp_path / "ratios.json"
    got = command.main(["sine_4", "--peers", "ccompile", "--seconds", "0", "--json", str(file)])
    assert list(got["sine_4"]) == ["plain", "ccompile"] and got["sine_4"]["plain"].median == 1.0
    assert "ccompile" in capsys.readouterr().out
    tree = json.loads(file.read_text())
    assert tree["ratios"]["sine_4"]["ccompile"]["median"] == got["sine_4"]["ccompile"].median
    with pytest.raises(SystemExit):
        command.main(["no_such_program"])
    assert "no no_such_program; there are sine_4" in capsys.readouterr().err
