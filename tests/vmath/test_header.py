"""The header needs no header, and its generated parts are what the generator makes."""

import pathlib
import subprocess
import sys

import pytest

from tests.vmath.vmtest import CFLAGS, ROOT, VARIANTS, variants


@pytest.mark.parametrize("variant", ["plain-w4", variants()[-1]])
def test_no_other_header_is_needed(variant: str, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "a.c"
    source.write_text("""
        #include "kern/vmath.h"
        void f(double *p);
        void f(double *p)
        {
            *(vm_f64 *)p = vm_pow_f64(vm_log_f64(*(vm_f64 *)p), vm_sin_f64(*(vm_f64 *)p));
        }
    """)
    subprocess.run(["cc", *CFLAGS, *VARIANTS[variant][0], "-nostdinc", "-Wshadow", "-Wvla",
                    "-Wstrict-prototypes", "-Wmissing-prototypes", f"-I{ROOT / 'csrc'}", "-c",
                    "-o", str(tmp_path / "a.o"), str(source)], check=True)
    undefined = subprocess.run(["nm", "-u", str(tmp_path / "a.o")], check=True,
                               capture_output=True, text=True).stdout
    assert not [name for name in undefined.split() if name not in ("U", "_GLOBAL_OFFSET_TABLE_")]


def test_generated_headers_are_up_to_date(tmp_path: pathlib.Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts/vmath/generate.py"), str(tmp_path)],
                   check=True)
    for name in ("vmath_coef.h", "vmath_tables.h"):
        assert (tmp_path / name).read_text() == (ROOT / "csrc/kern" / name).read_text(), name
