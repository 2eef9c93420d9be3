"""Programs that mix topics: what earlier recordings left behind meets other data, sizes, types."""

import contextlib
import functools
import gc
import operator
import warnings
import weakref

import numpy as np

from .program import Programs

PROGRAMS = Programs()

REGISTRY = {}
TALLY = {"even": 0, "odd": 0}


def row(n, start=0, dtype=np.float64):
    return np.arange(start, start + n).astype(dtype)


SIZES = [lambda n=n: (row(n),) for n in (4, 7, 1, 0, 2, 100)]
KINDS = [lambda t=t: (row(3, 1, t),) for t in (np.float64, np.float32, np.int64, np.int8, np.bool_)]


@PROGRAMS.add(*SIZES)
def every_size(a):
    b = a * 2 + 1
    c = b[1:] - b[:-1] if len(b) > 1 else b
    return c, b.sum(), b.shape, np.concatenate([a, c])


@PROGRAMS.add(*KINDS)
def every_kind(a):
    return a + 1, a * 2.5, a.sum(), a.max(), a > 1, a.astype(float) / 3


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3).reshape(1, 3),), lambda: (np.array(3.0),),
              lambda: (3.0,), lambda: (3,), lambda: ([1.0, 2.0],))
def every_rank(a):
    return np.add(a, 1), np.ndim(a), np.shape(a), np.sum(a)


@PROGRAMS.add(lambda: (3, 2), lambda: (2, 3), lambda: (0, 5), lambda: (5, 0), lambda: (3, 2))
def nested_counts(n, m):
    out = []
    for i in range(n):
        for j in range(m if i % 2 else i):
            if (i + j) % 3 == 0:
                continue
            out.append(i * 10 + j)
    return out, sum(out)


@PROGRAMS.add(lambda: (row(6), [3, 1]), lambda: (row(6), [1, 3]), lambda: (row(6), [2, 2, 2]),
              lambda: (row(6), []), lambda: (row(6), [3, 1]))
def inner_loop_bounds_from_data(a, counts):
    out = []
    at = 0
    for c in counts:
        part = a[at:at + c]
        out.append([x * c for x in part])
        at += c
    return out, a[at:]


@PROGRAMS.add(lambda: (row(4), 1.5), lambda: (row(4), 2.5), lambda: (row(4), -1.0),
              lambda: (row(4), 9.0), lambda: (row(4), 1.5))
def three_way_branch_in_a_loop(a, limit):
    small, large = [], []
    for x in a:
        if x < limit:
            small.append(x)
        elif x == limit + 0.5:
            TALLY["even"] += 1
        else:
            large.append(x * 2)
    return small, large, TALLY["even"]


@PROGRAMS.add(lambda: (row(5), 0), lambda: (row(5), 1), lambda: (row(5), 2), lambda: (row(5), 0))
def effects_on_both_sides(a, k):
    if a.sum() * k > 10:
        TALLY["odd"] += 1
        a[0] = -TALLY["odd"]
    else:
        TALLY["even"] += 1
        a = a + TALLY["even"]
    a *= 2
    return a, dict(TALLY)


@PROGRAMS.add(lambda: (row(4, 1),), lambda: (row(4, 1) * 1e3,), lambda: (row(4, 1) * 0.5,))
def loop_until_small(a):
    trace = []
    while (n := float(np.abs(a).sum())) > 1.0:
        trace.append(round(n, 6))
        a = a * 0.5
        if len(trace) % 4 == 0:
            a -= 0.01
    return a, trace


@PROGRAMS.add(lambda: (row(12), 3), lambda: (row(12), 4), lambda: (row(20), 5))
def windows_by_slicing(a, w):
    parts = [a[i:len(a) - w + i + 1] for i in range(w)]
    total = functools.reduce(operator.add, parts)
    return total / w, np.stack(parts).max(axis=0)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),), lambda: (row(3),))
def memo_by_shape(a):
    key = a.shape
    if key not in REGISTRY:
        REGISTRY[key] = np.ones(key) * len(REGISTRY)
    REGISTRY[key] += a
    return REGISTRY[key], len(REGISTRY)


class Stateful:
    def __init__(self):
        self.mean = np.zeros(3)
        self.steps = 0
        self.training = True

    def __call__(self, x):
        if self.training:
            self.steps += 1
            rate = 1 / self.steps
            self.mean = self.mean * (1 - rate) + x.sum(axis=0) * rate
        return x - self.mean


NORM = Stateful()


@PROGRAMS.add(lambda: (np.ones((2, 3)), True), lambda: (np.ones((4, 3)), False),
              lambda: (np.ones((4, 3)) * 2, True))
def running_statistics(x, training):
    NORM.training = training
    return NORM(x), NORM.steps, NORM.mean


class Chain:
    def __init__(self, *parts):
        self.parts = list(parts)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x


PIPE = Chain(lambda x: x + 1, lambda x: x * 2)


@PROGRAMS.add(lambda: (row(3), None), lambda: (row(3), lambda x: x - 5), lambda: (row(3), None))
def container_grows_between_calls(a, extra):
    y = PIPE(a)
    if extra is not None:
        PIPE.parts.append(extra)
    return y, len(PIPE.parts)


def helper(x):
    return x + 1


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 2))
def function_replaced_while_running(a, k):
    global helper
    first = helper(a)
    helper = [lambda x: x * 10, lambda x: x * 100][k - 1]
    return first, helper(a)


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 2), lambda: (row(3), 1))
def class_patched_while_running(a, k):
    class Local:
        def go(self, x):
            return x + 1

    obj = Local()
    first = obj.go(a)
    Local.go = lambda self, x: x * k
    second = obj.go(a)
    obj.go = lambda x: x - k
    return first, second, obj.go(a)


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5),))
def weakrefs_and_collection(a):
    class Box:
        pass

    box = Box()
    box.me = box
    box.a = a * 2
    ref = weakref.ref(box)
    alive = ref() is box
    del box
    gc.collect()
    return alive, ref() is None


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def array_dies_when_dropped(a):
    b = a * 2
    ref = weakref.ref(b)
    c = b + 1
    before = ref() is not None
    del b
    return before, ref() is None, c


@PROGRAMS.add(lambda: (row(4), 0), lambda: (row(4), 2), lambda: (row(4), 9))
def nested_try_in_loop_with_else(a, bad):
    log = []
    for i in range(4):
        try:
            try:
                if i == bad:
                    raise KeyError(i)
                log.append(float(a[i]))
            except IndexError:
                log.append("never")
            else:
                log.append("ok")
            finally:
                log.append("f")
        except KeyError as e:
            log.append(e.args[0])
            break
    else:
        log.append("end")
    return log


@PROGRAMS.add(lambda: (row(4) - 1, "ignore"), lambda: (row(4) - 1, "warn"),
              lambda: (row(4) - 1, "raise"), lambda: (row(4) + 1, "raise"))
def errstate_from_an_argument(a, how):
    with np.errstate(divide=how, invalid=how):
        b = np.log(a)
    return b + 1


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3) + 1,), lambda: (row(3),))
def warning_between_effects(a):
    seen = []
    seen.append("before")
    b = 1 / a
    seen.append(b[0])
    with warnings.catch_warnings(record=True) as inner:
        warnings.simplefilter("always")
        c = a / 0
        seen.append(len(inner))
    return seen, c


@PROGRAMS.add(lambda: (row(3), row(3)), lambda: (row(3), row(4)), lambda: (row(3), row(3)))
def shape_error_after_writes(a, b):
    a += 1
    TALLY["odd"] += 1
    a += b
    TALLY["even"] += 1
    return a


@PROGRAMS.add(lambda: (row(4),), lambda: (row(6),))
def exit_stack(a):
    log = []
    with contextlib.ExitStack() as stack:
        for i in range(3):
            stack.callback(log.append, i)
        log.append("body")
        b = a * 2
    return b, log


@PROGRAMS.add(lambda: ({"w": row(2), "b": [row(1), {"c": row(3)}]},),
              lambda: ({"w": row(3), "b": [row(2), {"c": row(1), "d": row(1)}]},))
def tree_map(tree):
    def walk(t):
        if isinstance(t, dict):
            return {k: walk(v) for k, v in t.items()}
        if isinstance(t, list):
            return [walk(v) for v in t]
        return t * 2

    return walk(tree)


@PROGRAMS.add(lambda: (row(5), (1, 3)), lambda: (row(5), (0, 5)), lambda: (row(5), (3, 1)))
def tuple_arguments_as_bounds(a, bounds):
    lo, hi = bounds
    return a[lo:hi], a[slice(*bounds)], hi - lo, a[lo:hi].sum() if hi > lo else None


@PROGRAMS.add(lambda: (row(8), 3), lambda: (row(8), 8), lambda: (row(8), 0), lambda: (row(8), -2))
def dynamic_split_point(a, k):
    left, right = a[:k], a[k:]
    left *= 2
    return left, right, np.concatenate([right, left]), a


@PROGRAMS.add(lambda: (np.ones((2, 3)),), lambda: (np.ones((3, 2)),), lambda: (np.ones((1, 1)),),
              lambda: (np.ones((0, 3)),))
def shapes_as_numbers(a):
    n, m = a.shape
    out = np.zeros((m, n + 1))
    out[:, :n] = a.T * m
    out[:, n] = np.arange(m) / max(n, 1)
    return out, n * m == a.size


@PROGRAMS.add(lambda: (row(4), row(4)), lambda: (lambda x: (x, x))(row(4)),
              lambda: (lambda x: (x, x[::-1]))(row(4)), lambda: (row(4), row(4)))
def two_writes_one_memory(a, b):
    a[1:] = b[:-1]
    b[0] = 100
    a += b
    return a, b, a[0] == b[0]


@PROGRAMS.add(lambda: (10,), lambda: (1000,), lambda: (3,))
def sieve(n):
    mark = np.ones(n, bool)
    mark[:2] = False
    i = 2
    while i * i < n:
        if mark[i]:
            mark[i * i::i] = False
        i += 1
    return np.flatnonzero(mark)


@PROGRAMS.add(lambda: (np.array([3.0, 1.0, 2.0]),), lambda: (np.array([1.0]),),
              lambda: (np.array([5.0, 4.0, 3.0, 2.0]),))
def bubble_sort(a):
    n = len(a)
    swaps = 0
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
                swaps += 1
    return a, swaps


@PROGRAMS.add(lambda: (np.array([[0.0, 1.0], [1.0, 0.0]]), 5), lambda: (np.eye(3), 2))
def power_iteration(m, n):
    v = np.ones(len(m))
    for _ in range(n):
        v = m @ v
        v = v / np.abs(v).max()
    return v, v @ m @ v


@PROGRAMS.add(lambda: ("a=1;b=2",), lambda: ("",), lambda: ("x=9",), lambda: ("bad",))
def text_parsing(s):
    out = {}
    for part in s.split(";"):
        if not part:
            continue
        key, eq, value = part.partition("=")
        if not eq:
            raise ValueError(f"no value in {part!r}")
        out[key] = int(value)
    return out


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 3.0), lambda: (row(3), True),
              lambda: (row(3), np.float32(2)), lambda: (row(3), np.array(2)), lambda: (row(3), 2))
def scalar_kind_changes(a, k):
    return a * k, k * 2, k == 2, type(k).__name__


@PROGRAMS.add(lambda: (row(3), 0.1), lambda: (row(3), 0.2), lambda: (row(3), float("nan")),
              lambda: (row(3), float("inf")), lambda: (row(3), -0.0))
def float_values_are_not_constants(a, x):
    return a * x, x + x, x if x > 0 else -x, x == 0.1


@PROGRAMS.add(lambda: (0,), lambda: (1,), lambda: (2**31,), lambda: (2**63,), lambda: (-1,))
def int_values_are_not_constants(n):
    return n + 1, n * n, n & 3, n > 0, -n, str(n), n // 2 if n else None


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), -1), lambda: (row(3), 2))
def pair_by_number(a, i):
    pair = (a, a + 1)
    return pair[i] * 2
