"""Look at and empty the kernel cache.

    python -m ccompile.cache info [--verify] [--json]
    python -m ccompile.cache clear [--older DAYS]

Reads the directory format of csrc/build/cache.h: files `o-`, `p-` and `c-` with a header and a
content hash, locks, and leftovers. Only files of these names are counted or removed, and only in a
directory that belongs to the user alone, as in C. Needs nothing that is compiled.
"""

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence

KINDS = {"o": "objects", "p": "plans", "c": "compilers"}
VERSION = 1
# magic, version, kind, payload size, reserved, key; then the hash of all that and the payload
_HEADER = struct.Struct("=8sIIQQ32s")
_HASH = 32
_ENTRY = re.compile(r"([opc])-([0-9a-f]{64})")
_LEFTOVER = re.compile(r"t-\d+-[0-9a-f]+|w-\w+")
_LEFTOVER_AGE = 3600.0  # a younger one may belong to a process that is at work


class UnsafeError(Exception):
    """The directory cannot be used as a cache; the text says why."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A cache file: its name, kind (a value of KINDS), bytes on disk and last use (Unix time)."""

    name: str
    kind: str
    size: int
    used: float


@dataclasses.dataclass(frozen=True)
class Info:
    """What a cache holds: per kind the number of files and their bytes, and the oldest use."""

    directory: str
    files: dict[str, int]
    bytes: dict[str, int]
    leftovers: int
    oldest: float | None  # Unix time, None = the cache is empty
    damaged: list[str] | None  # names, None = not looked at


def directory() -> str:
    """The directory that the environment names, which need not exist; "" when there is none."""
    ours, xdg, home = (
        os.environ.get(name, "") for name in ("CCOMPILE_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
    )
    if ours:
        path = os.path.join(os.getcwd(), ours)
        return path.rstrip("/") or "/"
    if xdg.startswith("/"):
        return os.path.join(xdg, "ccompile")
    return os.path.join(home, ".cache", "ccompile") if home.startswith("/") else ""


def _open(path: str) -> int:
    """A descriptor of the directory; FileNotFoundError, UnsafeError when it is not ours alone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeError(f"{path}: {error.strerror}, or a symbolic link") from error
    status = os.fstat(fd)
    problem = ""
    if status.st_uid != os.geteuid():
        problem = "owned by another user"
    elif status.st_mode & 0o077:
        problem = f"mode {stat.S_IMODE(status.st_mode):03o} is not 700"
    if problem:
        os.close(fd)
        raise UnsafeError(f"{path}: {problem}")
    return fd


def _entries(fd: int) -> Iterator[Entry]:
    with os.scandir(fd) as listing:
        for item in listing:
            match = _ENTRY.fullmatch(item.name)
            if match is None:
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:  # another process has just removed it
                continue
            yield Entry(item.name, KINDS[match[1]], status.st_size, status.st_mtime)


def _leftovers(fd: int) -> list[str]:
    limit = time.time() - _LEFTOVER_AGE
    found = []
    for name in os.listdir(fd):
        try:
            old = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime < limit
        except FileNotFoundError:
            continue
        if old and _LEFTOVER.fullmatch(name):
            found.append(name)
    return found


def _is_sound(fd: int, name: str) -> bool:
    """Whether the file is one that the C side would load, as far as its name can tell."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(name, flags, dir_fd=fd), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return False
            data = file.read()
    except FileNotFoundError:
        return True  # gone meanwhile: nothing that is damaged
    except OSError:
        return False
    start = _HEADER.size + _HASH
    if len(data) < start or status.st_mode & 0o022:
        return False
    magic, version, kind, size, reserved, key = _HEADER.unpack_from(data)
    head = (magic, version, kind, size, reserved, key.hex())
    want = (b"CCOMPILE", VERSION, list(KINDS).index(name[0]), len(data) - start, 0, name[2:])
    digest = hashlib.sha256(data[: _HEADER.size] + data[start:]).digest()
    return head == want and digest == data[_HEADER.size : start]


def info(path: str | None = None, verify: bool = False) -> Info:
    """Count what the cache at `path` (None: `directory()`) holds; a missing one is empty.

    `verify` reads every file and checks its hash. UnsafeError when the directory is not ours.
    """
    path = directory() if path is None else path
    files, sizes = dict.fromkeys(KINDS.values(), 0), dict.fromkeys(KINDS.values(), 0)
    entries: list[Entry] = []
    leftovers = 0
    damaged: list[str] = []
    try:
        fd = _open(path)
    except FileNotFoundError:
        return Info(path, files, sizes, 0, None, damaged if verify else None)
    try:
        for entry in _entries(fd):
            entries.append(entry)
            files[entry.kind] += 1
            sizes[entry.kind] += entry.size
            if verify and not _is_sound(fd, entry.name):
                damaged.append(entry.name)
        leftovers = len(_leftovers(fd))
    finally:
        os.close(fd)
    oldest = min((entry.used for entry in entries), default=None)
    return Info(path, files, sizes, leftovers, oldest, sorted(damaged) if verify else None)


def clear(path: str | None = None, older: float = 0.0) -> int:
    """Remove the entries not used for `older` days, and old leftovers; returns how many entries.

    Running programs are not disturbed: they have read what they use. UnsafeError as in info().
    """
    path = directory() if path is None else path
    limit = time.time() - older * 86400
    removed = 0
    try:
        fd = _open(path)
    except FileNotFoundError:
        return 0
    try:
        lock = os.open("lock-sweep", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=fd)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # not while another process cleans up
            for entry in _entries(fd):
                if older <= 0 or entry.used < limit:
                    removed += _remove(fd, entry.name)
            for name in _leftovers(fd):
                _remove(fd, name)
        finally:
            os.close(lock)
    finally:
        os.close(fd)
    return removed


def _remove(fd: int, name: str) -> bool:
    """Remove a file, or a directory with its files; False when another process was first."""
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=fd)
            return True
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        try:
            for child in os.listdir(inner):
                os.unlink(child, dir_fd=inner)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return False
    return True


def _size(number: int) -> str:
    value = float(number)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def describe(what: Info) -> str:
    """`what` as text for people."""
    lines = [f"directory  {what.directory or '(none: no CCOMPILE_CACHE_DIR and no HOME)'}"]
    for kind in KINDS.values():
        lines.append(f"{kind:<10} {what.files[kind]} files, {_size(what.bytes[kind])}")
    if what.oldest is not None:
        lines.append(f"oldest use {time.strftime('%Y-%m-%d %H:%M', time.localtime(what.oldest))}")
    if what.leftovers:
        lines.append(f"leftovers  {what.leftovers}, removed by the next clean-up")
    if what.damaged is not None:
        lines.append(f"damaged    {len(what.damaged)}")
        lines += [f"           {name}" for name in what.damaged]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0, or 1 with a sentence on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m ccompile.cache", description="look at and empty the kernel cache"
    )
    parser.add_argument("--dir", help="the cache; default: as the environment says")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("info", help="what it holds")
    show.add_argument("--verify", action="store_true", help="check the hash of every file")
    show.add_argument("--json", action="store_true", help="for programs")
    empty = commands.add_parser("clear", help="remove its files")
    empty.add_argument("--older", type=float, default=0.0, metavar="DAYS", help="only if not used")
    options = parser.parse_args(argv)
    try:
        if options.command == "clear":
            print(f"{clear(options.dir, options.older)} files removed")
            return 0
        what = info(options.dir, options.verify)
        print(json.dumps(dataclasses.asdict(what), indent=2) if options.json else describe(what))
    except (UnsafeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if what.damaged else 0


if __name__ == "__main__":
    sys.exit(main())
