"""Faults around the compiler and the cache, each against a whole process of csrc/build/."""

import os
import random
import resource
import signal
import subprocess
import time

import pytest

from ccompile import cache
from tests.build.driver import run


def start(driver, *words, **more):
    command = [str(driver), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more)


def compiled(driver, path, salt, count, **environ):
    """Make the kernels in `path`; how many were compiled."""
    done = run(driver, path, "make", salt, count, **environ)
    assert done.returncode == 0, done.stdout
    return int(done.stdout.split()[0])


def test_killed_at_any_moment(driver, tmp_path):
    path, choose = tmp_path / "cache", random.Random(7)
    compiled(driver, path, 0, 1)
    for round_ in range(8):
        child = start(driver, path, "make", 10 + round_, 3)
        time.sleep(choose.uniform(0.0, 0.3))
        child.kill()
        child.wait()
        child.stdout.close()
        assert cache.info(str(path), verify=True).damaged == []
        compiled(driver, path, 10 + round_, 3)  # no lock is left behind
        assert compiled(driver, path, 10 + round_, 3) == 0


def test_many_processes_compile_once(driver, tmp_path):
    path = tmp_path / "cache"
    compiled(driver, path, 0, 1)
    children = [start(driver, path, "make", 5, 4) for _ in range(4)]
    outputs = [child.communicate(timeout=120)[0] for child in children]
    assert [child.returncode for child in children] == [0] * 4
    assert sum(int(text.split()[0]) for text in outputs) == 4
    assert all("failed=0 damaged=0" in text for text in outputs)


@pytest.mark.parametrize("how", ["garbage", "empty", "gone", "unreadable", "swapped"])
def test_damaged_files_are_made_again(driver, tmp_path, how):
    path = tmp_path / "cache"
    assert compiled(driver, path, 1, 3) == 3
    files = sorted(path.glob("[ocp]-*"))
    for number, file in enumerate(files):
        if how == "garbage":
            file.write_bytes(b"not a library")
        elif how == "empty":
            file.write_bytes(b"")
        elif how == "gone":
            file.unlink()
        elif how == "unreadable":
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(files[(number + 1) % len(files)].read_bytes())
    if how == "swapped":  # all files now hold the bytes of the next one, the last of the first
        assert len(cache.info(str(path), verify=True).damaged) >= len(files) - 1
    compiled(driver, path, 1, 3)
    if how == "unreadable":
        for file in path.iterdir():
            if file.is_dir():
                file.rmdir()
    compiled(driver, path, 1, 3)
    assert compiled(driver, path, 1, 3) == 0
    assert cache.info(str(path), verify=True).damaged == []


def test_a_plain_file_in_the_way(driver, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    environ = {"CCOMPILE_CACHE_DIR": f"{blocked}/sub", "HOME": str(blocked)}
    done = run(driver, "", "make", 1, 2, TMPDIR=str(tmp_path), **environ)
    assert done.returncode == 0 and done.stdout.startswith("2 CACHE_UNSAFE")
    assert sorted(os.listdir(tmp_path)) == ["file"]  # the private cache is gone again


def test_no_compiler(driver, tmp_path):
    for environ in ({"CC": "/nonexistent"}, {"CC": "", "PATH": "/nonexistent"}, {"CC": "false"}):
        done = run(driver, tmp_path / "cache", "make", 1, 1, **environ)
        assert done.returncode == 1 and done.stdout.startswith("NO_COMPILER")
        assert done.stderr == ""


def limits(**named):
    def set_limits():
        for name, value in named.items():
            kind = getattr(resource, name)
            resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))

    return set_limits


@pytest.mark.parametrize(
    "named", [{"RLIMIT_NOFILE": number} for number in (6, 9, 12, 14, 16)] + [{"RLIMIT_FSIZE": 3000}]
)
def test_scarce_resources(driver, tmp_path, named):
    """It works or says why; never a crash, a hang or a bad file."""
    path = tmp_path / "cache"
    compiled(driver, path, 1, 1)
    child = start(driver, path, "make", 2, 3, preexec_fn=limits(**named))
    text = child.communicate(timeout=120)[0]
    assert child.returncode in (0, 1), text
    last = text.splitlines()[-1]
    assert child.returncode == 0 or last.startswith(("COMPILE_FAILED", "LOAD_FAILED", "NO_COMP"))
    assert cache.info(str(path), verify=True).damaged == []
    compiled(driver, path, 2, 3)


def test_signals_do_not_disturb(driver, tmp_path):
    """EINTR everywhere: stop and continue the process while it works."""
    child = start(driver, tmp_path / "cache", "make", 3, 4)
    while child.poll() is None:
        child.send_signal(signal.SIGSTOP)
        child.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    assert child.communicate()[0].startswith("4 NONE") and child.returncode == 0
