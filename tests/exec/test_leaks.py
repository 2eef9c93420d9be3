"""A thousand calls do not grow the process: Python's blocks, malloc's bytes, resident memory."""

import contextlib
import ctypes
import gc
import os
import sys
import tracemalloc

import numpy as np
import pytest

import ccompile
from ccompile import nn, optim
from ccompile.nn import functional as F
from tests.support import compiled

CALLS = 1000
WINDOWS = 3  # a leak shows in each; a cache or a grown pool in one
NOISE = {"blocks": 60, "malloc": 16_000, "resident": 1_000_000, "traced": 16_000}

pytestmark = pytest.mark.skipif(
    os.environ.get("PYTHONMALLOC", "") != "", reason="a debugging allocator keeps what is freed")


class MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


def malloc_bytes():
    """Bytes that malloc has given out, mapped ones included; 0 where the C library cannot say."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    mallinfo2.restype = MallInfo
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def resident_bytes():
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def measure():
    gc.collect()
    return {"blocks": sys.getallocatedblocks(), "malloc": malloc_bytes(),
            "resident": resident_bytes(), "traced": tracemalloc.get_traced_memory()[0]}


def growth(call, calls=CALLS):
    """What every window of `calls` calls grew, beyond noise: {} when one window did not."""
    for _ in range(calls // 10):
        call()
    leaks = {}
    for _ in range(WINDOWS):
        before = measure()
        for _ in range(calls):
            call()
        after = measure()
        leaks = {key: after[key] - before[key] for key in before
                 if after[key] - before[key] > NOISE[key]}
        if not leaks:
            break
    return leaks


# -- Programs -----------------------------------------------------------------


def row(n=9):
    return np.arange(n, dtype=np.float64) - 2


def formula(a, b):
    return np.sin(a) * 2 + b, (a * b).sum(axis=0)


def mixed(a, b):
    return np.sin(a) * 2 + b, a * b


def branches(a, k):
    parts = [k]
    if a.sum() > k:
        parts.append(a * 2)
    for x in parts:
        a = a + x
    return {"parts": parts, "a": a}


def residual(a, log):
    log.append(a.sum())
    b = a * len(log)
    log.clear()
    print(end="")
    return b + 1


def raises(a, k):
    with contextlib.suppress(ZeroDivisionError, IndexError):
        return a[k], 1 // k
    return a


def warns(a):
    with np.errstate(all="ignore"):
        return np.log(a) / (a - a), a / 0


def loops(a, n):
    total = 0
    while n > 0:
        a = a * 0.5 + 1
        total += n
        n -= 1
    return a, total


class Layer:
    def __init__(self, w):
        self.w, self.calls = w, 0

    def __call__(self, x, *rest, scale=1.0, **more):
        self.calls += 1
        return [np.tanh(x @ self.w) * scale, rest, more]


def methods(layer, x):
    first, rest, more = layer(x, 1, "two", scale=0.5, key=x)
    return [f"{y}" for y in rest], first, {**more}, lambda: first


def in_place(a, b):
    a += b
    a[1:] = a[:-1]
    a *= 0
    return a


def gradient(w, x):
    return ccompile.value_and_grad(lambda w: (np.tanh(x @ w) ** 2).mean())(w)


def steps(values):
    """Arguments that change from call to call, in turn."""
    state = [0]

    def turn():
        state[0] += 1
        return values[state[0] % len(values)]

    return turn


def programs():
    """{name: (function, what gives the arguments of the next call)}"""
    a, b, w, x = row(), row() + 1, row(12).reshape(3, 4), row(6).reshape(2, 3)
    layer, log = Layer(w), []
    return {
        "formula": (formula, lambda: (a, b)),
        "branches": (branches, steps([(a, 1), (a, 1000), (-a, 1), (a, 2.5)])),
        "residual": (residual, lambda: (a, log)),
        "raises": (raises, steps([(a, 1), (a, 0), (a, 99), (a, 2)])),
        "warns": (warns, lambda: (a,)),
        "loops": (loops, steps([(a, 5), (a, 3), (b, 17)])),
        "methods": (methods, lambda: (layer, x)),
        "in_place": (in_place, lambda: (a, b)),
        "gradient": (gradient, lambda: (w, x)),
        "types": (mixed, steps([(a, b), (1.5, 2), (w, w), (a.astype("f4"), b), (2j, a)])),
    }


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("make,key", [
    (object, "blocks"),
    (lambda: np.ones(100), "malloc"),
    (lambda: np.ones(2000), "resident"),
    (lambda: bytes(100), "traced"),
])
def test_a_leak_is_seen(make, key, traced):
    kept = []
    leaks = growth(lambda: kept.append(make()))
    if key == "malloc" and malloc_bytes() == 0 or key == "resident" and resident_bytes() == 0:
        pytest.skip("this system cannot tell")
    assert key in leaks


@pytest.mark.parametrize("engine", ["eager", "interp", "c", "interp+stress"])
@pytest.mark.parametrize("name", programs())
def test_calls_do_not_grow(name, engine, traced):
    function, arguments = programs()[name]
    function = compiled(function, engine)

    def call():
        with contextlib.suppress(TypeError, ValueError):
            function(*arguments())

    for _ in range(1500 if name == "gradient" else 0):  # as below: so does the plain function
        call()
    assert growth(call, 200 if name == "gradient" else CALLS) == {}


def test_refcounts_of_arguments_are_as_before():
    for name, (function, arguments) in programs().items():
        for engine in ("eager", "interp", "interp+stress"):
            run = compiled(function, engine)
            seen = [arguments() for _ in range(5)]
            flat = [part for args in seen for part in args if isinstance(part, np.ndarray)]
            with contextlib.suppress(TypeError, ValueError):
                for args in seen:
                    run(*args)
            gc.collect()
            before = [sys.getrefcount(part) for part in flat]
            for _ in range(10):
                for args in seen:
                    with contextlib.suppress(TypeError, ValueError):
                        run(*args)
            gc.collect()
            assert [sys.getrefcount(part) for part in flat] == before, (name, engine)


def test_a_train_step_does_not_grow(traced):
    nn.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    opt = optim.Adam(model)
    loss_and_grads = ccompile.value_and_grad(lambda m, x, y: F.cross_entropy(m(x), y))

    def step(x, y):
        loss, grads = loss_and_grads(model, x, y)
        opt.step(grads)
        return loss

    step = ccompile.compile(step)
    x, y = np.ones((6, 4), np.float32), np.arange(6) % 3
    for _ in range(800):  # the pools of the interpreter settle slowly
        step(x, y)
    assert growth(lambda: step(x, y), 200) == {}


@pytest.mark.parametrize("name", ["branches", "residual", "methods", "loops"])
def test_compiled_callables_are_freed(name, traced):
    function, arguments = programs()[name]

    def call():
        run = ccompile.compile(function, backend="interp")
        for _ in range(4):
            run(*arguments())

    assert growth(call, 60) == {}
