"""python -m ccompile.cache on directories that the C side has written."""

import json
import os
import subprocess
import sys
import time

import pytest

from ccompile import cache
from tests.build.driver import ROOT, run


@pytest.fixture
def filled(driver, tmp_path):
    """A cache with three entries of each kind."""
    path = tmp_path / "cache"
    assert run(driver, path, "put", "one", "two", "three").returncode == 0
    return path


def entry(path, kind="o"):
    """Some file of this kind."""
    return next(item for item in sorted(path.iterdir()) if item.name.startswith(kind + "-"))


def age(path, seconds):
    when = time.time() - seconds
    os.utime(path, (when, when))


def test_info_counts_what_c_wrote(filled):
    what = cache.info(str(filled), verify=True)
    assert what.files == {"objects": 3, "plans": 3, "compilers": 3}
    payload = len("one" + "two" + "three")
    assert what.bytes == {kind: 3 * 96 + payload for kind in what.files}
    assert what.damaged == [] and what.leftovers == 0
    assert abs(what.oldest - time.time()) < 60


@pytest.mark.parametrize("at", [0, 8, 12, 16, 24, 32, 63, 64, 95, 96, 98])
def test_verify_finds_each_damaged_field(filled, at):
    file = entry(filled)
    data = bytearray(file.read_bytes())
    data[at] ^= 4
    file.write_bytes(data)
    assert cache.info(str(filled), verify=True).damaged == [file.name]
    assert cache.info(str(filled)).damaged is None


def test_verify_agrees_with_c(driver, filled):
    entry(filled).write_bytes(entry(filled).read_bytes()[:-1])
    assert len(cache.info(str(filled), verify=True).damaged) == 1
    got = run(driver, filled, "get", "one", "two", "three").stdout.split()
    assert sorted(got) == ["hit", "hit", "miss"]
    assert cache.info(str(filled), verify=True).damaged == []  # C has removed it
    assert cache.info(str(filled)).files["objects"] == 2


def test_untrusted_files_are_damaged(filled):
    entry(filled, "o").chmod(0o620)
    moved = entry(filled, "p").rename(filled.parent / "moved")
    entry(filled, "c").rename(filled / ("p-" + "0" * 64))
    (filled / ("c-" + "1" * 64)).symlink_to(moved)
    os.mkfifo(filled / ("o-" + "2" * 64))
    assert len(cache.info(str(filled), verify=True).damaged) == 4


def test_clear_removes_only_our_files(driver, filled):
    foreign = filled / "notes.txt"
    foreign.write_text("mine")
    work = filled / "w-abc123"
    work.mkdir()
    (work / "u0.c").write_text("")
    fresh = filled / "t-1-2f"
    fresh.write_text("")
    assert cache.clear(str(filled)) == 9
    assert foreign.exists() and work.exists() and fresh.exists()
    for path in (work, fresh):
        age(path, 4000)
    assert cache.info(str(filled)).leftovers == 2
    assert cache.clear(str(filled)) == 0
    assert not work.exists() and not fresh.exists() and foreign.exists()
    assert run(driver, filled, "get", "one").stdout == "miss\n"


def test_clear_older(filled):
    old = entry(filled)
    age(old, 3 * 86400)
    assert cache.clear(str(filled), older=2) == 1 and not old.exists()
    assert sum(cache.info(str(filled)).files.values()) == 8


def test_a_missing_cache_is_empty(tmp_path):
    path = str(tmp_path / "none")
    what = cache.info(path, verify=True)
    assert sum(what.files.values()) == 0 and what.oldest is None and what.damaged == []
    assert cache.clear(path) == 0 and not os.path.exists(path)


def test_unsafe_directories_are_left_alone(filled, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(filled)
    for path in (link, entry(filled)):
        with pytest.raises(cache.UnsafeError, match="symbolic link"):
            cache.clear(str(path))
    filled.chmod(0o755)
    with pytest.raises(cache.UnsafeError, match="mode 755"):
        cache.info(str(filled))
    if os.geteuid() == 0:
        filled.chmod(0o700)
        os.chown(filled, 12345, -1)
        with pytest.raises(cache.UnsafeError, match="another user"):
            cache.clear(str(filled))
    assert len(list(filled.iterdir())) >= 9


@pytest.mark.parametrize(
    "environ, want",
    [
        ({"CCOMPILE_CACHE_DIR": "{}/a/"}, "{}/a"),
        ({"CCOMPILE_CACHE_DIR": "rel", "XDG_CACHE_HOME": "{}/x"}, "{}/rel"),
        ({"XDG_CACHE_HOME": "{}/x", "HOME": "{}/h"}, "{}/x/ccompile"),
        ({"XDG_CACHE_HOME": "x", "HOME": "{}/h"}, "{}/h/.cache/ccompile"),
        ({}, ""),
    ],
)
def test_the_directory_is_the_one_of_c(driver, tmp_path, monkeypatch, environ, want):
    monkeypatch.chdir(tmp_path)
    for name in ("CCOMPILE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    assert cache.directory() == want.format(tmp_path)
    assert run(driver, "", "put", "one").returncode == 0
    if want:
        assert cache.info().files["objects"] == 1


def tool(*words, **environ):
    command = [sys.executable, "-m", "ccompile.cache", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **environ}
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT / "tests")


def test_command_line(filled):
    place = {"CCOMPILE_CACHE_DIR": str(filled)}
    shown = tool("info", "--verify", **place)
    assert shown.returncode == 0 and shown.stderr == ""
    assert f"directory  {filled}" in shown.stdout and "objects    3 files, 299 B" in shown.stdout
    assert "damaged    0" in shown.stdout
    assert json.loads(tool("--dir", str(filled), "info", "--json").stdout)["files"]["plans"] == 3
    entry(filled).write_bytes(b"")
    assert tool("info", "--verify", **place).returncode == 1
    assert tool("clear", **place).stdout == "9 files removed\n"
    assert "0 files, 0 B" in tool("info", **place).stdout
    filled.chmod(0o777)
    refused = tool("clear", **place)
    assert refused.returncode == 1 and "mode 777" in refused.stderr
