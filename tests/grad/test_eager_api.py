"""grad and value_and_grad in eager mode: trees, Modules, aux values, and the clear errors."""

import math
import threading
from typing import NamedTuple

import numpy as np
import pytest

from ccompile import nn
from ccompile._grad import GradientError, grad, value_and_grad


def here(offset=0):
    import sys

    return f"{__file__}:{sys._getframe(1).f_lineno + offset}"


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


def test_trees():
    tree = {"w": [np.ones(2), (np.full(2, 3.0), 2.0)], "p": Pair(np.ones(1), np.float32(4.0))}

    def f(t):
        return (t["w"][0] * t["w"][1][0]).sum() * t["w"][1][1] + t["p"].a.sum() * t["p"].b

    g = grad(f)(tree)
    assert g["w"][0].tolist() == [6.0, 6.0] and g["w"][1][0].tolist() == [2.0, 2.0]
    assert g["w"][1][1] == 6.0 and type(g["w"][1][1]) is float
    assert type(g["p"]) is Pair and g["p"].a.tolist() == [4.0] and g["p"].b == 1.0


def test_argnums_and_aux():
    def f(x, y, scale=1.0):
        z = x * y
        return z.sum() * scale, {"z": z, "n": 3}

    x, y = np.array([1.0, 2.0]), np.array([5.0, 7.0])
    (value, aux), (gy, gx) = value_and_grad(f, (1, -2), has_aux=True)(x, y, scale=2.0)
    assert value == 38.0 and type(aux["z"]) is np.ndarray and aux["z"].tolist() == [5.0, 14.0]
    assert gy.tolist() == [2.0, 4.0] and gx.tolist() == [10.0, 14.0]
    g, aux = grad(f, has_aux=True)(x, y)
    assert g.tolist() == [5.0, 7.0] and aux["n"] == 3


def test_unused_input_gets_zeros():
    g, h = grad(lambda x, y: x.sum(), (0, 1))(np.ones(2), np.ones((2, 3), np.float32))
    assert g.tolist() == [1.0, 1.0] and h.tolist() == [[0.0] * 3] * 2 and h.dtype == np.float32


def test_gradients_are_fresh_writable_arrays():
    x = np.ones(3)
    (g,) = grad(lambda t: t[0].sum())((x,))
    g += 1
    assert x.tolist() == [1.0] * 3
    g, h = grad(lambda x, y: (x + y).sum(), (0, 1))(np.ones(3), np.ones(3))
    g += 1
    assert h.tolist() == [1.0] * 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.again = self.fc
        self.scale = nn.Parameter(np.ones(2, np.float32))
        self.register_buffer("seen", np.zeros(2, np.float32))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        out = self.again(self.fc(x) @ np.ones((2, 3), np.float32)) * self.scale
        self.seen = self.seen * 0.5 + out.mean(axis=0)
        self.last = out
        return out


def test_module_gradient_is_a_dict_and_the_module_stays_plain():
    nn.manual_seed(0)
    net = Net()
    before = net.state_dict()
    x = np.ones((4, 3), np.float32)
    value, g = value_and_grad(lambda m, x: m(x).sum())(net, x)
    assert type(value) is np.float32
    assert list(g) == ["scale", "fc.weight", "fc.bias"]
    assert {k: v.shape for k, v in g.items()} == {
        "scale": (2,), "fc.weight": (2, 3), "fc.bias": (2,)}
    assert net.calls == 1 and type(net.seen) is np.ndarray and type(net.last) is np.ndarray
    for name in ("scale", "fc.weight", "fc.bias"):
        assert net.state_dict()[name] is before[name]


def test_module_stays_plain_after_an_exception():
    net = nn.Linear(2, 1)
    weight = net.weight

    def f(m):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        grad(f)(net)
    assert net.weight is weight


def test_modules_inside_trees():
    a, b = nn.Linear(2, 1), nn.Linear(1, 1, bias=False)
    g = grad(lambda t, x: t["b"](t["a"](x)).sum())({"a": a, "b": b}, np.ones((1, 2), np.float32))
    assert list(g["a"]) == ["weight", "bias"] and list(g["b"]) == ["weight"]


def test_threads_on_one_module():
    net = nn.Linear(4, 4)
    want = grad(lambda m, x: (m(x) ** 2).sum())(net, np.ones((2, 4), np.float32))
    wrong = []

    def work():
        for _ in range(20):
            g = grad(lambda m, x: (m(x) ** 2).sum())(net, np.ones((2, 4), np.float32))
            if not all(np.array_equal(g[k], want[k]) for k in want):
                wrong.append(g)

    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_user_code_sees_an_array():
    def f(x):
        assert isinstance(x, np.ndarray) and x.shape == (2,) and x.ndim == 1 and len(x) == 2
        assert x.dtype == np.float64 and x.size == 2 and f"{x[0]:.1f}" == "1.0"
        assert str(x) == "[1. 2.]" and bool(x[0] < x[1]) and int(x[1]) == 2
        assert type(np.zeros_like(x)) is np.ndarray and x.argmax() == 1
        if x[0] > 0:
            return (x * x).sum()
        return x.sum()

    assert grad(f)(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_constants_changed_after_use_do_not_change_the_gradient():
    w = np.array([2.0, 3.0])

    def f(x):
        y = x * w
        w[:] = 100.0
        return y.sum()

    assert grad(f)(np.ones(2)).tolist() == [2.0, 3.0]


ERRORS = {
    "integer input": (lambda x: x.sum(), np.arange(3), "dtype int64"),
    "boolean input": (lambda x: x.sum(), np.array([True]), "dtype bool"),
    "complex input": (lambda x: x.sum(), np.ones(2, complex), "dtype complex128"),
    "python int": (lambda x: x * 2.0, 3, "of type int"),
    "array loss": (lambda x: x * 2, np.ones(3), r"array of shape \(3,\)"),
    "length-one loss": (lambda x: x.sum(keepdims=True), np.ones(3), r"shape \(1,\)"),
    "tuple loss": (lambda x: (x.sum(), 1), np.ones(3), "has_aux=True"),
    "no loss": (lambda x: None, np.ones(3), "NoneType"),
    "constant loss": (lambda x: np.float64(3.0), np.ones(3), "does not depend"),
    "float": (lambda x: float(x.sum()) * 2.0, np.ones(3), r"float\(\)"),
    "math": (lambda x: math.exp(x[0]), np.ones(3), r"float\(\)"),
    "item": (lambda x: x.sum().item(), np.ones(3), r"\.item\(\)"),
    "tolist": (lambda x: sum(x.tolist()), np.ones(3), r"\.tolist\(\)"),
    "asarray": (lambda x: np.asarray(x).sum(), np.ones(3), "plain one"),
    "array of scalars": (lambda x: np.array([x[0], x[1]]).sum(), np.ones(3), "plain one"),
    "no rule": (lambda x: np.linalg.det(x), np.eye(3), "det.* no gradient rule"),
    "ufunc without rule": (lambda x: np.frexp(x)[0].sum(), np.ones(3), "frexp.* no gradient rule"),
    "unknown keyword": (lambda x: np.exp(x, where=x > 0).sum(), np.ones(3), "where="),
    "method without rule": (lambda x: x.partition(1), np.ones(3), "partition"),
    "plain out": (lambda x: np.exp(x, out=np.zeros(3)).sum(), np.ones(3), "plain array"),
    "einsum diagonal": (lambda x: np.einsum("ii->i", x).sum(), np.eye(3), "repeated index"),
    "pad edge": (lambda x: np.pad(x, 1, mode="edge").sum(), np.ones(3), "mode='edge'"),
    "second order": (lambda x: grad(lambda y: (y * y).sum())(x).sum(), np.ones(3), "gradient of"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_names_the_line(name):
    f, x, text = ERRORS[name]
    with pytest.raises(GradientError, match=text) as caught:
        grad(f)(x)
    assert f"{__file__}:" in str(caught.value)


def test_error_line_is_the_users():
    def f(m, x):
        return np.linalg.det(m(x)), here(0)

    with pytest.raises(GradientError) as caught:
        grad(f, has_aux=True)(nn.Linear(2, 2), np.ones((2, 2), np.float32))
    line = f.__code__.co_firstlineno + 1
    assert f"{__file__}:{line})" in str(caught.value)


def test_stores_into_plain_arrays_are_refused():
    def store(x):
        out = np.zeros(3)
        out[0] = x[0]
        return out.sum()

    def add(x):
        out = np.zeros(3)
        out += x
        return out.sum()

    for f in (store, add):
        with pytest.raises(GradientError, match="lose its gradient"):
            grad(f)(np.ones(3))


def test_in_place_on_shared_memory_is_refused():
    def on_argument(x):
        x += 1
        return x.sum()

    def on_reshaped(x):
        y = x * 2
        v = y.reshape(3, 1)
        v *= 3
        return y.sum()

    for f in (on_argument, on_reshaped):
        with pytest.raises(GradientError, match="in place"):
            grad(f)(np.ones(3))


def test_bad_argnums_and_callables():
    with pytest.raises(GradientError, match="argnums 2"):
        grad(lambda x: x.sum(), 2)(np.ones(2))
    with pytest.raises(TypeError, match="callable"):
        grad(3)
    with pytest.raises(GradientError, match=r"\(loss, aux\)"):
        grad(lambda x: x.sum(), has_aux=True)(np.ones(2))


def test_wrapper_keeps_name_and_doc():
    def loss(x):
        """The doc."""
        return x.sum()

    g = value_and_grad(loss)
    assert g.__name__ == "loss" and g.__doc__ == "The doc." and g.__wrapped__ is loss
