"""Mean squares of the gradients of single samples: variance, Fisher information, noise scale."""

from __future__ import annotations

from typing import Any, NamedTuple

import functrans.numpy as jnp
from functrans import tree
from functrans.core.errors import ArgumentError, shown
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
from functrans.per_sample.gradients import squared_norm, wide_grads

__all__ = ["NoiseScale", "fisher_diagonal", "mean_and_variance", "noise_scale", "variance"]


def _means(loss: Function, params: Tree, batch: Batch, chunk_size: int | None) -> tuple[Tree, Tree]:
    """The means over samples of the gradient and of its elementwise square, in wide dtypes."""
    def part(leaves: Tree) -> tuple[Tree, Tree]:
        g = wide_grads(loss, params, batch, leaves)
        return tree.map(lambda x: (jnp.sum(x, axis=0), jnp.sum(x * x, axis=0)), g), ()

    sums, _ = in_chunks(part, batch.leaves, chunk_size)
    of_params = tree.structure(params)
    first, second = tree.transpose(of_params, tree.structure((0, 0)), sums)
    return (tree.map(lambda x: x / batch.size, first), tree.map(lambda x: x / batch.size, second))


def mean_and_variance(loss: Function, *, ddof: int = 0, in_axes: Any = 0,
                      chunk_size: int | None = None) -> Function:
    """The mean of the gradients of samples and their variance: `(params, *batch)` to two trees.

    Both are like params. The variance of an element is its mean squared deviation, times
    B / (B - ddof). It is computed as the mean of squares less the square of the mean, which need no
    gradient of a single sample; its error is the rounding error of the mean of squares.
    Raises AxisSizeError for ddof samples or fewer.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> mean, var = mean_and_variance(squared_error)(ft.numpy.array([3.0, 1.0]), xs, ys)
    >>> mean.tolist(), var.tolist()
    ([15.0, 6.0], [81.0, 36.0])
    """
    return _mean_and_variance("mean_and_variance", loss, ddof, in_axes, chunk_size)


def variance(loss: Function, *, ddof: int = 0, in_axes: Any = 0,
             chunk_size: int | None = None) -> Function:
    """The variance over samples of every element of the gradient: `(params, *batch)` to a tree.

    It is the second part of `mean_and_variance`.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> variance(squared_error, ddof=1)(ft.numpy.array([3.0, 1.0]), xs, ys).tolist()
    [162.0, 72.0]
    """
    both = _mean_and_variance("variance", loss, ddof, in_axes, chunk_size)
    return named("variance", loss, lambda params, *batch: both(params, *batch)[1])


def _mean_and_variance(what: str, loss: Function, ddof: int, in_axes: Any,
                       chunk_size: int | None) -> Function:
    checked(what, loss, chunk_size)
    if not isinstance(ddof, int) or ddof < 0:
        raise ArgumentError(f"per_sample.{what}: ddof must be 0 or a positive int, "
                            f"got {shown(ddof)}.", fix="ddof=1 for the unbiased estimate")

    def run(params: Tree, *batch: Any) -> tuple[Tree, Tree]:
        split = split_batch(what, loss, params, batch, in_axes, at_least=ddof + 1)
        mean, mean_of_squares = _means(loss, params, split, chunk_size)
        size = split.size
        spread = tree.map(lambda m, s: jnp.maximum(s - m * m, 0) * size / (size - ddof),
                          mean, mean_of_squares)
        return tree.map(narrow, mean, params), tree.map(narrow, spread, params)

    return named(what, loss, run)


def fisher_diagonal(loss: Function, *, in_axes: Any = 0,
                    chunk_size: int | None = None) -> Function:
    """The mean of the squared gradients of samples, elementwise: `(params, *batch)` to a tree.

    Where the loss is a negative log-likelihood and labels are drawn from the model this estimates
    the diagonal of the Fisher information, with labels from data that of the empirical Fisher
    (Kunstner et al. 2019, arXiv:1905.12558). The result is like params; AxisSizeError for no
    samples.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> fisher_diagonal(squared_error)(ft.numpy.array([3.0, 1.0]), xs, ys).tolist()
    [306.0, 72.0]
    """
    checked("fisher_diagonal", loss, chunk_size)

    def run(params: Tree, *batch: Any) -> Tree:
        split = split_batch("fisher_diagonal", loss, params, batch, in_axes, at_least=1)

        def part(leaves: Tree) -> tuple[Tree, Tree]:
            g = wide_grads(loss, params, split, leaves)
            return tree.map(lambda x: jnp.sum(x * x, axis=0), g), ()

        total, _ = in_chunks(part, split.leaves, chunk_size)
        return tree.map(lambda t, p: narrow(t / split.size, p), total, params)

    return named("fisher_diagonal", loss, run)


class NoiseScale(NamedTuple):
    """What `noise_scale` estimates, each a scalar.

    `scale` is `trace_covariance / squared_mean`: the trace of the covariance of one sample's
    gradient, and the squared norm of the gradient's expectation.

    >>> loss = lambda w, x: (w - x) ** 2
    >>> found = ft.per_sample.noise_scale(loss)(jnp.array(0.0), jnp.array([1.0, 3.0, 5.0]))
    >>> round(float(found.trace_covariance), 2), round(float(found.squared_mean), 2)
    (16.0, 30.67)
    """

    scale: Any
    trace_covariance: Any
    squared_mean: Any


def noise_scale(loss: Function, *, in_axes: Any = 0, chunk_size: int | None = None) -> Function:
    """The simple noise scale of the gradient, tr(Σ) / |G|²: `(params, *batch)` to a NoiseScale.

    It predicts the batch size up to which more samples pay off (McCandlish et al. 2018,
    arXiv:1812.06162, section 2.2 and appendix A). The two parts are unbiased estimates, so that
    |G|² may come out negative: average each over steps and divide the averages. Raises
    AxisSizeError for fewer than two samples.

    >>> import functrans as ft
    >>> squared_error = lambda w, x, y: (w @ x - y) ** 2
    >>> xs, ys = ft.numpy.array([[1.0, 0.0], [2.0, 1.0]]), ft.numpy.array([0.0, 1.0])
    >>> estimate = noise_scale(squared_error)(ft.numpy.array([3.0, 1.0]), xs, ys)
    >>> float(estimate.trace_covariance), float(estimate.squared_mean)
    (234.0, 144.0)
    """
    checked("noise_scale", loss, chunk_size)

    def run(params: Tree, *batch: Any) -> NoiseScale:
        split = split_batch("noise_scale", loss, params, batch, in_axes, at_least=2)

        def part(leaves: Tree) -> tuple[Tree, Tree]:
            g = wide_grads(loss, params, split, leaves)
            squares = sum(squared_norm(x) for x in tree.leaves(g))
            return (tree.map(lambda x: jnp.sum(x, axis=0), g), jnp.sum(squares)), ()

        size = split.size
        (total, squares), _ = in_chunks(part, split.leaves, chunk_size)
        of_mean = sum(jnp.sum((x / size) ** 2) for x in tree.leaves(total))
        trace = (squares / size - of_mean) * size / (size - 1)
        squared_mean = of_mean - trace / size
        return NoiseScale(trace / squared_mean, trace, squared_mean)

    return named("noise_scale", loss, run)
