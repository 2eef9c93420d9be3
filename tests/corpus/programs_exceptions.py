"""Exceptions: try in all its forms, raises frames deep, with blocks, asserts, line numbers."""

import contextlib

import numpy as np

from .program import Programs

PROGRAMS = Programs()


def row(n, start=0):
    return np.arange(start, start + n, dtype=np.float64)


def check(a, limit):
    if a.sum() > limit:
        raise ValueError(f"sum {a.sum():.1f} over {limit}")
    return a * 2


def middle(a, limit):
    b = a + 1
    return check(b, limit) - 1


@PROGRAMS.add(lambda: (row(3), 100), lambda: (row(3), 1), lambda: (row(3), 100))
def raise_two_frames_deep(a, limit):
    return middle(a, limit) * 10


@PROGRAMS.add(lambda: (row(3), 100), lambda: (row(3), 1), lambda: (row(3), 2))
def catch_two_frames_deep(a, limit):
    try:
        return middle(a, limit)
    except ValueError as e:
        return str(e), [type(x).__name__ for x in e.args]


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2), lambda: (row(3), 3))
def try_except_else_finally(a, which):
    log = []
    try:
        log.append("try")
        if which == 1:
            raise KeyError("k")
        if which == 2:
            raise TypeError("t")
        if which == 3:
            return log
    except KeyError as e:
        log.append(repr(e))
    except (TypeError, IndexError):
        log.append("type")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return log, a * which


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 0))
def finally_overrides(a, k):
    try:
        if k:
            raise ValueError("lost")
        return "try"
    finally:
        return a * k  # noqa: B012


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 0))
def finally_runs_then_propagates(a, k):
    LOG.append("enter")
    try:
        return a / [1, 2][k + 1]
    finally:
        LOG.append("leave")


LOG = []


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2))
def nested_handlers(a, k):
    try:
        try:
            if k == 0:
                return a["x"]
            return [a][k]
        except IndexError:
            raise RuntimeError("inner") from None
    except RuntimeError as e:
        return str(e), e.__suppress_context__
    finally:
        LOG.append(k)


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def raise_from(a):
    try:
        check(a, -1)
    except ValueError as e:
        raise KeyError("outer") from e


@PROGRAMS.add(lambda: (row(3),), lambda: (row(4),))
def implicit_context(a):
    try:
        check(a, -1)
    except ValueError:
        return undefined_name  # noqa: F821


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1))
def reraise(a, k):
    try:
        if k:
            check(a, -1)
        return a
    except ValueError:
        LOG.append("seen")
        raise


@PROGRAMS.add(lambda: (row(3), 5), lambda: (row(3), 6), lambda: (row(4), 6))
def failing_assert(a, n):
    b = a * 2
    assert b.sum() > n, f"sum is {b.sum()}"
    return b


def helper_assert(a):
    assert a.min() >= 0
    return a


@PROGRAMS.add(lambda: (row(3),), lambda: (-row(3),), lambda: (row(2),))
def assert_in_callee_under_with(a):
    with np.errstate(all="ignore"):
        return helper_assert(a) + 1


class Tracker:
    def __init__(self, swallow=()):
        self.log = []
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append((kind.__name__ if kind else None, str(value), trace is not None))
        return kind in self.swallow


@PROGRAMS.add(lambda: (Tracker(), row(3), 0), lambda: (Tracker((IndexError,)), row(3), 9),
              lambda: (Tracker(), row(3), 9))
def with_block(t, a, i):
    with t as same:
        x = a[i]
        t.log.append(same is t)
        return x, t
    return "swallowed", t


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2))
def with_several(a, k):
    one, two = Tracker(), Tracker((ZeroDivisionError,))
    with one, two:
        if k == 1:
            1 // 0  # noqa: B018
        for _ in range(2):
            if k == 2:
                break
    return one.log, two.log, a


@contextlib.contextmanager
def doubled(state):
    state.append("in")
    try:
        yield len(state)
    except KeyError:
        state.append("caught")
    finally:
        state.append("out")


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2))
def generator_context_manager(a, k):
    state = []
    with doubled(state) as n:
        if k == 1:
            raise KeyError("x")
        if k == 2:
            raise OSError("y")
        a = a * n
    return a, state


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1))
def suppress_and_closing(a, k):
    with contextlib.suppress(ZeroDivisionError):
        a = a + 1 // k
    return a


@PROGRAMS.add(lambda: (np.eye(2),), lambda: (np.ones((2, 2)),), lambda: (np.ones((2, 3)),))
def numpy_error_caught(a):
    try:
        inv = np.linalg.inv(a)
    except np.linalg.LinAlgError as e:
        return str(e)
    else:
        return inv.shape


@PROGRAMS.add(lambda: (row(3), row(3)), lambda: (row(3), row(4)), lambda: (row(3), row(1)))
def shapes_do_not_match(a, b):
    c = a * 2
    return c + b


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 7), lambda: (row(3), -3), lambda: (row(3), -4))
def index_error(a, i):
    b = a + 1
    return b[i]


@PROGRAMS.add(lambda: (row(6), (2, 3)), lambda: (row(6), (4, 2)), lambda: (row(6), (-1, 2)))
def reshape_error(a, shape):
    return (a * 2).reshape(shape)


@PROGRAMS.add(lambda: ({"x": 1}, "x"), lambda: ({"x": 1}, "y"), lambda: ([1], 0), lambda: ([1], 5))
def lookups_fail(d, k):
    value = d[k]
    return value


@PROGRAMS.add(lambda: (row(3), "sum"), lambda: (row(3), "missing"))
def attribute_error(a, name):
    return getattr(a, name)()


class AppError(Exception):
    def __init__(self, code, detail):
        super().__init__(code)
        self.code = code
        self.detail = detail

    def __str__(self):
        return f"[{self.code}] {self.detail}"


@PROGRAMS.add(lambda: (row(3), 3), lambda: (row(3), 4))
def own_exception_class(a, k):
    try:
        raise AppError(k, a * k)
    except AppError as e:
        kept = e
    return str(kept.code), kept.detail, kept.__traceback__.tb_lineno


@PROGRAMS.add(lambda: (row(3),))
def except_name_is_unbound(a):
    err = "before"
    try:
        a.nothing  # noqa: B018
    except AttributeError as err:  # noqa: F841
        pass
    return err


@PROGRAMS.add(lambda: (row(3), True), lambda: (row(3), False))
def deleted_local(a, drop):
    b = a + 1
    if drop:
        del b
    return b * 2


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 5))
def exception_in_loop(a, bad):
    out = []
    for i in range(3):
        try:
            if i == bad:
                raise ValueError(i)
            out.append(a[i])
        except ValueError as e:
            out.append(("bad", e.args))
            continue
        finally:
            out.append("f")
    return out


@PROGRAMS.add(lambda: (row(3), 2), lambda: (row(3), 9))
def return_in_finally_of_loop(a, n):
    for i in range(n):
        try:
            if i == 1:
                return a * i
        finally:
            LOG.append(i)
    return "end"


@PROGRAMS.add(lambda: ([1, "a", None],), lambda: ([None],))
def exception_group(kinds):
    errors = []
    for k in kinds:
        try:
            k + 1  # noqa: B018
        except TypeError as e:
            errors.append(e)
    try:
        raise ExceptionGroup("all", errors)
    except* TypeError as group:
        texts = [str(e) for e in group.exceptions]
    return texts


@PROGRAMS.add(lambda: (row(3),), lambda: (row(2),))
def stop_iteration_ends_a_loop(a):
    it = iter(a)
    out = []
    while True:
        try:
            out.append(next(it))
        except StopIteration as e:
            return out, e.value


@PROGRAMS.add(lambda: (row(3),))
def generator_raises(a):
    def g():
        yield a
        check(a, -1)

    out = []
    for x in g():
        out.append(x * 2)
    return out


@PROGRAMS.add(lambda: (row(3), 0), lambda: (row(3), 1), lambda: (row(3), 2))
def division_by_zero(a, k):
    return a * (6 / k), 7 // k, 7 % k, divmod(9, k)


@PROGRAMS.add(lambda: (3,), lambda: ("3",), lambda: ("x",), lambda: (None,))
def conversions_fail(x):
    return int(x) * 2, float(x)


@PROGRAMS.add(lambda: (row(3), 1), lambda: (row(3), 0))
def writes_before_a_raise_stand(a, k):
    a[0] = 50
    LOG.append("wrote")
    a[k + 2] = 60
    return a


@PROGRAMS.add(lambda: (row(3),), lambda: (row(3) + 1,))
def deep_chain(a):
    def one(x):
        return two(x) + 1

    def two(x):
        try:
            return three(x)
        finally:
            LOG.append("two")

    def three(x):
        if x[0] == 0:
            raise LookupError("three")
        return x

    return one(a)


@PROGRAMS.add(lambda: (SystemExit,), lambda: (KeyboardInterrupt,), lambda: (GeneratorExit,))
def base_exceptions(kind):
    try:
        raise kind("stop")
    except Exception:
        return "wrong"
    finally:
        LOG.append(kind.__name__)


@PROGRAMS.add(lambda: (row(2), 1), lambda: (row(2), 2))
def notes_on_an_exception(a, k):
    try:
        check(a, -5)
    except ValueError as e:
        e.add_note(f"note {k}")
        return e.__notes__
