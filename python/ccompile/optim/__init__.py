"""Optimizers over plain NumPy arrays: torch's formulas, in-place updates, state in plain arrays."""

from .optimizers import SGD, Adam, AdamW, Optimizer

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
