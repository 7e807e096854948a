"""Functions of functions that are short: named, with a rule that they return, in two halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.errors import CustomRuleError, public
from functrans.core.scope import named_scope
from functrans.core.source import user_source
from functrans.core.trace import ensure_compile_time_eval
from functrans.core.tree_registry import Partial
from functrans.transforms.custom_vjp import custom_vjp
from functrans.transforms.flat import check_callable, name_of, wraps
from functrans.transforms.jit.api import jit
from functrans.transforms.reverse import vjp
from functrans.transforms.staged import closure_convert

if TYPE_CHECKING:
    from functrans.typing import ArrayLike, PyTree

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")

__all__ = ["custom_gradient", "ensure_compile_time_eval", "fwd_and_bwd", "named_call", "typeof"]


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """`fun` under a name, by default its own, in printed programs, profiles and explanations.

    >>> import functrans as ft
    >>> ft.named_call(lambda x: x + 1, name="step")(1)
    2
    """
    check_callable(fun, "named_call")
    scope = name_of(fun) if name is None else name

    @wraps(fun, "named_call")
    def call(*args: Any, **kwargs: Any) -> Any:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return call


def custom_gradient(fun: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]:
    """The function of the first result of `fun`, whose second is its rule for the backward pass.

    `fun(*args)` returns (out, rule), and rule(cotangent of out) the cotangents of the arguments: a
    tuple, or the one of a single argument. The rule may use everything in `fun`. Raises
    CustomRuleError where `fun` returns anything else.

    >>> import functrans as ft
    >>> @ft.custom_gradient
    ... def clipped(x):
    ...     return x, lambda ct: ft.numpy.clip(ct, -1, 1)
    >>> ft.grad(lambda x: 5 * clipped(x))(2.0).item()
    1.0
    """
    check_callable(fun, "custom_gradient")
    function: Callable[..., Any] = fun

    def run(args: Sequence[Any]) -> tuple[Any, Callable[..., Any]]:
        pair: Any = function(*args)
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise CustomRuleError(f"custom_gradient: {name_of(fun)} returned no pair of a value "
                                  "and a function.", where=user_source(),
                                  fix="return out, lambda ct: (ct * x,)")
        value, rule = pair
        return value, rule

    @custom_vjp
    def first(*args: Any) -> Any:
        return run(args)[0]

    def forward(*args: Any) -> tuple[Any, Any]:
        out, rule = run(args)
        converted, values = closure_convert(rule, out)
        return out, (Partial(_Rule(converted, len(args))), values)

    def backward(residuals: Any, ct: Any) -> Any:
        rule, values = residuals
        return rule(ct, *values)

    first.defvjp(forward, backward)

    @wraps(fun, "custom_gradient")
    @public
    def call(*args: Any) -> Any:
        return first(*args)

    same: Callable[..., Any] = call
    return same


class _Rule:
    """A rule whose cotangents are a tuple."""

    def __init__(self, rule: Callable[..., Any], count: int) -> None:
        self.rule, self.count = rule, count

    def __call__(self, ct: Any, *values: Any) -> tuple[Any, ...]:
        cts = self.rule(ct, *values)
        return cts if isinstance(cts, tuple) else (cts,) if self.count == 1 else tuple(cts)


@overload
def fwd_and_bwd(  # type: ignore[overload-overlap]
        fun: Callable[P, R], argnums: int | Sequence[int], has_aux: Literal[False] = False,
        jitted: bool = True) -> tuple[Callable[P, tuple[R, PyTree]],
                                      Callable[[PyTree, PyTree], PyTree]]: ...


@overload
def fwd_and_bwd(fun: Callable[P, tuple[R, Aux]], argnums: int | Sequence[int], has_aux: bool,
                jitted: bool = True) -> tuple[Callable[P, tuple[R, PyTree, Aux]],
                                              Callable[[PyTree, PyTree], PyTree]]: ...


def fwd_and_bwd(fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of `fun` as two functions, compiled once each.

    forward(*args) is (out, residuals), and auxiliary data behind them with `has_aux`;
    backward(residuals, cotangent) the cotangents of the arguments `argnums`, as a tuple where these
    are a sequence. `jitted=False` compiles neither.

    >>> import functrans as ft
    >>> forward, backward = ft.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = forward(2.0, 3.0)
    >>> [ct.item() for ct in backward(residuals, 1.0)]
    [3.0, 2.0]
    """
    check_callable(fun, "fwd_and_bwd")
    chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def forward(*args: Any) -> Any:
        places = [i % len(args) for i in chosen]

        def of_chosen(*given: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, given, strict=True):
                whole[i] = x
            return fun(*whole)

        given = [args[i] for i in places]
        return vjp(of_chosen, *given, has_aux=True) if has_aux else vjp(of_chosen, *given)

    def backward(residuals: Any, ct: Any) -> Any:
        cts = residuals(ct)
        return cts[0] if isinstance(argnums, int) else cts

    return (jit(forward), jit(backward)) if jitted else (public(forward), public(backward))


def typeof(x: ArrayLike) -> ShapedArray:
    """The type of an array, a tracer, a number or a reference: shape, dtype, and its weakness.

    Raises NonArrayError for anything else.

    >>> import functrans as ft
    >>> print(ft.typeof(ft.numpy.ones((2, 3))), ft.typeof(1.0).weak_type)
    f32[2,3] True
    >>> print(ft.typeof(ft.new_ref(1.0)))
    Ref{f32[]}
    """
    return x.type if isinstance(x, RefCell) else get_aval(to_array(x, "typeof"))
