"""py_bind puts arguments where a plain call puts them, and refuses what a plain call refuses."""

import itertools

import pytest


def f_none():
    return []


def f_two(a, b):
    return [a, b]


def f_default(a, b=10, c=20):
    return [a, b, c]


def f_posonly(a, b=5, /, c=6):
    return [a, b, c]


def f_kwonly(a, *, b, c=7):
    return [a, b, c]


def f_star(a, *rest):
    return [a, rest]


def f_kwargs(a, **more):
    return [a, more]


def f_all(a, b=1, /, c=2, *rest, d=3, e, **more):
    return [a, b, c, d, e, rest, more]


def f_pos_kwargs(a, /, **more):
    return [a, more]


FUNCTIONS = [v for k, v in list(globals().items()) if k.startswith("f_")]
KEYWORDS = [
    (),
    ("a",),
    ("b",),
    ("c",),
    ("d",),
    ("e",),
    ("z",),
    ("e", "d"),
    ("z", "e", "y"),
    ("a", "b"),
    ("b", "c"),
    ("b", "a", "e"),
    ("c", "e", "q"),
]


@pytest.mark.parametrize("func", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", range(6))
def test_as_a_plain_call(ext, func, count):
    for names in KEYWORDS:
        values = tuple(100 + i for i in range(count + len(names)))
        try:
            want = func(*values[:count], **dict(zip(names, values[count:], strict=True)))
        except TypeError:
            want = 0
        got = ext.bind(func, values, names)
        assert got == want, names
        if want and isinstance(want[-1], dict):
            assert list(got[-1]) == list(want[-1])


def test_keywords_equal_but_not_identical(ext):
    name = "".join(["b", ""])
    other = "".join(["lon", "ger"])
    assert ext.bind(f_two, (1, 2), (name,)) == [1, 2]

    def func(*, longer):
        return [longer]

    assert other is not func.__code__.co_varnames[0]
    assert ext.bind(func, (5,), (other,)) == [5]


def test_a_subclass_of_str_is_not_compared(ext):
    class Name(str):
        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = str.__hash__

    assert ext.bind(f_two, (1, 2), (Name("b"),)) == 0
    assert ext.bind(f_kwargs, (1, 2), (Name("q"),)) == 0


def test_more_defaults_than_parameters(ext):
    def func(a, b):
        return [a, b]

    func.__defaults__ = (1, 2, 3)
    assert ext.bind(func, (), ()) == func() == [2, 3]
    assert ext.bind(func, (9,), ()) == func(9) == [9, 3]


def test_keyword_defaults_with_odd_keys(ext):
    class Key:
        def __hash__(self):
            return hash("c")

        def __eq__(self, other):
            raise AssertionError("compared")

    def func(a, *, b=1, c):
        return [a, b, c]

    func.__kwdefaults__ = {Key(): 1, "b": 1}
    assert ext.bind(func, (1, 2), ("c",)) == 0  # refused, so that plain Python decides
    func.__kwdefaults__ = {"b": 4}
    assert ext.bind(func, (1, 2), ("c",)) == [1, 4, 2]
    func.__kwdefaults__ = None
    assert ext.bind(func, (1, 2), ("c",)) == 0


def test_nothing_leaks(ext, no_leak):
    objects = [object() for _ in range(7)]

    def action():
        for func, count in itertools.product(FUNCTIONS, range(4)):
            for names in KEYWORDS:
                ext.bind(func, tuple(objects[: count + len(names)]), names)

    no_leak(action)
