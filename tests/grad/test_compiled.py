"""value_and_grad inside compiled code: one operation on the tape, equal to eager mode."""

import numpy as np
import pytest

import ccompile
from ccompile import GradientError, grad, nn, optim, value_and_grad
from ccompile.nn import functional as F

BACKENDS = ["eager", "interp", "c"]


def rand(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.fc = nn.Linear(64, 3)

    def forward(self, x):
        return self.fc(F.flatten(F.max_pool2d(F.relu(self.conv(x)), 2), 1))


loss_and_grads = value_and_grad(lambda model, x, y: F.cross_entropy(model(x), y))


def train_step(model, opt, x, y):
    loss, grads = loss_and_grads(model, x, y)
    opt.step(grads)
    return loss


def batches(dtype, n):
    for i in range(n):
        size = 5 if i == n - 1 else 8
        yield rand(size, 1, 8, 8, dtype=dtype, seed=i), np.arange(size) % 3


def losses(step, dtype, n):
    nn.manual_seed(1)
    model = Net().astype(dtype)
    opt = optim.Adam(model, lr=1e-2)
    return np.array([step(model, opt, x, y) for x, y in batches(dtype, n)])


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_epoch_is_one_recording(backend):
    step = ccompile.compile(train_step, backend=backend, fullgraph=True)
    losses(step, np.float32, 10)
    count = ccompile.counters(step)
    assert (count["recorded"], count["replayed"]) == (1, 9)
    assert count["side_exits"] == count["graph_breaks"] == count["fallback"] == 0
    assert count["array_ops_residual"] == 0
    if backend != "eager":
        assert count["array_ops_extern"] == 0 and count["array_ops_in_kernels"] > 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dtype", "close"), [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_losses_are_those_of_eager_mode(backend, dtype, close):
    step = ccompile.compile(train_step, backend=backend)
    np.testing.assert_allclose(losses(step, dtype, 20), losses(train_step, dtype, 20), rtol=0,
                               atol=close)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_parameter_that_was_replaced_is_read_anew(backend):
    model = nn.Linear(3, 1, dtype=np.float64)
    f = value_and_grad(lambda m, x: (m(x) ** 2).sum())
    compiled = ccompile.compile(lambda x: f(model, x), backend=backend)
    x = rand(4, 3)
    for i in range(4):
        value, grads = compiled(x)
        want, want_grads = f(model, x)
        np.testing.assert_allclose(value, want)
        for name, g in want_grads.items():
            np.testing.assert_allclose(grads[name], g)
        model.weight = rand(1, 3, seed=i)
    assert ccompile.counters(compiled)["recorded"] == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_new_parameter_is_noticed(backend):
    model = nn.Linear(3, 1, dtype=np.float64)
    f = value_and_grad(lambda m, x: (m(x) ** 2).sum())
    compiled = ccompile.compile(lambda x: f(model, x), backend=backend)
    x = rand(4, 3)
    for _ in range(2):
        assert list(compiled(x)[1]) == ["weight", "bias"]
    model.register_parameter("extra", rand(2))
    for _ in range(2):
        grads = compiled(x)[1]
        assert list(grads) == ["weight", "bias", "extra"] and not grads["extra"].any()


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_what_is_differentiated_is(backend):
    """The same array as a leaf, as another argument, and under a name that is no parameter."""
    model = nn.Linear(3, 3, bias=False, dtype=np.float64)
    model.alias = model.weight
    f = value_and_grad(lambda m: (m.weight * m.alias).sum())
    g = value_and_grad(lambda a, b: (a * b).sum())

    def program(a):
        return f(model)[1]["weight"], g(a, a)[1]

    compiled = ccompile.compile(program, backend=backend)
    a = rand(5)
    for _ in range(3):
        first, second = compiled(a)
        np.testing.assert_array_equal(first, model.weight)
        np.testing.assert_array_equal(second, a)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_branch_inside_leaves_before_the_call(backend):
    f = value_and_grad(lambda w: (w * w).sum() if w.sum() > 0 else (w ** 3).sum())
    compiled = ccompile.compile(lambda w: f(w), backend=backend)
    for w in (rand(4), -rand(4), rand(4, seed=1), np.abs(rand(4)), -np.abs(rand(4))) * 2:
        for got, want in zip(compiled(w), f(w), strict=True):
            np.testing.assert_allclose(got, want)
    count = ccompile.counters(compiled)
    assert count["graph_breaks"] == 0 and count["recorded"] <= 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_effects_inside_happen_once_per_call(backend):
    seen = []

    def noisy(w):
        seen.append(float(w.shape[0]))
        return (w * w).sum()

    f = value_and_grad(noisy)
    compiled = ccompile.compile(lambda w: f(w), backend=backend)
    for calls in range(1, 5):
        value, g = compiled(rand(3))
        assert len(seen) == calls
        np.testing.assert_allclose(g, 2 * rand(3))
    reasons = {row[1] for row in compiled._breaks()}
    assert "GRADIENT" in reasons


def test_a_list_from_outside_is_appended_once():
    def program(w):
        log = []

        def f(w):
            log.append(1)
            return (w * w).sum()

        return value_and_grad(f)(w)[0], log

    compiled = ccompile.compile(program, backend="eager")
    for _ in range(3):
        assert compiled(rand(3))[1] == [1]


@pytest.mark.parametrize("bad", [
    lambda w: w, lambda w: 1.0, lambda w: float(w.sum()), lambda w: (w.sum(), 1),
    lambda w: np.linalg.svd(w)[1].sum(), lambda w: (w + 1j).real.sum(),
])
def test_errors_are_those_of_eager_mode(bad):
    f = value_and_grad(bad)

    def program(w):
        return f(w)

    compiled = ccompile.compile(program, backend="interp")
    w = rand(3, 3)
    with pytest.raises(GradientError) as want:
        program(w)
    for _ in range(3):
        with pytest.raises(GradientError) as got:
            compiled(w)
        assert str(got.value) == str(want.value)


def test_an_exception_of_the_function_is_its_own():
    def f(w):
        if w.shape[0] == 2:
            raise KeyError("two")
        return (w * w).sum()

    program = grad(f)
    compiled = ccompile.compile(lambda w: program(w), backend="interp")
    for n in (3, 2, 3, 2):
        if n == 2:
            with pytest.raises(KeyError, match="two"):
                compiled(rand(n))
        else:
            np.testing.assert_allclose(compiled(rand(n)), 2 * rand(n))


def test_warnings_come_from_the_function():
    f = value_and_grad(lambda w: np.log(w).sum())

    def program(w):
        return f(w)

    compiled = ccompile.compile(program, backend="interp")
    compiled(np.ones(3))
    compiled(np.ones(3))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        compiled(np.zeros(3))


def test_without_its_leaves_a_gradient_would_be_found_elsewhere():
    """A module that is another one now: the path to its arrays is what counts."""
    box = nn.Module()
    box.inner = nn.Linear(2, 1, dtype=np.float64)
    f = value_and_grad(lambda m, x: m.inner(x).sum())
    compiled = ccompile.compile(lambda x: f(box, x), backend="interp")
    x = rand(3, 2)
    compiled(x)
    for seed in range(3):
        nn.manual_seed(seed)
        box.inner = nn.Linear(2, 1, dtype=np.float64)
        value, grads = compiled(x)
        np.testing.assert_allclose(value, f(box, x)[0])
        np.testing.assert_allclose(grads["inner.weight"], x.sum(axis=0)[None])
