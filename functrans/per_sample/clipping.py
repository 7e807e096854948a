"""Norms of the gradients of single samples, and means of them once they are clipped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import functrans.numpy as jnp
from functrans import lax, random, tree
from functrans.core.errors import ArgumentError, shown
from functrans.core.keypath import keystr
from functrans.core.trace import Tracer
from functrans.per_sample.batches import (
    Batch,
    Function,
    Tree,
    checked,
    in_chunks,
    named,
    narrow,
    split_batch,
)
from functrans.per_sample.gradients import (
    check_weights,
    squared_norm,
    weighted_leaf,
    wide_grads,
)

__all__ = ["clipped_mean", "clipped_mean_and_norms", "norms"]


def norms(loss: Function, *, by_leaf: bool = False, in_axes: Any = 0,
          chunk_size: int | None = None) -> Function:
    """The L2 norm of every sample's gradient over all parameters: `(params, *batch)` to [B].

    With `by_leaf` the norms of each leaf: a tree like params of [B]. The dtype is that of the
    gradients, float32 for half precision. The derivative of a norm that is 0 is 0.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[3.0, 4.0], [2.0, 1.0]]), ft.numpy.array([6.0, 3.0])
    >>> norms(squared_error)(ft.numpy.array([1.0, 1.0]), xs, ys).tolist()
    [10.0, 0.0]
    """
    checked("norms", loss, chunk_size)

    def run(params: Tree, *batch: Any) -> Tree:
        split = split_batch("norms", loss, params, batch, in_axes)

        def part(leaves: Tree) -> tuple[Tree, Tree]:
            squares = tree.map(squared_norm, wide_grads(loss, params, split, leaves))
            return (), tree.map(_root, squares if by_leaf else sum(tree.leaves(squares)))

        return in_chunks(part, split.leaves, chunk_size)[1]

    return named("norms", loss, run)


def clipped_mean(loss: Function, max_norm: Any, *, noise_multiplier: Any = 0.0,
                 per_leaf: bool = False, expected_batch_size: Any = None, in_axes: Any = 0,
                 chunk_size: int | None = None) -> Function:
    """The mean of the gradients of samples, each scaled down to an L2 norm of `max_norm` at most.

    `(params, *batch, key=None, weights=None)` to a tree like params: the gradient of DP-SGD (Abadi
    et al. 2016, arXiv:1607.00133, algorithm 1). With `per_leaf` each leaf is clipped by itself, and
    `max_norm` may be a tree prefix of params; a number is the bound of each leaf, not of all.

    Gaussian noise has the standard deviation `noise_multiplier` times the sensitivity, which is
    `max_norm`, or the root of the sum of its squares over leaves; the noisy sum is then divided.
    The divisor is `expected_batch_size`, by default the sum of `weights`, else the number of
    samples. `weights` [B] are 1 for samples and 0 for padding (above 1 they void the sensitivity);
    with weights and noise `expected_batch_size` is needed, as how many were drawn is private.

    `max_norm` and `noise_multiplier` may be traced. Gradients of norm 0 stay 0, with derivatives
    that are finite. A gradient that is not finite makes the result NaN, also where its weight is 0;
    one that is finite, but not its squared norm, counts as 0. Raises ArgumentError for a bound that
    is not positive, noise without a key, no samples and no `expected_batch_size`.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[3.0, 4.0], [2.0, 1.0]]), ft.numpy.array([6.0, 3.0])
    >>> w = ft.numpy.array([1.0, 1.0])
    >>> clipped_mean(squared_error, 1.0)(w, xs, ys).round(3).tolist()
    [0.3..., 0.4...]
    """
    run = _clipped("clipped_mean", loss, max_norm, noise_multiplier, per_leaf,
                   expected_batch_size, in_axes, chunk_size)

    def mean(params: Tree, *batch: Any, key: Any = None, weights: Any = None) -> Tree:
        return run(params, batch, key, weights)[0]

    return named("clipped_mean", loss, mean)


def clipped_mean_and_norms(loss: Function, max_norm: Any, *, noise_multiplier: Any = 0.0,
                           per_leaf: bool = False, expected_batch_size: Any = None,
                           in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """`clipped_mean`, and the norms [B] before clipping (of each leaf, with `per_leaf`).

    Arguments, noise and errors as in `clipped_mean`. The norms are not private.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[3.0, 4.0], [2.0, 1.0]]), ft.numpy.array([6.0, 3.0])
    >>> mean, norms = clipped_mean_and_norms(squared_error, 1.0)(ft.numpy.ones(2), xs, ys)
    >>> norms.tolist()
    [10.0, 0.0]
    """
    run = _clipped("clipped_mean_and_norms", loss, max_norm, noise_multiplier, per_leaf,
                   expected_batch_size, in_axes, chunk_size)

    def mean_and_norms(params: Tree, *batch: Any, key: Any = None, weights: Any = None) -> Tree:
        mean, squares = run(params, batch, key, weights)
        return mean, tree.map(_root, squares)

    return named("clipped_mean_and_norms", loss, mean_and_norms)


def _clipped(what: str, loss: Function, max_norm: Any, noise_multiplier: Any, per_leaf: bool,
             expected: Any, in_axes: Any, chunk_size: int | None) -> Function:
    """(params, batch, key, weights) to the clipped mean and the squared norms."""
    checked(what, loss, chunk_size)
    _check_number(what, "noise_multiplier", noise_multiplier, 0.0)
    noisy = _known(noise_multiplier) != 0
    _check_bounds(what, max_norm, per_leaf, noisy)
    if expected is not None:
        _check_number(what, "expected_batch_size", expected)

    def run(params: Tree, batch: tuple[Any, ...], key: Any, weights: Any) -> tuple[Tree, Tree]:
        split = split_batch(what, loss, params, batch, in_axes,
                            at_least=1 if expected is None else 0)
        if noisy:
            _check_key(what, key, weights, expected)
        bounds = max_norm
        if per_leaf:
            bounds = tree.unflatten(tree.structure(params), tree.broadcast_prefix(
                max_norm, params, what=f"per_sample.{what}: max_norm", full_what="params"))
        if weights is not None:
            weights = check_weights(what, weights, split)

        def part(chunk: Tree) -> tuple[Tree, Tree]:
            leaves, weights = chunk
            g = wide_grads(loss, params, split, leaves)
            squares = tree.map(squared_norm, g)
            if not per_leaf:
                squares = sum(tree.leaves(squares))
            scales = tree.map(_scale, squares, bounds)
            if weights is not None:
                scales = tree.map(lambda s: s * weights.astype(s.dtype), scales)
            if not per_leaf:
                return tree.map(lambda x: weighted_leaf(scales, x), g), squares
            return tree.map(weighted_leaf, scales, g), squares

        total, squares = in_chunks(part, (split.leaves, weights), chunk_size)
        if noisy:
            deviation = noise_multiplier * (
                sum(b * b for b in tree.leaves(bounds)) ** 0.5 if per_leaf else max_norm)
            total = _add_noise(total, deviation, key)
        divisor = _divisor(split, weights, expected)
        return tree.map(lambda t, p: narrow(t / _of(divisor, t), p), total, params), squares

    return run


def _root(square: Any) -> Any:
    """The square root, with the derivative 0 at 0."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), square)


def _scale(square: Any, bound: Any) -> Any:
    """What brings a norm, given by its square [B], down to the bound; with finite derivatives."""
    bound = _of(bound, square)
    above = square > bound * bound
    return jnp.where(above, bound * lax.rsqrt(jnp.where(above, square, 1.0)), 1.0)


def _add_noise(total: Tree, deviation: Any, key: Any) -> Tree:
    leaves, structure = tree.flatten(total)
    keys = random.split(key, len(leaves))
    return tree.unflatten(structure, [
        x + _of(deviation, x) * random.normal(k, x.shape, x.dtype) for x, k in zip(leaves, keys)])


def _divisor(batch: Batch, weights: Any, expected: Any) -> Any:
    if expected is not None:
        return expected
    if weights is None:
        return batch.size
    total = jnp.sum(weights.astype("float32") if weights.dtype == bool else weights)
    return jnp.where(total == 0, 1, total)  # nothing but padding: the sum is 0, and so is the mean


def _of(number: Any, x: Any) -> Any:
    """A number as an array of the dtype of x, which it does not widen."""
    return jnp.asarray(number, x.dtype)


# ------------------------------------------------------------------------------------- arguments


def _known(number: Any) -> float | None:
    """The number, None where it is traced."""
    value = number.concrete if isinstance(number, Tracer) else number
    return None if value is None else float(np.asarray(value))


def _check_is_number(what: str, name: str, number: Any) -> None:
    if not isinstance(number, (int, float)) and getattr(number, "shape", None) != ():
        raise ArgumentError(f"per_sample.{what}: {name} must be a number, got {shown(number)}.",
                            fix=f"{name}=1.0")


def _check_number(what: str, name: str, number: Any, least: float | None = None) -> None:
    """Refuse what is no scalar, not finite, negative, or 0 where `least` is None."""
    _check_is_number(what, name, number)
    value = _known(number)
    if value is None or 0 < value < math.inf or value == least:
        return
    kind = "positive" if least is None else "not negative"
    raise ArgumentError(f"per_sample.{what}: {name} must be finite and {kind}, got {value}.",
                        fix=f"{name}=1.0")


def _check_bounds(what: str, max_norm: Any, per_leaf: bool, noisy: bool) -> None:
    pairs = tree.leaves_with_path(max_norm)
    if not per_leaf and (len(pairs) != 1 or pairs[0][0]):
        raise ArgumentError(
            f"per_sample.{what}: max_norm must be a number, got {shown(max_norm)}.",
            why="the norm over all parameters has one bound.",
            fix="per_leaf=True clips every leaf by itself, and takes a tree of bounds")
    for path, bound in pairs:
        name = f"max_norm{keystr(path)}"
        _check_is_number(what, name, bound)
        value = _known(bound)
        if value is not None and not (value > 0 and (math.isfinite(value) or not noisy)):
            raise ArgumentError(
                f"per_sample.{what}: {name} must be positive, got {value}." if not value > 0 else
                f"per_sample.{what}: {name} is infinite, which needs infinite noise.",
                why="gradients are scaled down to this norm.", fix="max_norm=1.0")


def _check_key(what: str, key: Any, weights: Any, expected: Any) -> None:
    if key is None:
        raise ArgumentError(f"per_sample.{what}: noise needs a key.",
                            why="noise_multiplier is not 0.",
                            fix="f(params, *batch, key=ft.random.key(0)), with a new key each step")
    if weights is not None and expected is None:
        raise ArgumentError(
            f"per_sample.{what}: weights and noise need expected_batch_size.",
            why="the sum of the weights says how many samples were drawn, which is private.",
            fix=f"per_sample.{what}(loss, max_norm, noise_multiplier=1.0, "
                "expected_batch_size=rate * number_of_examples)")
