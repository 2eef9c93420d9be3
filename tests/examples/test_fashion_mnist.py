"""The demo on a tiny data set: all modes run, learn, and agree; the table says what happened."""

import gzip
import pathlib
import struct
import sys

import numpy as np
import pytest

import ccompile

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def demo():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import fashion_mnist
    finally:
        sys.path.remove(str(EXAMPLES))
    return fashion_mnist


def write_idx(path, array):
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two easy classes: the left or the right half of the image is bright."""
    folder = tmp_path_factory.mktemp("fashion")
    rng = np.random.default_rng(0)
    for part, n in (("train", 84), ("t10k", 20)):
        labels = rng.integers(0, 2, n).astype(np.uint8)
        images = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[:, 14 * label:14 * label + 14] += 150
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels)
    return str(folder)


def test_model_has_the_layers_of_the_book(demo):
    shapes = {name: p.shape for name, p in demo.Net().named_parameters()}
    assert shapes == {
        "conv1.weight": (32, 1, 3, 3), "conv1.bias": (32,),
        "conv2.weight": (64, 32, 3, 3), "conv2.bias": (64,),
        "fc1.weight": (512, 3136), "fc1.bias": (512,),
        "fc2.weight": (10, 512), "fc2.bias": (10,),
    }
    assert demo.Net()(np.zeros((2, 1, 28, 28), np.float32)).shape == (2, 10)


def test_split_and_batches(demo, data):
    train, validation, test = demo.load(data, "float32")
    assert (len(train), len(validation), len(test)) == (77, 7, 20)
    assert train.x.shape == (77, 1, 28, 28) and train.x.dtype == np.float32
    assert 0.0 <= train.x.min() and train.x.max() <= 1.0
    order = np.arange(77)[::-1]
    parts = list(train.batches(order))
    assert [len(y) for _, y in parts] == [64, 13]
    np.testing.assert_array_equal(np.concatenate([y for _, y in parts]), train.y[::-1])


def test_eager_mode_learns_and_reports(demo, data, capsys):
    reports = demo.main(["--mode", "eager", "--data", data, "--epochs", "3", "--eager-steps", "0"])
    report = reports["eager"]
    assert len(report.losses) == 6 and report.losses[-1] < report.losses[0]
    assert report.accuracy > 0.9 and len(report.epoch_seconds) == 3
    out = capsys.readouterr().out
    assert "77 training, 7 validation, 20 test images" in out
    assert "eager epoch 3/3 validate" in out and "images/s" in out
    header, rule, row = out.rstrip().splitlines()[-3:]
    assert header.split("  ")[0].strip() == "mode" and set(rule) == {"-", " "}
    assert row.split()[:2] == ["eager", "6"] and "1.00x" in row


def test_eager_steps_end_early(demo, data, capsys):
    report = demo.main(["--mode", "eager", "--data", data, "--eager-steps", "1"])["eager"]
    assert len(report.losses) == 1 and not report.epoch_seconds
    assert "~" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(ccompile, "compile"), reason="this build has no compile")
@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-4), ("float64", 1e-8)])
def test_graph_mode_agrees(demo, data, capsys, dtype, tolerance):
    backend = ccompile.list_backends()[0]
    reports = demo.main(["--mode", "both", "--data", data, "--epochs", "1", "--dtype", dtype,
                         "--backend", backend, "--eager-steps", "2"])
    eager, graph = reports["eager"], reports["graph"]
    assert (len(eager.losses), len(graph.losses)) == (2, 2)
    np.testing.assert_allclose(graph.losses, eager.losses, rtol=0, atol=tolerance)
    out = capsys.readouterr().out
    assert "largest difference of losses" in out and "counters: " in out


def test_bad_arguments(demo, tmp_path, capsys):
    with pytest.raises(SystemExit, match="no such"):
        demo.main(["--mode", "eager", "--data", str(tmp_path / "none")])
    with pytest.raises(SystemExit):
        demo.main(["--epochs", "0"])
    assert "at least" in capsys.readouterr().err
