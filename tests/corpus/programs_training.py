"""Training without torch: gradients, layers and optimizers inside the compiled call.

Sums of products may be added in another order, so values are compared with a tolerance of the
largest element.
"""

import numpy as np

from ccompile import grad, nn, optim, value_and_grad
from ccompile.nn import functional as F

from .program import Programs

PROGRAMS = Programs()
CLOSE = 1e-5  # float32
CLOSER = 1e-12  # float64


def rand(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def seeded(make):
    nn.manual_seed(3)
    return make()


@PROGRAMS.add(lambda: (rand(4, 3, dtype=np.float64),), lambda: (rand(2, 3, dtype=np.float64),),
              close=CLOSER)
def gradient_of_a_formula(x):
    def f(x):
        return (np.tanh(x) * x ** 2).sum() + np.exp(-x).mean()

    return value_and_grad(f)(x)


@PROGRAMS.add(lambda: ({"w": rand(3, 2), "b": rand(2)}, rand(4, 3)),
              lambda: ({"w": rand(3, 2, seed=1), "b": rand(2)}, rand(5, 3)), close=CLOSE)
def gradient_of_a_tree(params, x):
    def f(p, x):
        h = np.maximum(x @ p["w"] + p["b"], 0)
        return (h * h).mean(), {"h": h}

    (value, aux), g = value_and_grad(f, has_aux=True)(params, x)
    return value, aux, g


@PROGRAMS.add(lambda: (rand(3), rand(3, seed=1), 2.0), lambda: (rand(4), rand(4, seed=1), 0.5),
              close=CLOSE)
def gradient_of_several_arguments(a, b, k):
    return grad(lambda a, b: (a * b * k).sum() + (a / (b * b + 1)).sum(), (0, 1))(a, b)


@PROGRAMS.add(lambda: (np.array([0.0, -0.0, 1.0, -1.0, 1.0]),))
def gradient_ties(x):
    return (grad(lambda x: np.abs(x).sum())(x), grad(lambda x: np.maximum(x, 0).sum())(x),
            grad(lambda x: x.max())(x), grad(lambda x: np.clip(x, -1, 1).sum())(x),
            grad(lambda x: F.relu(x).sum())(x))


@PROGRAMS.add(lambda: (rand(5), rand(5, seed=1)), lambda: (rand(7), rand(7, seed=2)), close=CLOSE)
def gradient_around_other_array_work(x, c):
    """The path from x to the loss is cut into two kernels by work that has none."""
    def f(x):
        h = np.maximum(x, 0) * x
        order = np.sort(c)
        return (h * order + np.tanh(h)).sum()

    return value_and_grad(f)(x)


@PROGRAMS.add(lambda: (rand(5, 2), 3), lambda: (rand(5, 2), 1), lambda: (rand(5, 2), 6),
              close=CLOSE)
def gradient_through_a_loop(x, n):
    def f(x):
        h = x
        for i in range(n):
            h = np.tanh(h) * (i + 1)
        return h.sum()

    return value_and_grad(f)(x)


@PROGRAMS.add(lambda: (rand(6),), lambda: (-np.abs(rand(6)),), lambda: (np.abs(rand(6)),),
              close=CLOSE)
def gradient_with_a_branch(x):
    def f(x):
        if x.sum() > 0:
            return (x * x).sum()
        return (x * 3).sum()

    return value_and_grad(f)(x)


@PROGRAMS.add(lambda: (rand(3, 4),), lambda: (rand(2, 4),), close=CLOSE)
def gradient_through_views_and_writes(x):
    def f(x):
        y = x * 2
        y[0] = y[-1] * 3
        y[:, 1:] += x[:, :-1]
        return (y.T @ y).sum()

    return value_and_grad(f)(x)


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


MODEL = seeded(mlp)
ADAM = optim.Adam(MODEL, lr=0.05)


@PROGRAMS.add(lambda: (rand(6, 4), np.array([0, 1, 2, 0, 1, 2])),
              lambda: (rand(3, 4, seed=1), np.array([2, 2, 0])), close=CLOSE)
def train_step_adam(x, y):
    loss, grads = value_and_grad(lambda m, x, y: F.cross_entropy(m(x), y))(MODEL, x, y)
    ADAM.step(grads)
    return loss


PERCEPTRON = seeded(lambda: nn.Linear(4, 1, dtype=np.float64))
SGD = optim.SGD(PERCEPTRON, lr=0.1, momentum=0.9, weight_decay=0.01)


@PROGRAMS.add(lambda: (rand(6, 4, dtype=np.float64), 0.1),
              lambda: (rand(6, 4, dtype=np.float64, seed=1), 0.01), close=CLOSER)
def train_step_sgd(x, lr):
    SGD.lr = lr
    loss, grads = value_and_grad(lambda m: ((m(x) - 1) ** 2).mean())(PERCEPTRON)
    SGD.step(grads)
    return loss, grads


CNN = seeded(lambda: nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)))
ADAMW = optim.AdamW(CNN, lr=0.01)


@PROGRAMS.add(lambda: (rand(4, 1, 8, 8), np.array([0, 1, 2, 0])),
              lambda: (rand(2, 1, 8, 8, seed=1), np.array([1, 1])), close=1e-4)
def train_step_cnn(x, y):
    loss, grads = value_and_grad(lambda m: F.cross_entropy(m(x), y))(CNN)
    ADAMW.step(grads)
    return loss


@PROGRAMS.add(lambda: (seeded(lambda: nn.Conv2d(3, 4, 3, 2, 1, groups=1)), rand(2, 3, 7, 8)),
              lambda: (seeded(lambda: nn.Conv2d(3, 6, (3, 1), groups=3)), rand(1, 3, 5, 5)),
              lambda: (seeded(lambda: nn.Conv2d(3, 2, 1, bias=False)), rand(2, 3, 4, 4)),
              close=CLOSE)
def convolution(layer, x):
    y = F.relu(layer(x))
    return layer(x), F.max_pool2d(x, 2), y, F.max_pool2d(y, 2)


@PROGRAMS.add(lambda: (rand(3, 5), np.array([0, 4, 2])), lambda: (rand(3, 5), np.array([0, 5, 1])),
              lambda: (rand(3, 5), np.array([0, -1, 1])), close=CLOSE)
def losses(x, y):
    return (F.softmax(x, 1), F.log_softmax(x, 0), F.cross_entropy(x, y),
            F.cross_entropy(x, y, reduction="none"), nn.CrossEntropyLoss(reduction="sum")(x, y))


DROPOUT = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 3, bias=False))


@PROGRAMS.add(lambda: (rand(4, 3), True), lambda: (rand(4, 3), False), close=CLOSE)
def train_and_eval_modes(x, training):
    nn.manual_seed(5)
    DROPOUT.train(training)
    DROPOUT[1].weight[...] = np.eye(3)
    return DROPOUT(x), [m.training for m in DROPOUT.modules()]


@PROGRAMS.add(lambda: (seeded(mlp), seeded(mlp)))
def state_dict_round_trip(a, b):
    for p in b.parameters():
        p += 1
    kept = b[0].weight
    missing = b.load_state_dict(a.state_dict())
    return missing, list(b.state_dict()), kept is b[0].weight, [p.sum() * 0 for p in b.parameters()]
