"""Version tags of dicts and types, and attributes read from instances without running code."""

import gc
import sys

import pytest

CHANGES = {
    "set new": lambda d: d.__setitem__("new", 1),
    "set other value": lambda d: d.__setitem__("a", 1000),
    "set equal value": lambda d: d.__setitem__("a", float("1.0")),
    "del": lambda d: d.__delitem__("a"),
    "pop": lambda d: d.pop("a"),
    "pop with default": lambda d: d.pop("b", None),
    "popitem": lambda d: d.popitem(),
    "clear": lambda d: d.clear(),
    "update new": lambda d: d.update(z=1),
    "update old": lambda d: d.update(a=7),
    "update from pairs": lambda d: d.update([("a", 8)]),
    "setdefault new": lambda d: d.setdefault("q", 3),
    "or": lambda d: d.__ior__({"a": 9}),
    "or new": lambda d: d.__ior__({"r": 9}),
    "many new": lambda d: [d.__setitem__(f"k{i}", i) for i in range(100)],
    "key of another type": lambda d: d.__setitem__(5, 1),
}
SAME = {
    "get": lambda d: d.get("a"),
    "setdefault old": lambda d: d.setdefault("a", 3),
    "iterate": lambda d: list(d.items()),
    "copy": lambda d: d.copy(),
    "contains": lambda d: "zz" in d,
    "update with nothing": lambda d: d.update({}),
    "pop of nothing": lambda d: d.pop("zz", None),
}


class Plain:
    pass


def make_literal():
    return {"a": 1, "b": 2, "c": 3}


def make_namespace():
    scope = {}
    exec("a = 1; b = 2; c = 3", scope)
    return scope


def make_split():
    obj = Plain()
    obj.a, obj.b, obj.c = 1, 2, 3
    return obj.__dict__


def make_copy():
    return dict(make_literal())


MAKERS = [make_literal, make_namespace, make_split, make_copy]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_changes_the_tag(ext, make, change):
    d = make()
    before = ext.dict_tag(d)
    CHANGES[change](d)
    assert ext.dict_tag(d) != before


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("use", SAME)
def test_use_keeps_the_tag(ext, make, use):
    d = make()
    before = ext.dict_tag(d)
    SAME[use](d)
    assert ext.dict_tag(d) == before


def test_a_global_changes_the_tag(ext):
    scope = {}
    exec("def put(v):\n  global g\n  g = v\ndef drop():\n  global g\n  del g\n", scope)
    tags = {ext.dict_tag(scope)}
    for value in range(300):  # long enough to be specialised
        scope["put"](value)
        tags.add(ext.dict_tag(scope))
    scope["drop"]()
    tags.add(ext.dict_tag(scope))
    assert len(tags) == 302


def test_a_class_attribute_through_its_dict(ext):
    """Instances whose dict is a dict of its own: stores by attribute change its tag."""

    class Own(dict):
        pass

    obj = Own()
    d = obj.__dict__
    tags = set()
    for value in range(300):
        obj.x = value
        tags.add(ext.dict_tag(d))
    assert len(tags) == 300


def test_instances_with_inline_values_have_no_tag(ext):
    """3.13 writes inline values behind the back of the dict: a tag says nothing there."""
    obj = Plain()
    obj.a = 1
    d = obj.__dict__
    before = ext.dict_tag(d)
    obj.a = 2
    changed = ext.dict_tag(d) != before
    assert d["a"] == 2
    assert changed == (sys.version_info < (3, 13))


def test_type_tags(ext):
    class Base:
        x = 1

    class Derived(Base):
        pass

    for change in (
        lambda: setattr(Derived, "y", 1),
        lambda: setattr(Base, "x", 2),
        lambda: delattr(Base, "x"),
        lambda: setattr(Base, "z", 1),
        lambda: setattr(Derived, "__bases__", (Plain,)),
    ):
        tag = ext.type_tag(Derived)
        assert tag != 0
        assert ext.type_tag(Derived) == tag
        change()
        assert ext.type_tag(Derived) != tag
    assert ext.type_tag(int) == ext.type_tag(int) != 0


def test_type_tag_of_a_busy_class(ext):
    """A class that never stops changing may run out of tags; it never repeats one."""

    class Busy:
        pass

    tags = []
    for i in range(1200):
        Busy.x = i
        tags.append(ext.type_tag(Busy))
    seen = [t for t in tags if t]
    assert len(seen) == len(set(seen))
    assert tags[0] != 0


class Slotted:
    __slots__ = ("a", "__dict__")


class Pair(tuple):
    pass


class Mapping(dict):
    pass


class Exc(Exception):
    pass


OBJECTS = [Plain, Slotted, Mapping, Pair, Exc]


@pytest.mark.parametrize("make", OBJECTS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("materialised", [False, True])
def test_instance_attributes(ext, make, materialised):
    obj = make()
    get = ext.instance_attr
    assert get(obj, "x") is ext.NULL
    obj.x = first = object()
    obj.y = second = object()
    if materialised:
        assert obj.__dict__["x"] is first
    assert get(obj, "x") is first
    assert get(obj, "y") is second
    assert get(obj, "z") is ext.NULL
    assert get(obj, "".join(["", "x"])) is first
    del obj.x
    assert get(obj, "x") is ext.NULL
    assert get(obj, "y") is second
    obj.x = third = object()
    assert get(obj, "x") is third


def test_names_equal_but_not_identical(ext):
    obj = Plain()
    obj.long_name = value = object()
    name = "".join(["long", "_name"])
    assert ext.instance_attr(obj, name) is value
    assert ext.instance_attr(obj, name + "r") is ext.NULL
    obj.__dict__["".join(["other", "_name"])] = value
    assert ext.instance_attr(obj, "other_name") is value


def test_many_attributes(ext):
    obj = Plain()
    for i in range(200):
        setattr(obj, f"attribute{i}", i)
    for i in range(200):
        assert ext.instance_attr(obj, f"attribute{i}") == i
    assert ext.instance_attr(obj, "attribute200") is ext.NULL


def test_a_replaced_dict(ext):
    obj = Plain()
    obj.x = 1
    obj.__dict__ = {"x": 2}
    assert ext.instance_attr(obj, "x") == 2
    obj.__dict__ = Mapping(x=3)
    assert ext.instance_attr(obj, "x") == 3


def test_no_code_runs(ext):
    class Key:
        def __hash__(self):
            return hash("x")

        def __eq__(self, other):
            raise AssertionError("compared")

    class Name(str):
        def __eq__(self, other):
            raise AssertionError("compared")

        __hash__ = str.__hash__

    class Loud:
        def __getattribute__(self, name):
            raise AssertionError("asked")

    obj = Plain()
    obj.__dict__ = {Key(): 1, "y": 2}
    assert ext.instance_attr(obj, "x") is ext.NULL
    assert ext.instance_attr(obj, "y") == 2
    assert ext.instance_attr(obj, Name("y")) is ext.NULL
    loud = Loud()
    object.__setattr__(loud, "x", 5)
    assert ext.instance_attr(loud, "x") == 5


def test_the_dict_is_not_made(ext):
    obj = Plain()
    obj.a = []
    before = [type(r) for r in gc.get_referents(obj)]
    assert dict not in before
    size = sys.getallocatedblocks()
    for _ in range(100):
        ext.instance_attr(obj, "a")
    assert sys.getallocatedblocks() - size <= 2
    assert [type(r) for r in gc.get_referents(obj)] == before


def test_class_attributes_are_not_instance_attributes(ext):
    class WithClassAttribute:
        x = 1

    assert ext.instance_attr(WithClassAttribute(), "x") is ext.NULL
