"""Options of the process: what exists, what holds, and how to change it.

    >>> from ccompile import config
    >>> config.get("unroll")
    16
    >>> with config.override(logs="graph_breaks"):
    ...     pass

The table is csrc/base/config.def; each option has an environment variable, read when ccompile is
imported. Options marked callable can also be given to one function: `compile(f, options={...})`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from . import _core

Value = bool | int | str


@dataclass(frozen=True)
class Option:
    """A row of the table of options."""

    name: str
    env: str
    type: str  # bool, int, size, text, logs, dump or stress
    default: str
    callable: bool  # also an option of one callable
    doc: str


def options() -> dict[str, Option]:
    """Every option by name."""
    return {row[0]: Option(*row) for row in _core.config_rows()}


def get(name: str) -> Value:
    """The option's value: bool, int, or str for texts and lists. ValueError for no such name."""
    text = _core.config_get(name)
    kind = options()[name].type
    if kind == "bool":
        return text == "1"
    return int(text) if kind in ("int", "size") else text


def set(name: str, value: Value) -> None:
    """Set an option of the process; ValueError says what is wrong with the value."""
    _core.config_set(name, str(int(value)) if isinstance(value, bool) else str(value))


@contextmanager
def override(**values: Value) -> Iterator[None]:
    """Options for the time of a `with` block. A wrong name or value changes none of them."""
    before = {name: _core.config_get(name) for name in values}
    try:
        for name, value in values.items():
            set(name, value)
        yield
    finally:
        for name, text in before.items():
            _core.config_set(name, text)
