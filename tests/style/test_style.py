"""The source keeps its rules, and each rule's check can fail."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from ccompile import _core
from tests.style import checks

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_repository(check):
    assert "\n".join(check(ROOT)) == ""


def head(name, text=""):
    return f"/* {name} - seeded. */\n{text}"


LONG = "int\ncc_long(void)\n{\n" + "    ;\n" * 80 + "}\n"
SEEDS = [  # check, file, text, what the problem says
    ("layers", "csrc/ir/a.c", '#include "../pass/pass.h"\n', ":1: ir/ may not include pass/"),
    ("layers", "csrc/exec/a.c", '#include "trace/rec.h"\n', ":1: exec/ may not include trace/"),
    ("layers", "csrc/base/a.h", "\n#include <Python.h>\n", ":2: base/ must not know Python.h"),
    ("layers", "csrc/kern/a.c", "#include <numpy/arrayobject.h>\n", "kern/ must not know numpy/"),
    ("layers", "csrc/trace/a.c", '#include "internal/pycore_frame.h"\n', "comes through py/py.h"),
    ("layers", "csrc/ir/a.def", '#  include "../core/state.h"\n', "ir/ may not include core/"),
    ("versions", "csrc/core/a.c", "#if PY_VERSION_HEX > 3\n#endif\n", ":1: a test of the Python"),
    ("versions", "csrc/exec/a.h", "\nint a = PY_MINOR_VERSION;\n", ":2: a test of the Python"),
    ("statics", "csrc/ir/a.c", "static int count;\n", ":1: a variable with static life: int count"),
    ("statics", "csrc/ir/a.c", "int f(void)\n{\n    static long n = 1;\n}\n", ":3: a variable"),
    ("statics", "csrc/ir/a.c", "static const char *name = 0;\n", "static life: const char *name"),
    ("statics", "csrc/ir/a.c", "static const char *names[] = {0};\n", "static life"),
    ("statics", "csrc/ir/a.c", "static void (*hook)(void);\n", "static life: void"),
    ("statics", "csrc/ir/a.c", "static struct { int a; } one;\n", "static life: struct"),
    ("statics", "csrc/ir/a.c", "static _Thread_local int a;\n", "static life: _Thread_local"),
    ("statics", "csrc/ir/a.c", "int shared = 3;\n", ":1: a global variable: int"),
    ("statics", "csrc/ir/a.c", "struct S { int a; } shared;\n", ":1: a global variable: struct"),
    ("names", "csrc/gen/a.c", "int\nmake(void)\n{\n}\n", ":2: make() does not start with gen_"),
    ("names", "csrc/trace/a.c", "int trace_x(int a)\n{\n}\n", "trace_x() does not start with rec_"),
    ("sizes", "csrc/ir/a.c", LONG, ":2: cc_long() has 83 lines"),
    ("sizes", "csrc/ir/a.c", "\n" * 1201, ": 1201 lines, the cap is 1200"),
    ("sizes", "csrc/ir/a.c", "int a" + "a" * 99 + ";\n", ":1: 105 columns, the cap is 100"),
    ("sizes", "csrc/ir/a.c", "/*" + "-" * 130 + "*/\n", ":1: 134 columns, the cap is 132"),
    ("calls", "csrc/core/a.c", "int f(void)\n{\n    abort();\n}\n", ":3: calls abort()"),
    ("calls", "csrc/ir/a.c", "void *p = malloc (3);\n", ":1: calls malloc()"),
    ("calls", "csrc/gen/a.c", "int i = printf(0);\n", ":1: calls printf()"),
    ("heads", "csrc/ir/a.h", "#ifndef A\n#endif\n", ":1: does not start with"),
    ("heads", "csrc/ir/a.c", "int a(void);\n", ":1: does not start with"),
    ("marks", "csrc/ir/a.c", "\n/* TODO */\n", "csrc/ir/a.c:2: TODO"),
    ("marks", "tests/a/test_a.py", "# FIXME later\n", "tests/a/test_a.py:1: FIXME"),
    ("test_folders", "tests/a/test_a.py", "", "tests/a/: has tests and no __init__.py"),
]


@pytest.mark.parametrize("name, file, text, problem", SEEDS)
def test_seeded_violation_is_found(tmp_path, name, file, text, problem):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = getattr(checks, f"check_{name}")(tmp_path)
    assert len(found) == 1 and problem in found[0] and file.rsplit("/", 1)[0] in found[0]


GOOD = """\
/* ir/good.c - what looks like a violation to a simple search and is none. */
#include "base/mem.h"
#include <stdlib.h>
#define STATE \\
    static int hidden;
typedef struct { int malloc; } Box;
typedef enum { ONE, TWO } Which;
enum { LIMIT = 3 };
struct Tag;
struct Tag { int a; };
extern const int cc_known;
const int cc_table[] = {1, 2};
static const char *const names[] = {"a{", "static int b;", "}"};
static const struct { int a; } row[] = {{'{'}, {'"'}};
static const Box one = {1};
static int (*const step[])(int) = {0};
_Static_assert(sizeof(int) == 4, "x");
static inline int square(int a) { return a * a; }
/* static int in_a_comment; abort(); PY_VERSION_HEX */
__attribute__((noinline)) bool
cc_good(const Box *box, int (*call)(int)) __attribute__((cold));
__attribute__((format(printf, 1, 2))) static int
say(const char *text, ...)
{
    if (text) { int malloc = LIMIT; (void)malloc; }
    return 0;
}
static int
two_ways(void)
{
    int list[] = {
#if defined(__APPLE__)
        1};
#elif defined(__linux__)
        2};
#else
        3};
#endif
    return list[0];
}
int
cc_call(const Box *box, int (*call)(int))
{
    return box->malloc ? call(square(0)) : box->exit(0);
}
"""


def test_good_code_is_quiet(tmp_path):
    path = tmp_path / "csrc" / "ir" / "good.c"
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    assert [line for check in checks.CHECKS for line in check(tmp_path)] == []


def test_exceptions_are_used():
    """A listed exception that nothing needs any more is removed."""
    names = {name for name, _ in checks.files(ROOT)}
    exceptions = [*checks.STATICS, *checks.CALLS, *checks.LONG_FILES]
    exceptions += [key.split(":")[0] for key in checks.LONG_FUNCTIONS]
    layers = {checks.layer_of(name) for name in names}
    gone = [name for name in exceptions if name not in names and checks.layer_of(name) in layers]
    assert gone == []


def test_layers_are_those_of_the_build():
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    assert f'LAYERS = "{" ".join(checks.SEES)}".split()' in text
    makefile = (ROOT / "tests" / "c" / "ctest.mk").read_text(encoding="utf-8")
    assert f"LAYERS := {' '.join(checks.PURE)}\n" in makefile


needs_nm = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("nm") is None, reason="needs GNU nm"
)


@needs_nm
def test_extension_shows_one_symbol():
    assert checks.check_symbols(pathlib.Path(_core.__file__)) == []


@needs_nm
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_second_symbol_is_found(tmp_path):
    source = tmp_path / "two.c"
    source.write_text("int PyInit__core(void) { return 0; }\nint cc_leaked(void) { return 0; }\n")
    library = tmp_path / "two.so"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    assert checks.check_symbols(library) == ["two.so: shows cc_leaked"]
