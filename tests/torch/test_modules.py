"""A compiled torch module is a module: whatever a program does with one, it does with the other."""

import copy
import io
import pickle
import subprocess
import sys

import pytest

import ccompile

torch = pytest.importorskip("torch", reason="needs torch")
nn = torch.nn


class Net(nn.Module):
    """Has a buffer that changes, random numbers and two children."""

    made_subclasses = 0

    def __init_subclass__(cls):
        Net.made_subclasses += 1

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.head(self.drop(nn.functional.max_pool2d(x, 2).flatten(1)))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


def batch(n=4):
    return torch.randn(n, 1, 8, 8), torch.randint(0, 3, (n,))


def train(model, steps):
    """Losses of some steps of Adam; all random numbers are the seed's."""
    opt, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for step in range(steps):
        torch.manual_seed(step)
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses


def test_is_the_module(net):
    compiled = ccompile.compile(net)
    assert isinstance(compiled, Net) and type(compiled) is not Net and Net.made_subclasses == 0
    assert type(compiled).__name__ == "Net" and repr(compiled) == repr(net)
    assert compiled.__dict__ is net.__dict__
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert all(a is b for a, b in zip(compiled.parameters(), net.parameters(), strict=True))
    assert compiled.eval() is compiled and not net.training and not net.drop.training
    compiled.extra = 3
    assert net.extra == 3
    del net.extra
    assert not hasattr(compiled, "extra")
    assert compiled.double() is compiled and net.head.weight.dtype == torch.float64


def test_trains_as_the_plain_one(net):
    plain, other = copy.deepcopy(net), copy.deepcopy(net)
    assert train(ccompile.compile(other), 5) == train(plain, 5)
    for a, b in zip(plain.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_calls_run_with_the_original_as_self():
    class Self(nn.Module):
        def forward(self):
            return self

    module = Self()
    compiled = ccompile.compile(module)
    assert compiled() is module and compiled() is module
    assert compiled.__wrapped__ is module


def test_inside_of_a_container(net):
    compiled = ccompile.compile(net).eval()
    both = nn.Sequential(compiled, nn.Softmax(1))
    x, _ = batch()
    assert torch.equal(both(x), torch.softmax(net(x), 1))
    assert [name for name, _ in both.named_children()] == ["0", "1"]
    assert ccompile.counters(compiled)["recorded"] > 0
    assert both.train() is both and net.training


def test_hooks_of_either(net):
    compiled, seen = ccompile.compile(net), []
    net.register_forward_hook(lambda m, args, out: seen.append(m))
    handle = compiled.register_forward_pre_hook(lambda m, args: seen.append("before"))
    compiled(batch()[0])
    assert seen == ["before", net]
    handle.remove()
    compiled(batch()[0])
    assert seen[2:] == [net]


@pytest.mark.parametrize("on_compiled", [False, True])
def test_parametrisation(on_compiled):
    class Symmetric(nn.Module):
        def forward(self, w):
            return w + w.T

        def right_inverse(self, w):
            return w / 2

    module = nn.Linear(2, 2)
    compiled = ccompile.compile(module)
    x = torch.ones(1, 2)
    compiled(x)
    nn.utils.parametrize.register_parametrization(
        compiled if on_compiled else module, "weight", Symmetric())
    assert torch.equal(compiled(x), module(x)) and torch.equal(compiled.weight, compiled.weight.T)
    assert type(module).__name__ == "ParametrizedLinear" == compiled.__class__.__name__
    compiled.weight = torch.eye(2)
    assert torch.equal(module.weight, torch.eye(2)) and "weight" not in module.__dict__


def test_class_that_changes_and_slots():
    class Slotted(nn.Module):
        __slots__ = ("scale",)

        def forward(self, x):
            return x * self.scale

    module = Slotted()
    object.__setattr__(module, "scale", 3.0)
    compiled = ccompile.compile(module)
    assert compiled(2.0) == 6.0 and compiled.scale == 3.0
    lazy = ccompile.compile(nn.LazyLinear(3))
    assert lazy(torch.ones(1, 2)).shape == (1, 3) and lazy.weight.shape == (3, 2)
    assert lazy.__class__ is nn.Linear


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_classes_with_ways_of_their_own():
    class Needs(nn.Module):
        def __init_subclass__(cls, *, need):
            super().__init_subclass__()

    class Own(Needs, need=1):
        def __call__(self, x):
            return x * 3

    assert ccompile.compile(Own())(2) == 6
    x = torch.ones(1, 2)
    for module in (torch.jit.script(nn.Linear(2, 2)), torch.jit.trace(nn.Linear(2, 2), x),
                   torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))):
        assert torch.equal(ccompile.compile(module)(x), module(x))


def test_forward_that_is_replaced(net):
    compiled = ccompile.compile(net)
    x, _ = batch()
    compiled(x)
    net.forward = lambda x: x + 1
    assert torch.equal(compiled(x), x + 1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_compiled(net, copied):
    compiled = ccompile.compile(net, backend="interp").eval()
    other = copied(compiled)
    assert isinstance(other, Net) and other is not compiled and other.__dict__ is not net.__dict__
    x, _ = batch()
    assert torch.equal(other(x), compiled(x))
    assert ccompile.counters(other)["recorded"] == 1
    own = other.head.weight is not net.head.weight
    assert own == (copied is copy.deepcopy)


def save(obj):
    out = io.BytesIO()
    torch.save(obj, out)
    return out.getvalue()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_is_the_plain_module(net, protocol):
    again = pickle.loads(pickle.dumps(ccompile.compile(net), protocol))
    assert type(again) is Net and torch.equal(again.head.weight, net.head.weight)


def test_saved_file_needs_no_ccompile(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(save(ccompile.compile(nn.Linear(2, 2))))
    program = ("import sys, torch; m = torch.load(sys.argv[1], weights_only=False); "
               "print(type(m).__name__, m(torch.ones(1, 2)).shape[1], 'ccompile' in sys.modules)")
    out = subprocess.run([sys.executable, "-c", program, str(path)], check=True,
                         capture_output=True, text=True).stdout
    assert out.split() == ["Linear", "2", "False"]


def test_compiled_again_and_disabled(net):
    compiled = ccompile.compile(net.eval())
    again = ccompile.compile(compiled, backend="eager")
    assert again.__wrapped__ is net
    plain = ccompile.disable(net)
    x, _ = batch()
    assert torch.equal(plain(x), compiled(x)) and isinstance(plain, Net)


def test_reset_and_explain(net):
    compiled = ccompile.compile(net.eval())
    x, _ = batch()
    compiled(x)
    ccompile.reset(compiled)
    compiled(x)
    assert ccompile.counters(compiled)["recorded"] == 2
    assert "Net" in str(ccompile.explain(compiled)(x)) and "Net" in str(ccompile.explain(net)(x))
