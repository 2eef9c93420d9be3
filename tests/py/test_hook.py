"""py_call_hooked: one frame, once, on this thread, chained to the evaluator that was there."""

import functools
import sys
import threading

import pytest


def plain(a, b=2, *rest, c=3, **more):
    return (a, b, rest, c, more)


def calls_plain(a):
    return plain(a)


class Klass:
    def __init__(self, value):
        self.value = value

    def method(self, x):
        return (self.value, x)

    def __call__(self, x):
        return -x


def hooked(ext, mode, func, callable_, *args, **kwargs):
    return ext.hooked(mode, func, callable_, (*args, *kwargs.values()), tuple(kwargs))


def test_hands_off_at_once(ext):
    result, fired, seen = hooked(ext, "handoff", plain, plain, 1, 5, 6, c=7, d=8)
    assert result == plain(1, 5, 6, c=7, d=8)
    assert fired == 1
    assert seen[:2] == (0, 0)  # at unit 0, nothing on the stack
    assert seen[3] is False


def test_the_frame_is_in_its_prologue(ext):
    def with_cell(a):
        return lambda: a

    result, fired, seen = hooked(ext, "handoff", with_cell, with_cell, 4)
    assert (result(), fired) == (4, 1)
    assert seen == (0, 0, False, False)


def test_hands_off_often(ext, no_leak):
    no_leak(lambda: hooked(ext, "handoff", plain, plain, 1, 5, 6, c=7, d=object()))


@pytest.mark.parametrize("mode", ["clear", "stack"])
def test_ends_the_frame_itself(ext, mode, no_leak):
    assert hooked(ext, mode, plain, plain, 1)[:2] == ("from the hook", 1)
    no_leak(lambda: hooked(ext, mode, plain, plain, object(), x=object()))


def test_a_frame_object_stays_behind(ext, no_leak):
    value = object()
    frame, fired, _ = hooked(ext, "object", plain, plain, value, x=[value])
    assert fired == 1
    assert frame.f_code is plain.__code__
    assert frame.f_locals == {"a": value, "b": 2, "rest": (), "c": 3, "more": {"x": [value]}}
    assert frame.f_back.f_code is hooked.__code__
    assert frame.f_lineno == plain.__code__.co_firstlineno + 1
    no_leak(lambda: hooked(ext, "object", plain, plain, [value])[0].clear())


def test_dies_from_an_exception(ext, no_leak):
    def action():
        with pytest.raises(LookupError, match="from the hook"):
            hooked(ext, "error", plain, plain, object())

    action()

    def small():
        try:
            hooked(ext, "error", plain, plain, object())
        except LookupError:
            pass

    no_leak(small)


def test_refused_call_disarms(ext):
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        hooked(ext, "handoff", plain, plain)
    assert ext.evaluator_name() == "default"
    assert hooked(ext, "handoff", plain, plain, 1)[1] == 1


def test_another_function_is_left_alone(ext):
    assert hooked(ext, "clear", plain, len, "abc") == (3, 0, None)
    assert hooked(ext, "clear", plain, calls_other, 1) == (2, 0, None)


def calls_other(a):
    return other(a)


def other(a):
    return a + 1


def test_a_frame_further_in(ext):
    result, fired, _ = hooked(ext, "clear", plain, functools.partial(plain, 1))
    assert (result, fired) == ("from the hook", 1)
    result, fired, _ = hooked(ext, "clear", Klass.__call__, Klass(1), 5)
    assert (result, fired) == ("from the hook", 1)
    with pytest.raises(TypeError, match="__init__"):
        hooked(ext, "clear", Klass.__init__, Klass, 5)  # the hook's string is no None
    obj = Klass(3)
    assert hooked(ext, "handoff", Klass.method, obj.method, 4)[:2] == ((3, 4), 1)


def test_only_the_first_frame(ext):
    calls = []

    def again(n):
        calls.append(ext.evaluator_name())
        return again(n - 1) if n else "end"

    assert hooked(ext, "handoff", again, again, 3)[:2] == ("end", 1)
    assert calls == ["default"] * 4


def test_generators_are_not_taken(ext):
    def generate(n):
        yield from range(n)

    result, fired, _ = hooked(ext, "clear", generate, generate, 3)
    assert fired == 0
    assert list(result) == [0, 1, 2]

    async def coroutine():
        return 5

    result, fired, _ = hooked(ext, "clear", coroutine, coroutine)
    assert fired == 0
    with pytest.raises(StopIteration):
        result.send(None)
    started = generate(2)
    next(started)
    assert hooked(ext, "clear", generate, list, started)[:2] == ([1], 0)


def test_nested_requests(ext):
    def inside():
        return hooked(ext, "handoff", other, other, 10)[:2]

    assert hooked(ext, "handoff", inside, inside)[:2] == ((11, 1), 1)
    waiting = hooked(ext, "clear", plain, lambda: inside())  # plain's request waits throughout
    assert waiting == ((11, 1), 0, None)


def test_another_evaluator_stays(ext):
    ext.evaluator(True)
    try:
        before = ext.evaluator(True)
        result, fired, _ = hooked(ext, "handoff", other, lambda: (other(1), plain(2)))
        assert fired == 1
        assert ext.evaluator_name() == "counting"
        assert ext.evaluator(True) - before >= 2  # the lambda and plain went through it
    finally:
        ext.evaluator(False)
    assert result == (other(1), plain(2))


def test_an_evaluator_installed_meanwhile(ext):
    def install():
        ext.evaluator(True)
        return other(1)

    try:
        result, fired, _ = hooked(ext, "handoff", plain, install)
        assert (result, fired) == (2, 0)
        assert ext.evaluator_name() == "counting"
        assert hooked(ext, "handoff", other, other, 1)[:2] == (2, 1)
        assert ext.evaluator_name() == "counting"
    finally:
        ext.evaluator(False)
    assert hooked(ext, "handoff", other, other, 1)[:2] == (2, 1)


def test_threads_arm_at_once(ext):
    """Every thread has a request wait while it runs other code, then calls its function."""
    count, rounds = 6, 150
    barrier = threading.Barrier(count)
    failures = []

    def own(k, n):
        return (k, n)

    def work(k):
        def mine(n):
            return (k, n)

        def late(n):
            for _ in range(20):
                own(k, n)  # frames that belong to nobody's request
            return mine(n)

        barrier.wait()
        for n in range(rounds):
            mode = "handoff" if n % 2 else "clear"
            got = hooked(ext, mode, mine, late if n % 3 else mine, n)[:2]
            want = ((k, n) if n % 2 else "from the hook", 1)
            if got != want:
                failures.append((k, n, got))
            if hooked(ext, "clear", mine, own, k, n) != ((k, n), 0, None):
                failures.append((k, n, "wrong frame"))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []
    assert ext.evaluator_name() == "default"


def test_the_same_function_on_two_threads(ext):
    """A request of one thread never takes the frame of another one."""
    armed, done = threading.Event(), threading.Event()
    seen = []

    def wait_then_call():
        armed.set()
        assert done.wait(10)
        return other(1)

    def first():
        seen.append(hooked(ext, "clear", other, wait_then_call)[:2])

    thread = threading.Thread(target=first)
    thread.start()
    assert armed.wait(10)
    assert ext.evaluator_name() == "other"
    assert [other(n) for n in range(5)] == [1, 2, 3, 4, 5]
    done.set()
    thread.join()
    assert seen == [("from the hook", 1)]
