"""What several tests share: engines, child processes, golden files."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINES = ["plain", "eager", "interp", "c", "eager+stress", "interp+stress", "c+stress"]
STRESS = "exit:3,snap"  # every third guard inside a tape fails, a snapshot before every bytecode


def compiled(function: Callable, engine: str, **options) -> Callable:
    """`function` as the engine runs it: "plain" is itself, else a backend, "+stress" provoked."""
    if engine == "plain":
        return function
    import ccompile

    backend, _, stress = engine.partition("+")
    if stress:
        options["stress"] = STRESS
    return ccompile.compile(function, backend=backend, options=options)


def child(code: str, *args: str, timeout: float = 60, **env: str) -> subprocess.CompletedProcess:
    """Run Python code in a fresh interpreter; `env` adds variables, None removes one."""
    variables = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env={key: value for key, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


# -- Golden files -------------------------------------------------------------


@dataclass
class Case:
    """One block of a golden file: a name and its fields in order."""

    name: str
    fields: dict[str, str] = field(default_factory=dict)


def golden_read(path: pathlib.Path) -> tuple[list[str], list[Case]]:
    """The comment lines at the top and the cases of a golden file.

    A case starts with `=== name`. A field is `key: text`, or `key:` and lines indented by two
    blanks. ValueError, with the line number, for anything else.
    """
    head: list[str] = []
    cases: list[Case] = []
    key = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("=== "):
            cases.append(Case(line[4:].strip()))
            key = ""
        elif not cases and (not line or line.startswith("#")):
            head.append(line)
        elif key and line.startswith("  "):
            cases[-1].fields[key] += line[2:] + "\n"
        elif not line.strip():
            if key:
                cases[-1].fields[key] += "\n"
        elif cases and ":" in line and not line.startswith(" "):
            key, _, text = line.partition(":")
            cases[-1].fields[key] = text.strip()
            key = "" if text.strip() else key
        else:
            raise ValueError(f"{path}:{number}: not a case, a field or an indented line")
    for case in cases:
        case.fields = {key: _trim(text) for key, text in case.fields.items()}
    return head, cases


def golden_write(path: pathlib.Path, head: list[str], cases: list[Case]) -> None:
    """The inverse of `golden_read`."""
    lines = [*head]
    for case in cases:
        lines.append(f"=== {case.name}")
        for key, text in case.fields.items():
            if "\n" not in text and text:
                lines.append(f"{key}: {text}")
                continue
            lines.append(f"{key}:")
            lines += ["  " + line if line else "" for line in text.splitlines()]
        lines.append("")
    path.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


def golden_cases(test_file: str, name: str) -> list[tuple[pathlib.Path, str]]:
    """(file, case name) of every case of the golden file beside a test, for parametrize."""
    path = pathlib.Path(test_file).with_name(name)
    return [(path, case.name) for case in golden_read(path)[1]]


def _trim(text: str) -> str:
    """Without the blank lines that only separate cases."""
    return text.rstrip("\n") + "\n" if "\n" in text else text
