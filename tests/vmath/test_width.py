"""A lane's bits depend on its arguments and on VM_FMA: not on width, index, length, neighbours."""

import numpy as np
import pytest

from tests.vmath.vmtest import DTYPES, Fn, functions, lib, random_bits, specials, tier, variants


def arguments(fn: Fn, dtype: type, seed: int) -> list[np.ndarray]:
    """Ordinary numbers with specials and random bits mixed in."""
    rng = np.random.default_rng(seed)
    n = 6001
    args = []
    for _ in range(fn.nin):
        x = rng.uniform(-4, 4, n).astype(dtype)
        mix = rng.integers(0, 8, n)
        x = np.where(mix == 0, random_bits(dtype, n, rng), x)
        args.append(np.where(mix == 1, rng.choice(specials(dtype), n), x))
    return args


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits; every NaN is like another, as IEEE leaves their bits open."""
    bits = f"u{a.dtype.itemsize}"
    return bool(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", functions(), ids=lambda fn: fn.name)
def test_widths_agree(fn: Fn, dtype: type) -> None:
    args = arguments(fn, dtype, 1)
    first: dict[str, np.ndarray] = {}
    for variant in variants():
        got, _ = lib(variant).call(fn.name, *args)
        assert same(got, first.setdefault(tier(variant), got)), variant


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", functions(), ids=lambda fn: fn.name)
def test_place_does_not_matter(fn: Fn, dtype: type) -> None:
    args = arguments(fn, dtype, 2)
    for variant in ("plain-w4", variants()[-1]):
        whole, _ = lib(variant).call(fn.name, *args)
        for lo, hi in [(0, 1), (1, 4), (3, 40), (7, 1000), (1001, 6001)]:
            part, _ = lib(variant).call(fn.name, *(a[lo:hi] for a in args))
            assert same(part, whole[lo:hi]), (variant, lo, hi)
        order = np.random.default_rng(3).permutation(whole.size)
        mixed, _ = lib(variant).call(fn.name, *(a[order] for a in args))
        assert same(mixed, whole[order]), variant
