"""`custom_vjp`: functions with a reverse-mode rule of their own.

The forward rule runs under the differentiating trace, on arguments without their tangents (see
custom_jvp); the backward rule is the transpose of an opaque linear operation on the tape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import compress
from typing import Any, ParamSpec, TypeVar

from functrans._runtime import get_trace, set_trace
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cells import run_scoped, written_outside
from functrans.core.custom import CustomCall, WithRules
from functrans.core.errors import CustomRuleError, public
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Linear, Primitive, Sample
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import (
    tree_unflatten,
)
from functrans.core.varying import alike
from functrans.primitives.arithmetic import mul
from functrans.primitives.broadcast import align_batch, broadcast_batch, move_axis, reduce_sum
from functrans.transforms.batching import BatchTrace, batch_flat, front
from functrans.transforms.cells import cell_arguments
from functrans.transforms.custom_call import (
    LazyJaxpr,
    RuleByZeros,
    batched_function,
    bind_arguments,
    differentiable_flags,
    known_jaxpr,
    nondiff_positions,
    plus,
    rule_stays_lazy,
)
from functrans.transforms.custom_jvp import closure_tangents, custom_jvp, pushed_closure
from functrans.transforms.custom_rule_cells import VJPRulesOfCells
from functrans.transforms.custom_vjp_rules import FlatRules, StagedRules
from functrans.transforms.flat import (
    check_callable,
    flatten_args,
    name_of,
    parameter_names,
)
from functrans.transforms.jvp import JVPTrace, JVPTracer, PrimalTrace
from functrans.transforms.tangents import instantiate_aval, is_differentiable

P = ParamSpec("P")
R = TypeVar("R")


__all__ = ["custom_vjp"]


class CustomVJPLinearPrimitive(Primitive):
    """The derivative of a custom_vjp function: known only by its transpose, the backward rule.

    Operands are residuals and the tangents of the `perturbed` inputs; `backward(residuals, cts)`
    gives a cotangent or None for every input, with None among `cts` for zeros.
    """

    name = "custom_vjp_linear"
    multiple_results = True
    widens_halves = False

    def type(self, *avals: ShapedArray, out_avals: tuple[ShapedArray, ...],
             **params: Any) -> list[ShapedArray]:
        return list(out_avals)

    def evaluate(self, *arrays: Any, name: str, **params: Any) -> Any:
        raise _no_forward_mode(name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, name: str,
            **params: Any) -> Any:
        raise _no_forward_mode(name)

    def transpose(self, cts: Sequence[Any], *operands: Any, backward: Any,
                  perturbed: tuple[bool, ...], **params: Any) -> list[Any]:
        count = len(operands) - sum(perturbed)
        results = backward(list(operands[:count]), list(cts))
        wanted = [ct for ct, p in zip(results, perturbed, strict=True) if p]
        # a tangent may be a known zero, that of a token say
        return [None] * count + [ct if isinstance(x, Linear) else None
                                 for x, ct in zip(operands[count:], wanted, strict=True)]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, backward: Any,
              perturbed: tuple[bool, ...], out_avals: tuple[ShapedArray, ...],
              name: str) -> Any:
        size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
        residual_axes = axes[:len(axes) - sum(perturbed)]

        def mapped(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            given = [ct for ct in cts if ct is not None]

            def run(*flat: Any) -> list[Any]:
                rest = iter(flat[len(residuals):])
                return list(backward(list(flat[:len(residuals)]),
                                     [None if ct is None else next(rest) for ct in cts]))

            outs, _ = batch_flat(run, MappedAxis(size), [*residuals, *given],
                                 [0 if a is not None else None for a in residual_axes]
                                 + [0] * len(given))
            return outs

        outs = self.bind(*front(operands, axes), backward=mapped, perturbed=perturbed, name=name,
                         out_avals=tuple(a.with_shape((size, *a.shape)) for a in out_avals))
        return outs, [0] * len(outs)

    def samples(self) -> Iterator[Sample]:
        return iter(())  # it has no value: only its transpose is ever evaluated


def _no_forward_mode(name: str) -> CustomRuleError:
    return CustomRuleError(f"forward-mode differentiation of the custom_vjp function {name}.",
                           where=user_source(), why="a backward rule says nothing of tangents.",
                           fix="use grad, vjp or jacrev, or define it by custom_jvp")


custom_vjp_linear_p = CustomVJPLinearPrimitive()


class VJPRuleCall(CustomCall):
    """A flat function with its rules.

    `forward(*args, perturbed=flags)` returns outputs and then residuals;
    `backward(residuals, cts, perturbed=flags)` returns a cotangent, or None, for every argument.
    The last arguments and outputs are the tokens of as many `cells`.
    """

    __slots__ = ("backward", "cells", "forward", "name", "owner")

    def __init__(self, fun: Callable[..., Sequence[Any]], forward: Callable[..., Sequence[Any]],
                 backward: Callable[..., Sequence[Any]], name: str, owner: custom_vjp[..., Any],
                 user_values: Sequence[Any], cells: int = 0) -> None:
        super().__init__(fun, user_values)
        self.owner = owner
        self.cells = cells
        self.forward = forward
        self.backward = backward
        self.name = name

    def differentiate(self, trace: JVPTrace, primals: list[Any],
                      tangents: list[Any]) -> list[Any]:
        perturbed = tuple(t is not None for t in tangents)
        results, num_outs = trace.run(partial(self.forward, perturbed=perturbed), *primals)
        values, closure, _ = trace.split(results)
        outs, residuals = values[:num_outs], values[num_outs:]
        rule = partial(self.backward, perturbed=perturbed)
        backward: Callable[..., Sequence[Any]] = rule
        if self.closes_over(lambda x: type(x) is JVPTracer and x._trace is trace):
            def of_primals(residuals: Sequence[Any], cts: Sequence[Any]) -> Sequence[Any]:
                found: list[Any] = PrimalTrace(get_trace(), trace).run(rule, residuals, cts)
                return found

            backward = of_primals
        own = linear_outputs(trace, outs, residuals, tangents, backward, self.name)
        return [trace.join(o, trace.run(plus, t, c))
                for o, t, c in zip(outs, own, closure[:num_outs], strict=True)]

    def batch(self, trace: BatchTrace, values: list[Any], axes: list[int | None]) -> list[Any]:
        counts: list[int] = []
        # of cells that are not mapped: rules that read these have all lanes in common
        common = [i for i in range(len(axes) - self.cells, len(axes)) if axes[i] is None]

        def with_common(outs: list[Any], args: Sequence[Any], num_outs: int) -> list[Any]:
            for i in common:
                outs[num_outs - len(args) + i] = args[i]
            return outs

        def fun(*args: Any) -> list[Any]:
            outs = batched_function(trace, self.fun, axes)(*args)
            return with_common(outs, args, len(outs))

        def forward(*args: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
            def run(*inner: Any) -> list[Any]:
                results, num_outs = self.forward(*inner, perturbed=perturbed)
                counts[:] = [num_outs, len(results) - num_outs]
                return list(results)
            results = batched_function(trace, run, axes)(*args)
            return with_common(results, args, counts[0]), counts[0]

        def backward(residuals: Sequence[Any], cts: Sequence[Any], *,
                     perturbed: tuple[bool, ...]) -> list[Any]:
            return _batched_backward(trace, partial(self.backward, perturbed=perturbed), axes,
                                     residuals, cts, common)

        call = VJPRuleCall(fun, forward, backward, self.name, self.owner, self.user_values,
                           self.cells)
        outs = call.apply(trace.parent, values)
        unmapped = {len(outs) - len(axes) + i for i in common}
        return [o if i in unmapped else trace.join(o, 0) for i, o in enumerate(outs)]

    def stage(self, trace: Any, args: Sequence[Any]) -> list[Any]:
        avals = [get_aval(x) for x in args]
        call = stage(self.fun, avals, name=self.name)
        consts: tuple[Sequence[Any], Sequence[Any]] = ((), ())
        fwd: Jaxpr | LazyJaxpr
        bwd: Jaxpr | LazyJaxpr
        rules = StagedRules(self.forward, self.backward, avals, self.name, self.owner)
        if (self.owner.symbolic_zeros or self.cells) and not self.closes_over(lambda _: True):
            fwd, bwd = rules.by_zeros()
        elif rule_stays_lazy(self, self.owner):
            fwd, bwd = rules.lazily()
        else:
            staged = rules.stage()
            consts = (staged[0].consts, staged[1].consts)
            fwd, bwd = (s.jaxpr.hoist_consts() for s in staged)
        outs: list[Any] = custom_vjp_call_p.bind(
            *call.consts, *consts[0], *consts[1], *args, call_jaxpr=call.jaxpr.hoist_consts(),
            fwd_jaxpr=fwd, bwd_jaxpr=bwd,
            num_consts=(len(call.consts), len(consts[0]), len(consts[1])))
        return outs


def linear_outputs(trace: JVPTrace, outs: Sequence[Any], residuals: Sequence[Any],
                   tangents: Sequence[Any], backward: Any, name: str) -> list[Any]:
    """The tangents of the outputs, as results of the opaque linear operation."""
    previous = set_trace(trace.rules)
    try:
        return opaque_tangents(outs, residuals, tangents, backward, name)
    finally:
        set_trace(previous)


def opaque_tangents(outs: Sequence[Any], residuals: Sequence[Any], tangents: Sequence[Any],
                    backward: Callable[..., Sequence[Any]], name: str) -> list[Any]:
    """The same, in the current trace."""
    avals = [get_aval(o).strong() for o in outs]
    flags = differentiable_flags(avals)

    def with_zeros(saved: Sequence[Any], cts: Sequence[Any]) -> Sequence[Any]:
        given = iter(cts)
        return backward(saved, [next(given) if f else None for f in flags])

    results = iter(custom_vjp_linear_p.bind(
        *residuals, *[t for t in tangents if t is not None], backward=with_zeros, name=name,
        perturbed=tuple(t is not None for t in tangents),
        out_avals=tuple(a for a, f in zip(avals, flags, strict=True) if f)))
    return [next(results) if f else None for f in flags]


@custom_jvp
def _with_tangent_of(value: Any, like: Any) -> Any:
    """A value with the derivative of another one.

    Only what the call itself gave it is left out: further derivatives see how it was computed.
    """
    return value


_with_tangent_of.defjvp(lambda primals, tangents: (primals[0], tangents[1]), symbolic_zeros=True)


def _with_tangents_of(value: Any, like: Any) -> Any:
    """The same where either may have a derivative."""
    has_one = any(isinstance(x, Tracer) for x in (value, like)) \
        and is_differentiable(get_aval(value))
    return _with_tangent_of(value, like) if has_one else value


def _batched_backward(trace: BatchTrace, backward: Any, axes: Sequence[int | None],
                      residuals: Sequence[Any], cts: Sequence[Any],
                      common: Sequence[int]) -> list[Any]:
    """The backward rule mapped; the cotangent of an argument that was not mapped is summed.

    It is the mapping of the call, so that what the rule closes over is mapped, too. The tokens at
    the places `common` of the arguments are no sums: a rule that writes there is refused.
    """
    unmapped = {len(cts) - len(axes) + i for i in common}
    given = [(ct, None if i in unmapped else 0) for i, ct in enumerate(cts) if ct is not None]
    kept: list[bool] = []

    def run(*flat: Any) -> list[Any]:
        rest = iter(flat[len(residuals):])
        results = backward(list(flat[:len(residuals)]),
                           [None if ct is None else next(rest) for ct in cts])
        kept[:] = [r is not None for r in results]
        return [r for r in results if r is not None]

    here = trace.over(get_trace())
    args = [*[here.join(x, 0) for x in residuals], *[here.join(ct, at) for ct, at in given]]
    with trace.axis.bound():
        outs, mapped, _ = here.split(run_scoped(here, run, args))
    here.alive = False
    results = iter(zip(outs, mapped, strict=True))
    placed: list[Any] = []
    for i, (keep, wanted) in enumerate(zip(kept, axes, strict=True)):
        out, at = next(results) if keep else (None, None)
        if i in common and at is not None:
            raise written_outside(trace)
        placed.append(out if out is None or i in common else
                      _match_axis(out, at, wanted, trace.axis))
    return placed


def _match_axis(ct: Any, at: int | None, wanted: int | None, axis: MappedAxis) -> Any:
    if wanted is None:
        return reduce_sum(ct, (at,)) if at is not None else mul(ct, float(axis.size))
    if at is None:
        ct, at = broadcast_batch(ct, axis.size), 0
    return move_axis(ct, at, wanted)


class CustomVJPPrimitive(HigherOrder):
    """A staged call of a function with a custom_vjp rule."""

    name = "custom_vjp_call"
    has_rules = True

    def type(self, *avals: ShapedArray, call_jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(call_jaxpr.out_avals)

    def called(self, operands: Sequence[Any], *, call_jaxpr: Jaxpr,
               num_consts: tuple[int, int, int],
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        own, _, _, args = _groups(operands, num_consts)
        return call_jaxpr, [*own, *args]

    def evaluate(self, *arrays: Any, call_jaxpr: Jaxpr, num_consts: tuple[int, int, int],
                 **params: Any) -> list[Any]:
        own, _, _, args = _groups(arrays, num_consts)
        return interpret(call_jaxpr, [*own, *args])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            call_jaxpr: Jaxpr, fwd_jaxpr: Jaxpr | LazyJaxpr,
            bwd_jaxpr: Jaxpr | LazyJaxpr, num_consts: tuple[int, int, int]) -> Any:
        outs, out_tangents = _apply_rules(primals, tangents, call_jaxpr, fwd_jaxpr, bwd_jaxpr,
                                          num_consts)
        own, _, _, args = _groups(primals, num_consts)
        closure = _groups(tangents, num_consts)[0]
        extra = pushed_closure(call_jaxpr, [*own, *args], closure, jvp_jaxpr)
        return outs, list(map(plus, out_tangents, extra))

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  call_jaxpr: Jaxpr, fwd_jaxpr: Jaxpr | LazyJaxpr,
                  bwd_jaxpr: Jaxpr | LazyJaxpr, num_consts: tuple[int, int, int]) -> Any:
        outs, out_tangents = _apply_rules(primals, tangents, call_jaxpr, fwd_jaxpr, bwd_jaxpr,
                                          num_consts)
        own, _, _, args = _groups(primals, num_consts)
        closure = _groups(tangents, num_consts)[0]
        extra = closure_tangents(call_jaxpr, [*own, *args], closure, linearize_jaxpr)
        return outs, list(map(plus, out_tangents, extra))

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, call_jaxpr: Jaxpr, fwd_jaxpr: Jaxpr | LazyJaxpr,
              bwd_jaxpr: Jaxpr | LazyJaxpr,
              num_consts: tuple[int, int, int]) -> tuple[list[Any], list[int | None]]:
        # all operands get the axis, so that the rules agree on which residuals have it
        moved = align_batch(operands, axes)
        call, _ = batch_jaxpr(call_jaxpr, axis, [True] * len(call_jaxpr.invars), True)

        def map_all(jaxpr: Jaxpr) -> Jaxpr:
            mapped: Jaxpr = batch_jaxpr(jaxpr, axis, [True] * len(jaxpr.invars), True)[0]
            return mapped

        def mapped_rule(rule: Jaxpr | LazyJaxpr) -> LazyJaxpr:
            if isinstance(rule, RuleByZeros):
                return RuleByZeros(lambda: map_all(rule.jaxpr),
                                   lambda pattern: (map_all(rule.of(pattern)[0]), None))
            return LazyJaxpr(lambda: map_all(known_jaxpr(rule)))

        fwd, bwd = mapped_rule(fwd_jaxpr), mapped_rule(bwd_jaxpr)
        outs = self.bind(*moved, call_jaxpr=call, fwd_jaxpr=fwd, bwd_jaxpr=bwd,
                         num_consts=num_consts)
        return outs, [0] * len(outs)


def _groups(items: Sequence[Any], num_consts: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
    a, b, c = num_consts
    return items[:a], items[a:a + b], items[a + b:a + b + c], items[a + b + c:]


def _apply_rules(primals: Sequence[Any], tangents: Sequence[Any], call_jaxpr: Jaxpr,
                 fwd_jaxpr: Jaxpr | LazyJaxpr,
                 bwd_jaxpr: Jaxpr | LazyJaxpr,
                 num_consts: tuple[int, int, int]) -> tuple[list[Any], list[Any]]:
    _, of_fwd, of_bwd, args = _groups(primals, num_consts)
    arg_tangents = _groups(tangents, num_consts)[3]
    n = len(call_jaxpr.outvars)
    perturbed = tuple([t is not None for t in arg_tangents])
    fwd = fwd_jaxpr.of(perturbed)[0] if isinstance(fwd_jaxpr, RuleByZeros) else \
        known_jaxpr(fwd_jaxpr)
    results = eval_jaxpr(fwd, (), *of_fwd, *args)
    outs, residuals = results[:n], results[n:]
    if all(t is None for t in arg_tangents):
        return outs, [None] * n
    flags = differentiable_flags([get_aval(a) for a in args])

    def backward(saved: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        avals = call_jaxpr.out_avals
        if isinstance(bwd_jaxpr, RuleByZeros):
            is_given = [ct is not None for ct in compress(cts, differentiable_flags(avals))]
            bwd, filled = bwd_jaxpr.of((perturbed, tuple(is_given)))[0], \
                [ct for ct in cts if ct is not None]
        else:
            bwd = known_jaxpr(bwd_jaxpr)
            filled = [instantiate_aval(ct, a.strong()) for ct, a in zip(cts, avals, strict=True)
                      if differentiable_flags([a])[0]]
        given = iter(eval_jaxpr(bwd, (), *saved, *filled))
        return [next(given) if f else None for f in flags]

    return outs, opaque_tangents(outs, [*of_bwd, *residuals], arg_tangents, backward,
                                 call_jaxpr.name)


custom_vjp_call_p = CustomVJPPrimitive()


class custom_vjp(WithRules[P, R]):  # a decorator, named as in JAX
    """A function whose reverse-mode derivative is given by `defvjp` instead of being derived.

    `fwd(*args) -> (out, residuals)` and `bwd(*nondiff, residuals, ct) -> cotangents`, a tuple with
    one entry (or None for zero) per differentiable argument; arguments at `nondiff_argnums` need
    not be arrays. Raises CustomRuleError where rules are missing or return other structures,
    shapes or dtypes than the function and its arguments, and under forward mode.

    >>> import functrans as ft
    >>> @ft.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (ft.numpy.clip(ct, -1.0, 1.0),))
    >>> float(ft.grad(lambda x: 5.0 * clip_gradient(x))(2.0))
    1.0
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()) -> None:
        check_callable(fun, "custom_vjp")
        functools.update_wrapper(self, fun)  # before our own attributes
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __repr__(self) -> str:
        return f"<custom_vjp of {name_of(self.fun)}({parameter_names(self.fun)})>"

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any],
               symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the rules; with `symbolic_zeros` fwd gets CustomVJPPrimal and bwd SymbolicZero.

        `optimize_remat` asks that a recomputed forward pass leaves out residuals that nobody reads:
        programs are always free of what nobody reads.
        """
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        return tuple(f for f in (self.fun, self.fwd, self.bwd) if f is not None)

    @public
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise CustomRuleError(f"the custom_vjp function {name_of(self.fun)} has no rules.",
                                  fix="f.defvjp(fwd, bwd), with fwd(*args) -> (out, residuals) and "
                                      "bwd(residuals, ct) -> a tuple of cotangents")
        given = bind_arguments(self.fun, args, kwargs)
        fixed = {i % len(given): given[i % len(given)] for i in self.nondiff_argnums}
        dynamic = tuple([a for i, a in enumerate(given) if i not in fixed])
        cells = cell_arguments(dynamic, name_of(self.fun))
        leaves, tree = flatten_args(dynamic if cells is None else cells.others, name_of(self.fun))
        leaves = alike(leaves)
        rules = FlatRules(self, fixed, len(given), tree, [get_aval(x) for x in leaves], cells)
        name, closure = name_of(self.fun), (*self.user_functions, *fixed.values())
        if cells is None:
            outs: Any = VJPRuleCall(rules.flat, rules.forward, rules.backward, name, self,
                                    closure).apply(get_trace(), leaves)
        else:
            pure = VJPRulesOfCells(rules, cells.cells, name, _with_tangents_of)
            call = VJPRuleCall(pure.flat, pure.forward, pure.backward, name, self, closure,
                               len(cells.cells))
            outs = pure.results(call.apply(get_trace(), pure.leaves(leaves)))
        results: R = tree_unflatten(rules.flat.out_tree, outs)
        return results
