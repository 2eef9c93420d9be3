"""Look inside: dumps of each stage, and the list of all switches (`python -m ccompile.debug`)."""

import textwrap
from contextlib import AbstractContextManager

from . import _core, config


def dump(items: str, folder: str = "") -> AbstractContextManager[None]:
    """Print the stages named in `items` during a `with` block, as CCOMPILE_DUMP does.

    `items` is a comma list such as "tape,ir:cse"; `folder` "" means stderr. ValueError for an
    item that does not exist.
    """
    return config.override(dump=items, dump_dir=folder)


def describe() -> str:
    """Every option and every item of the comma lists, one a line."""
    lines = ["Options (environment variable, default)"]
    for option in config.options().values():
        note = f"{option.env or 'no variable'}, {option.default or 'empty'}"
        lines += _entry(option.name, note, option.doc)
    for name, rows in _core.switch_rows().items():
        what = "rules for stress=drop:..." if name == "drop" else f"items of the list {name}"
        lines += ["", what.capitalize()]
        for item, argument, doc in rows:
            lines += _entry(item + (f":{argument.upper()}" if argument else ""), "", doc)
    return "\n".join(lines) + "\n"


def _entry(name: str, note: str, doc: str) -> list[str]:
    head = f"  {name:<16} "
    text = f"{doc} ({note})" if note else doc
    return textwrap.wrap(text, 98, initial_indent=head, subsequent_indent=" " * len(head))


if __name__ == "__main__":
    print(describe(), end="")
