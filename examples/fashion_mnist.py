"""Train the CNN of the book on Fashion-MNIST, without and with compilation.

    python fashion_mnist.py [--mode eager|graph|both] [--epochs N] [--lr LR] [--backend NAME]

The whole train step (forward, gradients, Adam) is one compiled call. Eager mode is the same program
in plain NumPy; it runs --eager-steps steps (0: all epochs), graph mode runs --epochs epochs. At the
end a table compares them.
"""

import argparse
import sys
import time
from dataclasses import dataclass, field

import fashion_data
import numpy as np

import ccompile
from ccompile import nn, optim
from ccompile.nn import functional as F

BATCH = 64


class Net(nn.Module):
    """Two convolutions with ReLU and pooling, two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Linear(64 * 7 * 7, 512)
        self.fc2 = nn.Linear(512, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        return self.fc2(self.fc1(self.flatten(x)))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


loss_and_grads = ccompile.value_and_grad(loss_of)


def train_step(model, opt, x, y):
    loss, grads = loss_and_grads(model, x, y)
    opt.step(grads)
    return loss


def eval_step(model, x, y):
    scores = model(x)
    return F.cross_entropy(scores, y, reduction="sum"), (scores.argmax(axis=1) == y).sum()


# -- Data ---------------------------------------------------------------------


@dataclass
class Split:
    """Images (n, 1, 28, 28) scaled to 0..1, and their classes (n,)."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self):
        return len(self.y)

    def batches(self, order=None):
        """Batches in storage order, or in the order given; the last one may be smaller."""
        for start in range(0, len(self), BATCH):
            part = slice(start, start + BATCH)
            if order is not None:
                part = order[part]
            yield self.x[part], self.y[part]


def load(folder, dtype):
    """(train, validation, test): the last twelfth of the training images is for validation."""
    x_train, y_train, x_test, y_test = fashion_data.load(folder)
    x_train, x_test = (
        (x[:, None] / 255.0).astype(dtype) for x in (x_train, x_test)
    )
    y_train, y_test = y_train.astype(np.int64), y_test.astype(np.int64)
    cut = len(y_train) - len(y_train) // 12
    return (
        Split(x_train[:cut], y_train[:cut]),
        Split(x_train[cut:], y_train[cut:]),
        Split(x_test, y_test),
    )


# -- Progress -----------------------------------------------------------------


class Bar:
    """A progress bar on stderr: tqdm where it is installed, else one line of our own."""

    def __init__(self, total, label):
        self.total = total
        self.label = label
        self.done = 0
        self.start = self.shown = time.perf_counter()
        self.live = sys.stderr.isatty()
        try:
            from tqdm import tqdm
        except ImportError:
            self.tqdm = None
        else:
            self.tqdm = tqdm(total=total, desc=label, unit="img", disable=not self.live)

    def update(self, images, loss):
        """Count a batch; redraw at most ten times a second."""
        self.done += images
        if self.tqdm is not None:
            self.tqdm.set_postfix(loss=f"{loss:.4f}", refresh=False)
            self.tqdm.update(images)
            return
        now = time.perf_counter()
        if self.live and now - self.shown > 0.1:
            self.shown = now
            filled = 30 * self.done // self.total
            rate = self.done / (now - self.start)
            print(
                f"\r{self.label} [{'#' * filled:<30}] {self.done}/{self.total}"
                f"  loss {loss:.4f}  {rate:,.0f} img/s ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def close(self, text):
        """Remove the bar and print what came out, with images per second."""
        rate = self.done / max(time.perf_counter() - self.start, 1e-9)
        if self.tqdm is not None:
            self.tqdm.close()
        elif self.live:
            print("\r" + " " * 90 + "\r", end="", file=sys.stderr, flush=True)
        print(f"{self.label}: {text}, {rate:,.0f} images/s", flush=True)


# -- Training -----------------------------------------------------------------


@dataclass
class Report:
    """What one mode did."""

    mode: str
    step_seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    epoch_seconds: list[float] = field(default_factory=list)
    accuracy: float = 0.0

    @property
    def mean_step(self):
        """Seconds per step, the first one (recording and compilation) left out."""
        rest = self.step_seconds[1:] or self.step_seconds
        return sum(rest) / len(rest)


def train_epoch(step, model, opt, data, order, label, report, limit):
    """One pass over the data, or as many steps as are left of `limit` (0: no limit)."""
    bar = Bar(len(data), label)
    begin = time.perf_counter()
    losses = []
    for x, y in data.batches(order):
        start = time.perf_counter()
        loss = float(step(model, opt, x, y))
        report.step_seconds.append(time.perf_counter() - start)
        losses.append(loss)
        bar.update(len(y), loss)
        if limit and len(report.step_seconds) >= limit:
            break
    else:
        report.epoch_seconds.append(time.perf_counter() - begin)
    report.losses += losses
    bar.close(f"mean loss {np.mean(losses):.4f} in {len(losses)} steps")


def evaluate(step, model, data, label):
    """Accuracy in 0..1."""
    model.eval()
    bar = Bar(len(data), label)
    loss, correct = 0.0, 0
    for x, y in data.batches():
        batch_loss, batch_correct = step(model, x, y)
        loss += float(batch_loss)
        correct += int(batch_correct)
        bar.update(len(y), float(batch_loss) / len(y))
    model.train()
    bar.close(f"loss {loss / len(data):.4f}, accuracy {100 * correct / len(data):.2f} %")
    return correct / len(data)


def run(mode, args, train, validation, test):
    """Train from the seed's parameters, in the seed's order of images; gives a Report."""
    nn.manual_seed(args.seed)
    shuffle = np.random.default_rng(args.seed)
    model = Net().astype(args.dtype)
    opt = optim.Adam(model, lr=args.lr)
    step, test_step, limit = train_step, eval_step, args.eager_steps
    if mode == "graph":
        step = ccompile.compile(train_step, backend=args.backend)
        test_step = ccompile.compile(eval_step, backend=args.backend)
        limit = 0
    report = Report(mode)
    for epoch in range(1, args.epochs + 1):
        label = f"{mode} epoch {epoch}/{args.epochs}"
        order = shuffle.permutation(len(train))
        train_epoch(step, model, opt, train, order, f"{label} train", report, limit)
        if limit and len(report.step_seconds) >= limit:
            break
        evaluate(test_step, model, validation, f"{label} validate")
    report.accuracy = evaluate(test_step, model, test, f"{mode} test")
    return report


# -- Results ------------------------------------------------------------------


def table(reports, steps_per_epoch):
    """The comparison as text; an epoch that was not run to its end is estimated from its steps."""
    rows = [("mode", "steps", "first step", "mean step", "epoch", "test accuracy", "speed-up")]
    base = reports[0].mean_step
    for r in reports:
        epoch = f"{np.mean(r.epoch_seconds):.1f} s" if r.epoch_seconds else (
            f"~{r.mean_step * steps_per_epoch:.1f} s"
        )
        rows.append((
            r.mode,
            str(len(r.step_seconds)),
            f"{r.step_seconds[0]:.2f} s",
            f"{1e3 * r.mean_step:.1f} ms",
            epoch,
            f"{100 * r.accuracy:.2f} %",
            f"{base / r.mean_step:.2f}x",
        ))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w)
                  for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", choices=("eager", "graph", "both"), default="both")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--backend", default="c", help="of ccompile.compile: c, interp, eager")
    parser.add_argument("--data", metavar="DIR", help="folder of the four IDX .gz files")
    parser.add_argument("--eager-steps", type=int, default=100, metavar="N",
                        help="steps in eager mode; 0 runs all epochs")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    if args.epochs < 1 or args.eager_steps < 0:
        parser.error("--epochs must be at least 1 and --eager-steps at least 0")
    return args


def main(argv=None):
    """Run the demo; gives the reports by mode."""
    args = arguments(argv)
    try:
        train, validation, test = load(args.data, args.dtype)
    except fashion_data.DataError as error:
        sys.exit(f"fashion_mnist: {error}")
    print(f"{len(train)} training, {len(validation)} validation, {len(test)} test images")
    modes = ("eager", "graph") if args.mode == "both" else (args.mode,)
    reports = [run(mode, args, train, validation, test) for mode in modes]
    print()
    print(table(reports, -(-len(train) // BATCH)))
    if len(reports) == 2:
        pairs = zip(reports[0].losses, reports[1].losses, strict=False)
        apart = [abs(a - b) for a, b in pairs][:100]
        print(f"\nlargest difference of losses: first 20 steps {max(apart[:20]):.1e}, "
              f"first {len(apart)} steps {max(apart):.1e}")
    if args.mode != "eager":
        counts = ccompile.counters()
        print("counters: " + ", ".join(f"{k} {v}" for k, v in counts.items() if v))
    return {report.mode: report for report in reports}


if __name__ == "__main__":
    main()
