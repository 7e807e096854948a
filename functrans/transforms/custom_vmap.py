"""`custom_vmap`: functions with a batching rule of their own.

The rule gets the mapped arguments whole, with the mapped axis in front, and runs in the trace
around the `vmap`. Derivatives are those of the function: `vmap` of a gradient maps its operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.convert import to_array
from functrans.core.custom import CustomCall, WithRules
from functrans.core.dims import Size
from functrans.core.errors import CustomRuleError, public, shown
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Linear
from functrans.core.source import own_lines, user_source
from functrans.core.staging import stage
from functrans.core.trace import get_trace, run_in
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.transforms.batching import BatchTrace, BatchTracer, front
from functrans.transforms.custom_call import bind_arguments, check_rule_tree
from functrans.transforms.flat import (
    FlatFunction,
    check_callable,
    flatten_args,
    name_of,
    parameter_names,
)
from functrans.transforms.jvp import JVPTrace
from functrans.transforms.program_call import ProgramCall

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["custom_vmap", "custom_vmap_call_p"]

# (size of the axis, which values have it, values, types of the outputs of one lane)
# -> (outputs, which have the axis)
FlatRule = Callable[[Size, Sequence[bool], Sequence[Any], Sequence[ShapedArray]],
                    tuple[list[Any], list[bool]]]


class VmapRuleCall(CustomCall):
    """A flat function, and what computes it for all values of a mapped axis."""

    __slots__ = ("name", "rule")

    def __init__(self, fun: Callable[..., Sequence[Any]], rule: FlatRule, name: str,
                 user_values: Sequence[Any]) -> None:
        super().__init__(fun, user_values)
        self.rule = rule
        self.name = name

    def differentiate(self, trace: JVPTrace, primals: list[Any],
                      tangents: list[Any]) -> list[Any]:
        args = [trace.join(p, t) for p, t in zip(primals, tangents, strict=True)]
        return list(trace.run(self.fun, *args))

    def batch(self, trace: BatchTrace, values: list[Any], axes: list[int | None]) -> list[Any]:
        if self.closes_over(lambda x: type(x) is BatchTracer and x._trace.tag is trace.tag):
            raise _closes_over_mapped(self.name)
        flags = [a is not None for a in axes]
        # staged for the types of what it returns, which the rule's have to be
        lane = stage(self.fun, [get_aval(trace.join(v, a))
                                for v, a in zip(values, axes, strict=True)], name=self.name)
        outs, mapped = run_in(trace.parent, self.rule, trace.axis.size, flags,
                              front(values, axes), lane.jaxpr.out_avals)
        return [trace.join(o, 0 if m else None) for o, m in zip(outs, mapped, strict=True)]

    def stage(self, trace: Any, args: Sequence[Any]) -> list[Any]:
        call = stage(self.fun, [get_aval(x) for x in args], name=self.name)
        outs: list[Any] = custom_vmap_call_p.bind(
            *call.consts, *args, jaxpr=call.jaxpr.hoist_consts(), rule=self.rule,
            num_consts=len(call.consts))
        return outs


class CustomVmapCall(ProgramCall):
    """A staged call of a function with a custom_vmap rule; first come the values it closes over."""

    name = "custom_vmap_call"
    has_rules = True

    def evaluate(self, *arrays: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        return interpret(jaxpr, arrays)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        pushed, nonzero = jvp_jaxpr(jaxpr, [t is not None for t in tangents])
        outs = eval_jaxpr(pushed, (), *primals, *[t for t in tangents if t is not None])
        n = len(jaxpr.outvars)
        rest = iter(outs[n:])
        return outs[:n], [next(rest) if nz else None for nz in nonzero]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[Any]]:
        split = linearize_jaxpr(jaxpr, [t is not None for t in tangents])
        n = len(jaxpr.outvars)
        outs = eval_jaxpr(split.primal, (), *primals)
        residuals = split.residuals(primals, outs[n:])
        given = [t for t in tangents if t is not None]
        results = iter(eval_jaxpr(split.linear, (), *residuals, *given))
        return outs[:n], [next(results) if nz else None for nz in split.nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  **params: Any) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        back = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
        values = [x for x in operands if not isinstance(x, Linear)]
        results = iter(eval_jaxpr(back, (), *values, *[ct for ct in cts if ct is not None]))
        return [next(results) if lin else None for lin in linear]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, jaxpr: Jaxpr, **params: Any) -> tuple[list[Any], list[int | None]]:
        rule, num_consts = params["rule"], params["num_consts"]
        flags = [a is not None for a in axes]
        if any(flags[:num_consts]):
            raise _closes_over_mapped(jaxpr.name)
        outs, mapped = rule(axis.size, flags[num_consts:], front(operands, axes)[num_consts:],
                            jaxpr.out_avals)
        return outs, [0 if m else None for m in mapped]


custom_vmap_call_p = CustomVmapCall()


def _closes_over_mapped(name: str) -> CustomRuleError:
    return CustomRuleError(
        f"the custom_vmap function {name} closes over a value that vmap maps.",
        where=user_source(), why="its rule is given arguments alone.",
        fix="pass the value as an argument")


class custom_vmap(WithRules[P, R]):  # a decorator, named as in JAX
    """A function that `vmap` computes by the rule given by `def_vmap`, instead of mapping it.

    `rule(axis_size, in_batched, *args)` gets the mapped arguments with the mapped axis in front,
    the others as they are, and in `in_batched` a bool for each leaf that says which. It returns
    `(out, out_batched)`: the outputs, and whether each leaf has the mapped axis, in front. Raises
    CustomRuleError where there is no rule, or where it returns another structure or shape.

    >>> import functrans as ft
    >>> from functrans.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def add(x, y):
    ...     return x + y
    >>> @add.def_vmap
    ... def add_rule(axis_size, in_batched, x, y):
    ...     print(axis_size, in_batched)
    ...     return x + y, True
    >>> ft.vmap(add, in_axes=(0, None))(ft.numpy.arange(3), 1)
    3 (True, False)
    Array([1, 2, 3], dtype=int32)
    """

    def __init__(self, fun: Callable[P, R]) -> None:
        check_callable(fun, "custom_vmap")
        functools.update_wrapper(self, fun)  # before our own attributes
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<custom_vmap of {name_of(self.fun)}({parameter_names(self.fun)})>"

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule: `rule(axis_size, in_batched, *args) -> (out, out_batched)`."""
        check_callable(vmap_rule, "def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.fun,) if self.vmap_rule is None else (self.fun, self.vmap_rule)

    @public
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise CustomRuleError(f"the custom_vmap function {name_of(self.fun)} has no rule.",
                                  fix="@f.def_vmap\n"
                                      "def rule(axis_size, in_batched, *args): "
                                      "return out, out_batched")
        given = bind_arguments(self.fun, args, kwargs)
        leaves, tree = flatten_args(list(given), name_of(self.fun))
        flat = FlatFunction(self.fun, tree, {}, "custom_vmap")
        rule = _BatchingRule(self.vmap_rule, tree, flat)
        call = VmapRuleCall(flat, rule, name_of(self.fun), self.user_functions)
        outs = call.apply(get_trace(), leaves)
        results: R = tree_unflatten(flat.out_tree, outs)
        return results


class _BatchingRule:
    """A user's batching rule on lists of leaves, with its results checked."""

    def __init__(self, rule: Callable[..., Any], tree: PyTreeDef, flat: FlatFunction) -> None:
        self.rule, self.tree, self.flat = rule, tree, flat
        self.name = name_of(rule)

    def __call__(self, size: Size, flags: Sequence[bool], values: Sequence[Any],
                 lane: Sequence[ShapedArray]) -> tuple[list[Any], list[bool]]:
        in_batched = tuple(tree_unflatten(self.tree, list(flags)))
        with own_lines():
            result = self.rule(size, in_batched, *tree_unflatten(self.tree, list(values)))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"the batching rule {self.name} returned {shown(result)}, not a pair.",
                where=user_source(), fix="return out, out_batched")
        outs, out_tree = tree_flatten(result[0])
        what = f"the output of the batching rule {self.name}"
        check_rule_tree(self.flat.out_tree, out_tree, what,
                        "the function's output")
        outs = [to_array(o, f"an output of the batching rule {self.name}") for o in outs]
        mapped = self._mapped(result[1], out_tree, len(outs))
        for out, is_mapped, aval in zip(outs, mapped, lane, strict=True):
            got, shape = get_aval(out), (size, *aval.shape) if is_mapped else aval.shape
            if got.shape != shape or got.dtype != aval.dtype:
                raise CustomRuleError(
                    f"{what} is {got}, and {'batched' if is_mapped else 'not batched'}.",
                    where=user_source(),
                    why=f"the function returns {aval}, and vmap maps an axis of size {size}, which "
                        "comes first.", fix=f"return {aval.with_shape(shape)}")
        return outs, mapped

    def _mapped(self, given: Any, out_tree: PyTreeDef, count: int) -> list[bool]:
        if isinstance(given, bool):
            return [given] * count
        mapped, tree = tree_flatten(given)
        check_rule_tree(out_tree, tree, f"out_batched of the batching rule {self.name}",
                        "its output")
        if not all(isinstance(m, bool) for m in mapped):
            raise CustomRuleError(
                f"out_batched of the batching rule {self.name} is {shown(given)}.",
                where=user_source(), fix="return a bool for each output")
        return mapped
