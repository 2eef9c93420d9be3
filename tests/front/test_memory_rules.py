"""What the front end says of memory is true of NumPy: results that are said to be new are new."""

import pathlib
import re

import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).parents[2] / "csrc" / "front" / "update.c"
OWN = re.findall(r'"(\w+)"', SOURCE.read_text().partition("own_names[] = {")[2].partition("};")[0])

MAKERS = ["zeros", "ones", "full", "empty", "arange", "eye", "identity", "tri", "linspace"]

INPUTS = [
    np.arange(4.0), np.arange(6.0).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.array(2.0),
    np.ones(1), np.ones((1, 1)), np.array([True, False]), np.arange(3) + 0j, np.arange(8)[::-2],
]
ARGUMENTS = [
    (), (0,), (1,), ((0,),), (None,), (1, 0), (0, 0), (1.0,), (None, None), ((),), ((0, 0),),
    (np.array([0]),), (np.array(1),),
]


def arrays(x):
    if isinstance(x, np.ndarray):
        return [x]
    return [y for part in x for y in arrays(part)] if isinstance(x, (tuple, list)) else []


def calls(name):
    functions = [getattr(where, name) for where in (np, np.ndarray) if hasattr(where, name)]
    for function in functions:
        for x in INPUTS:
            for rest in ARGUMENTS:
                yield function, (x, *rest)
                if function is getattr(np, name, None):
                    yield function, ([x], *rest)
                    yield function, ([x, x], *rest)
                    yield function, (x, x)
                    if name == "where":
                        yield function, (x > 0, x, x)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.filterwarnings("ignore")
def test_results_said_to_be_new_are_new(name):
    done = 0
    for function, args in calls(name):
        with np.errstate(all="ignore"):
            try:
                result = function(*args)
            except Exception:  # this function does not take these
                continue
        done += 1
        for out in arrays(result):
            assert not any(np.shares_memory(out, x) for x in arrays(args)), (function, args)
    assert done > 1 or name in MAKERS


def test_the_rule_would_notice_a_view():
    x = np.arange(3.0)
    assert "reshape" not in OWN and "asarray" not in OWN and np.shares_memory(x, np.asarray(x))
    assert len(OWN) > 50
