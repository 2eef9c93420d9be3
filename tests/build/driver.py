"""csrc/build/ as a program: compile tests/build/driver.c once per session and run it."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build(folder: pathlib.Path) -> pathlib.Path:
    """Compile the driver into `folder`."""
    program = folder / "driver"
    sources = [ROOT / "tests/build/driver.c"]
    for layer in ("base", "build"):
        sources += sorted((ROOT / "csrc" / layer).glob("*.c"))
    flags = ["-std=c11", "-O1", "-w", "-o", str(program)]
    command = ["cc", *flags, *map(str, sources), "-lm", "-ldl", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def run(program: pathlib.Path, *words: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the driver; an empty value in `environ` removes the variable."""
    env = {key: value for key, value in {**os.environ, **environ}.items() if value}
    command = [str(program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
