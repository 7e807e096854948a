"""Optimizers of parameters: gradient transformations, schedules, clipping, accumulation.

The protocol, names, arguments and defaults are optax's: a transformation is a pair of functions,
`init(params)` and `update(updates, state, params)`, and optimizers are chains of them.

>>> import functrans as ft
>>> optimizer = ft.optim.chain(ft.optim.clip_by_global_norm(1.0), ft.optim.adam(0.1))
>>> params = {"w": ft.numpy.ones(3), "b": ft.numpy.zeros(())}
>>> state = optimizer.init(params)
>>> @ft.jit
... def step(params, state, x):
...     gradients = ft.grad(lambda p: ((p["w"] @ x + p["b"] - 1) ** 2))(params)
...     updates, state = optimizer.update(gradients, state, params)
...     return ft.optim.apply_updates(params, updates), state
>>> params, state = step(params, state, ft.numpy.arange(3.0))
>>> round(float(params["b"]), 3)
-0.1
"""

from functrans.core.errors import publish
from functrans.optim.accumulation import (
    ApplyIfFiniteState,
    MultiSteps,
    MultiStepsState,
    apply_if_finite,
)
from functrans.optim.clipping import (
    adaptive_grad_clip,
    clip,
    clip_by_block_rms,
    clip_by_global_norm,
    zero_nans,
)
from functrans.optim.factored import (
    FactoredState,
    scale_by_factored_rms,
)
from functrans.optim.optimizers import (
    adafactor,
    adagrad,
    adam,
    adamax,
    adamw,
    lamb,
    lars,
    lion,
    nadam,
    nadamw,
    rmsprop,
    sgd,
    sign_sgd,
)
from functrans.optim.scaling import (
    AdamState,
    EmaState,
    LionState,
    RmsState,
    RssState,
    ScheduleState,
    StddevState,
    TraceState,
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
    scale_by_schedule,
    scale_by_sign,
    scale_by_stddev,
    scale_by_trust_ratio,
    trace,
)
from functrans.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    cosine_onecycle_schedule,
    exponential_decay,
    join_schedules,
    linear_onecycle_schedule,
    linear_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
    polynomial_schedule,
    sgdr_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from functrans.optim.transforms import (
    EmptyState,
    GradientTransformation,
    MaskedNode,
    MaskedState,
    PartitionState,
    Schedule,
    apply_updates,
    chain,
    global_norm,
    identity,
    incremental_update,
    masked,
    partition,
    set_to_zero,
    stateless,
)

__all__ = [
    "AdamState",
    "ApplyIfFiniteState",
    "EmaState",
    "EmptyState",
    "FactoredState",
    "GradientTransformation",
    "LionState",
    "MaskedNode",
    "MaskedState",
    "MultiSteps",
    "MultiStepsState",
    "PartitionState",
    "RmsState",
    "RssState",
    "Schedule",
    "ScheduleState",
    "StddevState",
    "TraceState",
    "adafactor",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "adaptive_grad_clip",
    "add_decayed_weights",
    "apply_if_finite",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "constant_schedule",
    "cosine_decay_schedule",
    "cosine_onecycle_schedule",
    "ema",
    "exponential_decay",
    "global_norm",
    "identity",
    "incremental_update",
    "join_schedules",
    "lamb",
    "lars",
    "linear_onecycle_schedule",
    "linear_schedule",
    "lion",
    "masked",
    "nadam",
    "nadamw",
    "partition",
    "piecewise_constant_schedule",
    "piecewise_interpolate_schedule",
    "polynomial_schedule",
    "rmsprop",
    "scale",
    "scale_by_adam",
    "scale_by_adamax",
    "scale_by_factored_rms",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_param_block_rms",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_schedule",
    "scale_by_sign",
    "scale_by_stddev",
    "scale_by_trust_ratio",
    "set_to_zero",
    "sgd",
    "sgdr_schedule",
    "sign_sgd",
    "stateless",
    "trace",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
    "zero_nans",
]

publish(globals(), __all__)
