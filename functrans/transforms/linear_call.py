"""`linear_call`: a function that is linear in some arguments, with its transpose given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.axes import MappedAxis
from functrans.core.errors import CustomRuleError, NotDifferentiableError, public
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Linear
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.primitives.broadcast import broadcast_batch
from functrans.transforms.batching import front
from functrans.transforms.custom_call import check_rule_tree, plus
from functrans.transforms.custom_jvp import closure_tangents
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args, name_of
from functrans.transforms.tangents import instantiate, instantiate_aval, tangent_aval

__all__ = ["linear_call", "linear_call_p"]


class LinearCall(HigherOrder):
    """A program that is linear in its last operands, and the one that is its transpose.

    Operands are what each of the two closes over, `num_consts` of each, `num_residuals` values that
    both are given, and the linear ones.
    """

    def type(self, *avals: ShapedArray, call: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(call.out_avals)

    def called(self, operands: Sequence[Any], *, call: Jaxpr, num_consts: tuple[int, int],
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        a, b = num_consts
        return call, [*operands[:a], *operands[a + b:]]

    def evaluate(self, *arrays: Any, **params: Any) -> list[Any]:
        jaxpr, operands = self.called(arrays, **params)
        return interpret(jaxpr, operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            **params: Any) -> tuple[list[Any], list[Any]]:
        def pushed(call: Jaxpr, operands: Sequence[Any], of: Sequence[Any]) -> list[Any]:
            moved, flags = jvp_jaxpr(call, [t is not None for t in of]
                                     + [False] * (len(operands) - len(of)))
            outs = eval_jaxpr(moved, (), *operands, *[t for t in of if t is not None])
            rest = iter(outs[len(flags):])
            return [next(rest) if f else None for f in flags]

        return self._push(primals, tangents, pushed, **params)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  **params: Any) -> tuple[list[Any], list[Any]]:
        def pushed(call: Jaxpr, operands: Sequence[Any], of: Sequence[Any]) -> list[Any]:
            return closure_tangents(call, operands, of, linearize_jaxpr)

        return self._push(primals, tangents, pushed, **params)

    def _push(self, primals: Sequence[Any], tangents: Sequence[Any], pushed: Any,
              **params: Any) -> tuple[list[Any], list[Any]]:
        """The call on the linear tangents, and the derivative in all other operands."""
        outs = self.bind(*primals, **params)
        first = sum(params["num_consts"]) + params["num_residuals"]
        found: list[Any] = [None] * len(outs)
        if any(t is not None for t in tangents[first:]):
            filled = [instantiate(t, p)
                      for t, p in zip(tangents[first:], primals[first:], strict=True)]
            found = self.bind(*primals[:first], *filled, **params)
        if any(t is not None for t in tangents[:first]):
            call, operands = self.called(primals, **params)
            _, others = self.called(tangents, **params)
            count = len(others) - (len(tangents) - first)
            found = list(map(plus, found, pushed(call, operands, others[:count])))
        return outs, found

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, call: Jaxpr,
                  back: Jaxpr, num_consts: tuple[int, int], num_residuals: int) -> list[Any]:
        a, b = num_consts
        first = a + b + num_residuals
        if any(isinstance(x, Linear) for x in operands[:first]):
            raise NotDifferentiableError(
                f"linear_call of {call.name}: a residual is to be transposed.",
                why="it is linear in its linear arguments.", fix="pass it in linear_args")
        given = [instantiate_aval(ct, tangent_aval(t))
                 for ct, t in zip(cts, call.out_avals, strict=True)]
        found = self.bind(*operands[a:a + b], *operands[:a], *operands[a + b:first], *given,
                          call=back, back=call, num_consts=(b, a), num_residuals=num_residuals)
        return [None] * first + [ct if isinstance(x, Linear) else None
                                 for ct, x in zip(found, operands[first:], strict=True)]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, call: Jaxpr, back: Jaxpr, num_consts: tuple[int, int],
              num_residuals: int) -> tuple[list[Any], list[int | None]]:
        a, b = num_consts
        first = a + b + num_residuals
        moved, flags = front(operands, axes), [x is not None for x in axes]
        # all linear operands are mapped, so that the transpose has a cotangent for each lane
        whole = [x if f else broadcast_batch(x, axis.size)
                 for x, f in zip(moved[first:], flags[first:], strict=True)]
        forth, _ = batch_jaxpr(call, axis, [*flags[:a], *flags[a + b:first],
                                            *[True] * len(whole)], True)
        other, _ = batch_jaxpr(back, axis, [*flags[a:first], *[True] * len(call.outvars)], True)
        outs = self.bind(*moved[:first], *whole, call=forth, back=other, num_consts=num_consts,
                         num_residuals=num_residuals)
        return outs, [0] * len(outs)


linear_call_p = LinearCall()


@public
def linear_call(fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any,
                linear_args: Any) -> Any:
    """`fun(residual_args, linear_args)`, whose transpose is given instead of being derived.

    `fun` is linear in `linear_args`; `fun_transpose(residual_args, cotangents)` takes cotangents of
    its results and gives those of `linear_args`, in their structure. Nobody looks whether it is the
    transpose. Raises CustomRuleError where it gives another structure or other types.

    >>> import functrans as ft
    >>> def scaled(r, x):
    ...     return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, r, x)
    >>> scaled(2.0, 3.0).item(), ft.grad(scaled, argnums=1)(2.0, 3.0).item()
    (1.5, 5.0)
    """
    check_callable(fun, "linear_call")
    check_callable(fun_transpose, "linear_call")
    residuals, residual_tree = flatten_args((residual_args,), name_of(fun))
    linear, linear_tree = flatten_args((linear_args,), name_of(fun))
    of_residuals, of_linear = [x.aval for x in residuals], [x.aval for x in linear]

    def both(function: Callable[..., Any], tree: Any, what: str) -> FlatFunction:
        def call(*leaves: Any) -> Any:
            n = len(residuals)
            (first,), (second,) = (tree_unflatten(residual_tree, leaves[:n]),
                                   tree_unflatten(tree, leaves[n:]))
            return function(first, second)

        places = tree_flatten((0,) * (len(residuals) + tree.num_leaves))[1]
        return FlatFunction(call, places, {}, what)

    forth = both(fun, linear_tree, "linear_call")
    call = stage(forth, [*of_residuals, *of_linear], name=name_of(fun))
    _, out_tree = tree_flatten((tree_unflatten(forth.out_tree, [0] * len(call.out_avals)),))
    backwards = both(fun_transpose, out_tree, "linear_call")
    cts = [tangent_aval(a) for a in call.out_avals]
    back = stage(backwards, [*of_residuals, *cts], name=name_of(fun_transpose))
    what = f"what the transpose {name_of(fun_transpose)} returned"
    _, found_tree = tree_flatten((tree_unflatten(backwards.out_tree, [0] * len(back.out_avals)),))
    check_rule_tree(linear_tree, found_tree, what, "the linear arguments")
    for got, wanted in zip(back.out_avals, of_linear, strict=True):
        if not got.matches(wanted):
            raise CustomRuleError(f"{what} has a {got} for a {wanted}.", where=user_source(),
                                  why="cotangents have the type of their value.")
    outs = linear_call_p.bind(
        *call.consts, *back.consts, *residuals, *linear, call=call.jaxpr.hoist_consts(),
        back=back.jaxpr.hoist_consts(), num_consts=(len(call.consts), len(back.consts)),
        num_residuals=len(residuals))
    return tree_unflatten(forth.out_tree, outs)
