"""Build the test-only extension over csrc/py and hand it to the tests."""

import dis
import gc
import importlib.util
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-g",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wvla",
    "-Werror",
]


def build_extension(folder):
    """Compile _pytest_frames for the running Python into `folder`; path of the module."""
    version = f"v{sys.version_info.major}{sys.version_info.minor}"
    sources = [
        *sorted((ROOT / "csrc/py").glob("*.c")),
        *sorted((ROOT / "csrc/py" / version).glob("*.c")),
        ROOT / "tests/py/frames_ext.c",
    ]
    target = Path(folder) / ("_pytest_frames" + sysconfig.get_config_var("EXT_SUFFIX"))
    command = [
        os.environ.get("CC", "gcc"),
        *FLAGS,
        *os.environ.get("CCOMPILE_TEST_CFLAGS", "").split(),
        "-shared",
        f"-I{ROOT / 'csrc'}",
        f"-I{sysconfig.get_path('include')}",
        *map(str, sources),
        "-o",
        str(target),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.exit(f"the test extension does not compile:\n{done.stderr}", 1)
    return target


@pytest.fixture(scope="session")
def ext(tmp_path_factory):
    """The extension module."""
    target = build_extension(tmp_path_factory.mktemp("frames"))
    spec = importlib.util.spec_from_file_location("_pytest_frames", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Units:
    """Code units of a function, found by instruction name."""

    def __init__(self, func):
        self.list = list(dis.get_instructions(func))

    def at(self, name, nth=0):
        """Unit of the n-th instruction `name`."""
        return [i.offset // 2 for i in self.list if i.opname == name][nth]

    def after(self, name, nth=0):
        """Unit of the instruction that follows it."""
        offset = self.at(name, nth) * 2
        return next(i.offset // 2 for i in self.list if i.offset > offset)


@pytest.fixture(scope="session")
def units():
    """Units(func)."""
    return Units


def make_wide():
    """A function whose frame is larger than a chunk of the data stack, and its slots for x."""
    names = [f"v{i}" for i in range(6000)]
    scope = {}
    exec("def wide(x):\n  " + "\n  ".join(f"{n} = x" for n in names) + "\n  return x", scope)
    return scope["wide"]


@pytest.fixture(scope="session")
def wide():
    """The function, compiled once."""
    return make_wide()


def growth(action, rounds=4, repeats=50):
    """Fewest blocks that `repeats` runs of `action` leave behind, over some rounds."""
    action()
    found = []
    for _ in range(rounds):
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(repeats):
            action()
        gc.collect()
        found.append(sys.getallocatedblocks() - before)
    return min(found)


@pytest.fixture
def no_leak():
    """no_leak(action): running it often keeps the number of blocks."""

    def check(action):
        assert growth(action) <= 2

    return check


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run a test and see that it leaves the data stack, the frame chain and the hook alone."""
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    ext = arguments.get("ext")
    if ext is None:
        return None
    before = ext.state()
    pyfuncitem.obj(**arguments)
    assert ext.state() == before
    assert ext.evaluator_name() == "default"
    return True
