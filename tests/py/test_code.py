"""Code objects, instruction arguments and functions as py/ reads them, against dis and CPython."""

import dis
import opcode
import sys
import types

import pytest


def sample(a, b=2, *c, **d):
    total = 0
    for i in range(a):
        if i == b:
            continue
        try:
            total += c[i]
        except IndexError as error:
            d[i] = error
        finally:
            with open(a) as file:
                total -= len(file.read())
    return [total, d.keys(), max(c), [x for x in c]]


def test_bytes_are_never_specialised(ext):
    def hot(n):
        total = 0
        for i in range(n):
            total = total + i * 2
        return total

    before = hot.__code__.co_code
    for _ in range(50):
        hot(50)
    assert ext.code_bytes(hot.__code__) == before


def test_caches_and_names(ext):
    offsets = [i.offset for i in dis.get_instructions(sample)]
    code = ext.code_bytes(sample.__code__)
    at = 0
    for instruction in dis.get_instructions(sample):
        assert at == instruction.offset
        name, caches = ext.opcode(code[at])
        assert name == instruction.opname
        at += 2 + 2 * caches
    assert at == len(code)
    assert len(offsets) > 50


@pytest.mark.parametrize("op", range(256))
def test_every_opcode(ext, op):
    name = opcode.opname[op]
    assert ext.opcode(op)[0] == ("" if name.startswith("<") else name)


def test_handlers(ext):
    """Against dis, which reads the same table."""
    code = sample.__code__
    entries = dis.Bytecode(code).exception_entries
    assert len(entries) >= 4
    for unit in range(len(code.co_code) // 2):
        offset = unit * 2
        want = next(
            ((e.depth, e.target // 2, bool(e.lasti)) for e in entries if e.start <= offset < e.end),
            None,
        )
        assert ext.handler(code, unit) == want


def test_lines(ext):
    code = sample.__code__
    for start, end, line in code.co_lines():
        for offset in range(start, end, 2):
            assert ext.line(code, offset // 2) == (-1 if line is None else line)


def arguments(func, name):
    return [i for i in dis.get_instructions(func) if i.opname == name]


def test_compare(ext):
    def func(a, b):
        x = a < b, a <= b, a == b, a != b, a > b, a >= b
        if a < b:
            return x

    for instruction in arguments(func, "COMPARE_OP"):
        op, to_bool = ext.argument("compare", instruction.arg)
        text = dis.cmp_op[op]
        assert text == instruction.argval or f"bool({text})" == instruction.argrepr
        assert to_bool == instruction.argrepr.startswith("bool(")
    assert len(arguments(func, "COMPARE_OP")) == 7


def test_load_global(ext):
    def func():
        return len, len(())

    plain, called = arguments(func, "LOAD_GLOBAL")
    assert ext.argument("global", plain.arg) == (func.__code__.co_names.index("len"), False)
    assert ext.argument("global", called.arg) == (func.__code__.co_names.index("len"), True)


def test_load_attr(ext):
    def func(x):
        return x.alpha, x.beta()

    names = func.__code__.co_names
    found = [ext.argument("attr", i.arg) for i in arguments(func, "LOAD_ATTR")]
    assert found[0] == (names.index("alpha"), False)
    if len(found) == 2:  # one instruction loads attributes and methods
        assert found[1] == (names.index("beta"), True)


def test_for_iter(ext):
    def func(x):
        for _ in x:
            pass
        return 0

    (loop,) = arguments(func, "FOR_ITER")
    units = [i.offset // 2 for i in dis.get_instructions(func)]
    following = next(u for u in units if u > loop.offset // 2)
    where = following + ext.argument("for", loop.arg)[0]
    assert where in units
    after = [i.opname for i in dis.get_instructions(func) if i.offset // 2 >= where]
    assert after[0] in ("LOAD_CONST", "RETURN_CONST")


def test_order_of_a_call(ext):
    def func(f, x):
        return f(x)

    def opnames(code):
        return [i.opname for i in dis.get_instructions(code)]

    names = opnames(func)
    null_first = (
        names.index("PUSH_NULL") < names.index("LOAD_FAST")
        if "LOAD_FAST" in names
        else names.index("PUSH_NULL") < names.index("LOAD_FAST_LOAD_FAST")
    )
    assert ext.argument("order", 0)[1] == null_first


def test_make_function(ext):
    def twin(x):
        "Text."
        return x + 1

    made = ext.make_function(twin.__code__, globals())
    assert made(1) == 2
    assert made.__qualname__ == twin.__qualname__
    assert made.__doc__ == twin.__doc__
    assert made.__module__ == __name__
    assert ext.function_version(made) == ext.function_version(fresh(ext))


def fresh(ext):
    """A function that MAKE_FUNCTION just made and nobody called, from the code of `twin` above:
    the version follows from the code object, or is 0."""
    code = next(c for c in test_make_function.__code__.co_consts if isinstance(c, types.CodeType))
    source = types.FunctionType(code, globals())
    assert ext.function_version(source) == 0
    return made_by_instruction(ext, code)


def made_by_instruction(ext, code):
    def build():
        def inside(x):
            return x

        return inside

    consts = tuple(code if isinstance(c, types.CodeType) else c for c in build.__code__.co_consts)
    build.__code__ = build.__code__.replace(co_consts=consts)
    return build()


def test_make_function_does_not_leak(ext, no_leak):
    no_leak(lambda: ext.make_function(sample.__code__, globals()))


def test_plain_functions(ext):
    class Callable:
        def __call__(self):
            return 1

        def method(self):
            return 1

    assert ext.plain_function(sample)
    assert ext.plain_function(lambda: 0)
    assert ext.plain_function(Callable.method)
    for other in (Callable(), Callable().method, len, print, Callable, sys.exc_info):
        assert not ext.plain_function(other)
