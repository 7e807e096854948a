"""DP-SGD: gradients clipped and noised, the batches that they need, and the privacy that they give.

The algorithm is that of Abadi et al. 2016. Batches are Poisson samples, which is what the
accountant assumes: every example joins independently with the same probability. They are padded to
one size, with a mask, so that the compiled step sees one shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from functrans import per_sample


@dataclass(frozen=True)
class Privacy:
    """What is clipped and how much noise is added.

    `clip` bounds the L2 norm of one example's gradient; the noise's standard deviation is
    `noise * clip`; `batch` is the expected number of examples in a Poisson sample.
    """

    clip: float = 1.0
    noise: float = 0.8
    batch: int = 64

    @property
    def capacity(self) -> int:
        """Padded batch size: six standard deviations above the mean, in multiples of 16."""
        return 16 * math.ceil((self.batch + 6 * math.sqrt(self.batch)) / 16)


def poisson_sample(rng: np.random.Generator, examples: int, privacy: Privacy):
    """Indices [capacity] and mask [capacity] of a random subset of `examples`."""
    chosen = np.flatnonzero(rng.random(examples) < privacy.batch / examples)[: privacy.capacity]
    indices = np.zeros(privacy.capacity, np.int32)
    mask = np.zeros(privacy.capacity, np.float32)
    indices[: chosen.size], mask[: chosen.size] = chosen, 1
    return indices, mask


def private_gradient(loss: Callable, privacy: Privacy) -> Callable:
    """`(params, images, labels, key=, weights=)` to the private mean gradient and norms [capacity].

    `weights` is the mask of a Poisson sample, `key` a new one for each step. The norms are those
    before clipping, for figures: they are not private.
    """
    return per_sample.clipped_mean_and_norms(
        loss,
        privacy.clip,
        noise_multiplier=privacy.noise,
        expected_batch_size=privacy.batch,
    )


def epsilon(privacy: Privacy, examples: int, steps: int, delta: float) -> float:
    """The epsilon for which `steps` releases are (epsilon, delta)-differentially private.

    Renyi divergence of the Poisson-subsampled Gaussian at integer orders (Mironov, Talwar and
    Zhang 2019, section 3.3), converted by theorem 21 of Balle et al. 2020. Neighbouring data sets
    differ by one added or removed example.
    """
    rate, variance = privacy.batch / examples, privacy.noise**2
    best = math.inf
    for order in range(2, 129):
        log_terms = [
            math.log(math.comb(order, k))
            + (order - k) * math.log1p(-rate)
            + k * math.log(rate)
            + k * (k - 1) / (2 * variance)
            for k in range(order + 1)
        ]
        largest = max(log_terms)
        log_moment = largest + math.log(sum(math.exp(t - largest) for t in log_terms))
        renyi = steps * log_moment / (order - 1)
        converted = renyi + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
        best = min(best, converted)
    return best
