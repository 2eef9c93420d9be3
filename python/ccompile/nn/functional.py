"""The operations of neural networks as plain functions of arrays; torch's names and formulas.

One function per operation, each built from NumPy calls whose structure depends on shapes only, so
that a compiler may record them or recognise them whole. Images are NCHW. Under eager `grad` an
operand is an `_autodiff.Var`; such a call is recorded whole, with the pullbacks of `_pullbacks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .._autodiff import is_var, record
from .._core import array_function
from . import init

__all__ = ["conv2d", "cross_entropy", "dropout", "flatten", "linear", "log_softmax",
           "max_pool2d", "one_hot", "relu", "softmax"]

Array = Any


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


@array_function
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """input (..., in) @ weight (out, in).T + bias (out,) -> (..., out)."""
    out = np.matmul(input, np.transpose(weight))
    return out if bias is None else out + bias


@array_function
def relu(input: Array) -> Array:
    """max(input, 0); the gradient at 0 is 0."""
    if is_var(input):
        return record(relu, (input,), {})
    return np.maximum(input, 0)


@array_function
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Merge the dimensions from start_dim to end_dim (inclusive) into one."""
    shape = input.shape
    first, last = range(len(shape))[start_dim], range(len(shape))[end_dim]
    if first > last:
        raise ValueError("flatten: start_dim comes after end_dim")
    size = 1
    for n in shape[first:last + 1]:
        size *= n
    return np.reshape(input, shape[:first] + (size,) + shape[last + 1:])


@array_function
def softmax(input: Array, dim: int) -> Array:
    """exp(input) / sum of it along `dim`."""
    if is_var(input):
        return record(softmax, (input, dim), {})
    e = np.exp(input - np.max(input, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


@array_function
def log_softmax(input: Array, dim: int) -> Array:
    """log(softmax(input, dim)), computed without overflow."""
    if is_var(input):
        return record(log_softmax, (input, dim), {})
    shifted = input - np.max(input, axis=dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


def one_hot(target: Array, num_classes: int) -> Array:
    """int64 array of shape target.shape + (num_classes,), 1 where the class is the target."""
    return (np.expand_dims(target, -1) == np.arange(num_classes)).astype(np.int64)


def _class_index(target: Array) -> Array:
    """Class numbers as an index that NumPy refuses when negative, instead of wrapping around."""
    if target.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: target must hold class numbers, got {target.dtype}")
    return target.astype(np.uint32)


@array_function
def cross_entropy(input: Array, target: Array, *, reduction: str = "mean") -> Array:
    """Cross entropy of logits (N, C) and class numbers (N,).

    reduction: "mean" or "sum" gives a scalar of the logits' dtype, "none" an array (N,).
    Raises IndexError for a class outside 0..C-1 and TypeError for a target that is not integer.
    """
    if input.ndim != 2 or target.ndim != 1 or input.shape[0] != target.shape[0]:
        raise ValueError("cross_entropy: expected input (N, C) and target (N,), got "
                         f"{input.shape} and {target.shape}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"cross_entropy: unknown reduction {reduction!r}")
    if is_var(input):
        return record(cross_entropy, (input, target), {"reduction": reduction})
    rows = np.arange(input.shape[0])
    losses = -log_softmax(input, 1)[rows, _class_index(target)]
    if reduction == "mean":
        return np.mean(losses)
    return np.sum(losses) if reduction == "sum" else losses


def _conv_padding(padding: Any, kernel: Any, stride: Any, dilation: Any) -> Any:
    """((top, bottom), (left, right)) from torch's padding argument."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if stride != (1, 1):
            raise ValueError("conv2d: padding='same' needs stride 1")
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((t // 2, t - t // 2) for t in totals)
    if isinstance(padding, str):
        raise ValueError(f"conv2d: unknown padding {padding!r}")
    vertical, horizontal = _pair(padding)
    return (vertical, vertical), (horizontal, horizontal)


def conv_columns(input: Array, kernel: Any, stride: Any, pads: Any, dilation: Any) -> Array:
    """The patches under a kernel: (N, C * KH * KW, OH * OW), one column per output place."""
    if pads != ((0, 0), (0, 0)):
        input = np.pad(input, ((0, 0), (0, 0), *pads))
    n, c = input.shape[:2]
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    windows = sliding_window_view(input, span, axis=(2, 3))
    windows = windows[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]
    oh, ow = windows.shape[2:4]
    windows = np.transpose(windows, (0, 1, 4, 5, 2, 3))
    return windows.reshape(n, c * kernel[0] * kernel[1], oh * ow)


def conv_output_size(size: Any, kernel: Any, stride: Any, pads: Any, dilation: Any) -> Any:
    """(OH, OW) of a convolution or pooling over an image of this (H, W)."""
    return tuple((n + p[0] + p[1] - d * (k - 1) - 1) // s + 1
                 for n, k, s, p, d in zip(size, kernel, stride, pads, dilation, strict=True))


@array_function
def conv2d(input: Array, weight: Array, bias: Array | None = None,
           stride: int | tuple[int, int] = 1, padding: int | tuple[int, int] | str = 0,
           dilation: int | tuple[int, int] = 1, groups: int = 1) -> Array:
    """Cross-correlation of input (N, C, H, W) with weight (O, C / groups, KH, KW), plus bias (O,).

    padding: zeros on each side, or "valid", or "same" (stride 1 only).
    """
    if is_var(input, weight, bias):
        return record(conv2d, (input, weight, bias, stride, padding, dilation, groups), {})
    return conv2d_with_columns(input, weight, bias, stride, padding, dilation, groups)[0]


def conv2d_with_columns(input: Array, weight: Array, bias: Array | None, stride: Any,
                        padding: Any, dilation: Any, groups: int) -> tuple[Array, Array]:
    """conv2d and the columns (N, groups, K, OH * OW) that its gradients need again."""
    stride, dilation = _pair(stride), _pair(dilation)
    if input.ndim != 4 or weight.ndim != 4:
        raise ValueError(f"conv2d: expected 4-d input and weight, got {input.ndim}-d and "
                         f"{weight.ndim}-d")
    if input.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise ValueError(f"conv2d: input {input.shape} does not fit weight {weight.shape} with "
                         f"groups={groups}")
    kernel = weight.shape[2:]
    pads = _conv_padding(padding, kernel, stride, dilation)
    oh, ow = conv_output_size(input.shape[2:], kernel, stride, pads, dilation)
    n, o = input.shape[0], weight.shape[0]
    columns = conv_columns(input, kernel, stride, pads, dilation)
    columns = columns.reshape(n, groups, columns.shape[1] // groups, oh * ow)
    out = np.empty((n, o, oh, ow), np.result_type(input, weight))
    np.matmul(weight.reshape(groups, o // groups, columns.shape[2]), columns,
              out=out.reshape(n, groups, o // groups, oh * ow))
    return (out if bias is None else out + bias.reshape(o, 1, 1)), columns


@array_function
def max_pool2d(input: Array, kernel_size: int | tuple[int, int],
               stride: int | tuple[int, int] | None = None,
               padding: int | tuple[int, int] = 0, dilation: int | tuple[int, int] = 1) -> Array:
    """Largest value of each window of (..., H, W); padding counts as minus infinity.

    The gradient goes to the first largest value of a window, in row-major order.
    """
    if is_var(input):
        return record(max_pool2d, (input, kernel_size, stride, padding, dilation), {})
    padded, places = pool_places(input, kernel_size, stride, padding, dilation)
    out = padded[places[0]].copy()
    for place in places[1:]:
        np.maximum(out, padded[place], out=out)
    return out


def pool_places(input: Array, kernel_size: Any, stride: Any, padding: Any,
                dilation: Any) -> tuple[Array, list[Any]]:
    """The padded input, and for each position in the window the index of all its values."""
    kernel, dilation = _pair(kernel_size), _pair(dilation)
    stride = kernel if stride is None else _pair(stride)
    vertical, horizontal = _pair(padding)
    if 2 * vertical > kernel[0] or 2 * horizontal > kernel[1]:
        raise ValueError("max_pool2d: padding must be at most half of the kernel size")
    pads = (vertical, vertical), (horizontal, horizontal)
    oh, ow = conv_output_size(input.shape[-2:], kernel, stride, pads, dilation)
    if pads != ((0, 0), (0, 0)):
        low = -np.inf if input.dtype.kind == "f" else np.iinfo(input.dtype).min
        input = np.pad(input, ((0, 0),) * (input.ndim - 2) + pads, constant_values=low)
    places = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            top, left = i * dilation[0], j * dilation[1]
            places.append((..., slice(top, top + (oh - 1) * stride[0] + 1, stride[0]),
                           slice(left, left + (ow - 1) * stride[1] + 1, stride[1])))
    return input, places


def dropout(input: Array, p: float = 0.5, training: bool = True) -> Array:
    """While training, zero each element with probability p and scale the others by 1 / (1 - p)."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p must be between 0 and 1, got {p}")
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input * 0.0
    mask = init.generator().random(input.shape, dtype=np.float32) >= p
    return input * (mask.astype(input.dtype) * (1.0 / (1.0 - p)))


from . import _pullbacks  # noqa: E402, F401  (registers the gradients of the functions above)
