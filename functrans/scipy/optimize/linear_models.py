"""Minima under constraints without derivatives, by models that interpolate values."""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans import lax
from functrans import numpy as jnp
from functrans.core.dtypes import finfo
from functrans.scipy.optimize.constraints import Sides
from functrans.scipy.optimize.implicit import Function
from functrans.scipy.optimize.quadratic import quadratic_program
from functrans.scipy.products import matmul, precise, vdot
from functrans.transforms.vmap import vmap
from functrans.typing import Array

_HARDEST = 1e6  # the largest price of a constraint that is missed
_TAKEN = 0.1  # of the fall that a model predicts, what a step has to have


class Modelled(NamedTuple):
    """The points that a model interpolates, with the values there, and the radius of trust."""

    points: Array
    values: Array
    sides: Array  # not negative where constraints hold
    multipliers: Array
    hessian: Array  # of the value, from all points so far
    price: Array
    radius: Array
    age: Array  # steps since the points were chosen
    nit: Array
    nfev: Array
    done: Array


class Found(NamedTuple):
    """The end of a search: the point, the multipliers of its constraints, and its cost."""

    x: Array
    equal: Array
    above: Array
    nit: Array
    nfev: Array
    converged: Array


@precise
def by_models(value: Function, sides: Sides, limits: tuple[Array, Array], x: Array, start: float,
              end: float, maxfun: Any, curved: bool) -> Found:
    """Steps to the minima of models within a radius, which shrinks where they do not predict.

    Models are linear on n + 1 points (Powell, COBYLA, 1994), or `curved`: of 2 n + 1 points, with
    the Hessian that changes least (Powell, NEWUOA, 2006; Ragonneau's COBYQA, 2022, of which this
    has the models, not the geometry). Points are chosen
    anew around the best one after as many steps as there are.
    """
    lower, upper = limits
    n, dtype = x.size, x.dtype
    eps = float(finfo(dtype).eps)
    count = (2 if curved else 1) * n + 1
    me, ma = sides.equal(x).size, sides.above(x).size

    def both(z: Array) -> tuple[Array, Array]:
        equal = sides.equal(z)
        return value(z), jnp.concatenate([equal, -equal, sides.above(z)])

    def missed(side: Array) -> Array:
        return jnp.max(-side, axis=-1, initial=0)

    def around(z: Array, radius: Array) -> Array:
        r = jnp.minimum(radius, 0.5 * (upper - lower))
        first = jnp.where(z + r <= upper, r, -r)
        second = jnp.where((z + r <= upper) & (z - r >= lower), -r, 0.5 * first)
        rows = [jnp.zeros((1, n), dtype), jnp.diag(first)] + [jnp.diag(second)] * curved
        return z + jnp.concatenate(rows)

    def renewed(s: Modelled, z: Array, radius: Array) -> Modelled:
        points = around(z, radius)
        values, found = vmap(both)(points)
        return s._replace(points=points, values=values, sides=found, radius=radius,
                          age=s.age * 0, nfev=s.nfev + count)

    def unfinished(s: Modelled) -> Any:
        return ~s.done & (s.nfev + count <= maxfun)

    def improve(s: Modelled) -> Modelled:
        merits = s.values + s.price * missed(s.sides)
        i = jnp.argmin(merits)
        base, side = s.points[i], s.sides[i]
        offsets = (s.points - base) / s.radius
        slope, bent, slopes = _model(offsets, s.values - s.values[i], s.sides - side,
                                     s.hessian * s.radius**2, curved)
        hessian = _convex(bent) if curved else bent
        low = jnp.maximum((lower - base) / s.radius, -1)
        high = jnp.minimum((upper - base) / s.radius, 1)
        d, short, multipliers = _step(slope, hessian, side, slopes, low, high, s.price, eps)
        predicted = s.price * (missed(side) - short) - vdot(slope, d) - 0.5 * vdot(
            d, matmul(hessian, d))
        # where a higher price would make up for what a step misses, it is raised first
        dear = (short > 0.5 * missed(side)) & (missed(side) > end) & (
            jnp.sum(multipliers) > 0.9 * s.price) & (s.price < _HARDEST)
        new = jnp.clip(base + s.radius * d, lower, upper)
        at, there = both(new)
        fall = merits[i] - (at + s.price * missed(there))
        # a step that is short, or predicts less than roundoff, asks for a smaller radius
        real = (jnp.max(jnp.abs(d)) > 0.1) & (predicted > 10 * eps * jnp.abs(merits[i]))
        good = (fall > _TAKEN * predicted) & (real if curved else fall > 0)
        far = jnp.argmax(jnp.where(jnp.arange(count) == i, -1, jnp.sum(
            (s.points - new) ** 2, axis=1)))
        fresh = s.age == 0
        small = fresh & ~good & (s.radius <= end)
        s = s._replace(
            points=jnp.where(good, s.points.at[far].set(new), s.points),
            values=jnp.where(good, s.values.at[far].set(at), s.values),
            sides=jnp.where(good, s.sides.at[far].set(there), s.sides),
            multipliers=multipliers, hessian=bent / s.radius**2, nit=s.nit + 1, nfev=s.nfev + 1,
            price=jnp.where(dear, 10 * s.price, s.price), age=s.age + good,
            done=small & ~dear)
        # a step as long as the radius that did what was predicted lets the next be longer
        longer = good & (fall > 0.7 * predicted) & (jnp.max(jnp.abs(d)) > 0.99)
        radius = jnp.where(good | ~fresh | dear, s.radius, s.radius * (0.25 if curved else 0.5))
        radius = jnp.where(longer, jnp.minimum(2 * radius, start), jnp.maximum(radius, end))
        again = (~good & ~dear) | (s.age >= count)
        after: Modelled = lax.cond(again & ~s.done, lambda s: renewed(
            s, jnp.where(good, new, base), radius.astype(dtype)), lambda s: s, s)
        return after

    z = jnp.clip(x, lower, upper)
    radius = jnp.asarray(start, dtype)
    none = jnp.zeros((count, 2 * me + ma), dtype)
    zero = jnp.asarray(0)
    state = renewed(Modelled(jnp.zeros((count, n), dtype), jnp.zeros(count, dtype), none,
                             none[0], jnp.zeros((n, n), dtype), jnp.ones((), dtype), radius, zero,
                             zero, zero, jnp.asarray(False)), z, radius)
    s = lax.while_loop(unfinished, improve, state)
    i = jnp.argmin(s.values + s.price * missed(s.sides))
    y = s.multipliers
    return Found(s.points[i], y[:me] - y[me:2 * me], y[2 * me:], s.nit, s.nfev,
                 s.done & (missed(s.sides[i]) <= 10 * end))


def _convex(hessian: Array) -> Array:
    """A convex program: along negative curvature the step goes to the edge of the radius."""
    w, v = jnp.linalg.eigh(0.5 * (hessian + hessian.T))
    return matmul(v * jnp.maximum(w, 0), v.T)


def _model(offsets: Array, values: Array, sides: Array, last: Array, curved: bool
           ) -> tuple[Array, Array, Array]:
    """The slope and the Hessian of the value, and the slopes of the sides, at offset 0."""
    count, n = offsets.shape
    right = jnp.concatenate([values[:, None], sides], axis=1)
    if not curved:
        slopes = jnp.linalg.lstsq(offsets, right)[0]
        return slopes[:, 0], jnp.zeros((n, n), offsets.dtype), slopes[:, 1:].T
    # the Hessian that changes least from the last one, and fits the values
    right = right.at[:, 0].add(-0.5 * jnp.sum(offsets * matmul(offsets, last), axis=1))
    inner = matmul(offsets, offsets.T)
    corner = jnp.concatenate([jnp.ones((count, 1), offsets.dtype), offsets], axis=1)
    system = jnp.block([[0.5 * inner * inner, corner],
                        [corner.T, jnp.zeros((n + 1, n + 1), offsets.dtype)]])
    found = jnp.linalg.lstsq(system, jnp.pad(right, [(0, n + 1), (0, 0)]))[0]
    weights, slopes = found[:count], found[count + 1:]
    hessian = last + matmul(offsets.T * weights[:, 0], offsets)
    return slopes[:, 0], hessian, slopes[:, 1:].T


def _step(slope: Array, hessian: Array, side: Array, slopes: Array, low: Array, high: Array,
          price: Array, eps: float) -> tuple[Array, Array, Array]:
    """The minimum of a model in a box, what it misses at a price, and the multipliers."""
    n, k = slope.size, side.size
    size = jnp.max(jnp.abs(slope)) + jnp.max(jnp.abs(hessian))
    eye = jnp.eye(n, dtype=slope.dtype)
    h = jnp.diag(eps**0.5 * jnp.append(jnp.full_like(slope, size), price)).at[:n, :n].add(hessian)
    room = eps**0.5  # a program without an interior is no program
    rows = [jnp.concatenate([slopes, jnp.ones((k, 1), slope.dtype)], axis=1),
            jnp.pad(eye, [(0, 0), (0, 1)]), jnp.pad(-eye, [(0, 0), (0, 1)]),
            jnp.zeros((1, n + 1), slope.dtype).at[0, n].set(1)]
    offsets = [side, room - low, high + room, jnp.zeros(1, slope.dtype)]
    z, y = quadratic_program(h, jnp.append(slope, price), jnp.concatenate(rows),
                             jnp.concatenate(offsets), jnp.zeros(n + 1, slope.dtype))
    d = jnp.clip(jnp.where(jnp.isnan(z[:n]), 0, z[:n]), low, high)
    return d, jnp.max(-(side + matmul(slopes, d)), initial=0), jnp.maximum(y[:k], 0)
