"""What special functions share: operands, derivative rules and sums over quadrature nodes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final, overload

import numpy as np

from functrans import lax
from functrans import numpy as jnp
from functrans.core import dtypes
from functrans.core.errors import DTypeError
from functrans.core.source import user_source
from functrans.numpy.common import broadcast_all, operand, promote_dtypes_inexact
from functrans.transforms import forward
from functrans.transforms.composite import composite
from functrans.transforms.custom_jvp import custom_jvp
from functrans.transforms.tangents import SymbolicZero
from functrans.typing import Array, ArrayLike

HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)
SQRT_HALF: Final = math.sqrt(0.5)
EULER: Final = 0.57721566490153286061

_F64: Final = np.dtype(np.float64)
_OF_COMPLEX: Final = frozenset(("boxcox", "boxcox1p", "expit", "gamma", "logit", "xlog1py",
                                "xlogy"))


@overload
def elementwise(fun: Callable[[Array], Array]) -> Callable[[ArrayLike], Array]: ...


@overload
def elementwise(fun: Callable[[Array, Array], Array]
                ) -> Callable[[ArrayLike, ArrayLike], Array]: ...


@overload
def elementwise(fun: Callable[[Array, Array, Array], Array]
                ) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Array]: ...


@overload
def elementwise(fun: Callable[[Array, Array, Array, Array], Array]
                ) -> Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Array]: ...


def elementwise(fun: Callable[..., Array]) -> Callable[..., Array]:
    """`fun` on operands of one floating dtype and shape."""
    # the signature of the wrapper is that of `fun`: this is what the wrapper takes
    fun.__annotations__ = dict.fromkeys(fun.__annotations__, "ArrayLike") | {"return": "Array"}

    @functools.wraps(fun)
    def wrapper(*args: ArrayLike) -> Array:
        return fun(*operands(fun.__name__, *args, of_complex=fun.__name__ in _OF_COMPLEX))

    return composite(wrapper)


@overload
def wide(fun: Callable[[Array], Array]) -> Callable[[ArrayLike], Array]: ...


@overload
def wide(fun: Callable[[Array, Array], Array]) -> Callable[[ArrayLike, ArrayLike], Array]: ...


@overload
def wide(fun: Callable[[Array, Array, Array], Array]
         ) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Array]: ...


@overload
def wide(fun: Callable[[Array, Array, Array, Array], Array]
         ) -> Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Array]: ...


def wide(fun: Callable[..., Array]) -> Callable[..., Array]:
    """`fun`, which is computed in float64, on operands of one floating dtype and shape.

    Series, recurrences and quadratures lose some digits between their terms: in float64 what is
    left is more than float32 holds, so that its results are rounded once.
    """
    fun.__annotations__ = dict.fromkeys(fun.__annotations__, "ArrayLike") | {"return": "Array"}

    @functools.wraps(fun)
    def wrapper(*args: ArrayLike) -> Array:
        out: Array = in_double(fun, operands(fun.__name__, *args))
        return out

    return composite(wrapper)


def in_double(fun: Callable[..., Any], xs: Sequence[Array]) -> Any:
    """fun(*xs) of real operands in float64; the result, or each of several, in their dtype."""
    dtype = xs[0].dtype
    out = fun(*(lax.convert_element_type(x, _F64) for x in xs))
    if isinstance(out, tuple):
        return tuple(lax.convert_element_type(o, dtype) for o in out)
    return lax.convert_element_type(out, dtype)


def operands(name: str, *args: ArrayLike, of_complex: bool = False) -> list[Array]:
    """The operands of a function of scipy.special in one floating dtype and shape."""
    name = name.strip("_")
    xs = [operand(name, x) for x in promote_dtypes_inexact(name, *args)]
    if dtypes.kind(xs[0].dtype) == "c" and not of_complex:
        raise DTypeError(
            f"functrans.scipy.special.{name} does not take {xs[0].dtype}.",
            where=user_source(), why="it is defined for real numbers.", fix="x.real")
    return broadcast_all(name, *xs) if len(xs) > 1 else xs


def partials(*rules: Callable[..., Any] | None) -> Callable[[Callable[..., Array]],
                                                            Callable[..., Array]]:
    """Give a function of arrays its partial derivatives: `rule(out, *args)`, one an argument.

    None is for an argument that counts something, which moves in whole steps. A derivative of an
    argument that is constant is not computed.
    """
    def decorate(fun: Callable[..., Array]) -> Callable[..., Array]:
        ruled = custom_jvp(fun)

        def rule(primals: Any, tangents: Any) -> Any:
            out = ruled(*primals)
            total = None
            for partial, t in zip(rules, tangents, strict=True):
                if partial is not None and not isinstance(t, SymbolicZero):
                    term = t * partial(out, *primals)
                    total = term if total is None else total + term
            return out, jnp.zeros_like(out) if total is None else total

        ruled.defjvp(rule, symbolic_zeros=True)
        return functools.wraps(fun)(ruled)

    return decorate


def pushed(fun: Callable[..., Any], argument: int) -> Callable[..., Any]:
    """The partial derivative of `fun` in one argument by forward mode, as `partials` takes it.

    Of a loop until convergence the tangents converge too, if its test has a margin. Reverse mode
    meets products alone, and keeps nothing of the iterations.
    """
    def rule(out: Any, *args: Any) -> Any:
        def along(x: Any) -> Any:
            return fun(*args[:argument], x, *args[argument + 1:])

        return forward.jvp(along, (args[argument],), (jnp.ones_like(args[argument]),))[1]

    return rule


def polynomial(x: Any, coefficients: Sequence[float]) -> Array:
    """c[0] + c[1] x + c[2] x^2 ..., by Horner's rule."""
    total: Array = jnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


def over_nodes(fun: Callable[..., Any], nodes: Any, weights: Any, *args: Any) -> Array:
    """sum_k weights[k] fun(nodes[k], *args), elementwise in the args."""
    return jnp.sum(weights * fun(nodes, *(x[..., None] for x in args)), -1)


def loop(step: Callable[..., Any], state: Any, going: Callable[..., Any], limit: int
         ) -> tuple[Array, ...]:
    """Iterate `state = step(k, *state)` from k = 1 on, while `going(*state)` holds anywhere.

    An element for which it does not hold keeps its state, whatever its neighbours do. `limit`
    bounds the number of steps.
    """
    def proceed(carry: Any) -> Any:
        k, active, _ = carry
        return (k <= limit) & jnp.any(active)

    def advance(carry: Any) -> Any:
        k, active, old = carry
        new = step(k, *old)
        kept = tuple(jnp.where(active, n, o) for n, o in zip(new, old, strict=True))
        return k + 1.0, active & going(*kept), kept

    state = tuple(state)
    first = jnp.broadcast_to(jnp.asarray(going(*state)), state[0].shape)
    start = (jnp.asarray(np.float64(1.0)), first, state)
    out: tuple[Array, ...] = lax.while_loop(proceed, advance, start)[2]
    return out
