"""Optimizers: chains of transformations, under the names and with the defaults of optax."""

from __future__ import annotations

from functrans.optim.clipping import clip_by_block_rms
from functrans.optim.factored import scale_by_factored_rms
from functrans.optim.scaling import (
    add_decayed_weights,
    ema,
    scale,
    scale_by_adam,
    scale_by_adamax,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_param_block_rms,
    scale_by_rms,
    scale_by_rss,
    scale_by_sign,
    scale_by_stddev,
    scale_by_trust_ratio,
    trace,
)
from functrans.optim.transforms import (
    GradientTransformation,
    Mask,
    Number,
    Schedule,
    chain,
    identity,
    masked,
)
from functrans.typing import DTypeLike

__all__ = ["adafactor", "adagrad", "adam", "adamax", "adamw", "lamb", "lars", "lion", "nadam",
           "nadamw", "rmsprop", "sgd", "sign_sgd"]

Rate = Number | Schedule


def sgd(learning_rate: Rate, momentum: float | None = None, nesterov: bool = False,
        accumulator_dtype: DTypeLike | None = None) -> GradientTransformation:
    """Gradient descent, with momentum if it is given (Polyak 1964, Nesterov 1983).

    >>> import functrans as ft
    >>> optimizer = ft.optim.sgd(0.1, momentum=0.9)
    >>> params = ft.numpy.array([1.0])
    >>> state = optimizer.init(params)
    >>> updates, state = optimizer.update(ft.grad(lambda x: (x**2).sum())(params), state)
    >>> [round(float(x), 3) for x in ft.optim.apply_updates(params, updates)]
    [0.8]
    """
    first = identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    return chain(first, scale_by_learning_rate(learning_rate))


def adam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
         eps_root: float = 0.0, mu_dtype: DTypeLike | None = None, *,
         nesterov: bool = False) -> GradientTransformation:
    """Means of gradients over roots of means of their squares (Kingma and Ba 2014).

    >>> import functrans as ft
    >>> optimizer = ft.optim.adam(0.1)
    >>> params = {"w": ft.numpy.array([1.0, -2.0])}
    >>> updates, state = optimizer.update(params, optimizer.init(params))
    >>> [round(float(x), 3) for x in updates["w"]]
    [-0.1, 0.1]
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
                 scale_by_learning_rate(learning_rate))


def nadam(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          eps_root: float = 0.0, mu_dtype: DTypeLike | None = None, *,
          nesterov: bool = True) -> GradientTransformation:
    """Adam whose mean looks one gradient ahead (Dozat 2016).

    >>> rule = ft.optim.nadam(0.1)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(jnp.zeros(2)))[0].round(3)
    Array([-0.147,  0.147], dtype=float32)
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


def adamw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          eps_root: float = 0.0, mu_dtype: DTypeLike | None = None, weight_decay: Rate = 1e-4,
          mask: Mask | None = None, *, nesterov: bool = False) -> GradientTransformation:
    """Adam, and weights that decay by themselves (Loshchilov and Hutter 2017).

    `mask` tells which arrays decay: usually the matrices.

    >>> rule = ft.optim.adamw(0.1, weight_decay=0.5)
    >>> params = jnp.array([1.0, 3.0])
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(params), params)[0].round(3)
    Array([-0.15, -0.05], dtype=float32)
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
                 add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate))


def nadamw(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
           eps_root: float = 0.0, mu_dtype: DTypeLike | None = None, weight_decay: Rate = 1e-4,
           mask: Mask | None = None, *, nesterov: bool = True) -> GradientTransformation:
    """AdamW whose mean looks one gradient ahead.

    >>> rule = ft.optim.nadamw(0.1, weight_decay=0.5)
    >>> params = jnp.array([1.0, 3.0])
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(params), params)[0].round(3)
    Array([-0.197, -0.003], dtype=float32)
    """
    return adamw(learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask,
                 nesterov=nesterov)


def adamax(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999,
           eps: float = 1e-8) -> GradientTransformation:
    """Adam by the largest gradient instead of the mean square (Kingma and Ba 2014, section 7).

    >>> rule = ft.optim.adamax(0.1)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(jnp.zeros(2)))[0].round(3)
    Array([-0.1,  0.1], dtype=float32)
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


def adagrad(learning_rate: Rate, initial_accumulator_value: float = 0.1,
            eps: float = 1e-7) -> GradientTransformation:
    """Gradients over roots of sums of their squares (Duchi, Hazan and Singer 2011).

    >>> rule = ft.optim.adagrad(0.1)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(jnp.zeros(2)))[0].round(3)
    Array([-0.095,  0.099], dtype=float32)
    """
    return chain(scale_by_rss(initial_accumulator_value, eps),
                 scale_by_learning_rate(learning_rate))


def lion(learning_rate: Rate, b1: float = 0.9, b2: float = 0.99,
         mu_dtype: DTypeLike | None = None, weight_decay: Rate = 1e-3,
         mask: Mask | None = None) -> GradientTransformation:
    """Signs of momenta, and decaying weights (Chen and others 2023).

    >>> rule = ft.optim.lion(0.1)
    >>> params = jnp.zeros(2)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(params), params)[0].round(3)
    Array([-0.1,  0.1], dtype=float32)
    """
    return chain(scale_by_lion(b1, b2, mu_dtype), add_decayed_weights(weight_decay, mask),
                 scale_by_learning_rate(learning_rate))


def sign_sgd(learning_rate: Rate) -> GradientTransformation:
    """Signs of gradients (Bernstein and others 2018).

    >>> rule = ft.optim.sign_sgd(0.1)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(jnp.zeros(2)))[0]
    Array([-0.1,  0.1], dtype=float32)
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


def rmsprop(learning_rate: Rate, decay: float = 0.9, eps: float = 1e-8,
            initial_scale: float = 0.0, eps_in_sqrt: bool = True, centered: bool = False,
            momentum: float | None = None, nesterov: bool = False,
            bias_correction: bool = False) -> GradientTransformation:
    """Gradients over roots of means of their squares (Hinton 2012), centred if asked for.

    >>> rule = ft.optim.rmsprop(0.1)
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(jnp.zeros(2)))[0].round(3)
    Array([-0.316,  0.316], dtype=float32)
    """
    by = scale_by_stddev if centered else scale_by_rms
    last = identity() if momentum is None else trace(momentum, nesterov)
    return chain(by(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
                 scale_by_learning_rate(learning_rate), last)


def lamb(learning_rate: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6,
         eps_root: float = 0.0, weight_decay: Rate = 0.0,
         mask: Mask | None = None) -> GradientTransformation:
    """Adam in proportion to the norms of the arrays, for large batches (You and others 2019).

    >>> rule = ft.optim.lamb(0.1)
    >>> params = jnp.array([3.0, 4.0])
    >>> rule.update(jnp.array([1.0, -2.0]), rule.init(params), params)[0].round(3)
    Array([-0.354,  0.354], dtype=float32)
    """
    return chain(scale_by_adam(b1, b2, eps, eps_root), add_decayed_weights(weight_decay, mask),
                 scale_by_trust_ratio(), scale_by_learning_rate(learning_rate))


def lars(learning_rate: Rate, weight_decay: Rate = 0.0,
         weight_decay_mask: Mask = True, trust_coefficient: float = 0.001, eps: float = 0.0,
         trust_ratio_mask: Mask = True, momentum: float = 0.9,
         nesterov: bool = False) -> GradientTransformation:
    """Gradients in proportion to the norms of the arrays, with momentum (You and others 2017).

    The masks tell which arrays decay, and which are scaled by the ratio of their norms.

    >>> rule = ft.optim.lars(0.1)
    >>> params = jnp.array([3.0, 4.0])
    >>> rule.update(jnp.array([0.6, 0.8]), rule.init(params), params)[0].round(5)
    Array([-0.0003, -0.0004], dtype=float32)
    """
    ratio = scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps)
    return chain(add_decayed_weights(weight_decay, weight_decay_mask),
                 masked(ratio, trust_ratio_mask),
                 scale_by_learning_rate(learning_rate), trace(momentum, nesterov))


def adafactor(learning_rate: Rate | None = None, min_dim_size_to_factor: int = 128,
              decay_rate: float = 0.8, decay_offset: int = 0,
              multiply_by_parameter_scale: bool = True, clipping_threshold: float | None = 1.0,
              momentum: float | None = None, dtype_momentum: DTypeLike = "float32",
              weight_decay_rate: Rate | None = None, eps: float = 1e-30, factored: bool = True,
              weight_decay_mask: Mask | None = None) -> GradientTransformation:
    """Adam with second moments of rows and columns alone (Shazeer and Stern 2018).

    >>> rule = ft.optim.adafactor(0.1)
    >>> params = jnp.ones(2)
    >>> updates, state = rule.update(jnp.array([1.0, -1.0]), rule.init(params), params)
    >>> updates.round(3)
    Array([-0.1,  0.1], dtype=float32)
    """
    parts = [scale_by_factored_rms(factored, decay_rate, decay_offset, min_dim_size_to_factor, eps)]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*parts, scale(-1.0))
