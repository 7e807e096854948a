"""Rotations of space, and the way between them: trees of quaternions."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from functrans import numpy as jnp
from functrans import random
from functrans.core.errors import ArgumentError, ShapeError, publish, shown
from functrans.core.source import user_source
from functrans.scipy.arguments import inexact
from functrans.scipy.products import matmul
from functrans.typing import Array, ArrayLike, DTypeLike, Index

__all__ = ["Rotation", "Slerp"]


class Rotation(NamedTuple):
    """A rotation, or many along a first axis, as quaternions (x, y, z, w) of norm 1.

    >>> import functrans as ft
    >>> turn = ft.scipy.spatial.transform.Rotation.from_euler("z", 90.0, degrees=True)
    >>> turn.apply(ft.numpy.array([1.0, 0.0, 0.0])).round(4).tolist()
    [0.0, 1.0, 0.0]
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Rotations, or many of them, one after the other."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about up to three axes, "x", "y", "z" (fixed) or "X", "Y", "Z" (moving).

        Angles of several axes, and of several rotations, are the last axis and the first.
        """
        axes = _axes(seq, (1, 2, 3))
        (turns,) = inexact(angles)
        if degrees:
            turns = turns * (math.pi / 180)
        if len(axes) == 1 and turns.ndim < 2 and turns.shape != (1,):
            turns = turns[..., None]  # a number, or one of each of several rotations
        if turns.shape[-1:] != (len(axes),) or turns.ndim > 2:
            raise ShapeError(f"functrans.scipy.spatial.transform.Rotation.from_euler: angles has "
                             f"shape {jnp.shape(angles)}.", where=user_source(),
                             why=f"there are {len(axes)} axes.")
        quat = _about(axes[0], turns[..., 0])
        for i, axis in enumerate(axes[1:], 1):
            other = _about(axis, turns[..., i])
            quat = product(quat, other) if seq.isupper() else product(other, quat)
        return cls(quat)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """The rotations of matrices (..., 3, 3). Source: Shepperd, J. Guidance 1 (1978)."""
        (m,) = inexact(matrix)
        if m.shape[-2:] != (3, 3):
            raise ShapeError("functrans.scipy.spatial.transform.Rotation.from_matrix: matrix has "
                             f"shape {m.shape}.", where=user_source())
        trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
        choices = []
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            q = [jnp.zeros_like(trace)] * 4
            q[i] = 1 - trace + 2 * m[..., i, i]
            q[j] = m[..., j, i] + m[..., i, j]
            q[k] = m[..., k, i] + m[..., i, k]
            q[3] = m[..., k, j] - m[..., j, k]
            choices.append(jnp.stack(q, axis=-1))
        choices.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0],
                                  m[..., 1, 0] - m[..., 0, 1], 1 + trace], axis=-1))
        decision = jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1)
        best = jnp.argmax(decision, axis=-1)[..., None]
        quat = choices[3]
        for i in range(3):
            quat = jnp.where(best == i, choices[i], quat)
        return cls(_normalized(quat))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """The rotations of modified Rodrigues parameters: the axis times tan(angle / 4)."""
        (p,) = inexact(mrp)
        square = jnp.sum(p * p, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * p, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: ArrayLike, *, scalar_first: bool = False) -> Rotation:
        """The rotations of quaternions, which are normalized."""
        (q,) = inexact(quat)
        if q.shape[-1:] != (4,):
            raise ShapeError("functrans.scipy.spatial.transform.Rotation.from_quat: quat has "
                             f"shape {q.shape}.", where=user_source())
        return cls(_normalized(jnp.roll(q, -1, axis=-1) if scalar_first else q))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """The rotations about vectors, by their norms."""
        (v,) = inexact(rotvec)
        if v.shape[-1:] != (3,):
            raise ShapeError(f"functrans.scipy.spatial.transform.Rotation.from_rotvec: rotvec has "
                             f"shape {v.shape}.", where=user_source())
        if degrees:
            v = v * (math.pi / 180)
        square = jnp.sum(v * v, axis=-1, keepdims=True)
        small = square < 1e-6
        angle = jnp.sqrt(jnp.where(small, 1, square))
        scale = jnp.where(small, 0.5 - square / 48 + square**2 / 3840, jnp.sin(angle / 2) / angle)
        real = jnp.where(small, 1 - square / 8 + square**2 / 384, jnp.cos(angle / 2))
        return cls(jnp.concatenate([scale * v, real], axis=-1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """The rotation that moves nothing, or `num` of them."""
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, drawn uniformly."""
        shape = (4,) if num is None else (num, 4)
        return cls(_normalized(random.normal(random_key, shape)))

    def __getitem__(self, indexer: Index) -> Rotation:
        """Some of many rotations."""
        if self.single:
            raise ArgumentError("a single rotation has no index.", where=user_source())
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """How many rotations there are."""
        if self.single:
            raise ArgumentError("a single rotation has no length.", where=user_source())
        return int(self.quat.shape[0])

    def __mul__(self, other: Any) -> Rotation:
        """This rotation after the other one."""
        return Rotation.from_quat(product(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The vectors, rotated."""
        (v,) = inexact(vectors)
        matrix = self.as_matrix()
        if inverse:
            matrix = jnp.swapaxes(matrix, -1, -2)
        return jnp.sum(matrix * v[..., None, :], axis=-1)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles about three axes; the second one is where the first and third are one axis.

        Source: Bernardes and Viollet, PLoS ONE 17 (2022).
        """
        axes = _axes(seq, (3,))
        return _angles(self.quat, axes, not seq.isupper()) * (180 / math.pi if degrees else 1)

    def as_matrix(self) -> Array:
        """The matrices (..., 3, 3)."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
        return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters: the axes times tan(angle / 4)."""
        q = _canonical_sign(self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions, with `canonical` those of a real part that is not negative."""
        q = self.quat
        if canonical:
            # the first that is not 0 of w, x, y, z is positive
            lead = jnp.sign(q[..., 3])
            for i in range(3):
                lead = jnp.where(lead == 0, jnp.sign(q[..., i]), lead)
            q = q * lead[..., None]
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The vectors along the axes with the angles for norms."""
        q = _canonical_sign(self.quat)
        vector, real = q[..., :3], q[..., 3:]
        square = jnp.sum(vector * vector, axis=-1, keepdims=True)
        small = square < 1e-8
        norm = jnp.sqrt(jnp.where(small, 1, square))
        scale = jnp.where(small, 2 + square / 3, 2 * jnp.arctan2(norm, real) / norm)
        return scale * vector * (180 / math.pi if degrees else 1)

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(jnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], axis=-1))

    def magnitude(self) -> Array:
        """The angle, from 0 to pi."""
        square = jnp.sum(self.quat[..., :3] ** 2, axis=-1)
        some = square > 0
        norm = jnp.where(some, jnp.sqrt(jnp.where(some, square, 1)), 0)
        return 2 * jnp.arctan2(norm, jnp.abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The mean rotation. Source: Markley et al., J. Guidance 30 (2007)."""
        count = len(self)
        w = jnp.ones(count, self.quat.dtype) if weights is None \
            else inexact(weights)[0].astype(self.quat.dtype)
        if w.shape != (count,):
            raise ShapeError("functrans.scipy.spatial.transform.Rotation.mean: weights has shape "
                             f"{w.shape}.", where=user_source(),
                             why=f"there are {count} rotations.")
        _, vectors = jnp.linalg.eigh(matmul((w[:, None] * self.quat).T, self.quat))
        return Rotation(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """The rotations between given ones at growing times, at a constant rate from each to the next.

    >>> import functrans as ft
    >>> from functrans.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", ft.numpy.array([0.0, 90.0]), degrees=True)
    >>> way = Slerp.init(ft.numpy.array([0.0, 1.0]), turns)
    >>> float(way(0.5).as_rotvec(degrees=True)[2].round(3))
    45.0
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Between rotations at times; raises ShapeError where there are not as many of both."""
        if not isinstance(rotations, Rotation) or rotations.single or len(rotations) < 2:
            raise ArgumentError("functrans.scipy.spatial.transform.Slerp takes a Rotation of two "
                                "or more.", where=user_source())
        (at,) = inexact(times)
        if at.shape != (len(rotations),):
            raise ShapeError("functrans.scipy.spatial.transform.Slerp: times has shape "
                             f"{at.shape}.", where=user_source(),
                             why=f"there are {len(rotations)} rotations.")
        first, later = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(at, jnp.diff(at), first, (first.inv() * later).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at a time, or at a vector of them."""
        at, _ = inexact(times, self.times)
        if at.ndim > 1:
            raise ShapeError("functrans.scipy.spatial.transform.Slerp: times has shape "
                             f"{at.shape}.", where=user_source(), why="it has one axis at most.")
        i = jnp.clip(jnp.searchsorted(self.times, at, side="right") - 1, 0,
                     self.times.shape[0] - 2)
        part = ((at - self.times[i]) / self.timedelta[i])[..., None]
        return Rotation(self.rotations.quat[i]) * Rotation.from_rotvec(self.rotvecs[i] * part)


def _axes(seq: str, counts: tuple[int, ...]) -> list[int]:
    """The numbers of axes that are named; raises ArgumentError for other names."""
    fits = re.fullmatch("[xyz]{1,3}|[XYZ]{1,3}", seq) is not None and len(seq) in counts
    if not fits or any(a == b for a, b in itertools.pairwise(seq)):
        raise ArgumentError(f"functrans.scipy.spatial.transform.Rotation: seq is {shown(seq)}.",
                            where=user_source(), why="it has up to three of x, y, z (fixed axes) "
                            "or X, Y, Z (moving ones), with no two neighbours alike.", fix="'xyz'")
    return ["xyz".index(c) for c in seq.lower()]


def _about(axis: int, angle: Array) -> Array:
    """The quaternion of a rotation about one axis."""
    parts = [jnp.zeros_like(angle)] * 4
    parts[axis], parts[3] = jnp.sin(angle / 2), jnp.cos(angle / 2)
    return jnp.stack(parts, axis=-1)


def product(p: Array, q: Array) -> Array:
    """The products of quaternions."""
    a, b = p[..., :3], q[..., :3]
    vector = p[..., 3:] * b + q[..., 3:] * a + jnp.cross(a, b)
    real = p[..., 3:] * q[..., 3:] - jnp.sum(a * b, axis=-1, keepdims=True)
    return jnp.concatenate([vector, real], axis=-1)


def _normalized(q: Array) -> Array:
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _canonical_sign(q: Array) -> Array:
    """The quaternion of the two whose angle is at most pi."""
    return jnp.where(q[..., 3:] < 0, -q, q)


def _angles(quat: Array, axes: Sequence[int], extrinsic: bool) -> Array:
    if not extrinsic:
        axes = axes[::-1]
    i, j, k = axes
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    x = [quat[..., n] for n in range(4)]
    if symmetric:
        a, b, c, d = x[3], x[i], x[j], x[k] * sign
    else:
        a, b, c, d = x[3] - x[j], x[i] + x[k] * sign, x[j] + x[3], x[k] * sign - x[i]
    eps = 1e-7
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    at_zero, at_pi = jnp.abs(middle) <= eps, jnp.abs(middle - math.pi) <= eps
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    # in a gimbal lock one of the outer angles is 0
    first = half_sum - half_difference
    third = half_sum + half_difference
    locked = jnp.where(at_zero, 2 * half_sum, 2 * half_difference * (-1 if extrinsic else 1))
    lock = at_zero | at_pi
    if extrinsic:
        first, third = jnp.where(lock, locked, first), jnp.where(lock, 0, third)
    else:
        first, third = jnp.where(lock, 0, first), jnp.where(lock, locked, third)
    if not symmetric:
        third = third * sign
        middle = middle - math.pi / 2
    outer = (first, middle, third) if extrinsic else (third, middle, first)
    angles = jnp.stack(outer, axis=-1)
    return jnp.where(angles < -math.pi, angles + 2 * math.pi, jnp.where(
        angles > math.pi, angles - 2 * math.pi, angles))


publish(globals(), __all__)
