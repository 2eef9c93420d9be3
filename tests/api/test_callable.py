"""Compiled callables as Python objects: methods, attributes, copies, pickles, references, reset."""

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest

import ccompile


@ccompile.compile
def decorated(x, y=2, *, z: int = 3) -> int:
    """Adds."""
    return x + y + z


@ccompile.compile(options={"unroll": 4})
def with_options(x):
    return x * 2


def plain(x):
    return x - 1


@ccompile.compile
class Callables:
    """A class is called as it is."""


class Model:
    scale = 3

    def __init__(self, w):
        self.w = w

    @ccompile.compile
    def method(self, x):
        """Scales."""
        return self.w * x

    @classmethod
    @ccompile.compile
    def of_class(cls, x):
        return cls.scale * x

    @staticmethod
    @ccompile.compile
    def static(x):
        return x + 1

    @ccompile.compile
    def __call__(self, x):
        return self.w + x

    @property
    @ccompile.compile
    def twice(self):
        return self.w * 2


class Child(Model):
    scale = 5


class Net:
    """A callable object with state."""

    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return self.w @ x


# -- Methods ----------------------------------------------------------------


def test_methods():
    model, other = Model(2.0), Child(7.0)
    for _ in range(3):
        assert model.method(3) == 6 and other.method(3) == 21
        assert Model.method(model, 3) == 6
        assert Model.of_class(2) == 6 and Child.of_class(2) == 10 and other.of_class(1) == 5
        assert Model.static(4) == 5 and model.static(4) == 5
        assert model(1) == 3 and other(1) == 8
        assert model.twice == 4 and other.twice == 14
    bound = model.method
    assert bound.__self__ is model and bound.__doc__ == "Scales." and bound.__name__ == "method"
    assert ccompile.counters(Model.method)["replayed"] > 0


def test_wrong_arguments():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        decorated()
    with pytest.raises(TypeError, match="unexpected keyword"):
        decorated(1, q=2)
    with pytest.raises(TypeError, match="missing 1 required"):
        Model(1).method()


def test_bound_methods_and_objects_as_model():
    net = Net(np.eye(2))
    by_object, by_method = ccompile.compile(net), ccompile.compile(Model(4).method)
    x = np.arange(2.0)
    for _ in range(3):
        assert by_object(x).tolist() == [0, 1]
        assert by_method(2) == 8
    net.w = 2 * np.eye(2)
    assert by_object(x).tolist() == [0, 2]
    by_object.w = 3 * np.eye(2)  # written through
    assert net.w[0, 0] == 3 and by_object.w is net.w
    assert by_object(x).tolist() == [0, 3]
    del by_object.w
    assert not hasattr(net, "w")


# -- Attributes ---------------------------------------------------------------


def test_looks_like_the_function():
    assert decorated.__name__ == "decorated" and decorated.__qualname__ == "decorated"
    assert decorated.__doc__ == "Adds." and decorated.__module__ == __name__
    assert decorated.__annotations__ == {"z": int, "return": int}
    assert decorated.__defaults__ == (2,) and decorated.__kwdefaults__ == {"z": 3}
    assert str(inspect.signature(decorated)) == "(x, y=2, *, z: int = 3) -> int"
    assert inspect.unwrap(decorated) is decorated.__wrapped__
    assert inspect.getsource(decorated).startswith("@ccompile.compile\ndef decorated")
    assert callable(decorated) and "decorated" in repr(decorated)
    with pytest.raises(AttributeError, match="none_such"):
        _ = decorated.none_such
    decorated.tag = 5
    assert decorated.__wrapped__.tag == 5
    del decorated.tag
    assert not hasattr(decorated, "tag")


def test_compile_of_compiled_starts_anew():
    again = ccompile.compile(decorated, fullgraph=True)
    assert again is not decorated and again.__wrapped__ is decorated.__wrapped__


def test_class_of_the_user():
    assert type(Callables()).__name__ == "Callables"


def test_errors_of_compile():
    with pytest.raises(TypeError, match="int"):
        ccompile.compile(3)
    with pytest.raises(ValueError, match="none such"):
        ccompile.compile(plain, backend="none such")
    with pytest.raises(ValueError, match="no option"):
        ccompile.compile(plain, options={"none_such": 1})


# -- Pickles and copies ----------------------------------------------------------


def test_pickle_by_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    assert pickle.loads(pickle.dumps(Model.method)) is Model.method


def test_pickle_by_parts():
    f = ccompile.compile(plain, dynamic=False)
    again = pickle.loads(pickle.dumps(f))
    assert again is not f and again.__wrapped__ is plain and again(5) == 4
    assert again._options["dynamic"] is False
    net = pickle.loads(pickle.dumps(ccompile.compile(Net(np.eye(2)))))
    assert net(np.ones(2)).tolist() == [1, 1]


def test_copies():
    f = ccompile.compile(Net(np.eye(2)), dynamic=True)
    f(np.ones(2))
    shallow, deep = copy.copy(f), copy.deepcopy(f)
    assert shallow.__wrapped__ is f.__wrapped__ and shallow is not f
    assert deep.__wrapped__ is not f.__wrapped__ and deep.w is not f.w
    assert deep._options["dynamic"] is True
    deep.w *= 4
    assert f(np.ones(2)).tolist() == [1, 1] and deep(np.ones(2)).tolist() == [4, 4]
    assert copy.deepcopy(decorated)(1) == 6
    pair = [f, f]
    both = copy.deepcopy(pair)
    assert both[0] is both[1]


# -- References ------------------------------------------------------------------


def test_closure_dies_with_its_last_reference():
    class Thing:
        pass

    def make():
        thing = Thing()
        f = ccompile.compile(lambda x: (thing, x)[1])
        return f, weakref.ref(thing), weakref.ref(f)

    f, thing, ref = make()
    assert f(1) == f(1) == 1 and ref() is f
    del f
    gc.collect()
    assert ref() is None and thing() is None


def test_cycle_is_collected():
    def make():
        def f(n):
            return n if n == 0 else holder[0](n - 1)

        holder = [ccompile.compile(f)]
        assert holder[0](3) == 0
        return weakref.ref(holder[0])

    ref = make()
    gc.collect()
    assert ref() is None


def test_weak_reference_calls_back():
    dead = []
    f = ccompile.compile(lambda x: x)
    ref = weakref.ref(f, dead.append)
    f(1)
    del f
    gc.collect()
    assert dead == [ref]


@pytest.mark.leaks
def test_many_closures_leave_nothing():
    for k in range(30):
        f = ccompile.compile(
            lambda x, k=k: x + k, backend="eager"
        )  # NumPy's caches fill with kernels
        assert f(np.ones(2))[0] == 1 + k
        assert f(np.ones(2))[0] == 1 + k


# -- reset, disable, is_compiling --------------------------------------------------


def test_reset_of_one_and_all():
    f, g = ccompile.compile(lambda x: x + 1), ccompile.compile(lambda x: x + 2)
    f(1), g(1)
    assert f._tapes() and g._tapes()
    ccompile.reset(f)
    assert not f._tapes() and g._tapes()
    f(1)
    ccompile.reset()
    assert not f._tapes() and not g._tapes()
    assert f(1) == 2 and g(1) == 3


def test_reset_inside_a_call():
    def f(x):
        ccompile.reset()
        return x + 1

    g = ccompile.compile(f)
    assert [g(k) for k in range(4)] == [1, 2, 3, 4]


def test_reset_forgets_breaks_and_misses():
    f = ccompile.compile(lambda x: (x + 1, print(end=""))[0])
    f(1), f(1.5)
    assert f._breaks() and f._misses()
    ccompile.reset(f)
    assert f._breaks() == [] and f._misses() == []


def seen_inside(log):
    log.append(ccompile.is_compiling())


hidden = ccompile.disable(seen_inside)


def test_disable_inside_a_compiled_caller():
    log = []

    def f(x):
        hidden(log)
        return x + 1

    g = ccompile.compile(f)
    assert [g(1), g(1), g(1)] == [2, 2, 2]
    assert log == [False] * 3  # plain Python: nothing of it was compiled
    (found,) = g._breaks()
    assert found[1] == "DISABLED" and ccompile.counters(g)["replayed"] == 2
    texts = "".join(g._tapes())
    assert "seen_inside" not in texts and "LISTAPPEND" not in texts
    assert ccompile.counters(hidden)["fallback"] == 3
    assert ccompile.counters(hidden)["recorded"] == 0


def test_disable_as_decorator_and_option():
    @ccompile.disable
    def f(x):
        return x, ccompile.is_compiling()

    @ccompile.disable()
    def g(x):
        return x

    h = ccompile.compile(plain, disable=True)
    assert f(1) == (1, False) and g(2) == 2 and h(3) == 2
    for each in (f, g, h):
        assert ccompile.counters(each)["recorded"] == 0


def test_is_compiling_is_the_same_everywhere():
    def f(x, deep):
        here = x == 0 or ccompile.is_compiling()
        inner = ask()
        if deep > 1:
            inner = inner and f(x, deep - 1)[0]
        return here, inner, x

    def ask():
        return ccompile.is_compiling()

    assert not ccompile.is_compiling()
    g = ccompile.compile(f)
    answers = {g(x, n)[:2] for x in (1, 1, 1.5, "a", "b") for n in (1, 2)}
    assert answers == {(True, True)} and ccompile.counters(g)["replayed"] > 0
    limited = ccompile.compile(f, options={"recompile_limit": 1})
    limited(1, 1)
    with pytest.warns(RuntimeWarning):
        assert limited(1.5, 1)[:2] == (True, True)  # plain Python from now on
    assert limited("a", 1)[:2] == (True, True)
    assert ccompile.counters(limited)["fallback"] == 2
    residual = ccompile.compile(lambda: list(map(lambda _: ccompile.is_compiling(), [0])))
    assert residual() == residual() == [True]
    assert not ccompile.is_compiling()


def test_is_compiling_after_an_exception():
    def f(x):
        raise KeyError(x)

    g = ccompile.compile(f)
    for _ in range(3):
        with pytest.raises(KeyError):
            g(1)
        assert not ccompile.is_compiling()
