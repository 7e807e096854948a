"""`jax.example_libraries.stax`: a layer is a pair of functions.

`init(rng, input_shape)` gives the shape of the results and parameters, and
`apply(params, inputs, rng=...)` the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import functrans.numpy as jnp
from functrans import lax, nn, random
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.nn.initializers import glorot_normal, normal, ones, zeros
from functrans.numpy import shape as shape_of
from functrans.transforms.staged import ShapeDtypeStruct, eval_shape

__all__ = ["AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout",
           "Elu", "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
           "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
           "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "parallel", "serial",
           "shape_dependent"]

Layer = tuple[Callable[..., Any], Callable[..., Any]]


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """The layer of a function of each element, which has no parameters.

    >>> init, apply = elementwise(jnp.square)
    >>> apply((), 3.0).item()
    9.0
    """
    return (lambda rng, input_shape: (input_shape, ()),
            lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs))


Tanh = elementwise(jnp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)


def Dense(out_dim: int, W_init: Any = None, b_init: Any = None) -> Layer:
    """x @ W + b."""
    w_init, bias_init = W_init or glorot_normal(), b_init or normal(1e-2)

    def init(rng: Any, input_shape: Any) -> Any:
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (
            w_init(k1, (input_shape[-1], out_dim)), bias_init(k2, (out_dim,)))

    return init, lambda params, inputs, **kwargs: jnp.dot(inputs, params[0]) + params[1]


def GeneralConv(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                strides: Any = None, padding: Any = "VALID", W_init: Any = None,
                b_init: Any = None) -> Layer:
    """A convolution with the axes that `dimension_numbers` (of lax) names."""
    return _convolution(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init,
                        lax.conv_general_dilated)


def GeneralConvTranspose(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int],
                         strides: Any = None, padding: Any = "VALID", W_init: Any = None,
                         b_init: Any = None) -> Layer:
    """The transposed convolution."""
    return _convolution(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init,
                        lax.conv_transpose)


def _convolution(dimension_numbers: Any, out_chan: int, filter_shape: Sequence[int], strides: Any,
                 padding: Any, W_init: Any, b_init: Any, conv: Callable[..., Any]) -> Layer:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    steps = tuple(strides or (1,) * len(filter_shape))
    w_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))
    bias_init = b_init or normal(1e-6)
    bias_shape = tuple([out_chan if c == "C" else 1 for c in out_spec])

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        w, b = params
        return conv(inputs, w, steps, padding, dimension_numbers=dimension_numbers) + b

    def init(rng: Any, input_shape: Any) -> Any:
        sizes = iter(filter_shape)
        kernel = [out_chan if c == "O" else input_shape[lhs_spec.index("C")] if c == "I"
                  else next(sizes) for c in rhs_spec]
        k1, k2 = random.split(rng)
        params = w_init(k1, kernel), bias_init(k2, bias_shape)
        return _shape_after(functools.partial(apply, params), input_shape, lhs_spec.index("N"),
                            out_spec.index("N")), params

    return init, apply


def _shape_after(apply: Callable[[Any], Any], input_shape: Sequence[int], batch: int,
                 batch_after: int) -> tuple[int, ...]:
    """The shape of results, where the batch may have any size, -1 say."""
    one = [1 if d == batch else n for d, n in enumerate(input_shape)]
    out = list(shape_of(eval_shape(apply, ShapeDtypeStruct(tuple(one), jnp.float32))))
    out[batch_after] = input_shape[batch]
    return tuple(out)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(axis: Any = (0, 1, 2), epsilon: float = 1e-5, center: bool = True,
              scale: bool = True, beta_init: Any = zeros, gamma_init: Any = ones) -> Layer:
    """Each channel with mean 0 and variance 1 over `axis`, then scaled and moved."""
    over = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Any) -> Any:
        shape = tuple([n for d, n in enumerate(input_shape) if d not in over])
        k1, k2 = random.split(rng)
        return input_shape, (beta_init(k1, shape) if center else (),
                             gamma_init(k2, shape) if scale else ())

    def apply(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        at = tuple([None if d in over else slice(None) for d in range(jnp.ndim(x))])
        z = nn.standardize(x, over, epsilon=epsilon)
        z = gamma[at] * z if scale else z
        return z + beta[at] if center else z

    return init, apply


def _pooling(reducer: Callable[..., Any], start: float, mean: bool) -> Callable[..., Layer]:
    def pool(window_shape: Sequence[int], strides: Any = None, padding: Any = "VALID",
             spec: str | None = None) -> Layer:
        steps = strides or (1,) * len(window_shape)

        def around(sizes: Sequence[int]) -> tuple[int, ...]:
            if spec is None:
                return (1, *sizes, 1)
            inner = iter(sizes)
            return tuple([1 if c in "NC" else next(inner) for c in spec])

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            def total(x: Any) -> Any:
                return lax.reduce_window(x, start, reducer, around(window_shape), around(steps),
                                         padding)

            return total(inputs) / total(jnp.ones_like(inputs)) if mean else total(inputs)

        batch = 0 if spec is None else spec.index("N")
        return lambda rng, input_shape: (_shape_after(
            functools.partial(apply, ()), input_shape, batch, batch), ()), apply

    return pool


MaxPool = _pooling(lax.max, -float("inf"), False)
SumPool = _pooling(lax.add, 0.0, False)
AvgPool = _pooling(lax.add, 0.0, True)

Flatten: Layer = (lambda rng, shape: ((shape[0], functools.reduce(int.__mul__, shape[1:], 1)), ()),
                  lambda params, inputs, **kwargs: jnp.reshape(inputs, (inputs.shape[0], -1)))
Identity: Layer = (lambda rng, input_shape: (input_shape, ()),
                   lambda params, inputs, **kwargs: inputs)


def FanOut(num: int) -> Layer:
    """The inputs, `num` times."""
    return (lambda rng, input_shape: ([input_shape] * num, ()),
            lambda params, inputs, **kwargs: [inputs] * num)


FanInSum: Layer = (lambda rng, input_shape: (input_shape[0], ()),
                   lambda params, inputs, **kwargs: functools.reduce(lambda a, b: a + b, inputs))


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs joined along an axis."""
    def init(rng: Any, input_shape: Any) -> Any:
        out = list(input_shape[0])
        out[axis] = sum(s[axis] for s in input_shape)
        return tuple(out), ()

    return init, lambda params, inputs, **kwargs: jnp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Each element is kept with probability `rate`, and divided by it, where `mode` is "train".

    Raises ArgumentError where `apply` is given no `rng`.
    """
    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ArgumentError("Dropout needs a random key.", where=user_source(),
                                fix="apply(params, inputs, rng=key)")
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def serial(*layers: Layer) -> Layer:
    """Layers one behind the other."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for each in inits:
            rng, key = random.split(rng)
            input_shape, param = each(key, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(applies)) if rng is not None else [None] * len(applies)
        for each, param, key in zip(applies, params, keys, strict=True):
            inputs = each(param, inputs, rng=key, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """A layer for each of a list of inputs."""
    inits, applies = zip(*layers, strict=True) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        keys = random.split(rng, len(inits))
        found = [each(key, s) for each, key, s in zip(inits, keys, input_shape, strict=True)]
        return [s for s, _ in found], [p for _, p in found]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(applies)) if rng is not None else [None] * len(applies)
        return [each(p, x, rng=key, **kwargs)
                for each, p, x, key in zip(applies, params, inputs, keys, strict=True)]

    return init, apply


def shape_dependent(make_layer: Callable[..., Layer]) -> Layer:
    """The layer that a function makes of the shape of the inputs."""
    return (lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
            lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs))
