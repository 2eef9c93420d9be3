"""CCOMPILE_DUMP: each stage says something about the function, where it was asked to."""

import numpy as np
import pytest

import ccompile
from ccompile import debug


def scaled(a, b):
    return np.sin(a) * b + 1


def record():
    ccompile.compile(scaled)(np.ones(5), np.ones(5))


SAYS = {
    "tape": "LAUNCH",
    "guard": "argument 'a' is float64[n]",
    "ir": "after cse",
    "plan": "loop",
    "c": "vop_sin_f64",
}


@pytest.mark.parametrize("stage", SAYS)
def test_stage_on_stderr(stage, capsys):
    with debug.dump(stage):
        record()
    err = capsys.readouterr().err
    head, _, text = err.partition("\n")
    assert head.startswith(f"== {stage} ") and f": scaled ({__file__}:" in head
    assert SAYS[stage] in text


def test_every_stage_is_listed():
    from ccompile import _core
    assert [row[0] for row in _core.switch_rows()["dump"]] == list(SAYS)


def test_one_pass(capsys):
    with debug.dump("ir:cse"):
        record()
    err = capsys.readouterr().err
    assert "after cse" in err and "after dce" not in err


def test_nothing_without_the_option(capsys):
    record()
    assert capsys.readouterr().err == ""


def test_python_without_arrays_has_only_a_tape(capsys):
    with debug.dump("tape,ir,plan,c"):
        ccompile.compile(lambda n: n * 2 + 1)(3)
    assert capsys.readouterr().err.count("== ") == 1


def test_files(tmp_path, capsys):
    with debug.dump("all", str(tmp_path)):
        record()
    assert capsys.readouterr().err == ""
    names = sorted(p.name.rsplit("-", 1)[1] for p in tmp_path.iterdir())
    assert names == sorted(f"{stage}.txt" for stage in SAYS)
    for path in tmp_path.iterdir():
        assert SAYS[path.stem.rsplit("-", 1)[1]] in path.read_text()


def test_a_folder_that_is_not_there_is_said(tmp_path, capsys):
    with debug.dump("tape", str(tmp_path / "gone")):
        record()
    err = capsys.readouterr().err
    assert err.startswith("ccompile dump: ") and "No such file" in err
