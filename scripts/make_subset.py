"""Make examples/data/: 5,000 + 1,000 images of Fashion-MNIST, the same number of each class.

    python scripts/make_subset.py [--data DIR] [--out DIR]

Takes the first images of each class and keeps them in the order of the full set; the same input
gives the same bytes. The input defaults to the folder of the Debian package dataset-fashion-mnist.
"""

import argparse
import gzip
import pathlib
import struct
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import fashion_data  # noqa: E402

SIZES = {"train": 5000, "test": 1000}


def pick(labels: np.ndarray, count: int) -> np.ndarray:
    """Positions of the first `count / 10` examples of each class, ascending."""
    each = count // len(fashion_data.CLASSES)
    rows = [np.flatnonzero(labels == kind)[:each] for kind in range(len(fashion_data.CLASSES))]
    if any(len(row) < each for row in rows):
        raise SystemExit(f"make_subset: a class has fewer than {each} examples")
    return np.sort(np.concatenate(rows))


def write_idx(path: pathlib.Path, array: np.ndarray) -> None:
    """Write a uint8 array as a gzipped IDX file without name or time in its header."""
    head = struct.pack(f">HBB{array.ndim}I", 0, fashion_data.UINT8, array.ndim, *array.shape)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(head + array.tobytes())


def main(argv: list[str] | None = None) -> None:
    """Read, pick, write; prints the size."""
    parser = argparse.ArgumentParser(description="make the Fashion-MNIST subset of examples/data")
    parser.add_argument("--data", default=fashion_data.DEBIAN, help="folder with the full set")
    parser.add_argument("--out", type=pathlib.Path, default=fashion_data.SUBSET)
    options = parser.parse_args(argv)

    parts = dict(zip(fashion_data.FILES, fashion_data.load(options.data), strict=True))
    options.out.mkdir(parents=True, exist_ok=True)
    size = 0
    for half, count in SIZES.items():
        rows = pick(parts[f"y_{half}"], count)
        for key in (f"x_{half}", f"y_{half}"):
            path = options.out / fashion_data.FILES[key][0]
            write_idx(path, parts[key][rows])
            size += path.stat().st_size
    print(f"{options.out}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
