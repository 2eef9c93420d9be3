"""SGD, Adam and AdamW against their formulas, and against torch step by step."""

import math

import numpy as np
import pytest

from ccompile import nn, optim

CASES = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9}, {"lr": 0.1, "weight_decay": 0.01},
            {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
            {"lr": 0.1, "momentum": 0.9, "nesterov": True}],
    "Adam": [{}, {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-5}, {"weight_decay": 0.1}],
    "AdamW": [{}, {"lr": 0.01, "weight_decay": 0.1}],
}
ALL = [(name, kwargs) for name, cases in CASES.items() for kwargs in cases]


def formula(name, p, grads, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=None,
            nesterov=False, betas=(0.9, 0.999), eps=1e-8):
    """The published algorithm on one float64 array."""
    decay = (1e-2 if name == "AdamW" else 0.0) if weight_decay is None else weight_decay
    p, buffer, m, v = p.copy(), None, 0.0, 0.0
    for t, g in enumerate(grads, 1):
        if name == "AdamW":
            p = p - lr * decay * p
        else:
            g = g + decay * p
        if name == "SGD":
            if momentum:
                buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
                g = g + momentum * buffer if nesterov else buffer
            p = p - lr * g
        else:
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            p = p - lr * (m / (1 - betas[0] ** t)) / (
                np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


@pytest.mark.parametrize("name,kwargs", ALL)
def test_formula_and_in_place(name, kwargs):
    rng = np.random.default_rng(0)
    p = rng.standard_normal((3, 2))
    start = p.copy()
    grads = [rng.standard_normal((3, 2)) for _ in range(6)]
    opt = getattr(optim, name)({"p": p}, **kwargs)
    for g in grads:
        opt.step({"p": g, "other": 1})
    assert opt.params["p"] is p
    np.testing.assert_allclose(p, formula(name, start, grads, **kwargs), rtol=1e-12)


@pytest.mark.parametrize("name,kwargs", ALL)
def test_against_torch(name, kwargs):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    p = rng.standard_normal((4, 3)).astype(np.float32)
    t = torch.nn.Parameter(torch.from_numpy(p.copy()))
    theirs = getattr(torch.optim, name)([t], **kwargs)
    ours = getattr(optim, name)([p], **kwargs)
    for _ in range(10):
        g = rng.standard_normal((4, 3)).astype(np.float32)
        t.grad = torch.from_numpy(g.copy())
        theirs.step()
        ours.step([g])
        np.testing.assert_allclose(p, t.detach().numpy(), rtol=2e-6, atol=1e-7)


def test_ways_to_name_parameters():
    net = nn.Linear(2, 3)
    g = {"bias": np.ones(3, np.float32), "weight": np.ones((3, 2), np.float32)}
    for params in (net, net.named_parameters(), net.state_dict()):
        before = net.weight.copy()
        optim.SGD(params, lr=1.0).step(g)
        np.testing.assert_array_equal(net.weight, before - 1)
    opt = optim.SGD(net.parameters(), lr=1.0)
    opt.step({"weight": g["weight"], "bias": g["bias"]})
    with pytest.raises(ValueError, match="shape"):
        opt.step(g)
    with pytest.raises(ValueError, match="1 gradients for 2"):
        opt.step({"weight": g["weight"]})
    with pytest.raises(KeyError, match="bias"):
        optim.SGD(net).step({"weight": g["weight"]})


def test_bad_arguments():
    p = [np.ones(2)]
    for make in (lambda: optim.SGD(p, lr=-1.0), lambda: optim.Adam(p, betas=(1.0, 0.9)),
                 lambda: optim.SGD(p, momentum=-0.1), lambda: optim.Adam(p, eps=-1.0),
                 lambda: optim.SGD(p, nesterov=True), lambda: optim.SGD([])):
        with pytest.raises(ValueError):
            make()
    for params in (np.ones(2), [np.arange(2)]):
        with pytest.raises(TypeError):
            optim.SGD(params)


@pytest.mark.parametrize("name,kwargs", ALL)
def test_state_can_be_saved(name, kwargs):
    rng = np.random.default_rng(2)
    grads = [{"p": rng.standard_normal(3)} for _ in range(6)]

    def make():
        p = np.ones(3)
        return p, getattr(optim, name)({"p": p}, **kwargs)

    p, whole = make()
    for g in grads:
        whole.step(g)
    q, first = make()
    for g in grads[:3]:
        first.step(g)
    saved = first.state_dict()
    r = q.copy()
    second = getattr(optim, name)({"p": r}, lr=9.0)
    if name == "SGD" and "momentum" in kwargs:
        with pytest.raises(ValueError, match="does not fit"):
            optim.Adam({"p": r}).load_state_dict(saved)
        second = optim.SGD({"p": r}, lr=9.0, momentum=0.1)
    second.load_state_dict(saved)
    for g in grads[3:]:
        second.step(g)
    np.testing.assert_array_equal(r, p)


def test_lr_may_change_between_steps():
    p = np.zeros(1)
    opt = optim.SGD([p], lr=1.0)
    opt.step([np.ones(1)])
    opt.lr = 0.5
    opt.step([np.ones(1)])
    assert p[0] == -1.5


def test_adam_first_step_is_the_learning_rate():
    p = np.zeros(3, np.float32)
    optim.Adam([p], lr=0.25).step([np.array([3.0, -1e-3, 1e6], np.float32)])
    assert np.allclose(p, [-0.25, 0.25, -0.25], rtol=1e-4) and math.isfinite(p.sum())
