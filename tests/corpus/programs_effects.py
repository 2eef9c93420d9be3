"""Effects: lists, globals, attributes, printing, NumPy's error state; their order and identity."""

import collections
import sys
import warnings

import numpy as np

from .program import Programs, call

PROGRAMS = Programs()

COUNT = 0
LOG = []
TABLE = {"n": 0}
SETTINGS = {"dtype": "float32"}
CURRENT = np.zeros(2)
DEPTH = [0]


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


@PROGRAMS.add(lambda: (row(3),))
def global_counter(a):
    global COUNT
    COUNT += 1
    return a * COUNT


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def global_array_rebound(a):
    global CURRENT
    before = CURRENT
    CURRENT = a + len(before)
    return before, CURRENT


@PROGRAMS.add(lambda: (row(2),))
def global_array_in_place(a):
    CURRENT[:] += a + 1
    return CURRENT, CURRENT.sum()


@PROGRAMS.add(lambda: (row(2), "first"), lambda: (row(2), "second"))
def global_made_and_deleted(a, text):
    global MADE
    MADE = text
    copy = MADE * 2
    if text == "second":
        del MADE
    return copy, a


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def append_to_global_list(a):
    LOG.append(a.shape)
    LOG.append(a)
    return LOG[-1] is a, len(LOG)


@PROGRAMS.add(lambda: (row(3), []), lambda: (row(2), [1]))
def append_in_closure(a, log):
    def note(x):
        log.append(x)
        return x

    b = note(a * 2)
    note(b)
    return b, log


@PROGRAMS.add(lambda: (row(2),))
def dict_entries(a):
    TABLE["n"] += 1
    TABLE[TABLE["n"]] = a
    TABLE.setdefault("list", []).append(TABLE["n"])
    return TABLE.pop("absent", "none"), list(TABLE)


@PROGRAMS.add(lambda: ([3, 1, 2],), lambda: ([5, 5, 4, 0],))
def list_methods(xs):
    ys = xs
    xs.append(9)
    xs.insert(1, 7)
    xs.sort()
    xs.reverse()
    last = xs.pop()
    xs += [last, 100]
    del xs[0]
    xs[1:2] = [11, 12]
    zs = xs.copy()
    xs.extend(i for i in range(2))
    xs.remove(11)
    return ys is xs, xs, zs, xs.index(12), xs.count(5)


@PROGRAMS.add(lambda: ({"a": 1},), lambda: ({"b": 2, "a": 3},))
def dict_methods(d):
    e = dict(d, z=9)
    d.update(c=3)
    d |= {"q": 0}
    first = d.popitem()
    got = d.get("none"), d.get("a", 0)
    del d["a"]
    return e, d, first, got, list(reversed(d)), d == {"c": 3}


@PROGRAMS.add(lambda: ({1, 2}, {2, 3}), lambda: (set(), {1}))
def set_methods(s, t):
    u = s | t
    s.add(10)
    s.discard(1)
    s &= u | {10}
    return s, u, s <= u, s ^ t, frozenset(t) in {frozenset(t)}


@PROGRAMS.add(lambda: (collections.deque([1, 2]), row(2)), lambda: (collections.deque(), row(1)))
def deque_and_counter(q, a):
    q.append(a)
    q.appendleft(0)
    c = collections.Counter("hello")
    d = collections.defaultdict(list)
    d["x"].append(q.popleft())
    return q, c.most_common(1), dict(d)


class Model:
    total = 0

    def __init__(self):
        self.steps = 0
        self.seen = np.zeros(2)
        self.history = []

    def step(self, a):
        self.steps += 1
        self.seen += a
        self.history.append(self.steps)
        Model.total += 1
        return a * self.steps


@PROGRAMS.add(lambda: (Model(), row(2)), lambda: (Model(), row(2, 3)))
def attributes_change(model, a):
    b = model.step(a)
    c = model.step(b)
    model.extra = c
    return b + c, model.steps, Model.total


STATE = Model()


@PROGRAMS.add(lambda: (row(2),))
def attribute_counter_across_calls(a):
    y = STATE.step(a)
    STATE.last = y
    return y


@PROGRAMS.add(lambda: (Model(), row(2)), lambda: (Model(), row(2)))
def setattr_delattr(model, a):
    setattr(model, "name", a)  # noqa: B010
    had = hasattr(model, "name")
    delattr(model, "steps")
    vars(model)["direct"] = 1
    return had, hasattr(model, "steps"), model.direct, sorted(vars(model))


@PROGRAMS.add(lambda: (row(2),), lambda: (row(3),))
def print_between_operations(a):
    b = a * 2
    print("b", b)
    c = b + 1
    print(c.sum(), end="!\n")
    print(f"{len(c)}", c.shape, sep="/", file=sys.stderr)
    return c - b


@PROGRAMS.add(lambda: (row(2), 0), lambda: (row(2), 1))
def print_then_raise(a, k):
    print("before", k)
    b = a[k:].sum() / 1
    print("sum", b)
    if k:
        raise RuntimeError("after print")
    return b


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1))
def print_array_written_before_and_after(a, k):
    a[0] = 7
    print(a)
    a[k] = -1
    print(a)
    return a


@PROGRAMS.add(lambda: (row(3),))
def warn_with_stacklevel(a):
    def inner():
        warnings.warn("from inner", UserWarning, stacklevel=2)

    b = a + 1
    warnings.warn("here", DeprecationWarning, stacklevel=1)
    inner()
    return b


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3) + 1,))
def divide_warns(a):
    b = a + 0
    c = 1 / b
    return c * 2


@PROGRAMS.add(lambda: (np.array([1.0, 0.0]), np.array([0.0, 0.0])),
              lambda: (np.array([1.0, 2.0]), np.array([4.0, 5.0])))
def several_warnings_in_order(a, b):
    x = a / b
    y = np.log(b - 1)
    z = np.sqrt(-a - 1)
    return x, y, z


@PROGRAMS.add(lambda: (np.array([1e300, 1.0]),), lambda: (np.array([1.0, 2.0]),))
def overflow_warns(a):
    return a * a * 1e10, np.exp(a)


@PROGRAMS.add(lambda: (row(2),), lambda: (row(2) + 1,))
def errstate_ignores(a):
    with np.errstate(divide="ignore", invalid="ignore"):
        b = 1 / a
    return b, 2 / a


@PROGRAMS.add(lambda: (row(2) + 1,), lambda: (row(2),), lambda: (row(2) + 1,))
def errstate_raises(a):
    with np.errstate(divide="raise"):
        b = 1 / a
    return b


@PROGRAMS.add(lambda: (row(2),), lambda: (row(2) + 1,))
def errstate_raises_and_is_caught(a):
    try:
        with np.errstate(all="raise"):
            LOG.append("in")
            return 1 / a
    except FloatingPointError as e:
        return str(e), np.geterr()["divide"]


@PROGRAMS.add(lambda: (row(2),), lambda: (row(2) + 1,))
def errstate_call(a):
    seen = []
    with np.errstate(divide="call", call=lambda kind, flag: seen.append((kind, flag))):
        b = 1 / a
    return b, seen


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3) + 1,))
def warning_made_an_error(a):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return 1 / a
        except RuntimeWarning as w:
            return str(w)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3) + 1,))
def dead_code_still_warns(a):
    unused = 1 / a  # noqa: F841
    np.log(a - 1)
    return a + 1


@PROGRAMS.add(lambda: (np.int32(2), np.array([2**31 - 1, 5], np.int32)),
              lambda: (np.int32(1), np.array([3, 5], np.int32)))
def integer_overflow(k, a):
    return a * k, k * k, np.int32(2**31 - 1) + k


@PROGRAMS.add(lambda: (row(3), "float32"), lambda: (row(3), "int64"))
def settings_change_between_calls(a, following):
    out = a.astype(SETTINGS["dtype"])
    SETTINGS["dtype"] = following
    return out


class Depth:
    def __enter__(self):
        DEPTH[0] += 1

    def __exit__(self, *exc):
        DEPTH[0] -= 1


@PROGRAMS.add(lambda: (row(2),))
def context_sees_the_bumped_value(a):
    with Depth(), Depth():
        b = a + DEPTH[0]
    return b + DEPTH[0]


class Watched:
    def __init__(self, log):
        object.__setattr__(self, "log", log)

    def __setattr__(self, name, value):
        self.log.append((name, value))
        object.__setattr__(self, name, value)

    def __del__(self):
        self.log.append("deleted")


@PROGRAMS.add(lambda: (row(2), []), lambda: (row(3), []))
def finaliser_runs_when_the_name_dies(a, log):
    w = Watched(log)
    w.x = a.size
    log.append("alive")
    del w
    log.append("after")
    return log


@PROGRAMS.add(lambda: (row(2), []), lambda: (row(3), []))
def finaliser_runs_at_rebinding(a, log):
    w = Watched(log)
    w = a * 2
    log.append("rebound")
    return w, log


@PROGRAMS.add(lambda: (row(2), [1]), lambda: (row(2), [1, 2]))
def argument_list_is_changed(a, xs):
    xs.append(a)
    xs[0] = xs
    return xs[0] is xs, xs


@PROGRAMS.add(lambda: (row(2), LOG), lambda: (row(2), []), lambda: (row(2), LOG))
def argument_may_be_a_global(a, xs):
    xs.append(len(LOG))
    return a + len(LOG), xs is LOG


@PROGRAMS.add(lambda: call(row(2), out=[]), lambda: call(row(3), out=[0]))
def tuple_assignment_order(a, out):
    i = 0
    i, x = 1, out
    x.append(i)
    x[-1], y = a, x[-1]
    x += (y,)
    return i, y, x


class Row:
    def __init__(self):
        self.log = []

    def __getitem__(self, i):
        self.log.append(("get", i))
        return i

    def __setitem__(self, i, v):
        self.log.append(("set", i, v))

    def __delitem__(self, i):
        self.log.append(("del", i))


@PROGRAMS.add(lambda: (Row(), 3), lambda: (Row(), 4))
def item_protocol_order(r, k):
    r[k] += 1
    r[0:k] = r[k]
    del r[k]
    r[r[1]] = r[2]
    return r.log


@PROGRAMS.add(lambda: (row(3), []), lambda: (row(2), []))
def evaluation_order(a, log):
    def tell(name, value):
        log.append(name)
        return value

    d = {tell("k1", 1): tell("v1", 2), tell("k2", 3): tell("v2", 4)}
    x = tell("left", a) + tell("right", 1) * tell("third", 2)
    tell("f", lambda *p, **q: None)(tell("p", 1), *tell("star", [2]), q=tell("q", 3))
    return d, x, log


@PROGRAMS.add(lambda: (row(2),), lambda: (row(3),))
def frame_information(a):
    code = sys._getframe().f_code

    def who():
        return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno

    return code.co_name, who(), a * 2


@PROGRAMS.add(lambda: (row(2),), lambda: (row(3),))
def locals_inside(a):
    b = a + 1
    names = sorted(locals())
    return names, b


@PROGRAMS.add(lambda: (row(3), 5), lambda: (row(3), 6))
def exec_and_eval(a, k):
    space = {"a": a, "k": k}
    exec("b = a * k", space)
    return space["b"], eval("a.sum() + k"), eval("b", {"b": k})


@PROGRAMS.add(lambda: (row(3), "os"), lambda: (row(3), "math"))
def import_inside(a, name):
    import math

    module = __import__(name)
    return a * math.floor(2.5), module.__name__


@PROGRAMS.add(lambda: (row(2),), lambda: (row(3),))
def local_class(a):
    made = []

    class Note:
        kind = "note"

        def __init__(self, x):
            made.append(x)
            self.x = x

    n = Note(a.shape)
    return n, made, Note.__qualname__
