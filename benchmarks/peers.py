"""Who runs the programs, one row of PEERS each. "plain" is the program as it is: the base.

A row prepares a program: it gives a contestant whose `call` runs it once, to the end (lazy
libraries are waited for). NoTwin says why a peer has no such program. The value of the first call
is compared with plain's by `agrees`, so that nobody wins with another computation.
"""

import importlib
import importlib.util
import io
import logging
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ccompile
from ccompile import config, nn, optim
from ccompile.nn import functional as F

from .measure import Contestant
from .programs import Program, under

WARM_CALLS = 4  # in a row without a new recording
MAX_WARM_CALLS = 60


class NoTwin(Exception):
    """The peer cannot run this program; the text says why."""


@dataclass(frozen=True)
class Peer:
    """A row of the table."""

    name: str
    prepare: Callable[[Program], Contestant]
    needs: tuple[str, ...] = ()
    doc: str = ""

    def missing(self) -> list[str]:
        """Modules that it needs and that are not installed."""
        return [module for module in self.needs if importlib.util.find_spec(module) is None]


# -- Plain and ccompile -----------------------------------------------------------


def _loss(model, x, y):
    return F.cross_entropy(model(x), y)


_loss_and_grads = ccompile.value_and_grad(_loss)


def _train_step(model, opt, x, y):
    loss, grads = _loss_and_grads(model, x, y)
    opt.step(grads)
    return loss


def _seeded(network):
    nn.manual_seed(0)
    return network(nn)


def _own(program: Program, wrap: Callable[[Any], Any]) -> Callable[[], Any]:
    inputs = program.inputs()
    if program.formula is not None:
        function = wrap(under(program.formula, np))
        return lambda: function(*inputs)
    model = _seeded(program.network)
    opt, step = optim.Adam(model, lr=1e-3), wrap(_train_step)
    return lambda: step(model, opt, *inputs)


def _plain(program: Program) -> Contestant:
    return Contestant(_own(program, lambda function: function))


def _compiled(backend: str, threads: int = 0) -> Callable[[Program], Contestant]:
    def prepare(program: Program) -> Contestant:
        call = _own(program, lambda function: ccompile.compile(function, backend=backend))
        enter = lambda: config.set("num_threads", threads)  # noqa: E731
        return Contestant(call, enter)

    return prepare


# -- Others -----------------------------------------------------------------------


def _torch(threads: int | None, jit: bool = False) -> Callable[[Program], Contestant]:
    def prepare(program: Program) -> Contestant:
        torch = importlib.import_module("torch")
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        inputs = [torch.from_numpy(array) for array in program.inputs()]
        enter = lambda: torch.set_num_threads(threads or most)  # noqa: E731
        wrap = torch.compile if jit else lambda function: function
        if program.formula is not None:
            function = wrap(under(program.formula, torch))
            return Contestant(lambda: function(*inputs), enter)
        own = _seeded(program.network).state_dict()
        model = program.network(torch.nn)
        model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in own.items()})
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        forward = wrap(model)

        def step():
            loss = torch.nn.functional.cross_entropy(forward(inputs[0]), inputs[1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            return loss.item()

        return Contestant(step, enter)

    return prepare


def _jax(program: Program) -> Contestant:
    jax = importlib.import_module("jax")
    if program.formula is None:
        raise NoTwin("training steps are not written for it")
    jax.config.update("jax_enable_x64", True)
    jnp = importlib.import_module("jax.numpy")
    inputs = [jnp.asarray(array) for array in program.inputs()]
    function = jax.jit(under(program.formula, jnp))
    return Contestant(lambda: jax.block_until_ready(function(*inputs)))


def _numba(program: Program) -> Contestant:
    if program.formula is None:
        raise NoTwin("training steps are not written for it")
    function = importlib.import_module("numba").njit(under(program.formula, np))
    inputs = program.inputs()
    return Contestant(lambda: function(*inputs))


def _onnxruntime(program: Program) -> Contestant:
    if program.formula is None:
        raise NoTwin("training steps are not written for it")
    torch, ort = (importlib.import_module(name) for name in ("torch", "onnxruntime"))
    formula = under(program.formula, torch)

    class Formula(torch.nn.Module):
        def forward(self, *arrays):
            return formula(*arrays)

    tensors = tuple(torch.from_numpy(array) for array in program.inputs())
    text = io.BytesIO()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Formula().eval(), tensors, text, dynamo=True, verbose=False)
    session = ort.InferenceSession(text.getvalue(), providers=["CPUExecutionProvider"])
    feed = {want.name: array
            for want, array in zip(session.get_inputs(), program.inputs(), strict=True)}
    return Contestant(lambda: session.run(None, feed))


PEERS = {row.name: row for row in (
    Peer("plain", _plain, doc="the program itself: NumPy, ccompile.nn without compilation"),
    Peer("ccompile", _compiled("c"), doc="backend c"),
    Peer("ccompile-1", _compiled("c", threads=1), doc="backend c on one thread"),
    Peer("interp", _compiled("interp"), doc="ccompile's backend without a compiler"),
    Peer("torch-1", _torch(1), ("torch",), "torch eager on one thread"),
    Peer("torch", _torch(None), ("torch",), "torch eager on all threads"),
    Peer("torch.compile", _torch(None, jit=True), ("torch",), "its default backend"),
    Peer("jax", _jax, ("jax",), "jax.jit"),
    Peer("numba", _numba, ("numba",), "njit"),
    Peer("onnxruntime", _onnxruntime, ("onnxruntime", "onnxscript", "torch"),
         "the formula exported by torch"),
)}


# -- Checks before the clock runs ---------------------------------------------------


def _parts(value: Any) -> list[np.ndarray]:
    return [np.asarray(part) for part in (value if isinstance(value, (tuple, list)) else [value])]


def agrees(value: Any, want: Any) -> bool:
    """Whether a peer's result is the base's, as far as float32 sums in another order can be."""
    have, base = _parts(value), _parts(want)
    return len(have) == len(base) and all(
        a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-4)
        for a, b in zip(have, base, strict=True))


def warm_up(contestant: Contestant) -> int:
    """Call until nothing new has been recorded for a while; gives the number of calls."""
    contestant.enter()
    calls = quiet = 0
    while quiet < WARM_CALLS and calls < MAX_WARM_CALLS:
        before = ccompile.counters()["recorded"]
        contestant.call()
        calls += 1
        quiet = quiet + 1 if ccompile.counters()["recorded"] == before else 0
    return calls


def contestant(peer: Peer, program: Program, first: Any = None) -> tuple[Contestant, Any]:
    """A peer that is ready to be measured, and the value of its first call.

    first: the value of plain's first call, to compare with; None for plain itself.
    Raises NoTwin where the peer cannot take part, with the reason.
    """
    missing = peer.missing()
    if missing:
        raise NoTwin(f"not installed: {', '.join(missing)}")
    try:
        one = peer.prepare(program)
        one.enter()
        value = one.call()
    except NoTwin:
        raise
    except Exception as error:  # of another project's compiler: something to show
        if not peer.needs:
            raise
        text = str(error).strip()
        line = text.splitlines()[0] if text else ""
        raise NoTwin(f"{type(error).__name__}: {line[:90]}") from None
    if first is not None and not agrees(value, first):
        raise NoTwin("its result differs from plain's")
    warm_up(one)
    return one, value
