"""Recursion, re-entry, threads and generators around one callable."""

import copy
import itertools
import threading

import numpy as np

from .program import Programs

PROGRAMS = Programs()

CALLS = []


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


@PROGRAMS.add(lambda: (5,), lambda: (1,), lambda: (25,), decorated=True)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@PROGRAMS.add(lambda: (7,), lambda: (2,), lambda: (9,), decorated=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@PROGRAMS.add(lambda: (row(8),), lambda: (row(5),), lambda: (row(1),), decorated=True)
def recursive_array_sum(a):
    if len(a) == 1:
        return a * 2
    half = len(a) // 2
    left = recursive_array_sum(a[:half])
    right = recursive_array_sum(a[half:])
    return np.concatenate([left, right]) + 1


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 0), lambda: (row(3), 5), decorated=True)
def recursion_in_place(a, depth):
    CALLS.append(depth)
    a += depth
    if depth > 0:
        recursion_in_place(a[1:] if len(a) > 1 else a, depth - 1)
    return a


@PROGRAMS.add(lambda: (row(3), 4), lambda: (row(3), 1), decorated=True)
def recursion_that_raises(a, depth):
    b = a * depth
    if depth == 0:
        raise ValueError("bottom")
    try:
        return recursion_that_raises(b, depth - 1)
    finally:
        CALLS.append(depth)


@PROGRAMS.add(lambda: (6,), lambda: (3,), decorated=True)
def mutual_recursion(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else mutual_recursion(n - 1)


@PROGRAMS.add(lambda: ([1, [2, [3, 4]], 5],), lambda: ([],), lambda: ([[1]],), decorated=True)
def flatten_nested(xs):
    out = []
    for x in xs:
        out += flatten_nested(x) if isinstance(x, list) else [x]
    return out


@PROGRAMS.add(lambda: (2000,), lambda: (3,), decorated=True)
def recursion_limit(n):
    try:
        return 0 if n == 0 else 1 + recursion_limit(n - 1)
    except RecursionError:
        if n < 2000:
            raise
        return "too deep"


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 0), decorated=True)
def reentry_through_sort_key(a, depth):
    def key(i):
        if depth:
            reentry_through_sort_key(a, depth - 1)
        return -a[i]

    return sorted(range(len(a)), key=key), a * depth


class Node:
    def __init__(self, value, *children):
        self.value = value
        self.children = children

    def total(self):
        return self.value + sum(c.total() for c in self.children)

    def __eq__(self, other):
        return TREE_EQUAL(self, other)

    __hash__ = None


def TREE_EQUAL(a, b):
    return a.value == b.value and len(a.children) == len(b.children)


@PROGRAMS.add(lambda: (Node(1, Node(2), Node(3, Node(4))),), lambda: (Node(7),))
def recursive_methods(tree):
    return tree.total(), tree == Node(1, None, None), tree == tree


def in_threads(function, args, kwargs):
    """The same call from three threads; results in the order of the threads."""
    results = [None] * 3
    barrier = threading.Barrier(3)

    def work(i):
        barrier.wait()
        mine = copy.deepcopy(args)
        results[i] = [function(*mine, **kwargs) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


@PROGRAMS.add(lambda: (row(4), 2), lambda: (row(6), 3), drive=in_threads)
def threads_same_arguments(a, k):
    b = a * k + 1
    for i in range(k):
        b = b + np.sqrt(a) * i
    return b


@PROGRAMS.add(lambda: (row(4),), lambda: (row(5),), drive=in_threads)
def threads_in_place(a):
    a *= 2
    a[1:] += a[:-1]
    return a


@PROGRAMS.add(lambda: (row(4), 0), lambda: (row(4), 9), drive=in_threads)
def threads_that_catch(a, i):
    try:
        return a[i] * 2
    except IndexError as e:
        return str(e)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(5),))
def thread_inside(a):
    out = []

    def work(k):
        out.append(a * k)

    t = threading.Thread(target=work, args=(3,))
    t.start()
    t.join()
    lock = threading.Lock()
    with lock:
        return out, lock.locked()


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 1))
def interleaved_generators(a, n):
    def count(k):
        for i in range(n):
            yield a * k + i

    return [x + y for x, y in zip(count(1), count(10), strict=True)]


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def generator_is_returned(a):
    def g():
        x = a
        while True:
            got = yield x
            x = x + (got or 1)

    it = g()
    next(it)
    it.send(5)
    return it


def drain(function, args, kwargs):
    """Consume the generator the program returns, then close it."""
    g = function(*args, **kwargs)
    out = [next(g), next(g)]
    g.close()
    return out, g


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),), drive=drain)
def compiled_generator_function(a):
    i = 0
    try:
        while True:
            yield a * i
            i += 1
    finally:
        CALLS.append(("closed", i))


def twice(function, args, kwargs):
    """Two calls on the same arguments: the second meets what the first has left."""
    return function(*args, **kwargs), function(*args, **kwargs)


@PROGRAMS.add(lambda: (row(3), [0]), lambda: (row(4), [5]), drive=twice)
def second_call_sees_the_first(a, box):
    box[0] += 1
    a += box[0]
    return a.copy(), a, box


def aliased(function, args, kwargs):
    """First with separate arrays, then with one array for both."""
    a, b = args
    return function(a, b), function(a, a), function(a[1:], a[:-1])


@PROGRAMS.add(lambda: (row(4), row(4, 10)), lambda: (row(4), row(4, 20)), drive=aliased)
def aliasing_appears_later(a, b):
    a += b
    b *= 2
    return a, b, a is b


@PROGRAMS.add(lambda: (row(3), row(3)), lambda: (row(3), row(3, 1)))
def itertools_mix(a, b):
    out = list(itertools.chain(a, b))
    pairs = list(itertools.product([1, 2], "ab"))
    total = list(itertools.accumulate([1, 2, 3]))
    return out, pairs, total, list(itertools.islice(itertools.count(5), 3))


async def answer(a):
    return a + 1


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def coroutine_run_by_hand(a):
    c = answer(a)
    try:
        c.send(None)
    except StopIteration as e:
        return e.value
