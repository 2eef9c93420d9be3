"""The gradients of `functional`'s operations, for eager `grad`; ties as torch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._autodiff import RULES, Rule
from . import functional as F


def _relu(out: Any, input: Any) -> Any:
    return (lambda g: np.where(out <= 0, 0.0, g),)


def _softmax(out: Any, input: Any, dim: int) -> Any:
    return (lambda g: out * (g - np.sum(g * out, axis=dim, keepdims=True)), None)


def _log_softmax(out: Any, input: Any, dim: int) -> Any:
    return (lambda g: g - np.exp(out) * np.sum(g, axis=dim, keepdims=True), None)


def _cross_entropy(out: Any, input: Any, target: Any, *, reduction: str = "mean") -> Any:
    def pull(g: Any) -> Any:
        n = input.shape[0]
        delta = F.softmax(input, 1)
        delta[np.arange(n), target] -= 1.0
        if reduction == "mean":
            g = g / n
        return delta * (np.reshape(g, (n, 1)) if reduction == "none" else g)

    return pull, None


def _conv2d_forward(input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
                    groups: int) -> Any:
    return F.conv2d_with_columns(input, weight, bias, stride, padding, dilation, groups)


def _conv2d(columns: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
            dilation: Any, groups: int) -> Any:
    stride, dilation = F._pair(stride), F._pair(dilation)
    n, o = input.shape[0], weight.shape[0]
    kernel = weight.shape[2:]
    pads = F._conv_padding(padding, kernel, stride, dilation)

    def grouped(g: Any) -> Any:
        return g.reshape(n, groups, o // groups, -1)

    def to_input(g: Any) -> Any:
        rows = weight.reshape(groups, o // groups, -1).swapaxes(1, 2)
        oh, ow = g.shape[2:]
        back = np.matmul(rows, grouped(g)).reshape(n, input.shape[1], *kernel, oh, ow)
        height, width = (m + p[0] + p[1] for m, p in zip(input.shape[2:], pads, strict=True))
        out = np.zeros((n, input.shape[1], height, width), back.dtype)
        for i in range(kernel[0]):
            for j in range(kernel[1]):
                top, left = i * dilation[0], j * dilation[1]
                out[:, :, top:top + (oh - 1) * stride[0] + 1:stride[0],
                    left:left + (ow - 1) * stride[1] + 1:stride[1]] += back[:, :, i, j]
        return out[:, :, pads[0][0]:height - pads[0][1], pads[1][0]:width - pads[1][1]]

    def to_weight(g: Any) -> Any:
        per_image = np.matmul(grouped(g), columns.swapaxes(2, 3))
        return per_image.sum(axis=0).reshape(weight.shape)

    return to_input, to_weight, lambda g: g.sum(axis=(0, 2, 3)), None, None, None, None


def _max_pool2d(out: Any, input: Any, kernel_size: Any, stride: Any, padding: Any,
                dilation: Any) -> Any:
    def pull(g: Any) -> Any:
        padded, places = F.pool_places(input, kernel_size, stride, padding, dilation)
        gx = np.zeros_like(padded)
        free = np.ones(out.shape, bool)  # windows whose largest value has not been met yet
        for place in places:
            value = padded[place]
            here = ((value == out) | (value != value)) & free
            gx[place] += g * here
            free &= ~here
        vertical, horizontal = F._pair(padding)
        height, width = padded.shape[-2:]
        return gx[..., vertical:height - vertical, horizontal:width - horizontal]

    return pull, None, None, None, None


RULES[F.relu] = Rule(_relu, saves=False)
RULES[F.softmax] = Rule(_softmax, saves=False)
RULES[F.log_softmax] = Rule(_log_softmax, saves=False)
RULES[F.cross_entropy] = Rule(_cross_entropy)
RULES[F.conv2d] = Rule(_conv2d, forward=_conv2d_forward)
RULES[F.max_pool2d] = Rule(_max_pool2d, saves=False)
