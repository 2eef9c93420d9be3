"""Rules about the source text. Each check takes the root of a tree, returns problems as lines.

test_style.py runs every check over the repository and over a seeded violation, so a check that can
no longer fail fails itself. Exceptions are listed here, each with its reason.
"""

import bisect
import functools
import pathlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

SEES = {  # layer: the layers it may include besides itself
    "base": "",
    "ir": "base",
    "pass": "base ir",
    "gen": "base ir pass rt kern",
    "rt": "base ir pass gen kern",
    "kern": "base rt",
    "build": "base rt",
    "py": "base",
    "front": "base ir pass gen rt kern build py tape",
    "tape": "base ir py",
    "trace": "base ir py front tape",
    "exec": "base rt kern py front tape",
    "core": "base ir pass gen rt kern build py front tape trace exec",
}
PURE = ["base", "ir", "pass", "gen", "rt", "kern", "build"]
PREFIX = {"base": "cc_", "ir": "cc_", "trace": "rec_"}  # other layers: their own name
PYTHON_HEADERS = re.compile(r"(Python\.h|numpy/.*|internal/.*|cpython/.*|frameobject\.h)$")

# file: why it has state of its own
STATICS = {
    "base/mem.c": "the switch that lets the tests fail an allocation",
    "rt/team.c": "the one pool of threads of the process",
    "py/common.c": "the hook of PEP 523 belongs to the process and gets no argument of ours",
    "front/numpy.c": "NumPy's own functions, types and error states, found once at import",
    "tape/call.c": "interned names and the END object, made once at import",
}
# file: functions of the C library that it may call
CALLS = {
    "base/mem.c": "realloc calloc free",  # the door to malloc
}
BANNED = (
    "abort exit _exit quick_exit longjmp setjmp siglongjmp printf fprintf vprintf puts putchar "
    "system popen malloc calloc realloc free strdup strndup asprintf alloca gets"
).split()
# file:function: why it is longer than the cap (a switch that only dispatches, a table in code form)
LONG_FUNCTIONS: dict[str, str] = {"tape/call.c:tape_call": "a switch that only dispatches"}
LONG_FILES: dict[str, str] = {}
MAX_LINES, MAX_FUNCTION, MAX_COLUMNS = 1200, 80, 100
MAX_COMMENT = 132  # a line of comment, or a comment behind a declaration


# -- Reading C ----------------------------------------------------------------

_COMMENT = r"/\*.*?\*/|//[^\n]*"
_TEXT = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_SKIP = re.compile(f"{_COMMENT}|{_TEXT}", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)


def _blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def without_comments(text: str) -> str:
    """C text with comments blanked."""
    return _SKIP.sub(lambda match: _blank(match) if match[0][0] == "/" else match[0], text)


def plain(text: str) -> str:
    """C text with comments, strings and characters blanked; offsets and lines stay."""
    return _SKIP.sub(_blank, text)


def code(text: str) -> str:
    """`plain` without preprocessor directives."""
    return _DIRECTIVE.sub(_blank, plain(text))


def one_branch(text: str) -> str:
    """C text with every `#else` and `#elif` part blanked, so that braces pair up."""
    lines = []
    taken: list[bool] = []  # per open #if: is its first part the current one?
    for line in text.splitlines(keepends=True):
        word = re.match(r"\s*#\s*(if|el|endif)", line)
        if word and word[1] == "if":
            taken.append(True)
        elif word and taken and word[1] == "el":
            taken[-1] = False
        lines.append(line if all(taken) else re.sub(r"[^\n]", " ", line))
        if word and taken and word[1] == "endif":
            taken.pop()
    return "".join(lines)


@dataclass
class Top:
    """A definition or declaration at file scope: its text, without the body of a function.

    A function starts at the line of its name: a macro call without `;` may stand before it.
    """

    line: int
    last: int
    text: str
    function: str  # name when it is a function definition, else ""


def tops(text: str) -> Iterator[Top]:
    """The top-level items of C text."""
    text = code(one_branch(plain(text)))
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    line_of = functools.partial(bisect.bisect_right, starts)
    depth = begin = body = 0
    for match in re.finditer(r"[{};]", text):
        at, mark = match.start(), match[0]
        if mark == "{":
            if depth == 0:
                body = at
            depth += 1
            continue
        if mark == "}":
            depth -= 1
            head = text[begin:body]
            if depth or not _is_function(head):
                continue
            name = _function_name(head)
            line = line_of(begin + head.rindex(name))
            yield Top(line, line_of(at), head.strip(), name)
            begin = at + 1
        elif depth == 0:
            item = text[begin:at]
            lead = len(item) - len(item.lstrip())
            if item.strip():
                yield Top(line_of(begin + lead), line_of(at), item.strip(), "")
            begin = at + 1


def _without_attributes(head: str) -> str:
    head = re.sub(r"\b__extension__\b", " ", head)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", " ", head)


def _is_function(head: str) -> bool:
    return _without_attributes(head).rstrip().endswith(")")


def _function_name(head: str) -> str:
    """The identifier before the last parenthesis group of a function's head."""
    head = _without_attributes(head).rstrip()
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[at], 0)
        if head[at] == "(" and depth == 0:
            name = re.search(r"(\w+)\s*$", head[:at])
            return name[1] if name else ""
    return ""


def files(root: pathlib.Path, pattern: str = "*.[ch]") -> Iterator[tuple[str, str]]:
    """(path below csrc/, text) of the C files of every layer."""
    for path in sorted((root / "csrc").rglob(pattern)):
        name = path.relative_to(root / "csrc").as_posix()
        if name.split("/")[0] in SEES:
            yield name, path.read_text(encoding="utf-8")


def layer_of(name: str) -> str:
    """The layer of a path below csrc/."""
    return name.split("/")[0]


# -- Layers -------------------------------------------------------------------


def check_layers(root: pathlib.Path) -> list[str]:
    """An include goes to the own layer or to one that it may see; Python.h comes through py/."""
    bad = []
    for pattern in ("*.[ch]", "*.def"):
        for name, text in files(root, pattern):
            bad += _check_includes(root / "csrc", name, text)
    return bad


def _check_includes(csrc: pathlib.Path, name: str, text: str) -> list[str]:
    bad = []
    layer = layer_of(name)
    allowed = {layer, *SEES[layer].split()}
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if found is None:
            continue
        target = found[1]
        if PYTHON_HEADERS.match(target) and not (target.startswith("numpy/") and layer == "front"):
            if layer in PURE:
                bad.append(f"csrc/{name}:{number}: {layer}/ must not know {target}")
            elif layer != "py" and not target.startswith("numpy/"):
                bad.append(f"csrc/{name}:{number}: {target} comes through py/py.h")
        where = _layer_of_include(csrc, name, target)
        if where and where not in allowed:
            bad.append(f"csrc/{name}:{number}: {layer}/ may not include {where}/")
    return bad


def _layer_of_include(csrc: pathlib.Path, name: str, target: str) -> str:
    """The layer that an include in csrc/`name` leads to; "" for a system header."""
    for base in (csrc / name).parent, csrc:
        path = (base / target).resolve()
        if path.is_file() and path.is_relative_to(csrc.resolve()):
            return layer_of(path.relative_to(csrc.resolve()).as_posix())
    parts = [part for part in target.split("/") if part != ".."]
    return parts[0] if len(parts) > 1 and parts[0] in SEES else ""


def check_versions(root: pathlib.Path) -> list[str]:
    """Macros of the Python version stand in py/ only."""
    macro = re.compile(r"\bPY_(VERSION_HEX|MINOR_VERSION|MAJOR_VERSION|MICRO_VERSION)\b")
    bad = []
    for pattern in ("*.[ch]", "*.def"):
        for name, text in files(root, pattern):
            if layer_of(name) == "py":
                continue
            for number, line in enumerate(plain(text).splitlines(), 1):
                if macro.search(line):
                    bad.append(f"csrc/{name}:{number}: a test of the Python version outside py/")
    return bad


# -- State --------------------------------------------------------------------


def _is_constant(declaration: str) -> bool:
    """Is the object that this text declares const itself (not only what it points to)?"""
    before = re.split(r"[=\[]", declaration, maxsplit=1)[0]
    return "const" in before[before.rfind("*") + 1 :].split() or (
        "*" not in before and "const" in before.split()
    )


def check_statics(root: pathlib.Path) -> list[str]:
    """No variable with static life outside core/, except the files of STATICS."""
    bad = []
    for name, text in files(root):
        if layer_of(name) == "core" or name in STATICS:
            continue
        cleaned = code(text)
        for match in re.finditer(r"\bstatic\b([^;{(=]*)([;{(=])(\s*\*)?", cleaned):
            if match[2] == "(" and not match[3]:
                continue  # a function
            if match[2] == "{" and re.fullmatch(r"\s*(const\s+)?(struct|union)\s*\w*\s*", match[1]):
                if "const" in match[1].split():
                    continue  # a table of unnamed structs
            elif match[2] != "{" and _is_constant(match[1]):
                continue
            if match[2] == "(" and re.match(r"\s*const\b", cleaned[match.end() :]):
                continue  # a constant pointer to functions
            line = cleaned.count("\n", 0, match.start()) + 1
            bad.append(f"csrc/{name}:{line}: a variable with static life: {match[1].strip()}")
        bad += _globals(name, text)
    return bad


def _globals(name: str, text: str) -> list[str]:
    bad = []
    for top in tops(text):
        head = _without_attributes(top.text).strip()
        words = head.split()
        if top.function or words[0] in {"static", "extern", "typedef", "_Static_assert"}:
            continue
        kind = re.fullmatch(r"(?:const\s+)?(?:struct|union|enum)\b\s*\w*\s*(?:\{.*\})?", head, re.S)
        if kind or "(" in head.split("=")[0].split("{")[0] or _is_constant(head):
            continue
        bad.append(f"csrc/{name}:{top.line}: a global variable: {words[0]} ...")
    return bad


# -- Names, sizes, habits -----------------------------------------------------


def check_names(root: pathlib.Path) -> list[str]:
    """A function that other files can see starts with the prefix of its layer."""
    bad = []
    for name, text in files(root, "*.c"):
        prefix = PREFIX.get(layer_of(name), layer_of(name) + "_")
        for top in tops(text):
            if not top.function or re.search(r"\bstatic\b", top.text):
                continue
            if top.function.isupper() or top.function == "PyInit__core":
                continue  # a macro makes the name; the one door of the module
            if not top.function.startswith(prefix):
                bad.append(f"csrc/{name}:{top.line}: {top.function}() does not start with {prefix}")
    return bad


def check_sizes(root: pathlib.Path) -> list[str]:
    """Files, functions and lines stay below the caps, or are listed with a reason."""
    bad = []
    for name, text in files(root):
        lines = text.splitlines()
        if len(lines) > MAX_LINES and name not in LONG_FILES:
            bad.append(f"csrc/{name}: {len(lines)} lines, the cap is {MAX_LINES}")
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            width, whole = len(line.rstrip()), len(lines[number - 1])
            if width > MAX_COLUMNS or whole > MAX_COMMENT:
                cap = MAX_COLUMNS if width > MAX_COLUMNS else MAX_COMMENT
                bad.append(f"csrc/{name}:{number}: {max(width, whole)} columns, the cap is {cap}")
        for top in tops(text):
            length = top.last - top.line + 1
            if top.function and length > MAX_FUNCTION:
                if f"{name}:{top.function}" not in LONG_FUNCTIONS:
                    bad.append(f"csrc/{name}:{top.line}: {top.function}() has {length} lines")
    return bad


def check_calls(root: pathlib.Path) -> list[str]:
    """No function that ends the process, prints, runs a shell, or allocates past base/mem.h."""
    bad = []
    call = re.compile(rf"(?<![\w.>])({'|'.join(BANNED)})\s*\(")
    for name, text in files(root):
        allowed = CALLS.get(name, "").split()
        cleaned = code(text)
        for match in call.finditer(cleaned):
            if match[1] not in allowed:
                line = cleaned.count("\n", 0, match.start()) + 1
                bad.append(f"csrc/{name}:{line}: calls {match[1]}()")
    return bad


def check_heads(root: pathlib.Path) -> list[str]:
    """A header, and a file without one, starts with `/* layer/file - what it is`."""
    bad = []
    for name, text in files(root):
        twin = (root / "csrc" / name).with_suffix(".h")
        if name.endswith(".c") and twin.is_file():
            continue
        short = name if layer_of(name) != "py" else name.split("/", 1)[1]
        body = re.sub(r"^/\* isa: multi( \*/\n|\n \* )", "/* ", text).replace("/* /* ", "/* ", 1)
        if not body.startswith(("/* " + name, "/* " + short)):
            bad.append(f"csrc/{name}:1: does not start with `/* {name} - `")
    return bad


def check_marks(root: pathlib.Path) -> list[str]:
    """No note that something is left to do: an issue is the place for it."""
    mark = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    folders = ["csrc", "python", "tests", "examples", "scripts", "benchmarks", "docs", ".ci"]
    kinds = {".c", ".h", ".def", ".py", ".pyi", ".md", ".mk", ".golden", ".sh", ""}
    bad = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if name.startswith("tests/style/") or path.suffix not in kinds or not path.is_file():
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if mark.search(line):
                    bad.append(f"{name}:{number}: {mark.search(line)[1]}")
    return bad


def check_test_folders(root: pathlib.Path) -> list[str]:
    """A folder with test files is a package: the names of test files may repeat."""
    folders = sorted({path.parent for path in (root / "tests").rglob("test_*.py")})
    return [
        f"{folder.relative_to(root).as_posix()}/: has tests and no __init__.py"
        for folder in folders
        if not (folder / "__init__.py").is_file()
    ]


CHECKS = [
    check_layers,
    check_versions,
    check_statics,
    check_names,
    check_sizes,
    check_calls,
    check_heads,
    check_marks,
    check_test_folders,
]


# -- The built extension ------------------------------------------------------


def check_symbols(library: pathlib.Path) -> list[str]:
    """The extension shows PyInit__core and nothing else."""
    command = ["nm", "-D", "--defined-only", str(library)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    bad = [f"{library.name}: shows {name}" for name in sorted(names - {"PyInit__core"})]
    return bad if "PyInit__core" in names else [*bad, f"{library.name}: PyInit__core is missing"]
