"""Every array function the front end has to know, as expressions over a few operands.

x and y are arrays of the dtype under test and of equal shape, v is a row of x's last axis, m a mask
of x's first axis, b a mask of x's shape, i places on x's first axis. The first word of a section
says how close a result must be: EXACT by bits, ULP within a few units of the last place, TOL as far
as the order of additions moves a sum.
"""

EXACT, ULP, TOL = 0, 6, 600

SECTIONS = {
    "operators": (
        EXACT,
        """
        x + y
        x - y
        x * y
        x / y
        x // y
        x % y
        divmod(x, y)
        x & y
        x | y
        x ^ y
        x << (y & 3)
        x >> (y & 3)
        x < y
        x <= y
        x == y
        x != y
        x > y
        x >= y
        -x
        (+x) * 2
        ~x
        abs(x)
        x + 1
        2 - x
        x * 0.5
        x / 2
        1 / x
        x // 2
        7 // x
        x % 3
        x ** 2
        x + v
        x * np.float32(2)
        """,
    ),
    "exact functions": (
        EXACT,
        """
        np.add(x, y)
        np.subtract(x, y)
        np.multiply(x, y)
        np.divide(x, y)
        np.floor_divide(x, y)
        np.remainder(x, y)
        np.mod(x, y)
        np.fmod(x, y)
        np.divmod(x, y)
        np.maximum(x, y)
        np.minimum(x, y)
        np.fmax(x, y)
        np.fmin(x, y)
        np.negative(x)
        np.positive(x) * 2
        np.absolute(x)
        np.fabs(x)
        np.sign(x)
        np.sqrt(x)
        np.square(x)
        np.reciprocal(x)
        np.floor(x)
        np.ceil(x)
        np.trunc(x)
        np.rint(x)
        np.fix(x)
        np.round(x)
        np.around(x)
        x.round()
        np.copysign(x, y)
        np.isnan(x)
        np.isinf(x)
        np.isfinite(x)
        np.signbit(x)
        np.equal(x, y)
        np.not_equal(x, y)
        np.less(x, y)
        np.less_equal(x, y)
        np.greater(x, y)
        np.greater_equal(x, y)
        np.logical_and(x, y)
        np.logical_or(x, y)
        np.logical_xor(x, y)
        np.logical_not(x)
        np.bitwise_and(x, y)
        np.bitwise_or(x, y)
        np.bitwise_xor(x, y)
        np.invert(x)
        np.left_shift(x, y & 3)
        np.right_shift(x, y & 3)
        np.heaviside(x, y)
        np.deg2rad(x)
        np.rad2deg(x)
        np.radians(x)
        np.degrees(x)
        np.ldexp(x, 3)
        np.nan_to_num(x)
        np.add(x, y, dtype=np.float64)
        np.multiply(x, 2, dtype=x.dtype)
        """,
    ),
    "functions": (
        ULP,
        """
        np.exp(x)
        np.exp2(x)
        np.expm1(x)
        np.log(x)
        np.log2(x)
        np.log10(x)
        np.log1p(x)
        np.sin(x)
        np.cos(x)
        np.tan(x)
        np.arcsin(x / 8)
        np.arccos(x / 8)
        np.arctan(x)
        np.sinh(x)
        np.cosh(x)
        np.tanh(x)
        np.arcsinh(x)
        np.arccosh(x)
        np.arctanh(x / 8)
        np.cbrt(x)
        np.power(x, y)
        np.float_power(x, y)
        x ** y
        x ** 3
        x ** 0.5
        x ** -1
        2 ** x
        np.arctan2(x, y)
        np.hypot(x, y)
        np.logaddexp(x, y)
        np.logaddexp2(x, y)
        np.sinc(x)
        """,
    ),
    "choice and casts": (
        EXACT,
        """
        np.where(b, x, y)
        np.where(x > y, x, 1)
        np.where(b, x, 0.0)
        np.where(x, 1, 2)
        np.clip(x, 1, 3)
        np.clip(x, 1, None)
        np.clip(x, None, 3)
        np.clip(x, a_min=1, a_max=3)
        np.clip(x, y, 5)
        np.clip(x, v, y)
        x.clip(1, 3)
        x.clip(min=2)
        x.clip(max=2)
        np.minimum(np.maximum(x, 1), 3)
        x.astype(np.float64)
        x.astype(np.float32)
        x.astype(np.int32)
        x.astype('u1')
        x.astype(bool)
        x.astype(float, copy=False) + 1
        x.astype(np.int64, order='C')
        x.astype(dtype=np.int16)
        np.astype(x, np.float32)
        np.float64(x) + 1
        np.select([x > 3, x > 1], [x, y], 0)
        np.copy(x)
        x.copy()
        np.array(x)
        np.array(x, dtype=np.float64)
        np.asarray(x) + 1
        np.ascontiguousarray(x) + 1
        np.isclose(x, y)
        np.allclose(x, y)
        np.array_equal(x, y)
        """,
    ),
    "exact reductions": (
        EXACT,
        """
        x.max()
        x.max(axis=0)
        x.max(axis=1, keepdims=True)
        x.min()
        x.min(0)
        np.max(x)
        np.min(x, axis=(0, 1))
        np.amax(x, 1)
        np.amin(x, axis=-1, keepdims=True)
        np.max(x, axis=0, initial=2)
        np.ptp(x)
        np.ptp(x, axis=0)
        x.argmax()
        x.argmax(axis=0)
        x.argmin()
        x.argmin(axis=1)
        np.argmax(x, axis=1, keepdims=True)
        np.argmin(x, axis=0)
        x.any()
        x.any(axis=0)
        x.all()
        x.all(axis=1, keepdims=True)
        np.any(x > 2, axis=0)
        np.all(x > 2, axis=(0, 1))
        (x > 2).any()
        (x > 2).all(axis=1)
        (x > 2).sum()
        (x > 2).sum(axis=0)
        (x > 2).mean()
        np.count_nonzero(x)
        np.count_nonzero(x, axis=0)
        np.count_nonzero(x > 2, axis=1, keepdims=True)
        np.maximum.reduce(x)
        np.minimum.reduce(x, axis=1)
        np.logical_and.reduce(x > 2, axis=0)
        max(x.max(), y.max())
        """,
    ),
    "sums": (
        TOL,
        """
        x.sum()
        x.sum(axis=0)
        x.sum(axis=1)
        x.sum(1, keepdims=True)
        x.sum(axis=(0, 1))
        x.sum(axis=None, keepdims=True)
        x.sum(dtype=np.float64)
        x.sum(axis=0, dtype=np.float32)
        np.sum(x)
        np.sum(x, axis=-1)
        np.sum(x, 0, np.float64)
        np.sum(x, axis=0, initial=3)
        np.sum(x, where=b)
        np.add.reduce(x)
        np.add.reduce(x, axis=1)
        np.add.reduce(x, axis=None)
        np.multiply.reduce(x, axis=0)
        np.add.accumulate(x)
        x.prod()
        x.prod(axis=0)
        np.prod(x, axis=1, keepdims=True)
        x.mean()
        x.mean(axis=0)
        x.mean(axis=1, keepdims=True)
        np.mean(x, axis=(0, 1))
        np.mean(x, dtype=np.float64)
        x.var()
        x.var(axis=0)
        x.var(axis=0, ddof=1)
        np.var(x, axis=1, ddof=1, keepdims=True)
        np.var(x, ddof=0)
        x.std()
        x.std(axis=0)
        np.std(x, ddof=1)
        np.std(x, axis=0, ddof=2)
        np.average(x)
        np.average(x, axis=0)
        np.average(x, axis=1, weights=v)
        np.nansum(x)
        np.trace(x)
        x.trace()
        np.cumsum(x)
        np.cumsum(x, axis=0)
        np.cumsum(x, axis=1)
        x.cumsum()
        x.cumsum(axis=-1)
        np.cumsum(x, dtype=np.float64)
        np.cumprod(x, axis=1)
        x.cumprod(0)
        np.diff(x)
        np.diff(x, axis=0)
        np.diff(x, n=2)
        np.linalg.norm(x)
        """,
    ),
    "products": (
        TOL,
        """
        x @ y.T
        x.T @ y
        x @ v
        v @ v
        np.matmul(x, y.T)
        np.matmul(v, x.T)
        np.dot(x, y.T)
        np.dot(v, v)
        np.dot(x, v)
        x.dot(v)
        np.dot(x, 2)
        np.vdot(x, y)
        np.vdot(v, v)
        np.inner(x, y)
        np.inner(v, v)
        np.inner(x, v)
        np.outer(v, v)
        np.outer(x, v)
        np.multiply.outer(v, v)
        np.tensordot(x, y, axes=2)
        np.tensordot(x, y, axes=([0], [0]))
        np.tensordot(x, y.T, axes=1)
        np.tensordot(x, y, axes=((1,), (1,)))
        np.tensordot(x, y, (0, 0))
        np.einsum('ij,kj->ik', x, y)
        np.einsum('ij,ij->', x, y)
        np.einsum('ij,ij->i', x, y)
        np.einsum('ij,j->i', x, v)
        np.einsum('ij->ji', x) + 1
        np.einsum('ij->j', x)
        np.einsum('ij,kj', x, y)
        np.einsum('i,j->ij', v, v)
        np.einsum('...j,j->...', x, v)
        np.einsum('bij,bjk->bik', x.reshape(3, 2, 4), y.reshape(3, 4, 2))
        np.vecdot(x, y)
        np.kron(v, v)
        """,
    ),
    "shapes": (
        EXACT,
        """
        x.reshape(-1) + 1
        x.reshape(4, 6) + 1
        x.reshape((2, -1)) + 1
        x.reshape([2, 12]) + 1
        x.reshape(4, 6, order='C') + 1
        np.reshape(x, (4, 6)) + 1
        np.reshape(x, -1) + 1
        x.ravel() + 1
        np.ravel(x) + 1
        x.flatten()
        x.T + 1
        x.mT + 1
        x.transpose() + 1
        x.transpose(1, 0) + 1
        x.transpose((1, 0)) + 1
        np.transpose(x) + 1
        np.transpose(x, (1, 0)) + 1
        np.transpose(x, axes=(1, 0)) + 1
        np.matrix_transpose(x) + 1
        np.swapaxes(x, 0, 1) + 1
        x.swapaxes(0, 1) + 1
        np.moveaxis(x, 0, 1) + 1
        np.moveaxis(x[None], (0, 1), (1, 2)) + 1
        np.rollaxis(x, 1) + 1
        np.expand_dims(x, 0) + 1
        np.expand_dims(x, axis=(0, 2)) + 1
        np.squeeze(x[None]) + 1
        np.squeeze(x[None], axis=0) + 1
        x[:, None].squeeze(1) + 1
        np.broadcast_to(v, x.shape) + 1
        np.broadcast_to(x, (3, 6, 4)) + 1
        np.atleast_1d(x) + 1
        np.atleast_2d(v) + 1
        np.atleast_3d(x) + 1
        np.concatenate((x, y))
        np.concatenate([x, y], axis=1)
        np.concatenate((x, y), axis=None)
        np.concat((x, y), 0)
        np.stack((x, y))
        np.stack([x, y], axis=1)
        np.stack((x, y), axis=-1)
        np.vstack((x, y))
        np.vstack([v, x])
        np.hstack((x, y))
        np.hstack([v, v])
        np.dstack((x, y))
        np.column_stack((v, v))
        np.append(x, y)
        np.append(x, y, axis=0)
        [a + 1 for a in np.split(x, 2)]
        [a + 1 for a in np.split(x, [1, 4])]
        [a + 1 for a in np.split(x, 2, axis=1)]
        [a + 1 for a in np.array_split(x, 4)]
        [a + 1 for a in np.vsplit(x, 2)]
        [a + 1 for a in np.hsplit(x, 2)]
        np.pad(x, 1)
        np.pad(x, ((1, 0), (2, 3)))
        np.pad(x, (1, 2), mode='constant')
        np.pad(x, 1, constant_values=3)
        np.pad(x, 1, mode='edge')
        np.flip(x) + 1
        np.flip(x, 0) + 1
        np.flip(x, axis=(0, 1)) + 1
        np.fliplr(x) + 1
        np.flipud(x) + 1
        np.rot90(x) + 1
        np.roll(x, 1)
        np.roll(x, 2, axis=0)
        np.roll(x, -1, axis=1)
        np.roll(x, 9, axis=1)
        np.roll(x, (1, 2), axis=(0, 1))
        np.roll(v, 1)
        np.repeat(x, 2)
        np.repeat(x, 3, axis=0)
        np.repeat(x, 2, axis=1)
        x.repeat(2, axis=0)
        np.repeat(x, i, axis=0)
        np.tile(x, 2)
        np.tile(x, (2, 3))
        np.tile(v, (3, 1))
        np.tile(x, (2, 1, 1))
        np.tril(x)
        np.triu(x)
        np.triu(x, 1)
        np.diag(x) + 1
        np.diag(v)
        np.diagonal(x) + 1
        x.diagonal() + 1
        np.meshgrid(v, v)
        """,
    ),
    "places": (
        EXACT,
        """
        x[1:] + 1
        x[:-1] + 1
        x[1:-1, 1:3] + 1
        x[::2] + 1
        x[::-1] + 1
        x[4:1:-1] + 1
        x[10:] + 1
        x[:100] + 1
        x[-100:] + 1
        x[2:2] + 1
        x[:, 1] + 1
        x[0] + 1
        x[-1] + 1
        x[..., 0] + 1
        x[None] + 1
        x[:, None, :] + 1
        x[1, 2] + y
        x[:][1:] + 1
        x[i]
        x[i, :]
        x[i, 1]
        x[i, i % 4]
        x[:, i % 4]
        x[..., i % 4]
        x[-i]
        x[i][:, 1:] + 1
        x[[0, 2, 1]]
        x[:, [0, 2]]
        x[i.reshape(1, -1)]
        x[1:, [0, 1]]
        x[m]
        x[b]
        x[x > 2]
        x[m, :]
        x[:, v > 1]
        x[~m]
        np.take(x, i, axis=0)
        np.take(x, i)
        x.take(i % 4, axis=1)
        np.take_along_axis(x, x.argsort(axis=1), axis=1)
        np.compress(m, x, axis=0)
        np.extract(b, x)
        np.nonzero(x)
        np.flatnonzero(x)
        np.argwhere(b)
        np.where(b)
        """,
    ),
    "made": (
        EXACT,
        """
        np.zeros(4) + x
        np.zeros((6, 4)) + x
        np.zeros(x.shape, x.dtype)
        np.zeros(x.shape, dtype=np.int32) + x
        np.zeros(shape=4) + x
        np.ones((6, 1)) * x
        np.ones(x.shape[1], x.dtype) + x
        np.full(4, 7) + x
        np.full((6, 4), 2.5) + x
        np.full(x.shape, 3, dtype=x.dtype)
        np.empty(x.shape, x.dtype).shape + (x + 1).shape
        np.empty_like(x).shape + (x + 1).shape
        np.zeros_like(x)
        np.ones_like(x)
        np.full_like(x, 3)
        np.zeros_like(x, dtype=np.float64)
        np.ones_like(x, shape=(2, 3))
        np.arange(4) + x
        np.arange(1, 5) + x
        np.arange(0, 8, 2) + x
        np.arange(4.0) + x
        np.arange(4, dtype=x.dtype) + x
        np.arange(0.0, 2.0, 0.5) + x
        np.arange(x.shape[1]) + x
        np.arange(x.shape[0] - 2) + x
        np.eye(4) + v
        np.eye(6, 4) + x
        np.eye(4, dtype=x.dtype) + v
        np.eye(6, 4, 1) + x
        np.identity(4) + v
        np.linspace(0, 1, 4) + x
        np.linspace(0, 1, 4, endpoint=False) + x
        np.linspace(0.5, 3.5, num=4) + x
        np.tri(6, 4) + x
        np.array([1, 2, 3, 4]) + x
        np.array([1.0, 2.0, 3.0, 4.0]) * x
        np.array([[1], [2], [3], [4], [5], [6]]) * x
        np.asarray([1, 2, 3, 4]) + x
        np.array([x[0, 0], x[0, 1], 1, 2]) + x
        """,
    ),
}


def rows():
    """(tolerance, expression) of all rows."""
    for exact, text in SECTIONS.values():
        for line in text.strip().splitlines():
            yield exact, line.strip()
