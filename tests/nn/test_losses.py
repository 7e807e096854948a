"""Losses against their formulas in float64, at extremes, and their derivatives."""

import itertools

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import nn
from functrans.core.errors import DTypeError, ShapeError
from functrans.test_util import check_grads

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2, 3, 4))
P = np.exp(Y) / np.exp(Y).sum(-1, keepdims=True)
BITS = (Y > 0).astype(np.float64)
SIGMOID = 1 / (1 + np.exp(-X))
LOG_SOFTMAX = X - np.log(np.exp(X).sum(-1, keepdims=True))
CROSS = -BITS * np.log(SIGMOID) - (1 - BITS) * np.log(1 - SIGMOID)
RIGHT = np.where(BITS > 0, SIGMOID, 1 - SIGMOID)
NORMS = np.linalg.norm(X, axis=-1) * np.linalg.norm(Y, axis=-1)

CASES = {
    "squared_error": ((X, Y), (X - Y) ** 2),
    "l2_loss": ((X, Y), (X - Y) ** 2 / 2),
    "huber_loss": ((X, Y, 0.7), np.where(abs(X - Y) < 0.7, (X - Y) ** 2 / 2,
                                         0.7 * (abs(X - Y) - 0.35))),
    "log_cosh": ((X, Y), np.log(np.cosh(X - Y))),
    "smooth_labels": ((P, 0.1), 0.9 * P + 0.1 / 4),
    "sigmoid_binary_cross_entropy": ((X, BITS), CROSS),
    "sigmoid_focal_loss": ((X, BITS, 0.3), CROSS * (1 - RIGHT) ** 2 * np.where(BITS, 0.3, 0.7)),
    "softmax_cross_entropy": ((X, P), -(P * LOG_SOFTMAX).sum(-1)),
    "hinge_loss": ((X, 2 * BITS - 1), np.maximum(0, 1 - X * (2 * BITS - 1))),
    "kl_divergence": ((LOG_SOFTMAX, P), (P * (np.log(P) - LOG_SOFTMAX)).sum(-1)),
    "cosine_similarity": ((X, Y), (X * Y).sum(-1) / NORMS),
    "cosine_distance": ((X, Y), 1 - (X * Y).sum(-1) / NORMS),
    "triplet_margin_loss": ((X, Y, X + 1), np.maximum(
        0, np.sqrt(((X - Y) ** 2).sum(-1) + 1e-6) - np.sqrt(4 + 1e-6) + 1)),
}


@pytest.mark.parametrize("name", CASES)
def test_formulas_and_derivatives(name):
    arguments, wanted = CASES[name]
    loss = getattr(nn, name)
    np.testing.assert_allclose(loss(*arguments), wanted, rtol=1e-11)
    compiled = ft.jit(lambda x: loss(x, *arguments[1:]))
    np.testing.assert_allclose(compiled(arguments[0]), wanted, rtol=1e-11)
    if name not in ("hinge_loss", "huber_loss", "triplet_margin_loss"):
        check_grads(lambda x: loss(x, *arguments[1:]), (arguments[0],), order=2)
    rows = ft.vmap(lambda x: loss(x, *[a[0] if np.ndim(a) else a for a in arguments[1:]]))
    np.testing.assert_allclose(rows(arguments[0])[0], loss(*[
        a[0] if np.ndim(a) else a for a in arguments]), rtol=1e-12)


def test_integer_labels():
    labels = np.array([0, 3, 1])
    wanted = -LOG_SOFTMAX[np.arange(3), labels]
    loss = nn.softmax_cross_entropy_with_integer_labels
    np.testing.assert_allclose(loss(X, labels), wanted, rtol=1e-12)
    np.testing.assert_allclose(loss(X.T, labels, axis=0), wanted, rtol=1e-12)
    check_grads(lambda x: loss(x, labels), (X,), order=2)
    with pytest.raises(DTypeError, match="labels of dtype float64"):
        loss(X, labels.astype(float))
    with pytest.raises(ShapeError, match=r"labels of shape \(2,\)"):
        loss(X, labels[:2])


def test_extremes():
    for x in (-1e4, 1e4):
        assert np.isfinite(nn.sigmoid_binary_cross_entropy(x, 1.0))
        assert nn.log_cosh(x) == pytest.approx(1e4 - np.log(2))
        gradient = ft.grad(nn.sigmoid_binary_cross_entropy)(x, 0.0)
        assert gradient == (x > 0)
    zero = np.zeros(3)
    assert not np.isnan(ft.grad(lambda x: nn.cosine_similarity(x, zero + 1, 1e-8))(zero)).any()
    q = np.array([1.0, 0.0])
    assert not np.isnan(ft.grad(lambda q: nn.kl_divergence(np.log([0.5, 0.5]), q))(q)).any()


def alignments(logs, labels):
    """The likelihood as a sum over all paths whose repeats and blanks leave the labels."""
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        kept = [c for c, _ in itertools.groupby(path) if c]
        if kept == list(labels):
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return total


@pytest.mark.parametrize("labels", [[1, 2], [1, 1], [2], []])
def test_ctc_is_the_sum_over_alignments(labels):
    logits = RNG.standard_normal((1, 5, 3))
    paddings = np.array([[0.0, 0, 0, 0, 1]])
    padded = np.zeros((1, 3), int)
    padded[0, :len(labels)] = labels
    no_label = (np.arange(3) >= len(labels)).astype(float)[None]
    logs = np.asarray(nn.log_softmax(logits))[0, :4]
    loss = nn.ctc_loss(logits, paddings, padded, no_label)
    np.testing.assert_allclose(loss, [-np.log(alignments(logs, labels))], rtol=1e-10)
    check_grads(lambda x: nn.ctc_loss(x, paddings, padded, no_label), (logits,), order=1)


def test_ctc_shapes():
    with pytest.raises(ShapeError, match="ctc_loss got logits"):
        nn.ctc_loss(jnp.ones((2, 3)), jnp.ones(2), jnp.ones((2, 1), int), jnp.ones((2, 1)))
