"""Fashion-MNIST from the first folder that has it: --data, $CCOMPILE_DATA, Debian's, the subset.

A folder holds the four gzipped IDX files of the data set under their usual names. A folder that
was asked for by name must be right: nothing falls back silently from a mistyped path.
"""

import gzip
import os
import pathlib
import struct
import zlib

import numpy as np

DEBIAN = pathlib.Path("/usr/share/datasets/fashion-mnist")  # apt install dataset-fashion-mnist
SUBSET = pathlib.Path(__file__).resolve().parent / "data"  # 5,000 + 1,000 images
CLASSES = "T-shirt Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Boot".split()
FILES = {  # part: (file, number of dimensions)
    "x_train": ("train-images-idx3-ubyte.gz", 3),
    "y_train": ("train-labels-idx1-ubyte.gz", 1),
    "x_test": ("t10k-images-idx3-ubyte.gz", 3),
    "y_test": ("t10k-labels-idx1-ubyte.gz", 1),
}
UINT8 = 0x08  # IDX type code


class DataError(Exception):
    """The data set is missing, or a file of it is damaged; the message names the file."""


def read_idx(path: str | os.PathLike, ndim: int) -> np.ndarray:
    """The uint8 array of a gzipped IDX file with `ndim` dimensions.

    Raises DataError when the file is absent, no gzip file, of another type or rank, or not exactly
    as long as its header says.
    """
    try:
        with gzip.open(path, "rb") as file:
            head = file.read(4 + 4 * ndim)
            if len(head) < 4 + 4 * ndim:
                raise DataError(f"{path}: ends inside its header")
            zero, kind, rank = struct.unpack(">HBB", head[:4])
            if zero != 0 or kind != UINT8:
                start = head[:4].hex()
                raise DataError(f"{path}: not an IDX file of unsigned bytes (starts {start})")
            if rank != ndim:
                raise DataError(f"{path}: has {rank} dimensions, wanted {ndim}")
            shape = struct.unpack(f">{ndim}I", head[4:])
            count = int(np.prod(shape, dtype=object))
            body = file.read(count + 1)  # one more shows a file that is too long
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if len(body) != count:
        more = "more" if len(body) > count else f"only {len(body)}"
        raise DataError(f"{path}: header says {count} bytes for shape {shape}, file has {more}")
    return np.frombuffer(body, np.uint8).reshape(shape).copy()


def find(folder: str | os.PathLike | None = None) -> pathlib.Path:
    """The folder to load from: `folder`, else $CCOMPILE_DATA, else Debian's, else the subset."""
    named = folder or os.environ.get("CCOMPILE_DATA")
    if named:
        found = pathlib.Path(named)
        if not found.is_dir():
            raise DataError(f"{found}: no such folder")
        return found
    for found in (DEBIAN, SUBSET):
        if all((found / name).is_file() for name, _ in FILES.values()):
            return found
    raise DataError(
        "Fashion-MNIST not found: give --data DIR or set CCOMPILE_DATA to a folder with "
        + ", ".join(name for name, _ in FILES.values())
    )


def load(
    folder: str | os.PathLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images and labels (x_train, y_train, x_test, y_test), uint8, images (n, 28, 28), labels 0..9.

    `folder` as in `find`. Raises DataError.
    """
    where = find(folder)
    part = {key: read_idx(where / name, ndim) for key, (name, ndim) in FILES.items()}
    for half in ("train", "test"):
        images, labels = part[f"x_{half}"], part[f"y_{half}"]
        if images.shape[1:] != (28, 28):
            raise DataError(f"{where}: {half} images are {images.shape[1:]}, not (28, 28)")
        if len(images) != len(labels):
            raise DataError(f"{where}: {len(images)} {half} images but {len(labels)} labels")
        if len(labels) and labels.max() >= len(CLASSES):
            raise DataError(f"{where}: a {half} label is {labels.max()}, the last class is 9")
    return part["x_train"], part["y_train"], part["x_test"], part["y_test"]
