"""A function of the program's as backend: what it is given, what it may give, what it may not."""

import numpy as np
import pytest

import ccompile


def program(a, b, k):
    return np.sin(a) * b + k, (a * b).sum()


def arguments(n=5, dtype=np.float64):
    a = np.arange(n, dtype=dtype)
    return a, a[::-1] + 1, 2.5


def equal(got, want):
    for g, w in zip(got, want, strict=True):
        assert type(g) is type(w) and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-15)


def test_it_is_asked_once_and_its_function_is_called():
    asked, calls = [], []

    def backend(graph, example_inputs):
        asked.append((str(graph), [np.shape(x) for x in example_inputs]))
        assert len(example_inputs) == graph.ninputs and graph.noutputs == 2

        def run(*inputs):
            calls.append(len(inputs))
            return graph(*inputs)

        return run

    compiled = ccompile.compile(program, backend=backend)
    for n in (5, 5, 8):
        equal(compiled(*arguments(n)), program(*arguments(n)))
    assert len(asked) == 1 and "SIN" in asked[0][0] and (5,) in asked[0][1]
    assert len(calls) == 2
    assert ccompile.counters(compiled)["recorded"] == 1


def test_what_it_gives_is_the_result():
    compiled = ccompile.compile(lambda a: a + 1, backend=lambda graph, example: lambda a: [a * 10])
    compiled(np.ones(3))
    np.testing.assert_array_equal(compiled(np.ones(3)), [10, 10, 10])


@pytest.mark.parametrize("wrong", [
    lambda a: 1 / 0, lambda a: None, lambda a: [], lambda a: [a[:1]], lambda a: [a.astype("f4")],
    lambda a: ["text"],
])
def test_a_function_that_fails_is_heard_of_and_replaced(wrong, monkeypatch):
    heard = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: heard.append(args.exc_type))
    compiled = ccompile.compile(lambda a: a * 3 + 1, backend=lambda graph, example: wrong)
    for _ in range(4):
        np.testing.assert_array_equal(compiled(np.ones(3)), [4, 4, 4])
    assert len(heard) == 1


@pytest.mark.parametrize("backend", [lambda graph, example: 5, lambda graph, example: 1 / 0])
def test_a_backend_that_fails_is_heard_of(backend, monkeypatch):
    heard = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: heard.append(args.exc_type))
    compiled = ccompile.compile(lambda a: a * 3, backend=backend)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(np.ones(3)), [3, 3, 3])
    assert len(heard) == 1


def test_what_is_no_backend():
    with pytest.raises(TypeError, match="a name or a callable"):
        ccompile.compile(program, backend=5)
    with pytest.raises(ValueError, match="no backend 'x'"):
        ccompile.compile(program, backend="x")


def test_a_graph_runs_without_its_trace():
    kept = []

    def backend(graph, example):
        kept.append(graph)
        return graph

    compiled = ccompile.compile(program, backend=backend)
    compiled(*arguments())
    graph = kept[0]
    del compiled
    inputs = {1: arguments()[0], 2: arguments()[1]}
    assert graph.ninputs == 3 and isinstance(str(graph), str)
    again = ccompile.Graph(str(graph))
    assert str(again) == str(graph)
    with pytest.raises(TypeError, match="expected 3 inputs"):
        again(inputs[1])
    with pytest.raises(TypeError, match="expected an array"):
        again(1, 2, 3)
    with pytest.raises(ValueError, match="no graph"):
        ccompile.Graph("nonsense")


def test_an_installed_backend_is_found_by_name(monkeypatch):
    import importlib.metadata

    class Point:
        name = "mine"

        def load(self):
            return lambda graph, example: graph

    def points(group, name=None):
        assert group == "ccompile.backends"
        return [Point()] if name in (None, "mine") else []

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    assert ccompile.list_backends()[-1] == "mine"
    compiled = ccompile.compile(program, backend="mine")
    for _ in range(2):
        equal(compiled(*arguments()), program(*arguments()))
