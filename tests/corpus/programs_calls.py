"""Calls: signatures, defaults, closures, methods, properties, comprehensions, f-strings."""
# ruff: noqa: B018, F541, UP031, UP032  (the programs mean what they write)

import functools
import operator
from dataclasses import dataclass, field

import numpy as np

from .program import Programs, call

PROGRAMS = Programs()


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


def combine(a, b=2, *rest, scale=1, **extra):
    return a * scale + b + sum(rest) + sum(extra.values())


@PROGRAMS.add(lambda: (row(3), 4), lambda: (row(4), 5), lambda: (row(3), 6.5))
def positional(a, k):
    return combine(a, k)


@PROGRAMS.add(lambda: (row(3),), lambda: call(row(3), scale=3), lambda: call(a=row(2)))
def defaults_and_keywords(a, scale=2):
    return combine(a, scale=scale, z=1)


@PROGRAMS.add(lambda: (row(2), 1), lambda: (row(2), 1, 2, 3), lambda: (row(3),))
def star_arguments(a, *xs):
    return combine(a, *xs), len(xs), xs


@PROGRAMS.add(lambda: call(row(2), p=1), lambda: call(row(2), q=2, p=3), lambda: call(row(2)))
def double_star_keeps_order(a, **kw):
    return combine(a, **kw), list(kw), {**kw, "last": 0}


def only(a, /, b, *, c):
    return a - b * c


@PROGRAMS.add(lambda: (row(3), 1, 2), lambda: (row(3), 2, 1))
def positional_and_keyword_only(a, b, c):
    return only(a, b, c=c) + only(a, c=b, b=c)


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2), lambda: (row(3), 3))
def wrong_calls_raise(a, which):
    if which == 0:
        return only(a, 1)
    if which == 1:
        return only(a=a, b=1, c=2)
    if which == 2:
        return combine(a, 1, b=2)
    return only(a, 1, 2, 3)


@PROGRAMS.add(lambda: (row(2),), lambda: (row(2), 1, 2, 3), lambda: call(row(2), bad=1))
def wrong_call_of_itself(a, b=0):
    return a + b


def collect(x, into=[]):  # noqa: B006  (the shared default is the point)
    into.append(x)
    return into


@PROGRAMS.add(lambda: (1,), lambda: (2,))
def mutable_default_is_shared(x):
    return list(collect(x)), collect.__defaults__[0] is collect(x)


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 5))
def default_bound_at_definition(a, k):
    fs = [lambda x, i=i: x * i + k for i in range(3)]
    return [f(a) for f in fs]


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 5))
def closure_sees_the_last_value(a, k):
    fs = []
    for i in range(3):
        fs.append(lambda: a * i + k)  # noqa: B023
    return [f() for f in fs]


def make_counter(start):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    def peek():
        return count

    return step, peek


@PROGRAMS.add(lambda: (row(2), 3), lambda: (row(2), 10))
def closure_cells_are_shared(a, start):
    step, peek = make_counter(start)
    step()
    step(5)
    return a + peek(), step, peek


COUNTER = make_counter(0)


@PROGRAMS.add(lambda: (row(2),))
def closure_lives_across_calls(a):
    return a * COUNTER[0](), COUNTER[1]()


def outer_factory(k):
    def middle(a):
        def inner(b):
            return a * k + b

        return inner

    return middle


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(4), 7))
def nested_closures(a, k):
    return outer_factory(k)(a)(a + 1)


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 3))
def returned_closure_keeps_its_cell(a, k):
    b = a * k

    def later():
        return b

    return later, later() is b


class Layer:
    bias = 1.0

    def __init__(self, scale):
        self.scale = scale
        self.calls = 0

    def __call__(self, a):
        self.calls += 1
        return self.forward(a)

    def forward(self, a):
        return a * self.scale + self.bias

    @property
    def double(self):
        return self.scale * 2

    @double.setter
    def double(self, value):
        self.scale = value / 2

    @staticmethod
    def shift(a):
        return a + 10

    @classmethod
    def named(cls, k):
        return cls(k), cls.__name__


class Deep(Layer):
    bias = 2.0

    def forward(self, a):
        return super().forward(a) - 1


@PROGRAMS.add(lambda: (Layer(2.0), row(3)), lambda: (Deep(3.0), row(3)), lambda: (Layer(5), row(2)))
def method_and_call(layer, a):
    return layer(a) + layer.forward(a), layer.calls


@PROGRAMS.add(lambda: (Layer(2.0), row(3)), lambda: (Deep(3.0), row(3)))
def property_get_and_set(layer, a):
    before = a * layer.double
    layer.double = 10.0
    return before, layer.double, layer.scale


@PROGRAMS.add(lambda: (row(3), 2.0), lambda: (row(3), 4.0))
def static_and_class_methods(a, k):
    layer, name = Deep.named(k)
    return Layer.shift(layer.shift(a)), name, layer


@PROGRAMS.add(lambda: (Layer(2.0), row(3)), lambda: (Deep(1.5), row(3)))
def bound_method_as_value(layer, a):
    f = layer.forward
    g = Layer.forward
    return f(a), g(layer, a), f.__self__ is layer, layer.forward == f


@PROGRAMS.add(lambda: (Layer(2.0), row(3)), lambda: (Layer(3.0), row(3)))
def attribute_shadows_class(layer, a):
    first = layer(a)
    layer.bias = 100.0
    second = layer(a)
    del layer.bias
    return first, second, layer(a)


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 3))
def partial_and_operator(a, k):
    f = functools.partial(combine, a, scale=k)
    g = operator.itemgetter(1)
    return f(1), f(b=2), g([a, a * 2]), operator.mul(a, k), functools.reduce(operator.add, [a] * k)


@PROGRAMS.add(lambda: (row(3), [1, 2, 3]), lambda: (row(2), []), lambda: (row(3), [4]))
def comprehensions(a, ks):
    squares = [k * k for k in ks if k != 2]
    table = {k: a * k for k in ks}
    unique = {k % 2 for k in ks}
    pairs = [(i, j) for i in ks for j in range(i) if i != j]
    return squares, table, unique, pairs


@PROGRAMS.add(lambda: (row(3), 4), lambda: (row(3), 2))
def comprehension_scope(a, k):
    i = "kept"
    out = [a[j] * k for j in range(len(a))]
    total = sum(x for x in out)
    nested = [[i * j for j in range(2)] for i in range(k)]
    return out, total, nested, i


@PROGRAMS.add(lambda: (row(3),), lambda: (row(5),))
def generator_expression_is_lazy(a):
    seen = []
    g = (seen.append(i) or i * 2 for i in range(len(a)))
    first = next(g)
    return first, list(seen), list(g), seen


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def generator_function(a):
    def pieces(n):
        got = 0
        for i in range(n):
            got = yield a * i + (got or 0)
        return "end"

    def chained():
        tail = yield from pieces(2)
        yield tail

    g = pieces(3)
    return next(g), g.send(5), list(chained())


@PROGRAMS.add(lambda: (row(3), 7), lambda: (row(2), 3.14159), lambda: (row(1), "x"))
def f_strings(a, k):
    return (f"{k} {k!r:>8} {k!s} {a.shape} {a.sum():.2f} {len(a):03d}|{'nested' + str(k)!r}",
            f"{k=}", f"{a.dtype}", f"{{}}", "%s-%d" % (k, len(a)), "{0}{n}".format(k, n=len(a)))


@PROGRAMS.add(lambda: ("x", []), lambda: (7, []), lambda: ("y", [1]), lambda: (None, [2]))
def f_string_around_an_effect(k, log):
    return f"{k}{log.append(k)}|{len(log)}{k}"


@PROGRAMS.add(lambda: (row(3), 12), lambda: (row(3), 5))
def f_string_with_nested_spec(a, width):
    return f"{float(a[-1]):>{width}.{width // 4}f}|{'t':_^{width}}"


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5),))
def unpacking(a):
    first, *middle, last = a
    (x, y), z = (a[:2], a[2])
    head, = [a]
    return first, middle, last, x, y, z, head is a


@PROGRAMS.add(lambda: ([1, 2],), lambda: ([1, 2, 3],), lambda: ([1],), lambda: ({"a": 1, "b": 2},))
def unpacking_fails(xs):
    a, b = xs
    return a, b


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 2))
def conditional_callee(a, k):
    f = np.sin if k == 1 else np.cos
    return f(a) * 0 + k, f.__name__


@dataclass
class Config:
    width: int = 3
    names: list = field(default_factory=list)

    def scaled(self, k):
        return Config(self.width * k, [*self.names, k])


@PROGRAMS.add(lambda: (Config(), row(3)), lambda: (Config(5, ["a"]), row(3)))
def dataclass_instances(config, a):
    other = config.scaled(2)
    other.names.append("end")
    return a * other.width, other, config == Config(), other.names is config.names


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def slots(a):
    s = Slots(a)
    try:
        s.b
    except AttributeError as e:
        text = str(e)
    s.b = s.a * 2
    return s, s.b, text


class Lazy:
    def __init__(self):
        self.log = []

    def __getattr__(self, name):
        if name.startswith("x"):
            self.log.append(name)
            return len(name)
        raise AttributeError(name)

    def __getitem__(self, key):
        return key

    def __contains__(self, x):
        return x == 3

    def __len__(self):
        return 7

    def __iter__(self):
        return iter([1, 2])

    def __eq__(self, other):
        return "equal"

    __hash__ = None


@PROGRAMS.add(lambda: (Lazy(), row(3)), lambda: (Lazy(), row(2)))
def special_methods(x, a):
    return (a * x.xx, x[1:2, ...], 3 in x, 4 in x, len(x), list(x), x == 1, hasattr(x, "none"),
            getattr(x, "none", "default"), x.log)


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return ("add", self.v, other)

    def __radd__(self, other):
        return ("radd", self.v, other)

    def __iadd__(self, other):
        self.v += other
        return self

    def __neg__(self):
        return Number(-self.v)

    def __bool__(self):
        return self.v > 2

    def __lt__(self, other):
        return NotImplemented


@PROGRAMS.add(lambda: (Number(2), 5), lambda: (Number(3), 6))
def operator_overloads(n, k):
    out = [n + k, k + n, (-n).v, not n]
    m = n
    m += k
    out += [m is n, n.v, bool(n)]
    try:
        n < k  # noqa: B015
    except TypeError as e:
        out.append(str(e))
    return out


class OwnArray:
    __array_priority__ = 100

    def __rmul__(self, other):
        return "mine", other

    __array_ufunc__ = None


@PROGRAMS.add(lambda: (row(3),))
def array_times_foreign_object(a):
    return a * OwnArray()


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 0))
def lambda_and_immediate_call(a, k):
    return (lambda x, *, y=k: x + y)(a), (lambda: None)(), max([1, -5, k], key=lambda v: -v)


def decorate(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return ("wrapped", f(*args, **kwargs))

    return inner


@decorate
def decorated_body(a, k=1):
    return a * k


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 4))
def decorated_callee(a, k):
    return decorated_body(a, k=k), decorated_body.__name__


CACHE_CALLS = []


@functools.lru_cache
def cached(k):
    CACHE_CALLS.append(k)
    return k * 2


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 4))
def lru_cached_callee(a, k):
    return a * cached(k)


@PROGRAMS.add(lambda: (row(3), "sum"), lambda: (row(3), "max"), lambda: (row(3), "shape"))
def getattr_by_name(a, name):
    value = getattr(a, name)
    return value() if callable(value) else value


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), [1]), lambda: (row(3), None),
              lambda: (1, 2.0))
def type_tests(a, k):
    return (isinstance(k, int), isinstance(a, np.ndarray), type(k) is list, callable(k), k is None,
            type(a).__name__, issubclass(type(k), object))


@PROGRAMS.add(lambda: (row(3), row(3)), lambda: (lambda x: (x, x))(row(3)))
def same_object_twice(a, b):
    pair = (a, b)
    return pair, pair, [pair[0], a], a is b


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def globals_by_name(a):
    return globals()["row"](len(a)) + a, sorted(k for k in locals() if k != "a")


class Named:
    kind = "class"

    def __init__(self):
        self.first, self.second = np.ones(2), 3

    def method(self):
        return self.second

    @property
    def both(self):
        return self.first * self.second


class Asking(Named):
    def __getattr__(self, name):
        return f"asked {name}"


@PROGRAMS.add(lambda: (Named(), "first"), lambda: (Named(), "second"), lambda: (Named(), "third"),
              lambda: (Named(), "both"), lambda: (Named(), "kind"), lambda: (Asking(), "third"),
              lambda: (Asking(), "first"), lambda: (np.ones(3), "size"), lambda: (3, "real"))
def getattr_and_hasattr(obj, name):
    found = getattr(obj, name, "nothing")
    return found, hasattr(obj, name), hasattr(obj, "method"), getattr(np, "pi"), name  # noqa: B009


@PROGRAMS.add(lambda: (Named(), "method"), lambda: (Named(), "absent"), lambda: (Named(), "kind"))
def getattr_of_methods(obj, name):
    before = hasattr(obj, "late")
    call = getattr(obj, name)
    obj.late = 5
    return call if isinstance(call, str) else call(), before, hasattr(obj, "late"), obj.late
