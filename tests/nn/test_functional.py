"""The operations of nn.functional: values by direct sums, gradients by differences, torch."""

import numpy as np
import pytest

from ccompile import nn
from ccompile._grad import grad, value_and_grad
from ccompile.nn import functional as F

RNG = np.random.default_rng(5)


def rand(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype)


def numeric(f, args, i, eps=1e-6):
    args = [np.array(a) for a in args]
    out = np.zeros_like(args[i])
    for k in np.ndindex(args[i].shape):
        keep = args[i][k]
        args[i][k] = keep + eps
        up = f(*args)
        args[i][k] = keep - eps
        down = f(*args)
        args[i][k] = keep
        out[k] = (up - down) / (2 * eps)
    return out


def check(op, *args):
    weights = np.random.default_rng(1).uniform(0.5, 1.5, np.shape(op(*args)))

    def f(*a):
        return np.sum(op(*a) * weights)

    value, grads = value_and_grad(f, tuple(range(len(args))))(*args)
    assert value == f(*args)
    for i, g in enumerate(grads):
        np.testing.assert_allclose(g, numeric(f, args, i), rtol=2e-6, atol=2e-6)


def conv_direct(x, w, b, stride, pads, dilation, groups):
    """The definition of the convolution, one output at a time."""
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    n, _, height, width = x.shape
    o, c, kh, kw = w.shape
    oh = (height - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, oh, ow))
    for k in range(o):
        first = k // (o // groups) * c
        for i in range(oh):
            for j in range(ow):
                patch = x[:, first:first + c,
                          i * stride[0]:i * stride[0] + dilation[0] * (kh - 1) + 1:dilation[0],
                          j * stride[1]:j * stride[1] + dilation[1] * (kw - 1) + 1:dilation[1]]
                out[:, k, i, j] = (patch * w[k]).sum((1, 2, 3)) + b[k]
    return out


CONVS = [  # input, weight, stride, padding, dilation, groups
    ((2, 1, 5, 6), (3, 1, 3, 3), 1, 1, 1, 1),
    ((2, 3, 5, 4), (4, 3, 3, 2), 1, 0, 1, 1),
    ((1, 2, 7, 8), (2, 2, 3, 3), (2, 3), (1, 2), 1, 1),
    ((2, 2, 8, 7), (3, 2, 3, 2), 1, 1, (2, 3), 1),
    ((2, 4, 5, 5), (6, 2, 3, 3), 2, 1, 1, 2),
    ((2, 3, 4, 4), (3, 1, 1, 1), 1, 0, 1, 3),
]


@pytest.mark.parametrize("shape,weight,stride,padding,dilation,groups", CONVS)
def test_conv2d(shape, weight, stride, padding, dilation, groups):
    x, w, b = rand(*shape), rand(*weight), rand(weight[0])
    p = F._pair(padding)
    want = conv_direct(x, w, b, F._pair(stride), ((p[0],) * 2, (p[1],) * 2), F._pair(dilation),
                       groups)
    got = F.conv2d(x, w, b, stride, padding, dilation, groups)
    assert got.flags.c_contiguous
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    check(lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), x, w, b)


def test_conv2d_padding_words():
    x, w, b = rand(1, 2, 5, 6), rand(3, 2, 4, 3), rand(3)
    same = F.conv2d(x, w, b, padding="same")
    np.testing.assert_allclose(same, conv_direct(x, w, b, (1, 1), ((1, 2), (1, 1)), (1, 1), 1))
    np.testing.assert_array_equal(F.conv2d(x, w, b, padding="valid"), F.conv2d(x, w, b))
    check(lambda x, w: F.conv2d(x, w, padding="same"), x, w)
    for call, text in ((lambda: F.conv2d(x, w, stride=2, padding="same"), "stride 1"),
                       (lambda: F.conv2d(x, w, padding="full"), "unknown padding"),
                       (lambda: F.conv2d(x[0], w), "4-d"),
                       (lambda: F.conv2d(x, w, groups=2), "does not fit")):
        with pytest.raises(ValueError, match=text):
            call()


POOLS = [(2, None, 0, 1), (3, 1, 1, 1), ((2, 3), (1, 2), (1, 0), 1), (2, 2, 0, 2)]


@pytest.mark.parametrize("kernel,stride,padding,dilation", POOLS)
def test_max_pool2d(kernel, stride, padding, dilation):
    x = RNG.permutation(2 * 3 * 6 * 7).reshape(2, 3, 6, 7) * 0.1
    check(lambda x: F.max_pool2d(x, kernel, stride, padding, dilation), x)


def test_max_pool2d_drops_the_rest_and_keeps_nan():
    x = np.arange(25.0).reshape(1, 1, 5, 5)
    assert F.max_pool2d(x, 2).tolist() == [[[[6, 8], [16, 18]]]]
    x[0, 0, 0, 0] = np.nan
    assert np.isnan(F.max_pool2d(x, 2)[0, 0, 0, 0])
    assert F.max_pool2d(np.arange(16).reshape(1, 4, 4), 3, padding=1).dtype == np.int64
    with pytest.raises(ValueError, match="at most half"):
        F.max_pool2d(x, 2, padding=2)


def test_ties():
    x = np.array([[[[1.0, 1.0], [1.0, 0.0]]]])
    assert grad(lambda x: F.max_pool2d(x, 2).sum())(x).ravel().tolist() == [1.0, 0.0, 0.0, 0.0]
    assert grad(lambda x: F.relu(x).sum())(np.array([0.0, -0.0, -1.0, 2.0])).tolist() == [
        0.0, 0.0, 0.0, 1.0]


def test_linear_and_activations():
    check(F.linear, rand(2, 3, 4), rand(5, 4), rand(5))
    check(F.linear, rand(4), rand(5, 4))
    check(F.relu, rand(3, 4))
    check(lambda x: F.softmax(x, 1), rand(3, 4))
    check(lambda x: F.log_softmax(x, 0), rand(3, 4))
    np.testing.assert_allclose(F.softmax(np.array([1e4, 0.0, -1e4]), 0), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(np.exp(F.log_softmax(rand(3, 4), 1)).sum(1), 1.0)


def test_flatten_and_one_hot():
    x = rand(2, 3, 4, 5)
    assert F.flatten(x).shape == (120,) and F.flatten(x, 1).shape == (2, 60)
    assert F.flatten(x, 1, 2).shape == (2, 12, 5) and F.flatten(x, -2, -1).shape == (2, 3, 20)
    assert nn.Flatten()(x).shape == (2, 60) and F.flatten(np.zeros((0, 3, 4)), 1).shape == (0, 12)
    with pytest.raises(ValueError, match="start_dim"):
        F.flatten(x, 2, 1)
    assert F.one_hot(np.array([[1], [0]]), 3).tolist() == [[[0, 1, 0]], [[1, 0, 0]]]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction):
    y = np.array([0, 3, 3], np.uint8)
    check(lambda x: F.cross_entropy(x, y, reduction=reduction), rand(3, 4))
    loss = nn.CrossEntropyLoss(reduction=reduction)
    x = rand(3, 4, dtype=np.float32)
    want = -np.log(np.exp(x) / np.exp(x).sum(1, keepdims=True))[np.arange(3), y]
    want = {"mean": want.mean(), "sum": want.sum(), "none": want}[reduction]
    np.testing.assert_allclose(loss(x, y), want, rtol=1e-6)
    assert loss(x, y).dtype == np.float32


def test_cross_entropy_refuses_bad_targets():
    x = rand(2, 4)
    for bad in ([0, 4], [0, -1], [-100, 0]):
        with pytest.raises(IndexError):
            F.cross_entropy(x, np.array(bad))
    with pytest.raises(TypeError, match="class numbers"):
        F.cross_entropy(x, np.array([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"expected input \(N, C\)"):
        F.cross_entropy(x, np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="reduction"):
        F.cross_entropy(x, np.array([0, 1]), reduction="max")


def test_layers_against_torch():
    torch = pytest.importorskip("torch")
    nn.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 6, 3, 2, 1, groups=2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                        nn.Flatten(), nn.Linear(6 * 3 * 3, 5), nn.Dropout(0.3)).eval()
    twin = torch.nn.Sequential(
        torch.nn.Conv2d(2, 6, 3, 2, 1, groups=2), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1),
        torch.nn.Flatten(), torch.nn.Linear(6 * 3 * 3, 5), torch.nn.Dropout(0.3)).eval()
    assert list(net.state_dict()) == list(twin.state_dict())
    assert repr(net[0]) == repr(twin[0]) and repr(net[3]) == repr(twin[3])
    twin.load_state_dict({k: torch.from_numpy(v) for k, v in net.state_dict().items()})
    x, y = rand(4, 2, 10, 11, dtype=np.float32), np.array([0, 2, 1, 4])
    value, g = value_and_grad(lambda m: F.cross_entropy(m(x), y))(net)
    loss = torch.nn.functional.cross_entropy(twin(torch.from_numpy(x)), torch.from_numpy(y))
    loss.backward()
    np.testing.assert_allclose(value, loss.item(), rtol=1e-6)
    for name, p in twin.named_parameters():
        np.testing.assert_allclose(g[name], p.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_ties_against_torch():
    torch = pytest.importorskip("torch")
    x = np.array([[0.0, -0.0, 1.0, 1.0], [2.0, 2.0, 2.0, -1.0], [0.5, 0.5, 0.0, 3.0]])
    w = np.array([[0.0, 0.0, 1.0, 2.0], [2.0, 1.0, 3.0, -1.0], [0.5, 1.0, 0.0, 3.0]])
    pairs = [
        (lambda m, a, b: m.maximum(a, b).sum(), None),
        (lambda m, a, b: m.minimum(a, b).sum(), None),
        (lambda m, a, b: abs(a - b).sum() + abs(b).sum(), None),
        (lambda m, a, b: m.amax(a, 1).sum() + m.amin(b, 0).sum(), None),
        (lambda m, a, b: m.clip(a, 0.0, 2.0).sum() + (b * b).sum(), None),
        (lambda m, a, b: m.fmax(a, b).sum() * m.fmin(a, b).sum(), None),
        (lambda m, a, b: (abs(a) ** b).sum(), None),
        (lambda m, a, b: m.prod(a, 1).sum() * m.prod(b, 0).sum(), None),
    ]
    for f, _ in pairs:
        got = grad(lambda a, b, f=f: f(np, a, b), (0, 1))(x, w)
        a, b = (torch.from_numpy(v).requires_grad_() for v in (x, w))
        f(torch, a, b).backward()
        np.testing.assert_allclose(got[0], a.grad.numpy(), rtol=1e-12)
        np.testing.assert_allclose(got[1], b.grad.numpy(), rtol=1e-12)
