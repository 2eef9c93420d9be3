"""Objects made inside: classes, __init__, slots, dataclasses, super(), classes that change."""

import dataclasses

import numpy as np

from .program import Programs

PROGRAMS = Programs()


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


class Point:
    kind = "point"

    def __init__(self, x, y=2):
        self.x = x
        self.y = y

    def norm(self):
        return self.x * self.x + self.y * self.y

    @property
    def both(self):
        return self.x + self.y


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a
        self.b = a + 1


@dataclasses.dataclass
class Data:
    x: object
    items: list = dataclasses.field(default_factory=list)

    def add(self, v):
        self.items.append(v)
        return self


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    y: int = 3


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(4), 3), lambda: (row(3), 2.5))
def instances_stay_inside(a, n):
    p, q = Point(a * 2, n), Slotted(n)
    p.x = p.x + q.b
    d = Data(p).add(1).add(n)
    g = Frozen(2, y=n)
    total = p.norm().sum() + p.both.sum() + len(d.items) + g.x + g.y
    return total, d.x is p, bool(p), isinstance(p, Point), p.kind, type(q).__name__


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(4), 3))
def instances_escape(a, n):
    p, q = Point(a + n, Slotted(n)), Data(a)
    q.add(p)
    p.late = q.items
    return list(vars(p)), p.x, p.y.a, p.y.b, q.items[0] is p, p.late is q.items


class Node:
    def __init__(self):
        self.kids = []
        self.up = None

    def add(self, kid):
        self.kids.append(kid)
        kid.up = self
        return self


@PROGRAMS.add(lambda: (1,), lambda: (2,))
def cycles_of_instances(n):
    top = Node().add(Node()).add(Node())
    me = Node()
    me.up = me
    me.kids.append(me.kids)
    return top.kids[n - 1].up is top, me.up is me, me.kids[0] is me.kids, len(top.kids)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def attribute_that_is_missing(a):
    p, q = Slotted.__new__(Slotted), Point(a)
    p.a = a
    return q.nothing if a.size == 3 else p.b


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2))
def wrong_constructions(a, which):
    if which == 0:
        return Point()
    if which == 1:
        Frozen(1).x = 2
    s = Slotted(a)
    s.c = 1
    return s


class Failing:
    def __init__(self, a, limit):
        self.a = a
        if a.sum() > limit:
            raise ValueError("too much")
        self.b = a * 2


class Returns:
    def __init__(self, what):
        self.what = what
        return what  # noqa: PLE0101


@PROGRAMS.add(lambda: (row(3), 9), lambda: (row(3), 1), lambda: (row(3), 2))
def init_raises(a, limit):
    return Failing(a, limit).b.sum()


@PROGRAMS.add(lambda: (None,), lambda: (3,), lambda: (None,))
def init_returns_something(what):
    return Returns(what).what


@PROGRAMS.add(lambda: (row(3), 9), lambda: (row(3), -9), lambda: (row(4), 9))
def init_branches(a, n):
    class_ = Signed(a, n)
    return class_.a, class_.sign


class Signed:
    def __init__(self, a, n):
        self.n = n
        if a.sum() + n > 0:
            self.a, self.sign = a * 2, "+"
        else:
            self.sign, self.a = "-", a


class Base:
    def __init__(self, a):
        super().__init__()
        self.a = a

    def grow(self, k=1):
        return self.a + k

    def name(self):
        return "base"


class Derived(Base):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b

    def grow(self, k=1):
        return super().grow(k + 1) * self.b

    def name(self):
        up = super().name
        named = super(Derived, self).name()  # noqa: UP008  (the form with arguments)
        return up() + "<" + named + ">" + self.own()

    def own(self):
        return (lambda: self.b)().__class__.__name__


class Left(Base):
    def name(self):
        return "left" + super().name()


class Right(Base):
    def name(self):
        return "right" + super().name()


class Both(Left, Right):
    def name(self):
        return "both" + super().name()


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(4), 3), lambda: (row(3), 2.5))
def super_finds_methods(a, n):
    d = Derived(a, n)
    return d.grow(), d.grow(k=n), d.name(), d.a is a


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def super_with_several_bases(a):
    b = Both(a)
    return b.name(), b.grow(3)


class Changing:
    def __init__(self, v):
        self.v = v


@PROGRAMS.add(lambda: (1,), lambda: (2,), lambda: (3,), lambda: (4,), lambda: (5,), lambda: (6,))
def a_class_that_changes(step):
    """Each call leaves the class another one for the next."""
    got = Changing(step)
    seen = got.v, bool(got), sorted(vars(got))
    if step == 1:
        Changing.__setattr__ = lambda self, k, v: object.__setattr__(self, k, v * 10)
    elif step == 2:
        del Changing.__setattr__
        Changing.__bool__ = lambda self: False
    elif step == 3:
        del Changing.__bool__
        Changing.v = property(lambda self: "p", lambda self, v: self.__dict__.update(w=v))
    elif step == 4:
        del Changing.v
        Changing.__init__ = lambda self, v: setattr(self, "v", -v)
    return seen


@PROGRAMS.add(lambda: (row(5), 3), lambda: (row(4), 6))
def instances_in_a_loop(a, n):
    best = Point(a, 0)
    for i in range(n * 20):
        p = Point(a + i, i)
        if p.y % 7 == 3:
            best = p
    return best.x, best.y
