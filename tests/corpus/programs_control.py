"""Control flow: loops over every kind of container, while, break, else, branches on data."""
# ruff: noqa: B007  (unused loop variables are part of the programs)

import numpy as np

from .program import Programs

PROGRAMS = Programs()


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 5), lambda: (row(3), 0), lambda: (row(3), 3))
def for_range(a, n):
    total = a * 0
    for i in range(n):
        total = total + a * i
    return total


@PROGRAMS.add(lambda: (row(9), 8, 0, -3), lambda: (row(9), 0, 9, 4), lambda: (row(9), 5, 5, 1))
def range_with_step(a, lo, hi, step):
    out = []
    for i in range(lo, hi, step):
        out.append(a[i] + i)
    return out, range(lo, hi, step)


@PROGRAMS.add(lambda: ([row(2), row(2, 5)],), lambda: ([row(3)],), lambda: ([],))
def for_list(xs):
    total = 0
    for x in xs:
        total = total + x.sum()
    return total


@PROGRAMS.add(lambda: ((row(2), 3, None, "s"),), lambda: ((row(2),),))
def for_tuple_of_kinds(xs):
    out = []
    for x in xs:
        if x is None:
            continue
        out.append(x * 2)
    return out


@PROGRAMS.add(lambda: ({"a": row(2), "b": row(3)},), lambda: ({"b": row(3), "a": row(2)},),
              lambda: ({},))
def dict_views(d):
    keys = [k for k in d]
    sums = {k: v.sum() for k, v in d.items()}
    total = 0
    for v in d.values():
        total += v.sum()
    return keys, sums, total, list(d.keys()), "a" in d


@PROGRAMS.add(lambda: ([1, 2, 3], row(2)), lambda: ([1], row(3)))
def zip_and_enumerate(ks, a):
    out = []
    for i, (k, x) in enumerate(zip(ks, a, strict=False), start=10):
        out.append((i, k, x * k))
    return out


@PROGRAMS.add(lambda: ([row(2), row(2, 4)], [1, 2.5]), lambda: ([row(2)], [3, 4]),
              lambda: ([row(3), row(3)], [5]), lambda: ([], [1]))
def zip_lists(xs, ks):
    out = [x * k for x, k in zip(xs, ks)]  # noqa: B905
    for pair in zip(ks, (7, 8), range(3), xs):  # noqa: B905
        out.append(pair)
    return out, [row for row in zip(xs)]  # noqa: B905, C416


@PROGRAMS.add(lambda: ({"a": row(2), "b": row(3)}, [10, 20]), lambda: ({"a": row(1)}, [10]),
              lambda: ({}, []))
def enumerate_and_zip_dicts(d, ks):
    total = 0.0
    for i, (k, v) in enumerate(d.items()):
        total = total + v.sum() * i + len(k)
    for k, v in zip(ks, d.values()):  # noqa: B905
        total = total + k * v.sum()
    return total, [(i, k) for i, k in enumerate(d)]


@PROGRAMS.add(lambda: ([row(3), row(3, 1), row(3, 2)], 4.0),
              lambda: ([row(3), row(3, 1), row(3, 2)], 100.0),
              lambda: ([row(3), row(3, 1), row(3, 2)], 0.0))
def break_out_of_enumerate(xs, limit):
    total = 0.0
    for i, x in enumerate(xs):
        total = total + x.sum() * (i + 1)
        if total > limit:
            break
    return i, total


@PROGRAMS.add(lambda: ([row(2), row(2, 1)], 3), lambda: ([row(2), row(2, 1)], 5))
def list_grows_under_zip_and_enumerate(xs, n):
    xs, seen = list(xs), []
    for i, x in enumerate(xs):
        seen.append((i, x.sum()))
        if len(xs) < n:
            xs.append(x + 1)
    for a, b in zip(xs, xs):  # noqa: B905
        seen.append(a is b)
        if len(xs) < n + 2:
            xs.pop(0)
            xs.extend([a, b, a])
    return seen, len(xs)


@PROGRAMS.add(lambda: ({"a": 1, "b": 2}, [row(2), row(2)], "c"),
              lambda: ({"a": 1, "b": 2}, [row(2), row(2)], "a"))
def dict_grows_under_zip(d, xs, key):
    d, out = dict(d), []
    try:
        for (k, v), x in zip(d.items(), xs):  # noqa: B905
            out.append((k, x * v))
            d[key] = 0
    except RuntimeError as error:
        out.append(str(error))
    return out


@PROGRAMS.add(lambda: ([1, 2, 3], row(3)), lambda: ([0, 2, 3], row(3)), lambda: ([3, 0, 1], row(3)))
def error_inside_of_zip(ks, a):
    out = []
    try:
        for i, (k, x) in enumerate(zip(ks, ks)):  # noqa: B905
            out.append(6 // k + a[i] + x)
    except ZeroDivisionError as error:
        out.append(str(error))
    for k, x in zip(ks, out):  # noqa: B905
        out[-1] = (k, x)
    return out


@PROGRAMS.add(lambda: ([1, 2, 3, 4],), lambda: ([1, 2, 3],), lambda: ([],))
def iterators_of_zip_and_enumerate(xs):
    it = iter(xs)
    pairs = [pair for pair in zip(it, it)]  # noqa: B905, C416
    z, e = zip(xs, xs), enumerate(xs)  # noqa: B905
    first = [next(z, None), next(e, None)]
    for pair in z:
        first.append(pair)
    xs.append(9)
    return pairs, first, list(z), list(e), list(it)


@PROGRAMS.add(lambda: ([1, 2, 3], [4, 5, 6]), lambda: ([1], [4, 5]))
def zip_strict(xs, ys):
    out = []
    for x, y in zip(xs, ys, strict=True):
        out.append(x + y)
    return out


@PROGRAMS.add(lambda: ([3, 1, 2],), lambda: ([5],), lambda: ([],))
def reversed_sorted_map_filter(xs):
    out = [x for x in reversed(xs)]
    for x in map(lambda v: v * 10, filter(lambda v: v != 1, sorted(xs))):
        out.append(x)
    return out


@PROGRAMS.add(lambda: (row(6), 2.5), lambda: (row(6), 100.0), lambda: (row(6), -1.0))
def break_and_else(a, limit):
    for i, x in enumerate(a):
        if x > limit:
            where = i
            break
    else:
        where = "none"
    return where, a * 2


@PROGRAMS.add(lambda: (10,), lambda: (7,), lambda: (1,), lambda: (27,))
def while_collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    else:
        steps += 1000
    return steps


@PROGRAMS.add(lambda: (row(4, 1), 1e-3), lambda: (row(4, 1), 1e-6), lambda: (row(2, 5), 10.0))
def while_on_data(a, tol):
    x, n = a.copy(), 0
    while (err := np.abs(x * x - 2.0).max()) > tol and n < 50:
        x = (x + 2.0 / x) / 2
        n += 1
    return x, n, err <= tol


@PROGRAMS.add(lambda: (row(3), 200), lambda: (row(3), 3), lambda: (row(2), 200))
def long_loop(a, n):
    i = 0
    while i < n:
        a = a + 1
        i += 1
    return a, i


@PROGRAMS.add(lambda: (row(3),), lambda: (-row(3),), lambda: (row(3) - 1,), lambda: (row(3),))
def branch_on_sum(a):
    if a.sum() > 0:
        return a + 1
    elif a.sum() < 0:
        return a - 1
    return a * 100


@PROGRAMS.add(lambda: (row(4), 1), lambda: (row(4), 2), lambda: (row(4), 3), lambda: (row(4), 9))
def branch_on_scalar(a, k):
    if k == 1:
        r = a
    elif k == 2:
        r = a * 2
    elif 2 < k < 5:
        r = a * 3
    else:
        r = -a
    return r + k


@PROGRAMS.add(lambda: (row(4), True), lambda: (row(4), False), lambda: (row(4), True))
def branch_on_flag(a, flag):
    return (a if flag else a[::-1]) * 2, not flag, flag and a.size, flag or "other"


@PROGRAMS.add(lambda: (np.array([1.0, -2.0, 3.0]),), lambda: (np.array([-1.0, -1.0]),),
              lambda: (np.array([5.0]),))
def branch_per_element(a):
    out = []
    for x in a:
        if x > 0:
            out.append(x * 2)
        else:
            out.append(-x)
    return np.array(out)


@PROGRAMS.add(lambda: (row(3), None), lambda: (row(3), row(3)), lambda: (row(3), None))
def branch_on_none(a, bias):
    y = a * 2
    if bias is not None:
        y = y + bias
    return y


@PROGRAMS.add(lambda: ([3, 4, 5],), lambda: ([1, 2],))
def nested_loops_continue(ks):
    out = []
    for i in ks:
        for j in ks:
            if i == j:
                continue
            if j > 4:
                break
            out.append((i, j))
        else:
            out.append("whole")
    return out


@PROGRAMS.add(lambda: (row(4),), lambda: (row(6),))
def list_grows_while_iterated(a):
    queue = [a]
    for item in queue:
        if len(queue) < 4:
            queue.append(item[:-1])
    return queue


@PROGRAMS.add(lambda: ({"a": 1, "b": 2},), lambda: ({"a": 1},))
def dict_grows_while_iterated(d):
    for k in d:
        d[k + "x"] = 0
    return d


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def loop_variable_survives(a):
    for i, x in enumerate(a):
        pass
    for unused in []:
        pass
    try:
        return i, x, unused
    except UnboundLocalError as e:
        return i, x, str(e)


@PROGRAMS.add(lambda: (row(4), 2), lambda: (row(4), 0))
def walrus(a, k):
    if (n := len(a) * k) and (m := a.max()) > 1:
        return n, m
    return n


@PROGRAMS.add(lambda: ((1, 2),), lambda: ([1, 2, 3],), lambda: ({"kind": "a", "x": 5},),
              lambda: (7,), lambda: ("text",))
def match_statement(x):
    match x:
        case (a, b):
            return "two", a + b
        case [first, *rest]:
            return "list", first, rest
        case {"kind": "a", "x": v}:
            return "dict", v
        case int(n) if n > 5:
            return "int", n
        case _:
            return "other"


@PROGRAMS.add(lambda: (row(5),), lambda: (row(3),))
def iterator_by_hand(a):
    it = iter([a, a + 1, a + 2])
    first = next(it)
    rest = [x for x in it]
    return first, rest, next(it, "done")


@PROGRAMS.add(lambda: (row(5), 5), lambda: (row(3), 3), lambda: (row(5), 4))
def chained_comparison(a, n):
    return 0 < n <= len(a) < 10, n == len(a) == 5, 1 < 2 > n


@PROGRAMS.add(lambda: (row(4), 3), lambda: (row(4), 8))
def python_scalar_loop(a, n):
    x, y = 0, 1
    for _ in range(n):
        x, y = y, x + y
    return a * x, x, y


@PROGRAMS.add(lambda: (row(4), "add"), lambda: (row(4), "mul"), lambda: (row(4), "add"),
              lambda: (row(4), "none"))
def dispatch_table(a, name):
    table = {"add": lambda x: x + 1, "mul": lambda x: x * 3}
    return table[name](a)


@PROGRAMS.add(lambda: (np.array([[1.0, 2.0], [3.0, 4.0]]),), lambda: (np.ones((3, 1)),))
def iterate_rows_in_place(a):
    for r in a:
        r *= 2
        r[0] += 1
    return a


@PROGRAMS.add(lambda: (row(3), 4), lambda: (row(3), 2), lambda: (row(5), 4))
def accumulate_list_then_stack(a, n):
    out = []
    h = a
    for t in range(n):
        h = h * 0.5 + t
        out.append(h)
    return np.stack(out), out[-1] is h


@PROGRAMS.add(lambda: (3,), lambda: (6,), lambda: (1,))
def element_loops(n):
    counts = np.zeros(n, np.int64)
    diff = np.zeros(n, np.int64)
    for i in range(n):
        for _ in range(i):
            counts[i] += 1
    for i in range(1, n):
        diff[i] = counts[i] - counts[i - 1] + counts[(i + 1) % n]
    return counts, diff


@PROGRAMS.add(lambda: (row(7),), lambda: (row(12),))
def while_true_with_break(a):
    n = 0
    while True:
        if len(a) < 2:
            break
        a = a[::2] + 1
        n += 1
        if n == 3:
            break
    return a, n
