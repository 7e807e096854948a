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

import numpy as np

from functrans._runtime import get_trace, set_trace
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.custom import CustomCall, WithRules
from functrans.core.errors import CustomRuleError, TreeMismatchError, public
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Linear, Primitive, Sample
from functrans.core.record import Record
from functrans.core.source import own_lines, user_source
from functrans.core.staging import stage
from functrans.core.tree import (
    LEAF,
    flatten_up_to,
    known_leaf,
    tree_flatten,
    tree_unflatten,
)
from functrans.core.varying import alike
from functrans.primitives.arithmetic import mul
from functrans.primitives.broadcast import align_batch, broadcast_batch, move_axis, reduce_sum
from functrans.transforms.batching import BatchTrace, batch_flat, front
from functrans.transforms.cells import CellArguments, cell_arguments
from functrans.transforms.custom_call import (
    LazyJaxpr,
    RuleByZeros,
    RunningRule,
    batched_function,
    bind_arguments,
    check_rule_leaf,
    check_rule_tree,
    differentiable_flags,
    known_jaxpr,
    nondiff_positions,
    plus,
    rule_stays_lazy,
)
from functrans.transforms.custom_jvp import closure_tangents
from functrans.transforms.custom_rule_cells import VJPRulesOfCells
from functrans.transforms.flat import (
    FlatFunction,
    check_callable,
    flatten_args,
    name_of,
    parameter_names,
)
from functrans.transforms.jvp import JVPTrace, JVPTracer, PrimalTrace
from functrans.transforms.staged_rules import StagedRules
from functrans.transforms.tangents import SymbolicZero, instantiate_aval

P = ParamSpec("P")
R = TypeVar("R")

_NUMBERS = (bool, int, float, complex)
_SAVED = object()

__all__ = ["CustomVJPPrimal", "custom_vjp"]


@known_leaf
class CustomVJPPrimal(Record):
    """An argument of a forward rule with `symbolic_zeros=True`: its value, and whether the
    derivative in it is asked for.

    >>> def fwd(x, y):
    ...     return x.value * y.value, (y.value if x.perturbed else None)
    >>> f = ft.custom_vjp(lambda x, y: x * y)
    >>> f.defvjp(fwd, lambda y, ct: (ct * y, None), symbolic_zeros=True)
    >>> float(ft.grad(f)(2.0, 5.0))
    5.0
    """

    value: Any
    perturbed: bool


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
        residuals = [x for x in operands if not isinstance(x, Linear)]
        results = backward(residuals, list(cts))
        wanted = [ct for ct, p in zip(results, perturbed, strict=True) if p]
        return [None] * len(residuals) + wanted

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
    """

    __slots__ = ("backward", "forward", "has_cells", "name", "owner")

    def __init__(self, fun: Callable[..., Sequence[Any]], forward: Callable[..., Sequence[Any]],
                 backward: Callable[..., Sequence[Any]], name: str, owner: custom_vjp[..., Any],
                 user_values: Sequence[Any], has_cells: bool = False) -> None:
        super().__init__(fun, user_values)
        self.owner = owner
        self.has_cells = has_cells
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

        def forward(*args: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
            def run(*inner: Any) -> list[Any]:
                results, num_outs = self.forward(*inner, perturbed=perturbed)
                counts[:] = [num_outs, len(results) - num_outs]
                return list(results)
            results = batched_function(trace, run, axes)(*args)
            return results, counts[0]

        def backward(residuals: Sequence[Any], cts: Sequence[Any], *,
                     perturbed: tuple[bool, ...]) -> list[Any]:
            return _batched_backward(trace, partial(self.backward, perturbed=perturbed), axes,
                                     residuals, cts)

        call = VJPRuleCall(batched_function(trace, self.fun, axes), forward, backward, self.name,
                           self.owner, self.user_values, self.has_cells)
        return [trace.join(o, 0) for o in call.apply(trace.parent, values)]

    def stage(self, trace: Any, args: Sequence[Any]) -> list[Any]:
        avals = [get_aval(x) for x in args]
        call = stage(self.fun, avals, name=self.name)
        consts: tuple[Sequence[Any], Sequence[Any]] = ((), ())
        fwd: Jaxpr | LazyJaxpr
        bwd: Jaxpr | LazyJaxpr
        rules = StagedRules(self.forward, self.backward, avals, self.name, self.owner)
        if (self.owner.symbolic_zeros or self.has_cells) and not self.closes_over(lambda _: True):
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


def _batched_backward(trace: BatchTrace, backward: Any, axes: Sequence[int | None],
                      residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The backward rule mapped; the cotangent of an argument that was not mapped is summed.

    It is the mapping of the call, so that what the rule closes over is mapped, too.
    """
    given = [ct for ct in cts if ct is not None]
    kept: list[bool] = []

    def run(*flat: Any) -> list[Any]:
        rest = iter(flat[len(residuals):])
        results = backward(list(flat[:len(residuals)]),
                           [None if ct is None else next(rest) for ct in cts])
        kept[:] = [r is not None for r in results]
        return [r for r in results if r is not None]

    here = trace.over(get_trace())
    args = [here.join(x, 0) for x in (*residuals, *given)]
    with trace.axis.bound():
        outs, mapped, _ = here.split(here.run(run, *args))
    here.alive = False
    results = iter(zip(outs, mapped, strict=True))
    placed: list[Any] = []
    for keep, wanted in zip(kept, axes, strict=True):
        if not keep:
            placed.append(None)
            continue
        out, at = next(results)
        placed.append(_match_axis(out, at, wanted, trace.axis))
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
            bwd_jaxpr: Jaxpr | LazyJaxpr,
            num_consts: tuple[int, int, int]) -> Any:
        outs, out_tangents = _apply_rules(primals, tangents, call_jaxpr, fwd_jaxpr, bwd_jaxpr,
                                          num_consts)
        own, _, _, args = _groups(primals, num_consts)
        closure = _groups(tangents, num_consts)[0]
        if any(t is not None for t in closure):
            pushed, nonzero = jvp_jaxpr(call_jaxpr,
                                        [t is not None for t in closure] + [False] * len(args))
            results = eval_jaxpr(pushed, (), *own, *args, *[t for t in closure if t is not None])
            rest = iter(results[len(outs):])
            extra = [next(rest) if nz else None for nz in nonzero]
            out_tangents = list(map(plus, out_tangents, extra))
        return outs, out_tangents

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  call_jaxpr: Jaxpr, fwd_jaxpr: Jaxpr | LazyJaxpr,
            bwd_jaxpr: Jaxpr | LazyJaxpr,
                  num_consts: tuple[int, int, int]) -> Any:
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
        rules = _FlatRules(self, fixed, len(given), tree, [get_aval(x) for x in leaves], cells)
        name, closure = name_of(self.fun), (*self.user_functions, *fixed.values())
        if cells is None:
            outs: Any = VJPRuleCall(rules.flat, rules.forward, rules.backward, name, self,
                                    closure).apply(get_trace(), leaves)
        else:
            pure = VJPRulesOfCells(rules, cells.cells, name)
            outs = pure.results(VJPRuleCall(pure.flat, pure.forward, pure.backward, name, self,
                                            closure, True).apply(get_trace(), pure.leaves(leaves)))
        results: R = tree_unflatten(rules.flat.out_tree, outs)
        return results


class _FlatRules:
    """A user's forward and backward rules on lists of leaves, with their results checked."""

    def __init__(self, owner: custom_vjp[..., Any], fixed: dict[int, Any], count: int, tree: Any,
                 avals: list[ShapedArray], cells: CellArguments | None) -> None:
        self.owner, self.fixed, self.count, self.tree = owner, fixed, count, tree
        self.avals = avals
        self.cells = cells
        self.flat = FlatFunction(lambda *args: self.fill(owner.fun)(*self.whole(args)), tree, {},
                                 "custom_vjp")
        self.residuals: dict[tuple[bool, ...], tuple[Any, list[Any]]] = {}
        self.out_avals: list[ShapedArray] = []

    def fill(self, fun: Any) -> Callable[..., Any]:
        def call(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            return fun(*[self.fixed[i] if i in self.fixed else next(rest)
                         for i in range(self.count)])
        return call

    def whole(self, args: Sequence[Any]) -> Any:
        """The arguments, with the cells among them."""
        return args if self.cells is None else self.cells.among(args)

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
        name = name_of(self.owner.fwd)
        given = ([CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=True)]
                 if self.owner.symbolic_zeros else leaves)
        with own_lines():
            result = self.fill(self.owner.fwd)(*self.whole(tree_unflatten(self.tree, given)))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(f"the forward rule {name} returned {type(result).__name__}, not "
                                  "a pair.", where=user_source(), fix="return out, residuals")
        outs, out_tree = tree_flatten(result[0])
        if self.flat.out_tree is None:
            self.flat.out_tree = out_tree
        check_rule_tree(self.flat.out_tree, out_tree, f"the output of the forward rule {name}",
                        "the function's output")
        residuals, tree = tree_flatten(result[1])
        # Python's numbers stay what they are, so that the backward rule can branch on them
        fixed = [r if type(r) in _NUMBERS or isinstance(r, RefCell) else _SAVED
                 for r in residuals]
        self.residuals[perturbed] = tree, fixed
        outs = [to_array(o, f"an output of the forward rule {name}") for o in outs]
        self.out_avals = [get_aval(o) for o in outs]
        saved = [to_array(r, f"a residual of the forward rule {name}")
                 for r, f in zip(residuals, fixed, strict=True) if f is _SAVED]
        return [*outs, *saved], len(outs)

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                 perturbed: tuple[bool, ...]) -> list[Any]:
        name = name_of(self.owner.bwd)
        tree, fixed = self.residuals[perturbed]
        saved = iter(residuals)
        filled = [self.cotangent(ct, a) for ct, a in zip(cts, self.out_avals, strict=True)]
        with own_lines(), RunningRule(self.owner, name_of(self.owner.fun)):
            # only where the rule is set: the call of a function without one is refused
            result = self.owner.bwd(  # type: ignore[misc]
                *[self.fixed[i] for i in sorted(self.fixed)],
                tree_unflatten(tree, [next(saved) if f is _SAVED else f for f in fixed]),
                tree_unflatten(self.flat.out_tree, filled))
        return self.check(result, name)

    def cotangent(self, ct: Any, aval: ShapedArray) -> Any:
        if ct is not None:
            return ct
        if not differentiable_flags([aval])[0]:
            return np.zeros(aval.shape, dtypes.float0)
        if self.owner.symbolic_zeros:
            return SymbolicZero(aval)
        return instantiate_aval(None, aval.strong())

    def check(self, result: Any, name: str) -> list[Any]:
        what = f"the backward rule {name}"
        arguments = self.whole(tree_unflatten(self.tree, self.avals))
        count = len(arguments)
        if not isinstance(result, (tuple, list)) or len(result) != count:
            got = f"{len(result)} entries" if isinstance(result, (tuple, list)) else \
                type(result).__name__
            raise CustomRuleError(
                f"{what} returned {got}; the function has {count} differentiable argument"
                f"{'' if count == 1 else 's'}.",
                where=user_source(), why="it returns a tuple with one cotangent per argument.",
                fix="return (ct_x,) for one argument; None stands for zero")
        checked: list[Any] = []
        for i, (ct, argument) in enumerate(zip(result, arguments, strict=True)):
            avals, tree = tree_flatten(argument)
            if isinstance(argument, RefCell):  # has no cotangent: the rule wrote into it
                continue
            if ct is None:
                avals = [a for a in avals if not isinstance(a, RefCell)]
                checked += [None] * len(avals)
                continue
            for leaf, aval in zip(self.filled(ct, argument, tree, i, what), avals, strict=True):
                if isinstance(aval, RefCell):
                    continue
                if leaf is None or isinstance(leaf, SymbolicZero) \
                        or getattr(leaf, "dtype", None) == dtypes.float0:
                    checked.append(None)
                else:
                    checked.append(check_rule_leaf(
                        to_array(leaf, f"a cotangent from {what}"), aval,
                        f"the cotangent of argument {i} from {what}", "the argument"))
        return checked

    def filled(self, ct: Any, argument: Any, tree: Any, index: int, what: str) -> list[Any]:
        """The leaves of a cotangent, with None for each leaf of a subtree that None stands for."""
        leaves, ct_tree = tree_flatten(ct)
        if ct_tree == tree:
            return leaves
        prefix, prefix_tree = tree_flatten(ct, is_leaf=lambda x: x is None)
        try:
            subtrees = flatten_up_to(prefix_tree, argument)
        except TreeMismatchError:
            subtrees = []
        filled: list[Any] = []
        for leaf, subtree in zip(prefix, subtrees, strict=False):
            avals, subtree_def = tree_flatten(subtree)
            if leaf is not None and subtree_def != LEAF:
                break
            filled += [leaf] if leaf is not None else [None] * len(avals)
        else:
            if subtrees:
                return filled
        check_rule_tree(tree, ct_tree, f"the cotangent of argument {index} from {what}",
                        "the argument")
        raise AssertionError("structures that agree were told apart")

