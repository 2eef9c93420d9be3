"""State that changes between calls, or under an iterator, is met as plain Python meets it."""

import numpy as np
import pytest

from tests.support import compiled

ENGINES = ["eager", "eager+stress"]

CLASSES = """
class Base:
    scale = 1
    def run(self, x): return x * self.scale
class Descriptor:
    def __get__(self, owner, cls): return 42
class Config:
    size = 3
class Thing(Base): pass
thing = Thing()
thing.depth = 1
def f(x): return thing.run(x), thing.scale
def depth(x): return x * thing.depth
def config(x): return thing.config
"""

CHANGES = [
    ("f", "Base.scale = 2"),
    ("f", "thing.scale = 5"),
    ("f", "Base.run = lambda self, x: x - self.scale"),
    ("f", "thing.__dict__ = {'scale': 7}"),
    ("f", "thing.__class__ = Base"),
    ("f", "Thing.__getattribute__ = lambda self, name: lambda x: name"),
    ("depth", "Thing.depth = Descriptor()\nDescriptor.__set__ = lambda *a: None"),
    (
        "depth",
        "Thing.depth = Config()\nConfig.__get__ = lambda *a: 9\nConfig.__set__ = lambda *a: 0",
    ),
    ("config", "Config.__get__ = lambda *a: 9"),
]


def _namespace():
    space = {"__name__": "changing"}
    exec(CLASSES, space)
    exec("Thing.config = Config()", space)
    return space


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "change"), CHANGES)
def test_a_changed_class_is_noticed(engine, name, change):
    plain, other = _namespace(), _namespace()
    function = compiled(other[name], engine)
    x = np.arange(3.0)
    for step in (None, *change.splitlines()):
        if step:
            exec(step, plain)
            exec(step, other)
        for _ in range(3):
            want, have = plain[name](x), function(x)
            assert _text(want) == _text(have), step


def _text(value):
    if isinstance(value, tuple):
        return [_text(item) for item in value]
    named = type(value).__name__
    return named if named in ("function", "Config") else (named, repr(value))


def grow_zip(left, right, x, limit):
    for a, b in zip(left, right, strict=False):
        x = x + a * b
        if len(left) < limit:
            left.append(a + 1)
            right.append(b)
    return x, left, right


def grow_enumerate(left, right, x, limit):
    for i, a in enumerate(left):
        x = x + a * i
        if len(left) < limit:
            left.append(a + 1)
    return x, left


def shrink_reversed(left, right, x, limit):
    for a in reversed(left):
        x = x - a
        if len(left) > 1:
            left[0] = 100
    return x, left


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", [grow_zip, grow_enumerate, shrink_reversed])
@pytest.mark.parametrize("limit", [2, 5, 40])
def test_a_list_that_changes_under_its_iterator(engine, function, limit):
    call = compiled(function, engine)
    for _ in range(4):
        want = function([1, 2], [3, 4], np.arange(3.0), limit)
        have = call([1, 2], [3, 4], np.arange(3.0), limit)
        assert _text(want) == _text(have)
