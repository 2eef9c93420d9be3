"""Neural-network layers over plain NumPy arrays, with torch's names and meanings."""

from . import functional
from .init import manual_seed
from .layers import (
    Conv2d,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    Linear,
    MaxPool2d,
    ModuleList,
    ReLU,
    Sequential,
)
from .module import Module, Parameter

__all__ = [
    "Conv2d", "CrossEntropyLoss", "Dropout", "Flatten", "Linear", "MaxPool2d", "Module",
    "ModuleList", "Parameter", "ReLU", "Sequential", "functional", "manual_seed",
]
