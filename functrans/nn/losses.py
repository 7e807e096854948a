"""Losses of single predictions; names and arguments follow optax.losses. None takes a mean."""

from __future__ import annotations

import math
from typing import Any

import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import DTypeError, ShapeError
from functrans.core.source import user_source
from functrans.nn.activations import log_sigmoid, relu, sigmoid, softplus
from functrans.nn.functions import log_softmax, logsumexp
from functrans.numpy.common import promote_dtypes_inexact
from functrans.typing import Array, ArrayLike, Axis

__all__ = ["cosine_distance", "cosine_similarity", "ctc_loss", "hinge_loss", "huber_loss",
           "kl_divergence", "l2_loss", "log_cosh", "sigmoid_binary_cross_entropy",
           "sigmoid_focal_loss", "smooth_labels", "softmax_cross_entropy",
           "softmax_cross_entropy_with_integer_labels", "squared_error", "triplet_margin_loss"]


def squared_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """(predictions - targets)^2, elementwise; without targets predictions^2.

    >>> import functrans as ft
    >>> float(ft.nn.squared_error(3.0, 1.0))
    4.0
    """
    if targets is None:
        (errors,) = promote_dtypes_inexact("squared_error", predictions)
    else:
        predictions, targets = promote_dtypes_inexact("squared_error", predictions, targets)
        errors = predictions - targets
    return errors * errors


def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """Half the squared error, elementwise.

    >>> import functrans as ft
    >>> float(ft.nn.l2_loss(3.0, 1.0))
    2.0
    """
    return 0.5 * squared_error(predictions, targets)


def huber_loss(predictions: ArrayLike, targets: ArrayLike | None = None,
               delta: float = 1.0) -> Array:
    """Half the squared error up to `delta`, linear beyond it, elementwise.

    Source: Huber, Robust estimation of a location parameter, Ann. Math. Stat. 35 (1964).

    >>> import functrans as ft
    >>> ft.nn.huber_loss(ft.numpy.array([0.5, 3.0])).tolist()
    [0.125, 2.5]
    """
    given = (predictions,) if targets is None else (predictions, targets)
    values = promote_dtypes_inexact("huber_loss", *given)
    size = abs(values[0] if targets is None else values[0] - values[1])
    near = jnp.minimum(size, delta)
    return 0.5 * near * near + delta * (size - near)


def log_cosh(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    """log(cosh(predictions - targets)), elementwise, without overflow.

    >>> import functrans as ft
    >>> round(float(ft.nn.log_cosh(1000.0)), 3)
    999.307
    """
    given = (predictions,) if targets is None else (predictions, targets)
    values = promote_dtypes_inexact("log_cosh", *given)
    size = abs(values[0] if targets is None else values[0] - values[1])
    return size + softplus(-2 * size) - math.log(2)


def smooth_labels(labels: ArrayLike, alpha: float) -> Array:
    """(1 - alpha) * labels + alpha / classes, along the last axis.

    >>> import functrans as ft
    >>> ft.nn.smooth_labels(ft.numpy.array([1.0, 0.0]), 0.5).tolist()
    [0.75, 0.25]
    """
    (labels,) = promote_dtypes_inexact("smooth_labels", labels)
    return (1 - alpha) * labels + alpha / labels.shape[-1]


def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    """-labels log(sigmoid(logits)) - (1 - labels) log(1 - sigmoid(logits)), elementwise.

    >>> import functrans as ft
    >>> round(float(ft.nn.sigmoid_binary_cross_entropy(0.0, 1.0)), 4)
    0.6931
    """
    logits, labels = promote_dtypes_inexact("sigmoid_binary_cross_entropy", logits, labels)
    return -labels * log_sigmoid(logits) - (1 - labels) * log_sigmoid(-logits)


def sigmoid_focal_loss(logits: ArrayLike, labels: ArrayLike, alpha: float | None = None,
                       gamma: float = 2.0) -> Array:
    """Binary cross entropy times (1 - p)^gamma for the probability p of the label, elementwise.

    `alpha` weighs positive labels, 1 - alpha negative ones.
    Source: Lin et al., Focal loss for dense object detection, ICCV 2017.

    >>> import functrans as ft
    >>> round(float(ft.nn.sigmoid_focal_loss(0.0, 1.0)), 4)
    0.1733
    """
    logits, labels = promote_dtypes_inexact("sigmoid_focal_loss", logits, labels)
    p = sigmoid(logits)
    loss = sigmoid_binary_cross_entropy(logits, labels)
    wrong = 1 - (p * labels + (1 - p) * (1 - labels))
    loss = loss * wrong**gamma
    return loss if alpha is None else (alpha * labels + (1 - alpha) * (1 - labels)) * loss


def softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike, axis: Axis = -1,
                          where: ArrayLike | None = None) -> Array:
    """-sum(labels * log_softmax(logits)) along `axis`; labels are probabilities.

    >>> import functrans as ft
    >>> logits, labels = ft.numpy.array([0.0, 0.0]), ft.numpy.array([0.5, 0.5])
    >>> round(float(ft.nn.softmax_cross_entropy(logits, labels)), 4)
    0.6931
    """
    logits, labels = promote_dtypes_inexact("softmax_cross_entropy", logits, labels)
    return -jnp.sum(labels * log_softmax(logits, axis, where), axis=axis, where=where)


def softmax_cross_entropy_with_integer_labels(
        logits: ArrayLike, labels: ArrayLike, axis: int = -1,
        where: ArrayLike | None = None) -> Array:
    """-log_softmax(logits)[labels] along `axis`; labels have the other axes of logits.

    Raises DTypeError where labels are no integers, ShapeError where shapes differ.

    >>> import functrans as ft
    >>> f = ft.nn.softmax_cross_entropy_with_integer_labels
    >>> round(float(f(ft.numpy.array([0.0, 0.0, 0.0]), 2)), 4)
    1.0986
    """
    (logits,) = promote_dtypes_inexact("softmax_cross_entropy_with_integer_labels", logits)
    labels = jnp.asarray(labels)
    name = "softmax_cross_entropy_with_integer_labels"
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise DTypeError(f"{name} got labels of dtype {labels.dtype}.", where=user_source(),
                         fix="integers, or softmax_cross_entropy for probabilities")
    rest = tuple(n for k, n in enumerate(logits.shape) if k != axis % logits.ndim)
    if labels.shape != rest:
        raise ShapeError(f"{name} got labels of shape {labels.shape} for logits of shape "
                         f"{logits.shape}.", where=user_source(), fix=f"labels of shape {rest}")
    chosen = jnp.take_along_axis(logits, jnp.expand_dims(labels, axis), axis).squeeze(axis)
    return logsumexp(logits, axis=axis, where=where) - chosen


def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    """max(0, 1 - outputs * targets), elementwise; targets are -1 or 1.

    >>> import functrans as ft
    >>> float(ft.nn.hinge_loss(0.5, 1.0))
    0.5
    """
    outputs, targets = promote_dtypes_inexact("hinge_loss", predictor_outputs, targets)
    return relu(1 - outputs * targets)


def kl_divergence(log_predictions: ArrayLike, targets: ArrayLike, axis: Axis = -1,
                  where: ArrayLike | None = None) -> Array:
    """sum(targets * (log(targets) - log_predictions)) along `axis`; targets are probabilities.

    Source: Kullback and Leibler, On information and sufficiency (1951).

    >>> import functrans as ft
    >>> half = ft.numpy.array([0.5, 0.5])
    >>> float(ft.nn.kl_divergence(ft.numpy.log(half), half))
    0.0
    """
    log_predictions, targets = promote_dtypes_inexact("kl_divergence", log_predictions, targets)
    positive = targets > 0
    logs = jnp.where(positive, jnp.log(jnp.where(positive, targets, 1)), 0)
    return jnp.sum(targets * (logs - log_predictions), axis=axis, where=where)


def cosine_similarity(predictions: ArrayLike, targets: ArrayLike, epsilon: float = 0.0,
                      axis: int = -1) -> Array:
    """The cosine of the angle between vectors along `axis`; norms are `epsilon` at least.

    >>> import functrans as ft
    >>> float(ft.nn.cosine_similarity(ft.numpy.array([1.0, 0.0]), ft.numpy.array([2.0, 0.0])))
    1.0
    """
    x, y = promote_dtypes_inexact("cosine_similarity", predictions, targets)

    def unit(v: Array) -> Array:
        square = jnp.sum(v * v, axis, keepdims=True)
        is_zero = square == 0  # the gradient of a norm at 0 is 0
        norm = jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, square)))
        return v / jnp.maximum(norm, epsilon)

    return jnp.sum(unit(x) * unit(y), axis)


def cosine_distance(predictions: ArrayLike, targets: ArrayLike, epsilon: float = 0.0,
                    axis: int = -1) -> Array:
    """1 - cosine similarity, along `axis`.

    >>> import functrans as ft
    >>> float(ft.nn.cosine_distance(ft.numpy.array([1.0, 0.0]), ft.numpy.array([0.0, 2.0])))
    1.0
    """
    return 1 - cosine_similarity(predictions, targets, epsilon, axis)


def triplet_margin_loss(anchors: ArrayLike, positives: ArrayLike, negatives: ArrayLike,
                        axis: int = -1, norm_degree: float = 2, margin: float = 1.0,
                        eps: float = 1e-6) -> Array:
    """max(0, |anchor - positive| - |anchor - negative| + margin), norms along `axis`.

    Source: Balntas et al., Learning shallow convolutional feature descriptors with triplet losses,
    BMVC 2016.

    >>> import functrans as ft
    >>> a, b = ft.numpy.zeros(2), ft.numpy.array([3.0, 4.0])
    >>> round(float(ft.nn.triplet_margin_loss(a, a, b, margin=6.0)), 2)
    1.0
    """
    anchors, positives, negatives = promote_dtypes_inexact("triplet_margin_loss", anchors,
                                                           positives, negatives)

    def distance(x: Array) -> Array:
        return (jnp.sum(abs(anchors - x) ** norm_degree, axis) + eps) ** (1 / norm_degree)

    return relu(distance(positives) - distance(negatives) + margin)


def ctc_loss(logits: ArrayLike, logit_paddings: ArrayLike, labels: ArrayLike,
             label_paddings: ArrayLike, blank_id: int = 0, log_epsilon: float = -1e5) -> Array:
    """The negative log-likelihood of label sequences under all alignments with blanks.

    logits have shape (batch, times, classes), labels (batch, count); paddings are 1 where there is
    no frame or label, of shapes (batch, times) and (batch, count). The result has shape (batch,).
    `log_epsilon` stands for the logarithm of 0.
    Source: Graves et al., Connectionist temporal classification, ICML 2006.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> loss = ft.nn.ctc_loss(jnp.zeros((1, 2, 2)), jnp.zeros((1, 2)), jnp.array([[1]]),
    ...                       jnp.zeros((1, 1)))
    >>> round(float(loss[0]), 4)            # three of four alignments: -log(3 / 4)
    0.2877
    """
    (logits,) = promote_dtypes_inexact("ctc_loss", logits)
    labels, padded = jnp.asarray(labels), jnp.asarray(label_paddings)
    if logits.ndim != 3 or labels.ndim != 2 or logits.shape[0] != labels.shape[0]:
        raise ShapeError(f"ctc_loss got logits of shape {logits.shape} and labels of shape "
                         f"{labels.shape}.", where=user_source(),
                         fix="logits (batch, times, classes), labels (batch, count)")
    batch, count = labels.shape
    logs = log_softmax(logits)
    # states: blank, label, blank, label, ..., blank
    states = jnp.full((batch, 2 * count + 1), blank_id, labels.dtype).at[:, 1::2].set(labels)
    emitted = jnp.take_along_axis(logs, states[:, None, :].repeat(logits.shape[1], 1), 2)
    before = jnp.concatenate([jnp.full((batch, 2), -1, labels.dtype), states[:, :-2]], 1)
    may_skip = (states != blank_id) & (states != before)
    low = jnp.full((batch, 1), log_epsilon, logs.dtype)
    start = jnp.concatenate([jnp.zeros((batch, 1), logs.dtype),
                             jnp.full((batch, 2 * count), log_epsilon, logs.dtype)], 1)

    def step(alpha: Array, frame: Any) -> tuple[Array, None]:
        scores, is_padding = frame
        one = jnp.concatenate([low, alpha[:, :-1]], 1)
        two = jnp.where(may_skip, jnp.concatenate([low, low, alpha[:, :-2]], 1), log_epsilon)
        moved = jnp.logaddexp(jnp.logaddexp(alpha, one), two) + scores
        return jnp.where(is_padding[:, None] > 0, alpha, jnp.maximum(moved, log_epsilon)), None

    frames = (emitted.swapaxes(0, 1), jnp.asarray(logit_paddings).T)
    alpha, _ = lax.scan(step, start, frames)
    last = 2 * jnp.sum(padded == 0, 1)
    ends = jnp.take_along_axis(alpha, jnp.stack([last, jnp.maximum(last - 1, 0)], 1), 1)
    both = jnp.logaddexp(ends[:, 0], jnp.where(last > 0, ends[:, 1], log_epsilon))
    return -both
