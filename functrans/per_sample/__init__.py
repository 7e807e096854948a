"""What is computed from the gradients of single samples: norms, clipped means, moments, kernels.

Each function takes `loss(params, *sample)`, the scalar loss of one sample, and returns a function
of `(params, *batch)`. It is a few lines over `vmap(grad(loss))`, written as a user would: that the
gradients of single samples are not kept is what `jit` makes of it (docs/guide/per_sample.md), so
call these under `jit`.

`in_axes` is that of `vmap` for the batch alone: an int, None (not mapped) or a tuple of prefixes,
one for each argument after params. `chunk_size` takes that many samples at a time, which bounds
memory where `jit` has no better way. Parameters are floating; half precision is accumulated in
float32. All raise AxisSizeError for arguments of a batch that differ in length, NonScalarGradError
for a loss that is no scalar, IntegerGradError and DTypeError for parameters that are not floating.
"""

from functrans.core.errors import publish
from functrans.per_sample.clipping import clipped_mean, clipped_mean_and_norms, norms
from functrans.per_sample.gradients import grads, weighted_sum
from functrans.per_sample.moments import (
    NoiseScale,
    fisher_diagonal,
    mean_and_variance,
    noise_scale,
    variance,
)
from functrans.per_sample.products import gram, inner_products, ntk

__all__ = [
    "NoiseScale",
    "clipped_mean",
    "clipped_mean_and_norms",
    "fisher_diagonal",
    "grads",
    "gram",
    "inner_products",
    "mean_and_variance",
    "noise_scale",
    "norms",
    "ntk",
    "variance",
    "weighted_sum",
]

publish(globals(), __all__)
