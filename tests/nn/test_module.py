"""Module: registration, names, state, modes; parameters are exact ndarrays."""

import copy
import pickle

import numpy as np
import pytest

from ccompile import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(np.ones(3))
        self.fc = nn.Linear(3, 3, dtype=np.float64)
        self.register_buffer("mean", np.zeros(3))
        self.register_buffer("scratch", np.zeros(3), persistent=False)
        self.table = np.arange(3.0)

    def forward(self, x, *, twice=False):
        x = self.fc(x) * self.scale
        return x * 2 if twice else x


def test_parameters_are_exact_arrays_in_the_dict():
    b = Block()
    assert type(vars(b)["scale"]) is np.ndarray
    assert type(vars(b.fc)["weight"]) is np.ndarray
    array = np.ones(2, np.float32)
    b.scale = nn.Parameter(array)
    assert b.scale is array


def test_names_and_order():
    b = Block()
    assert [n for n, _ in b.named_parameters()] == ["scale", "fc.weight", "fc.bias"]
    assert list(b.state_dict()) == ["scale", "mean", "fc.weight", "fc.bias"]
    assert [n for n, _ in b.named_buffers()] == ["mean", "scratch"]
    assert [n for n, _ in b.named_modules()] == ["", "fc"]
    assert [n for n, _ in b.named_children()] == ["fc"]
    assert b.state_dict()["scale"] is b.scale
    assert all(p is q for p, (_, q) in zip(b.parameters(), b.named_parameters(), strict=True))


def test_call_runs_forward():
    b = Block()
    x = np.ones((2, 3))
    np.testing.assert_array_equal(b(x, twice=True), b.forward(x) * 2)
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        nn.Module()(1)


def test_replacing_and_deleting():
    b = Block()
    b.scale = np.zeros(3)
    assert "scale" in b.state_dict() and b.state_dict()["scale"] is b.scale
    b.scale = None
    assert "scale" not in b.state_dict()
    del b.mean
    assert "mean" not in b.state_dict()


def test_bad_registration():
    class Late(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(np.ones(1))

    class LateChild(nn.Module):
        def __init__(self):
            self.child = nn.ReLU()

    for cls in (Late, LateChild):
        with pytest.raises(AttributeError, match=r"super\(\).__init__"):
            cls()
    with pytest.raises(TypeError, match="floating"):
        nn.Parameter(np.arange(3))
    with pytest.raises(KeyError, match="without '.'"):
        nn.Module().register_parameter("a.b", np.ones(1))


def test_load_is_in_place_and_strict():
    a, b = Block(), Block()
    weight = b.fc.weight
    assert b.load_state_dict(a.state_dict()) == ([], [])
    assert b.fc.weight is weight and np.array_equal(weight, a.fc.weight)
    state = dict(a.state_dict(), extra=np.ones(1))
    del state["mean"]
    kept = b.fc.weight.copy()
    state["fc.weight"] = np.full((3, 3), 9.0)
    with pytest.raises(RuntimeError, match="Missing key.*'mean'(?s:.*)Unexpected key.*'extra'"):
        b.load_state_dict(state)
    assert np.array_equal(b.fc.weight, kept)
    assert b.load_state_dict(state, strict=False) == (["mean"], ["extra"])
    assert (b.fc.weight == 9.0).all()
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        b.load_state_dict(dict(a.state_dict(), scale=np.ones(4)))


def test_shared_parameters_and_modules():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    twin = nn.ModuleList([net, net])
    assert len(list(twin.modules())) == 4
    net.double()
    assert net[1].weight is net[0].weight


def test_modes_and_apply():
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.ReLU()))
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert net.train() is net and all(m.training for m in net.modules())
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Dropout", "ReLU", "Sequential", "Sequential"]
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)


def test_dtypes():
    net = nn.Linear(2, 3)
    assert net.weight.dtype == np.float32
    assert net.double() is net and net.bias.dtype == np.float64
    assert net.float().weight.dtype == np.float32
    with pytest.raises(TypeError, match="floating"):
        net.astype(int)


def test_copy_and_pickle():
    b = Block()
    for c in (copy.deepcopy(b), pickle.loads(pickle.dumps(b))):
        assert c.scale is not b.scale
        for (m, p), (n, q) in zip(b.state_dict().items(), c.state_dict().items(), strict=True):
            assert m == n and np.array_equal(p, q) and type(q) is np.ndarray


def test_containers():
    relu, fc = nn.ReLU(), nn.Linear(2, 2)
    net = nn.Sequential(fc, relu)
    assert len(net) == 2 and net[0] is fc and net[-1] is relu and list(net) == [fc, relu]
    assert isinstance(net[:1], nn.Sequential) and net[:1][0] is fc
    net[1] = nn.Flatten()
    assert isinstance(net[1], nn.Flatten)
    assert net.append(relu) is net and len(net) == 3
    layers = nn.ModuleList([fc]).extend([relu, relu])
    assert len(layers[1:]) == 2 and [n for n, _ in layers.named_parameters()] == [
        "0.weight", "0.bias"]
    with pytest.raises(TypeError, match="not a Module"):
        layers.append(3)


def test_repr():
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.Sequential(nn.ReLU()))
    assert repr(net) == """Sequential(
  (0): Conv2d(1, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)
  (1): Sequential(
    (0): ReLU()
  )
)"""


def test_seed_decides_the_parameters():
    def build():
        nn.manual_seed(3)
        return nn.Sequential(nn.Conv2d(2, 5, 3), nn.Linear(20, 7))

    a, b = build(), build()
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        assert np.array_equal(p, q)
    bounds = {"0": 18 ** -0.5, "1": 20 ** -0.5}
    for name, p in a.named_parameters():
        bound = bounds[name[0]]
        assert np.abs(p).max() <= bound and (p.size < 30 or np.abs(p).max() > 0.9 * bound)
    nn.manual_seed(0)
    wide = nn.Linear(4, 20000)
    assert abs(wide.weight.std() - 0.5 / 3 ** 0.5) < 0.01 and abs(wide.weight.mean()) < 0.01


def test_same_seed_gives_the_same_numbers_in_both_precisions():
    nn.manual_seed(1)
    single = nn.Linear(3, 4)
    nn.manual_seed(1)
    double = nn.Linear(3, 4, dtype=np.float64)
    np.testing.assert_array_equal(single.weight, double.weight.astype(np.float32))


def test_dropout():
    nn.manual_seed(0)
    layer = nn.Dropout(0.25)
    x = np.ones(10000, np.float32)
    y = layer(x)
    assert y.dtype == np.float32 and set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert layer.eval()(x) is x
    nn.manual_seed(0)
    np.testing.assert_array_equal(layer.train()(x), y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)
