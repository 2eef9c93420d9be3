"""The data loader of the demo: what it finds, and that damage is an error with the file's name."""

import gzip
import importlib.util
import pathlib
import struct

import numpy as np
import pytest

LONG = struct.pack(">3I", 6, 28, 28)  # the sizes of a header
ROOT = pathlib.Path(__file__).resolve().parents[2]


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


data = load_module(ROOT / "examples" / "fashion_data.py")


def write(path, array, head=None, extra=b""):
    if head is None:
        head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes() + extra))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    for key, (name, ndim) in data.FILES.items():
        count = 6 if "train" in key else 4
        shape = (count, 28, 28) if ndim == 3 else (count,)
        write(tmp_path / name, rng.integers(0, 10, shape, np.uint8))
    return tmp_path


def test_subset_is_whole_and_balanced():
    x_train, y_train, x_test, y_test = data.load(data.SUBSET)
    assert x_train.shape == (5000, 28, 28) and x_test.shape == (1000, 28, 28)
    assert {part.dtype for part in (x_train, y_train, x_test, y_test)} == {np.dtype(np.uint8)}
    assert np.bincount(y_train).tolist() == [500] * 10
    assert np.bincount(y_test).tolist() == [100] * 10
    assert 50 < x_train.mean() < 100 and x_train.max() == 255
    assert x_train.flags.writeable
    assert sum(path.stat().st_size for path in data.SUBSET.iterdir()) < 4e6


@pytest.mark.skipif(not data.DEBIAN.is_dir(), reason="dataset-fashion-mnist is not installed")
def test_subset_is_what_the_script_makes(tmp_path):
    load_module(ROOT / "scripts" / "make_subset.py").main(["--out", str(tmp_path)])
    for made, kept in zip(data.load(tmp_path), data.load(data.SUBSET), strict=True):
        np.testing.assert_array_equal(made, kept)


def test_order_of_folders(folder, monkeypatch):
    monkeypatch.setenv("CCOMPILE_DATA", str(folder))
    assert data.find() == folder
    assert data.find(data.SUBSET) == data.SUBSET
    monkeypatch.delenv("CCOMPILE_DATA")
    monkeypatch.setattr(data, "DEBIAN", folder)
    assert data.find() == folder
    (folder / data.FILES["x_test"][0]).unlink()
    assert data.find() == data.SUBSET
    monkeypatch.setattr(data, "SUBSET", folder)
    with pytest.raises(data.DataError, match="give --data DIR"):
        data.find()


def test_named_folder_must_be_right(tmp_path, monkeypatch):
    with pytest.raises(data.DataError, match="no such folder"):
        data.load(tmp_path / "absent")
    with pytest.raises(data.DataError, match="train-images-idx3-ubyte.gz: no such file"):
        data.load(tmp_path)
    monkeypatch.setenv("CCOMPILE_DATA", str(tmp_path / "mistyped"))
    with pytest.raises(data.DataError, match="mistyped: no such folder"):
        data.load()


DAMAGE = {
    "ends inside its header": lambda path: path.write_bytes(gzip.compress(b"\0\0\x08\x03\0\0")),
    "not an IDX file": lambda path: write(path, np.zeros(9, np.uint8), b"\0\1\x08\x03" + LONG),
    "of unsigned bytes": lambda path: write(path, np.zeros(9, np.uint8), b"\0\0\x0d\x03" + LONG),
    "has 2 dimensions, wanted 3": lambda path: write(path, np.zeros((28, 28), np.uint8)),
    "file has more": lambda path: write(path, np.zeros((6, 28, 28), np.uint8), extra=b"x"),
    "file has only": lambda path: write(path, np.zeros(9, np.uint8), b"\0\0\x08\x03" + LONG),
    "cannot be read": lambda path: path.write_bytes(b"plain"),
    "cannot be read: Comp": lambda path: path.write_bytes(path.read_bytes()[:-300]),
    "not \\(28, 28\\)": lambda path: write(path, np.zeros((6, 27, 28), np.uint8)),
    "5 train images but 6 labels": lambda path: write(path, np.zeros((5, 28, 28), np.uint8)),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damage_is_named(folder, message):
    DAMAGE[message](folder / data.FILES["x_train"][0])
    with pytest.raises(data.DataError, match=message):
        data.load(folder)


def test_label_out_of_range(folder):
    write(folder / data.FILES["y_test"][0], np.array([0, 1, 2, 10], np.uint8))
    with pytest.raises(data.DataError, match="a test label is 10"):
        data.load(folder)
