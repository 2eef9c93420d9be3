"""The micro-kernels' object code: an FMA for each product, and nothing spilled inside the loop."""

import pathlib
import platform
import re
import shutil
import subprocess

import pytest

KERN = pathlib.Path(__file__).resolve().parents[2] / "csrc" / "kern"
CC = shutil.which("gcc")
OBJDUMP = shutil.which("objdump")

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or CC is None or OBJDUMP is None,
    reason="needs gcc and objdump for x86-64",
)

TABLE = '#include "ukr.h"\nconst UkrFn *ukr_table(void);\n' + (
    "const UkrFn *ukr_table(void) { return ukr_fn[0]; }\n"
)
ROWS = {"x86-64": 6, "x86-64-v3": 6, "x86-64-v4": 14}


def functions(tmp_path: pathlib.Path, march: str, double: bool) -> dict[str, list[str]]:
    """Instructions of each micro-kernel, by name."""
    source, obj = tmp_path / "table.c", tmp_path / "table.o"
    source.write_text(TABLE)
    flags = ["-std=gnu11", "-O2", "-ffp-contract=off", f"-march={march}", f"-I{KERN}"]
    flags += ["-DKERN_F64"] if double else []
    subprocess.run([CC, *flags, "-c", str(source), "-o", str(obj)], check=True)
    dump = [OBJDUMP, "-d", "--no-show-raw-insn", str(obj)]
    text = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    found = re.findall(r"<(ukr_\d+x\d+)>:\n(.*?)(?:\n\n|\Z)", text, re.S)
    return {name: body.splitlines() for name, body in found}


def inner_loop(body: list[str]) -> list[str]:
    """The shortest piece of code between a conditional jump backwards and its target."""
    address = [int(line.split(":", 1)[0], 16) for line in body]
    loops = []
    for i, line in enumerate(body):
        jump = re.search(r"\bj(?!mp)\w+\s+([0-9a-f]+) ", line)
        if jump and int(jump[1], 16) in address[: i + 1]:
            loops.append(body[address.index(int(jump[1], 16)) : i + 1])
    return min(loops, key=len)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("march", list(ROWS))
def test_inner_loops(tmp_path, march, double):
    kernels = functions(tmp_path, march, double)
    assert len(kernels) == 2 * ROWS[march]
    for name, body in kernels.items():
        rows, vectors = map(int, name[4:].split("x"))
        loop = inner_loop(body)
        product = r"\bmulp[sd]\b" if march == "x86-64" else r"\bvfmadd\d+p[sd]\b"
        assert len(re.findall(product, "\n".join(loop))) == rows * vectors, name
        assert not [line for line in loop if re.search(r"\(%rsp|\(%rbp", line)], name


@pytest.mark.parametrize("march", ["x86-64-v3", "x86-64-v4"])
def test_no_product_outside_an_fma(tmp_path, march):
    for name, body in functions(tmp_path, march, False).items():
        assert not re.search(r"\bvmulp[sd]\b", "\n".join(body)), name
