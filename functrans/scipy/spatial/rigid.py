"""Rigid transforms of space, and smooth rotations in time: trees of matrices and coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError, publish
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys_class
from functrans.scipy.arguments import inexact, one_of, value_of
from functrans.scipy.linalg import solve_banded
from functrans.scipy.products import matmul
from functrans.scipy.spatial.rotations import Rotation, product
from functrans.typing import Array, ArrayLike, Index

__all__ = ["RigidTransform", "RotationSpline"]

_NAME = "functrans.scipy.spatial.transform.RigidTransform"
_SMALL = 1e-3  # of angles, below which series have all digits


def _skew(v: Array) -> Array:
    """The matrices of the cross products with vectors."""
    x, y, z = (v[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _factors(v: Array) -> tuple[Array, Array, Array]:
    """(1 - cos t) / t**2, (t - sin t) / t**3, (1 - t / 2 cot(t / 2)) / t**2 of the angles t."""
    square = jnp.sum(v * v, axis=-1)
    small = square < _SMALL**2
    safe = jnp.where(small, 1, square)
    t = jnp.sqrt(safe)
    one = jnp.where(small, 0.5 - square / 24 + square**2 / 720, (1 - jnp.cos(t)) / safe)
    two = jnp.where(small, 1 / 6 - square / 120 + square**2 / 5040, (t - jnp.sin(t)) / (t * safe))
    three = jnp.where(small, 1 / 12 + square / 720 + square**2 / 30240,
                      (1 - 0.5 * t / jnp.tan(0.5 * t)) / safe)
    return one, two, three


def _of_skew(v: Array, linear: Any, quadratic: Array) -> Array:
    """1 + linear S + quadratic S S of the cross products S with vectors."""
    s = _skew(v)
    first = linear * s if isinstance(linear, float) else linear[..., None, None] * s
    return jnp.eye(3, dtype=v.dtype) + first + quadratic[..., None, None] * matmul(s, s)


def _times(matrix: Array, v: Array) -> Array:
    return jnp.sum(matrix * v[..., None, :], axis=-1)


@register_pytree_with_keys_class
class RigidTransform:
    """A rotation and a translation after it, or many, as matrices (..., 4, 4).

    With `normalize` the upper left part is brought to a rotation. `b * a` is a first, `a ** n` its
    power, `a.apply(points)` moves points. It is a tree, differentiated in all.
    Raises ArgumentError for matrices whose last row is not 0, 0, 0, 1.
    Source: Lynch and Park, Modern Robotics (2017), ch. 3.

    >>> import functrans as ft
    >>> from functrans.scipy.spatial.transform import RigidTransform, Rotation
    >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
    >>> tf = RigidTransform.from_components(ft.numpy.array([1.0, 0.0, 0.0]), turn)
    >>> tf.apply(ft.numpy.array([1.0, 0.0, 0.0])).round(4).tolist()
    [1.0, 1.0, 0.0]
    >>> (tf.inv() * tf).as_matrix().round(3).tolist() == ft.numpy.eye(4).tolist()
    True
    """

    def __init__(self, matrix: ArrayLike, normalize: bool = True, copy: bool = True) -> None:
        (m,) = inexact(matrix)
        if m.shape[-2:] != (4, 4):
            raise ShapeError(f"{_NAME}: the matrix has shape {m.shape}.", where=user_source(),
                             why="it is (..., 4, 4).")
        known = value_of(m)
        if known is not None and (known[..., 3, :] != [0, 0, 0, 1]).any():
            raise ArgumentError(f"{_NAME}: the last row is not 0, 0, 0, 1.", where=user_source(),
                                why="a rigid transform keeps distances.",
                                fix="from_components(translation, rotation)")
        if normalize:
            part = m[..., :3, :3]
            if known is not None and known.size:
                values = known[..., :3, :3]
                off = np.swapaxes(values, -1, -2) @ values - np.eye(3)
                if (np.linalg.det(values) <= 0).any():
                    raise ArgumentError(f"{_NAME}: a determinant is not positive.",
                                        where=user_source(), why="it is that of a reflection.")
                if np.abs(off).max() > 1e-5:  # the nearest rotation
                    u, _, vt = jnp.linalg.svd(part)
                    part = matmul(u, vt)
            m = m.at[..., :3, :3].set(Rotation.from_matrix(part).as_matrix())
        self._matrix = m

    @classmethod
    def _of(cls, rotation: Array, translation: Array) -> RigidTransform:
        lead = jnp.broadcast_shapes(rotation.shape[:-2], translation.shape[:-1])
        kind = jnp.promote_types(rotation.dtype, translation.dtype)
        top = jnp.concatenate([
            jnp.broadcast_to(rotation.astype(kind), (*lead, 3, 3)),
            jnp.broadcast_to(translation.astype(kind)[..., None], (*lead, 3, 1))], axis=-1)
        last = jnp.broadcast_to(jnp.asarray([0, 0, 0, 1], kind), (*lead, 1, 4))
        return cls.tree_unflatten(None, (jnp.concatenate([top, last], axis=-2),))

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """The matrix is the child."""
        return ((GetAttrKey("matrix"), self._matrix),), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> RigidTransform:
        """A transform, without its construction."""
        made = object.__new__(cls)
        (made._matrix,) = children
        return made

    def __repr__(self) -> str:
        return f"RigidTransform.from_matrix({self._matrix!r})"

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> RigidTransform:
        """The transforms of matrices (..., 4, 4)."""
        return cls(matrix)

    @classmethod
    def from_rotation(cls, rotation: Rotation) -> RigidTransform:
        """The transforms that rotate alone."""
        if not isinstance(rotation, Rotation):
            raise ArgumentError(f"{_NAME}.from_rotation takes a Rotation, and got a "
                                f"{type(rotation).__name__}.", where=user_source(),
                                fix="Rotation.from_matrix(matrix)")
        matrix = rotation.as_matrix()
        return cls._of(matrix, jnp.zeros(matrix.shape[:-1], matrix.dtype))

    @classmethod
    def from_translation(cls, translation: ArrayLike) -> RigidTransform:
        """The transforms that move by vectors (..., 3) alone."""
        v = _last("from_translation", translation, 3)
        return cls._of(jnp.eye(3, dtype=v.dtype), v)

    @classmethod
    def from_components(cls, translation: ArrayLike, rotation: Rotation) -> RigidTransform:
        """The transforms that rotate, and then move by vectors (..., 3)."""
        turned = cls.from_rotation(rotation)
        return cls._of(turned._matrix[..., :3, :3], _last("from_components", translation, 3))

    @classmethod
    def from_exp_coords(cls, exp_coords: ArrayLike) -> RigidTransform:
        """The transforms of exponential coordinates (..., 6): a rotation vector, and its screw."""
        v = _last("from_exp_coords", exp_coords, 6)
        turn = v[..., :3]
        one, two, _ = _factors(turn)
        return cls._of(Rotation.from_rotvec(turn).as_matrix(),
                       _times(_of_skew(turn, one, two), v[..., 3:]))

    @classmethod
    def from_dual_quat(cls, dual_quat: ArrayLike, *, scalar_first: bool = False) -> RigidTransform:
        """The transforms of dual quaternions (..., 8), which are normalized."""
        q = _last("from_dual_quat", dual_quat, 8)
        real, dual = q[..., :4], q[..., 4:]
        if scalar_first:
            real, dual = jnp.roll(real, -1, axis=-1), jnp.roll(dual, -1, axis=-1)
        square = jnp.sum(real * real, axis=-1, keepdims=True)
        none = square == 0
        real = jnp.where(none, jnp.asarray([0, 0, 0, 1], q.dtype), real)
        norm = jnp.sqrt(jnp.where(none, 1, square))
        real, dual = real / norm, dual / norm
        dual = dual - jnp.sum(real * dual, axis=-1, keepdims=True) * real
        turn = Rotation(real)
        return cls._of(turn.as_matrix(), 2 * product(dual, turn.inv().quat)[..., :3])

    @classmethod
    def identity(cls, num: int | None = None, *, shape: int | tuple[int, ...] | None = None
                 ) -> RigidTransform:
        """The transform that moves nothing, or `num` of them, or of a shape."""
        if num is not None and shape is not None:
            raise ArgumentError(f"{_NAME}.identity takes num or shape.", where=user_source())
        lead = (num,) if num is not None else () if shape is None else (
            (shape,) if isinstance(shape, int) else tuple(shape))
        return cls.tree_unflatten(None, (jnp.tile(jnp.eye(4), (*lead, 1, 1)),))

    @classmethod
    def concatenate(cls, transforms: RigidTransform | Iterable[RigidTransform]) -> RigidTransform:
        """Transforms, or many of them, one after the other along the first axis."""
        if isinstance(transforms, RigidTransform):
            return transforms
        parts = [t._matrix if t._matrix.ndim > 2 else t._matrix[None] for t in transforms]
        return cls.tree_unflatten(None, (jnp.concatenate(parts),))

    def as_matrix(self) -> Array:
        """The matrices (..., 4, 4)."""
        return self._matrix

    def as_components(self) -> tuple[Array, Rotation]:
        """The translations, and the rotations before them."""
        return self.translation, self.rotation

    def as_exp_coords(self) -> Array:
        """The exponential coordinates (..., 6)."""
        turn = self.rotation.as_rotvec()
        _, _, three = _factors(turn)
        return jnp.concatenate([turn, _times(_of_skew(turn, -0.5, three), self.translation)], -1)

    def as_dual_quat(self, *, scalar_first: bool = False) -> Array:
        """The dual quaternions (..., 8), of norm 1."""
        real = self.rotation.quat
        move = jnp.concatenate([self.translation, jnp.zeros_like(real[..., :1])], axis=-1)
        parts = [real, 0.5 * product(move, real)]
        if scalar_first:
            parts = [jnp.roll(p, 1, axis=-1) for p in parts]
        return jnp.concatenate(parts, axis=-1)

    @property
    def rotation(self) -> Rotation:
        """The rotations."""
        return Rotation.from_matrix(self._matrix[..., :3, :3])

    @property
    def translation(self) -> Array:
        """The translations (..., 3)."""
        return self._matrix[..., :3, 3]

    @property
    def single(self) -> bool:
        """Whether it is one transform."""
        return self._matrix.ndim == 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of many transforms."""
        return tuple(self._matrix.shape[:-2])

    def __len__(self) -> int:
        """How many transforms there are."""
        self._many("length")
        return int(self._matrix.shape[0])

    def __getitem__(self, indexer: Index) -> RigidTransform:
        """Some of many transforms."""
        self._many("index")
        return RigidTransform.tree_unflatten(None, (self._matrix[indexer],))

    def __iter__(self) -> Iterator[RigidTransform]:
        """One transform after the other."""
        self._many("elements")
        return (self[i] for i in range(len(self)))

    def _many(self, what: str) -> None:
        if self.single:
            raise ArgumentError(f"{_NAME}: a single transform has no {what}.", where=user_source())

    def __mul__(self, other: RigidTransform) -> RigidTransform:
        """This transform after the other one."""
        if not isinstance(other, RigidTransform):
            return NotImplemented
        return RigidTransform.tree_unflatten(None, (matmul(self._matrix, other._matrix),))

    def __pow__(self, n: ArrayLike) -> RigidTransform:
        """The transform n times, of any real n."""
        if isinstance(n, int) and n in (-1, 1):
            return self if n == 1 else self.inv()
        return RigidTransform.from_exp_coords(self.as_exp_coords() * jnp.asarray(n).astype(
            self._matrix.dtype))

    def inv(self) -> RigidTransform:
        """The transform back."""
        back = jnp.swapaxes(self._matrix[..., :3, :3], -1, -2)
        return self._of(back, -_times(back, self.translation))

    def apply(self, vector: ArrayLike, inverse: bool = False) -> Array:
        """The points (..., 3), moved."""
        v = _last("apply", vector, 3).astype(self._matrix.dtype)
        tf = self.inv() if inverse else self
        return _times(tf._matrix[..., :3, :3], v) + tf.translation

    def mean(self, weights: ArrayLike | None = None, axis: int | tuple[int, ...] | None = None
             ) -> RigidTransform:
        """The mean translation with the mean rotation, over all or some axes."""
        self._many("mean")
        count = self._matrix.ndim - 2
        over = tuple(range(count)) if axis is None else tuple(
            a % count for a in ((axis,) if isinstance(axis, int) else axis))
        w = jnp.ones(self.shape, self._matrix.dtype) if weights is None else inexact(
            weights)[0].astype(self._matrix.dtype)
        if w.shape != self.shape:
            raise ShapeError(f"{_NAME}.mean: weights has shape {w.shape}.", where=user_source(),
                             why=f"there are {self.shape} transforms.")
        quat = self.rotation.quat
        outer = w[..., None, None] * quat[..., :, None] * quat[..., None, :]
        _, vectors = jnp.linalg.eigh(jnp.sum(outer, axis=over))
        moved = jnp.sum(w[..., None] * self.translation, over) / jnp.sum(w[..., None], over)
        return self._of(Rotation(vectors[..., -1]).as_matrix(), moved)


def _last(name: str, x: ArrayLike, size: int) -> Array:
    (v,) = inexact(x)
    if v.shape[-1:] != (size,):
        raise ShapeError(f"{_NAME}.{name}: the array has shape {v.shape}.", where=user_source(),
                         why=f"the last axis has {size} numbers.")
    return v


@register_pytree_with_keys_class
class RotationSpline:
    """Rotations through given ones at growing times, with continuous angular velocity and rate.

    Called with times it gives rotations, with `order=1` angular velocities, with `order=2` angular
    accelerations. It is a tree, differentiated in times and rotations. Raises ShapeError for times
    that are not as many as rotations.
    Source: McKinley, Cubic interpolation of the unit quaternion (1999): rotation vectors from one
    to the next are cubic.

    >>> import functrans as ft
    >>> from functrans.scipy.spatial.transform import Rotation, RotationSpline
    >>> turns = Rotation.from_euler("z", ft.numpy.array([0.0, 40.0, 90.0]), degrees=True)
    >>> way = RotationSpline(ft.numpy.array([0.0, 1.0, 2.0]), turns)
    >>> float(way(1.0).as_euler("zyx", degrees=True)[0].round(2))
    40.0
    """

    def __init__(self, times: ArrayLike, rotations: Rotation) -> None:
        name = "functrans.scipy.spatial.transform.RotationSpline"
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ArgumentError(f"{name} takes a Rotation of two or more.", where=user_source())
        (at,) = inexact(times)
        at = at.astype(rotations.quat.dtype)
        if at.shape != (len(rotations),):
            raise ShapeError(f"{name}: times has shape {at.shape}.", where=user_source(),
                             why=f"there are {len(rotations)} rotations.")
        known = value_of(at)
        if known is not None and (np.diff(known) <= 0).any():
            raise ArgumentError(f"{name}: the times do not grow.", where=user_source())
        steps = jnp.diff(at)
        vectors = (Rotation(rotations.quat[:-1]).inv() * Rotation(rotations.quat[1:])).as_rotvec()
        rates = vectors / steps[:, None]
        starts, ends = (rates, rates) if len(rotations) == 2 else _rates(steps, vectors, rates)
        h = steps[:, None]
        self.times, self.rotations = at, rotations
        self.c = jnp.stack([(h * (starts + ends) - 2 * vectors) / h**3,
                            (3 * vectors - h * (2 * starts + ends)) / h**2, starts])

    def tree_flatten_with_keys(self) -> tuple[tuple[Any, ...], Any]:
        """Times, rotations and the coefficients of the vectors are children."""
        return tuple((GetAttrKey(n), getattr(self, n)) for n in ("times", "rotations", "c")), None

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Iterable[Any]) -> RotationSpline:
        """A spline, without its construction."""
        made = object.__new__(cls)
        made.times, made.rotations, made.c = children
        return made

    def __call__(self, times: ArrayLike, order: int = 0) -> Any:
        """The rotations at times, or the angular velocities (1) or accelerations (2)."""
        one_of("spatial.transform.RotationSpline", "order", order, (0, 1, 2))
        at, _ = inexact(times, self.times)
        if at.ndim > 1:
            raise ShapeError("functrans.scipy.spatial.transform.RotationSpline: times has shape "
                             f"{at.shape}.", where=user_source(), why="it has one axis at most.")
        i = jnp.clip(jnp.searchsorted(self.times, at, side="right") - 1, 0,
                     self.times.shape[0] - 2)
        t = (at - self.times[i])[..., None]
        a, b, c = self.c[0][i], self.c[1][i], self.c[2][i]
        vector = ((a * t + b) * t + c) * t
        if not order:
            return Rotation(self.rotations.quat[i]) * Rotation.from_rotvec(vector)
        slope = (3 * a * t + 2 * b) * t + c
        if order == 1:
            return _velocity(vector, slope)
        return _velocity(vector, 6 * a * t + 2 * b) + _curving(vector, slope)


def _velocity(vector: Array, slope: Array) -> Array:
    """The angular velocity of a rotation vector that changes."""
    one, two, _ = _factors(vector)
    return _times(_of_skew(vector, -one, two), slope)


def _curving(vector: Array, slope: Array) -> Array:
    """The part of the angular acceleration that is quadratic in the change of the vector."""
    square = jnp.sum(vector * vector, axis=-1, keepdims=True)
    small = square < 1e-4  # where the quotients lose digits, their series have them
    safe = jnp.where(small, 1, square)
    t = jnp.sqrt(safe)
    sine, cosine = jnp.sin(t), jnp.cos(t)
    one = jnp.where(small, 1 / 12 - square / 180 + square**2 / 6720,
                    (2 - 2 * cosine - t * sine) / safe**2)
    two = jnp.where(small, -1 / 60 + square / 1260 - square**2 / 60480,
                    (3 * sine - 2 * t - t * cosine) / (t * safe**2))
    three = jnp.where(small, 1 / 6 - square / 120 + square**2 / 5040, (t - sine) / (t * safe))
    along = jnp.sum(vector * slope, axis=-1, keepdims=True)
    cross = jnp.cross(vector, slope)
    return along * (one * cross + two * jnp.cross(vector, cross)) + three * jnp.cross(slope, cross)


def _rates(steps: Array, vectors: Array, rates: Array) -> tuple[Array, Array]:
    """The slopes of rotation vectors at the starts and ends of steps, with no jump of acceleration.

    Velocities at the inner times solve a banded system, whose right side depends on them a little.
    """
    _, _, three = _factors(vectors)
    one, two, _ = _factors(vectors)
    slopes = _of_skew(vectors, 0.5, three)  # of vectors, by angular velocity at the end
    velocities = _of_skew(vectors, -one, two)  # and back
    h = steps[:, None]
    n = steps.shape[0] - 1
    below = 2 * velocities[1:-1] / h[1:-1, None]
    above = 2 * slopes[1:-1] / h[1:-1, None]
    middle = 4 * (1 / steps[:-1] + 1 / steps[1:])
    band = jnp.zeros((11, 3 * n), vectors.dtype)
    band = band.at[5].set(jnp.repeat(middle, 3))
    block, i, j = np.meshgrid(np.arange(n - 1), np.arange(3), np.arange(3), indexing="ij")
    band = band.at[5 + (3 * (block + 1) + i) - (3 * block + j), 3 * block + j].set(below)
    band = band.at[5 + (3 * block + i) - (3 * (block + 1) + j), 3 * (block + 1) + j].set(above)
    right = 6 * (vectors[:-1] / h[:-1] ** 2 + vectors[1:] / h[1:] ** 2)
    right = right.at[0].add(-2 / steps[0] * _times(velocities[0], rates[0]))
    right = right.at[-1].add(-2 / steps[-1] * _times(slopes[-1], rates[-1]))

    def improved(_: Any, inner: Array) -> Array:
        bent = _curving(vectors[:-1], _times(slopes[:-1], inner))
        return solve_banded((5, 5), band, (right - bent).reshape(-1)).reshape(n, 3)

    inner = lax.fori_loop(0, 10, improved, rates[:-1])
    ends = jnp.concatenate([inner, rates[-1:]])
    return jnp.concatenate([rates[:1], inner]), _times(slopes, ends)


publish(globals(), __all__)
