"""Arrays changed in place: what is in one launch, and that each rule about memory is needed."""

import numpy as np
import pytest

import ccompile
from ccompile.optim import Adam
from tests.support import compiled

LOOKED = []


@ccompile.disable
def look(x):
    LOOKED.append(x.tolist())


def adam(params, grads, means, squares, lr):
    for p, g, m, v in zip(params, grads, means, squares):  # noqa: B905
        m *= 0.9
        m += 0.1 * g
        v *= 0.999
        v += 0.001 * g * g
        p -= lr * m / (np.sqrt(v) + 1e-8)
    return len(params)


def adam_of_dicts(params, grads, means, squares, lr):
    for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
        means[name] *= 0.9
        means[name] += 0.1 * grads[name]
        squares[name] *= 0.999
        squares[name] += 0.001 * grads[name] * grads[name]
        params[name] -= lr * means[name] / (np.sqrt(squares[name]) + 1e-8)


def state(kind):
    rng = np.random.default_rng(3)
    arrays = [[rng.random((3 + i, 4)) for i in range(8)] for _ in range(4)]
    if kind is dict:
        return [dict(zip("abcdefgh", row, strict=True)) for row in arrays]
    return [kind(row) for row in arrays]


def rows(fn, name):
    return sum(line.split("= ")[-1].startswith(name) for line in "".join(fn._tapes()).splitlines())


@pytest.mark.parametrize(("function", "kind"), [(adam, tuple), (adam_of_dicts, dict)])
def test_an_optimizer_step_is_one_launch(function, kind):
    plain, other = state(kind), state(kind)
    step = compiled(function, "interp")
    for lr in (0.1, 0.1, 0.2):
        function(*plain, lr)
        step(*other, lr)
    for one, two in zip(plain, other, strict=True):
        for x, y in zip(list(one.values()) if kind is dict else one,
                        list(two.values()) if kind is dict else two, strict=True):
            np.testing.assert_array_equal(x, y)
    assert rows(step, "WRITE") == 24
    assert rows(step, "LAUNCH") == 1
    assert rows(step, "GOVER") == 1
    count = ccompile.counters(step)
    assert count["array_ops_residual"] == count["array_ops_extern"] == count["side_exits"] == 0
    assert count["array_ops_in_kernels"] == 2 * 8 * 12
    assert count["recorded"] == 1 and count["replayed"] == 2


def test_a_step_of_the_optimizer_is_one_launch():
    rng = np.random.default_rng(5)
    start = {f"p{i}": rng.random((2 + i, 3)) for i in range(8)}
    grads = {name: rng.random(p.shape) for name, p in start.items()}
    plain, other = ({name: p.copy() for name, p in start.items()} for _ in range(2))
    one, two = Adam(plain), Adam(other)
    step = compiled(two.step, "interp")
    for _ in range(3):
        one.step(grads)
        step(grads)
    for name in start:
        np.testing.assert_allclose(other[name], plain[name], rtol=1e-15)
    assert rows(step, "WRITE") == 24 and rows(step, "LAUNCH") == 1
    assert rows(step, "RCALL") == 1  # the count of steps


def test_a_loop_over_a_stencil_launches_once_per_turn():
    def jacobi(a, b, n):
        for _ in range(n):
            b[1:-1] = 0.5 * (a[:-2] + a[2:])
            a, b = b, a
        return a

    fn = compiled(jacobi, "interp")
    for n in (5, 9, 9):
        want = jacobi(np.arange(9.0), np.zeros(9), n)
        np.testing.assert_array_equal(fn(np.arange(9.0), np.zeros(9), n), want)
    assert ccompile.counters(fn)["array_ops_residual"] == 0


# -- Rules ------------------------------------------------------------------------------------


def overlapping(a, b, k):
    a += 1
    return b * k


def parts(a, b, k):
    v = a[1:]
    v += 1
    return a * k


def forwarded(a, b, k):
    a += 1
    b[:] = a * k


def shown(a, b, k):
    a += 1
    look(a)
    return a * k


def checked(a, b, k):
    s = a.sum()
    a += 1
    return 10 // int(s - k)


def same_arrays():
    a = np.arange(3.0)
    return a, a


def apart():
    return np.arange(3.0), np.arange(3.0)


RULES = [
    ("overlap", overlapping, same_arrays),
    ("overlap", parts, apart),
    ("forward", forwarded, apart),
    ("flush", shown, apart),
    ("txn", checked, apart),
]


def outcome(fn, arrays, k):
    a, b = arrays()
    LOOKED.clear()
    try:
        result = fn(a, b, k)
    except ZeroDivisionError as e:
        result = str(e)
    parts = [a, b, result] if isinstance(result, np.ndarray) else [a, b]
    return [x.tolist() for x in parts], list(LOOKED), str(result)


@pytest.mark.parametrize("backend", ["eager", "interp"])
@pytest.mark.parametrize(("rule", "function", "arrays"), RULES,
                         ids=[f"{rule}-{function.__name__}" for rule, function, _ in RULES])
def test_a_rule_is_kept_and_needed(rule, function, arrays, backend):
    kept = ccompile.compile(function, backend=backend)
    dropped = ccompile.compile(function, backend=backend, options={"stress": f"drop:{rule}"})
    differs = False
    for k in (1, 2, 3, 4):
        want = outcome(function, arrays, k)
        assert outcome(kept, arrays, k) == want
        differs |= outcome(dropped, arrays, k) != want
    assert ccompile.counters(kept)["array_ops_residual"] in (0, 3)  # the call of look
    assert differs


def test_sharing_that_appears_later_leaves_at_a_guard():
    fn = compiled(overlapping, "interp")
    for arrays in (apart, apart, same_arrays, same_arrays, apart):
        assert outcome(fn, arrays, 2) == outcome(overlapping, arrays, 2)
    assert ccompile.counters(fn)["recorded"] == 2 and rows(fn, "GOVER") == 1


def test_what_was_made_here_is_not_written_back():
    def layer(x, w, b):
        h = x @ w
        h += b
        h *= 2
        return h

    fn = compiled(layer, "interp")
    args = np.arange(6.0).reshape(2, 3), np.ones((3, 4)), np.arange(4.0)
    for _ in range(3):
        np.testing.assert_array_equal(fn(*args), layer(*args))
    assert rows(fn, "WRITE") == 0 and rows(fn, "LAUNCH") == 1
    assert ccompile.counters(fn)["array_ops_extern"] == 0


def test_many_arrays_are_kept_apart_by_one_guard():
    def step(xs, ys):
        for x, y in zip(xs, ys):  # noqa: B905
            x += y
            y *= 2

    fn = ccompile.compile(step, backend="eager")
    big = np.zeros(20 * 3)
    for _ in range(3):
        xs, ys = (tuple(np.arange(3.0) for _ in range(10)) for _ in range(2))
        fn(xs, ys)
        assert all(x.tolist() == [0, 2, 4] == y.tolist() for x, y in zip(xs, ys, strict=True))
    assert rows(fn, "GOVER") == 1 and rows(fn, "LAUNCH") == 1
    parts = [big[3 * i : 3 * i + 3] for i in range(20)]
    fn(tuple(parts[::2]), tuple(parts[1::2]))  # neighbours share no memory
    assert ccompile.counters(fn)["recorded"] == 1
    parts[5] = parts[4]
    big[:] = 1
    fn(tuple(parts[::2]), tuple(parts[1::2]))
    assert ccompile.counters(fn)["recorded"] == 2
    assert big[:12].tolist() == [2] * 12 and big[12:15].tolist() == [4] * 3
    assert big[18:].tolist() == [2] * 42
