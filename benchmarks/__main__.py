"""Measure programs and print how many times faster than plain each peer ran them.

    python -m benchmarks [PROGRAM ...] [--peers ccompile,torch-1] [--seconds S] [--json FILE]
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys

import numpy as np

from .measure import Ratio, ratios
from .peers import PEERS, NoTwin, contestant
from .programs import PROGRAMS, Program


def machine() -> dict[str, str]:
    """Where and what was measured."""
    here = pathlib.Path(__file__).resolve().parent
    try:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=here, check=False,
                                capture_output=True, text=True).stdout.strip()
    except OSError:
        commit = ""
    return {"machine": platform.machine(), "processors": str(os.cpu_count()),
            "python": platform.python_version(), "numpy": np.__version__, "commit": commit}


def run(program: Program, names: list[str], seconds: float) -> tuple[dict[str, Ratio], list[str]]:
    """Ratios by peer, and a line for each peer that cannot take part."""
    base, first = contestant(PEERS["plain"], program)
    taking_part, absent = {"plain": base}, []
    for name in names:
        if name == "plain":
            continue
        try:
            taking_part[name] = contestant(PEERS[name], program, first)[0]
        except NoTwin as reason:
            absent.append(f"{name}: {reason}")
    return ratios(taking_part, "plain", seconds), absent


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line; wrong names end the program with a sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="How many times faster than plain NumPy each peer runs each program.",
        epilog="programs:\n" + "".join(f"  {p.name:15}{p.doc}\n" for p in PROGRAMS.values())
        + "peers:\n" + "".join(f"  {p.name:15}{p.doc}\n" for p in PEERS.values()))
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="all of them by default")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma list; all by default")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each program, about")
    parser.add_argument("--json", metavar="FILE", help="write the ratios there as well")
    args = parser.parse_args(argv)
    args.programs = args.programs or list(PROGRAMS)
    args.peers = [name for name in args.peers.split(",") if name]
    for name, table in [(n, PROGRAMS) for n in args.programs] + [(n, PEERS) for n in args.peers]:
        if name not in table:
            parser.error(f"no {name}; there are {', '.join(table)}")
    return args


def main(argv: list[str] | None = None) -> dict[str, dict[str, Ratio]]:
    """Measure, print and give the ratios by program and peer."""
    args = arguments(argv)
    about = machine()
    print(", ".join(f"{key} {value}" for key, value in about.items() if value))
    print("times faster than plain: median (quartiles)")
    results: dict[str, dict[str, Ratio]] = {}
    for name in args.programs:
        print(f"\n{name}: {PROGRAMS[name].doc}", flush=True)
        results[name], absent = run(PROGRAMS[name], args.peers, args.seconds)
        for peer, ratio in results[name].items():
            if peer != "plain":
                print(f"  {peer:14} {ratio.median:8.2f}  ({ratio.low:.2f} - {ratio.high:.2f})")
        for line in absent:
            print(f"  {line}")
        sys.stdout.flush()
    if args.json:
        tree = {name: {peer: dataclasses.asdict(ratio) for peer, ratio in row.items()}
                for name, row in results.items()}
        text = json.dumps({**about, "ratios": tree}, indent=1) + "\n"
        pathlib.Path(args.json).write_text(text, encoding="utf-8")
    return results


if __name__ == "__main__":
    main()
