"""Build kern/vmath.h for several widths and instruction sets, and call it on arrays."""

import ctypes
import dataclasses
import functools
import math
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Callable

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CFLAGS = ["-std=gnu11", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"]
DTYPES = [np.float64, np.float32]
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "pow": "power", "atan2": "arctan2"}


@dataclasses.dataclass(frozen=True)
class Fn:
    """A row of vmath.def: name, number of arguments, bounds in ulp."""

    name: str
    nin: int
    f64: float
    f32: float

    def bound(self, dtype: type) -> float:
        """The largest error allowed for this dtype."""
        return self.f64 if dtype is np.float64 else self.f32


@functools.cache
def functions() -> tuple[Fn, ...]:
    """All rows of vmath.def."""
    text = (ROOT / "csrc/kern/vmath.def").read_text()
    rows = re.findall(r"^VM_FN([12])\((\w+),\s*([\d.]+),\s*([\d.]+)\)", text, re.M)
    return tuple(Fn(name, int(nin), float(a), float(b)) for nin, name, a, b in rows)


def numpy_function(name: str) -> Callable[..., np.ndarray]:
    """NumPy's function of this name, math.erf for the one it has not."""
    if name == "erf":
        return np.vectorize(math.erf, otypes=[np.float64])
    return getattr(np, NUMPY.get(name, name))


VARIANTS = {  # name: (compiler flags, CPU flags needed); one tier = everything with the same FMA
    "plain-w4": (["-DVM_W=4"], set()),
    "plain-w8": (["-DVM_W=8", "-O1"], set()),       # made of 16-byte halves: slow to compile
    "plain-w16": (["-DVM_W=16", "-O1"], set()),
    "plain-avx2-w8": (["-DVM_W=8", "-mavx2"], {"avx2"}),
    "fma-w4": (["-DVM_W=4", "-mavx2", "-mfma"], {"avx2", "fma"}),
    "fma-w8": (["-DVM_W=8", "-mavx2", "-mfma"], {"avx2", "fma"}),
    "fma-avx512-w16": (["-DVM_W=16", "-march=skylake-avx512"], {"avx512f", "avx512dq", "avx512vl"}),
    "fma-avx512-w8": (["-DVM_W=8", "-march=skylake-avx512"], {"avx512f", "avx512dq", "avx512vl"}),
}


@functools.cache
def variants() -> tuple[str, ...]:
    """Names of the variants this CPU can run."""
    cpu = set(re.search(r"^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
              .group(1).split())
    return tuple(name for name, (_, needs) in VARIANTS.items() if needs <= cpu)


def tier(variant: str) -> str:
    """'plain' or 'fma'."""
    return variant.split("-")[0]


class Lib:
    """One build of tests/vmath/vmlib.c."""

    def __init__(self, variant: str) -> None:
        self._dir = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._dir.name) / "vm.so"
        source = ROOT / "tests/vmath/vmlib.c"
        subprocess.run(["cc", *CFLAGS, *VARIANTS[variant][0], f"-I{ROOT / 'csrc'}", "-shared",
                        "-fPIC", "-o", str(path), str(source), "-lm"], check=True)
        self._lib = ctypes.CDLL(str(path))

    def call(self, name: str, *args: np.ndarray) -> tuple[np.ndarray, int]:
        """The function's values on contiguous 1-d arrays of one dtype, and the flags it raised."""
        dtype = args[0].dtype
        out = np.empty(args[0].shape, dtype)
        fn = getattr(self._lib, f"t_vm_{name}_f{dtype.itemsize * 8}")
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*args, out)]
        flags = fn(*pointers, ctypes.c_size_t(out.size))
        return out, flags


@functools.cache
def lib(variant: str) -> Lib:
    """The build of a variant, made once."""
    return Lib(variant)


def specials(dtype: type) -> np.ndarray:
    """Zeros, infinities, NaN, limits, and what lies around 1, 2 and the ends of ranges."""
    info = np.finfo(dtype)
    one = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 100.0, 708.0, 709.5, 710.2,
                    745.0, 746.0, 800.0, 88.0, 89.0, 104.0, 1023.0, 1024.0, 1e5, 1e9, 2.0**23,
                    2.0**24 + 2, 2.0**52, 2.0**53, 1e18, 1e30, float(info.max), float(info.tiny),
                    float(info.smallest_subnormal), float(info.tiny) / 8, np.inf, np.nan], dtype)
    near = np.nextafter(np.array([0.5, 1, 2, info.tiny], dtype), dtype(np.inf))
    below = np.nextafter(np.array([0.5, 1, 2, info.tiny], dtype), dtype(0))
    positive = np.concatenate([one, near, below])
    return np.concatenate([positive, -positive])


def random_bits(dtype: type, n: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers with random bit patterns, NaN and infinities among them."""
    bits = np.uint64 if dtype is np.float64 else np.uint32
    return rng.integers(0, np.iinfo(bits).max, n, bits, endpoint=True).view(dtype)
