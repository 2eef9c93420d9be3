"""Random programs through backend "interp": what plain NumPy gives, it gives."""

import random

import numpy as np
import pytest

import ccompile

from .test_lower import DTYPES, data, run, same

BINARY = [
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "np.maximum({a}, {b})",
    "np.minimum({a}, {b})",
    "np.where({a} > {b}, {a}, {b})",
    "{a} / ({b} * {b} + 1)",
    "{a} < {b}",
    "np.hypot({a}, {b})",
    "({a} >= 0) & ({b} > 1)",
    "{a}[k:] - {a}[:-k]",
    "np.outer({a}[..., 0], {a}[..., -1])",
]
UNARY = [
    "-({a} * 1)",
    "abs({a})",
    "np.sqrt(abs({a}))",
    "np.exp(-abs({a}))",
    "np.tanh({a})",
    "({a} * 0.5 + 1)",
    "{a}.astype(np.float32)",
    "{a}.astype(np.int32)",
    "np.clip({a}, -1, 2)",
    "np.floor({a} * 1.0)",
    "({a} ** 2)",
    "np.where({a} > 0, {a}, 0)",
    "{a}.sum(axis=0)",
    "{a}.sum(axis=-1, keepdims=True)",
    "{a}.max(axis=0)",
    "{a}.mean(axis=-1)",
    "{a}.mean()",
    "{a}.sum()",
    "{a}.T",
    "{a}[1:]",
    "{a}[..., 0]",
    "{a}[::-1]",
    "{a}[None]",
    "{a}.reshape(-1)",
    "np.cumsum({a}, axis=0)",
    "np.concatenate(({a}, {a}))",
    "np.stack(({a}, {a}))",
    "{a}[..., ::2]",
    "np.expand_dims({a}, 0)",
    "{a}.argmax(axis=0)",
    "({a} > 0).any(axis=0)",
    "{a}.std(axis=0)",
    "np.flip({a}, 0)",
    "np.zeros_like({a})",
    "{a} @ {a}.T",
    "{a}.copy()",
    "float(np.sum({a}))",
    "np.squeeze({a})",
    "np.diff({a})",
    "np.roll({a}, 1, axis=0)",
    "np.pad({a}, 1)",
    "{a}[:k]",
    "{a}[k - 1]",
    "np.round({a} * 0.7)",
    "{a}[np.array([0, -1])]",
]


def program(rng, ninputs):
    """Text of a function of `ninputs` arrays and an int."""
    names = [f"x{i}" for i in range(ninputs)]
    head, body = f"def f({', '.join(names)}, k):\n", ""
    for i in range(rng.randint(2, 9)):
        if rng.random() < 0.5:
            text = rng.choice(BINARY).format(
                a=rng.choice(names), b=rng.choice([*names, "2", "0.5", "k"])
            )
        else:
            text = rng.choice(UNARY).format(a=rng.choice(names))
        body += f"    t{i} = {text}\n"
        names.append(f"t{i}")
    made = names[ninputs:]
    results = [*rng.sample(made, min(len(made), rng.randint(1, 3))), names[-1]]
    return f"{head}{body}    return ({', '.join(results)},)\n"


def array(rng, dtype, shape):
    """An array in one of the layouts that programs meet."""
    form, seed = rng.random(), rng.randint(0, 9)
    if form < 0.15:
        return np.asfortranarray(data(dtype, shape, seed))
    if form < 0.3:
        return data(dtype, [2 * n for n in shape], seed)[tuple(slice(None, None, 2) for _ in shape)]
    if form < 0.4:
        return data(dtype, shape[::-1], seed).T
    return data(dtype, shape, seed)


def arguments(rng, dtypes, ndim):
    """Arrays of shapes that mostly fit each other, and an int."""
    shape = tuple(rng.choice([1, 2, 3, 4, 5, 6, 7]) for _ in range(ndim))
    shapes = [
        tuple(1 if rng.random() < 0.1 else n for n in shape)[rng.random() < 0.2 and ndim > 1 :]
        for _ in dtypes
    ]
    return [*(array(rng, d, s) for d, s in zip(dtypes, shapes, strict=True)), rng.choice([1, 2, 3])]


def agree(want, got, warned, warned_too):
    """Assert that both runs showed the same, floats about as exact as float32 is."""
    if isinstance(want[0], type):
        assert got == want
    else:
        same(want, got, 2.0**34)
        for w, g in zip(want, got, strict=True):
            if np.asarray(w).dtype.kind == "f":
                np.testing.assert_allclose(g, w, rtol=3e-5, atol=1e-5)
    assert [w[:2] for w in warned_too] == [w[:2] for w in warned]


@pytest.mark.parametrize("stress", [None, "exit:3,snap"])
@pytest.mark.parametrize("block", range(8))
def test_programs(block, stress):
    kernels = 0
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        dtypes = [rng.choice(DTYPES) for _ in range(rng.randint(1, 3))]
        text = program(rng, len(dtypes))
        scope = {"np": np}
        exec(text, scope)
        compiled = ccompile.compile(
            scope["f"], backend="interp", options=stress and {"stress": stress}
        )
        ndim = rng.choice([1, 2, 2, 3])
        for args in [arguments(rng, dtypes, ndim) for _ in range(3)] * 2:
            want, warned = run(scope["f"], args)
            try:
                got, warned_too = run(compiled, args)
                agree(want, got, warned, warned_too)
            except AssertionError as error:
                raise AssertionError(
                    f"seed {seed}\n{text}\n{[a.shape for a in args[:-1]]}"
                ) from error
        kernels += ccompile.counters(compiled)["array_ops_in_kernels"]
    assert kernels > (0 if stress else 40)
