"""`custom_jvp`: functions with a derivative rule of their own.

The rule runs under the differentiating trace itself, on arguments without their tangents. What the
function closes over keeps its tangents there, so closures are differentiated by ordinary rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, ParamSpec, TypeVar

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.custom import CustomCall, WithRules
from functrans.core.errors import CustomRuleError, public
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder
from functrans.core.source import own_lines, user_source
from functrans.core.staging import stage
from functrans.core.trace import get_trace
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.core.varying import alike
from functrans.transforms.batching import BatchTrace, front
from functrans.transforms.cells import CellArguments, cell_arguments
from functrans.transforms.closed import stage_closed
from functrans.transforms.custom_call import (
    LazyJaxpr,
    RuleByZeros,
    RunningRule,
    batched_function,
    bind_arguments,
    check_rule_leaf,
    check_rule_tree,
    dense,
    differentiable_flags,
    known_jaxpr,
    nondiff_positions,
    plus,
    rule_stays_lazy,
    staging_rule_of,
)
from functrans.transforms.custom_rule_cells import JVPRuleOfCells
from functrans.transforms.flat import (
    FlatFunction,
    check_callable,
    flatten_args,
    name_of,
    parameter_names,
)
from functrans.transforms.jvp import JVPTrace
from functrans.transforms.linearize import apply_rule
from functrans.transforms.tangents import SymbolicZero, instantiate, symbolic_zero, tangent_aval

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["custom_jvp"]


class JVPRuleCall(CustomCall):
    """A flat function, and its rule from primals and tangents (of differentiable inputs) to both.

    `rule(*primals, *tangents)` returns the outputs and the tangents of differentiable outputs,
    which are SymbolicZeros where it knows that.
    """

    __slots__ = ("name", "owner", "rule", "symbolic_zeros")

    def __init__(self, fun: Callable[..., Sequence[Any]], rule: Callable[..., Sequence[Any]],
                 name: str, owner: custom_jvp[..., Any], user_values: Sequence[Any],
                 symbolic_zeros: bool = False) -> None:
        super().__init__(fun, user_values)
        self.owner = owner
        self.rule = rule
        self.name = name
        self.symbolic_zeros = symbolic_zeros

    def differentiate(self, trace: JVPTrace, primals: list[Any],
                      tangents: list[Any]) -> list[Any]:
        flags = differentiable_flags([get_aval(p) for p in primals])

        def run(*args: Any) -> Sequence[Any]:
            zero = symbolic_zero if self.symbolic_zeros else partial(instantiate, None)
            filled = [zero(p) if t is None else t
                      for p, t, f in zip(args, tangents, flags, strict=True) if f]
            return self.rule(*args, *filled)

        with RunningRule(self.owner, self.name):
            results = list(trace.run(run, *primals))
        values, closure, _ = trace.split(results)
        n = _count_outputs(values)
        given = iter([None if isinstance(v, SymbolicZero) else v for v in values[n:]])
        outs = []
        for p, t in zip(values[:n], closure[:n], strict=True):
            own = next(given) if differentiable_flags([get_aval(p)])[0] else None
            outs.append(trace.join(p, trace_add(trace, own, t)))
        return outs

    def batch(self, trace: BatchTrace, values: list[Any], axes: list[int | None]) -> list[Any]:
        flags = differentiable_flags([get_aval(v) for v in values])
        tangent_axes = [a for a, f in zip(axes, flags, strict=True) if f]
        call = JVPRuleCall(batched_function(trace, self.fun, axes),
                           batched_function(trace, self.rule, [*axes, *tangent_axes]), self.name,
                           self.owner, self.user_values, self.symbolic_zeros)
        return [trace.join(o, 0) for o in call.apply(trace.parent, values)]

    def stage(self, trace: Any, args: Sequence[Any]) -> list[Any]:
        avals = [get_aval(x) for x in args]
        tangents = [tangent_aval(a) for a in avals if differentiable_flags([a])[0]]
        call = stage(self.fun, avals, name=self.name)
        consts, rule_jaxpr = self._stage_rule([*avals, *tangents], len(avals))
        outs: list[Any] = custom_jvp_call_p.bind(
            *call.consts, *consts, *args, call_jaxpr=call.jaxpr.hoist_consts(),
            rule_jaxpr=rule_jaxpr, num_consts=(len(call.consts), len(consts)))
        return outs

    def _stage_rule(self, avals: list[ShapedArray], count: int
                    ) -> tuple[Sequence[Any], Jaxpr | LazyJaxpr]:
        name = f"jvp_{self.name}"

        def make() -> Jaxpr:
            with staging_rule_of(self.owner):
                return stage_closed(dense(self.rule), avals, name=name)

        if self.symbolic_zeros and not self.closes_over(lambda _: True):
            return (), RuleByZeros(make, lambda active: self._rule_for(avals[:count], active))
        if rule_stays_lazy(self, self.owner):
            return (), LazyJaxpr(make)
        try:
            with staging_rule_of(self.owner):
                rule = stage(dense(self.rule), avals, name=name)
        except Exception as error:  # of the user's rule, which no derivative may ask for
            return (), LazyJaxpr(partial(_raise, error))
        return rule.consts, rule.jaxpr.hoist_consts()

    def _rule_for(self, avals: Sequence[ShapedArray], active: tuple[bool, ...]
                  ) -> tuple[Jaxpr, tuple[bool, ...]]:
        """The rule for tangents of which some are zero, and which of its own are not."""
        tangents = [tangent_aval(a) for a in avals if differentiable_flags([a])[0]]
        nonzero: tuple[bool, ...] = ()

        def run(*args: Any) -> list[Any]:
            nonlocal nonzero
            given = iter(args[len(avals):])
            filled = [next(given) if is_active else SymbolicZero(a)
                      for a, is_active in zip(tangents, active, strict=True)]
            results = self.rule(*args[:len(avals)], *filled)
            n = _count_outputs(results)
            nonzero = tuple(not isinstance(t, SymbolicZero) for t in results[n:])
            return [x for x in results if not isinstance(x, SymbolicZero)]

        with staging_rule_of(self.owner):
            jaxpr = stage_closed(run, [*avals, *compress(tangents, active)],
                                 name=f"jvp_{self.name}")
        return jaxpr, nonzero


def _raise(error: Exception) -> Jaxpr:
    raise error


def trace_add(trace: JVPTrace, x: Any, y: Any) -> Any:
    """Sum of two tangents of a trace."""
    return trace.run(plus, x, y)


def _count_outputs(values: Sequence[Any]) -> int:
    """How many of outputs-then-tangents are outputs: the differentiable ones have tangents."""
    avals = [v.aval if isinstance(v, SymbolicZero) else get_aval(v) for v in values]
    for n in range(len(avals), -1, -1):
        if n + sum(differentiable_flags(avals[:n])) == len(avals):
            return n
    raise CustomRuleError("a custom_jvp rule returned outputs and tangents that do not pair up.",
                          where=user_source())


class CustomJVPPrimitive(HigherOrder):
    """A staged call of a function with a custom_jvp rule."""

    name = "custom_jvp_call"
    has_rules = True

    def type(self, *avals: ShapedArray, call_jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return list(call_jaxpr.out_avals)

    def called(self, operands: Sequence[Any], *, call_jaxpr: Jaxpr, num_consts: tuple[int, int],
               **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        own, _, args = _groups(operands, num_consts)
        return call_jaxpr, [*own, *args]

    def evaluate(self, *arrays: Any, call_jaxpr: Jaxpr, num_consts: tuple[int, int],
                 **params: Any) -> list[Any]:
        own, _, args = _groups(arrays, num_consts)
        return interpret(call_jaxpr, [*own, *args])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp_jaxpr: Any,
            call_jaxpr: Jaxpr, rule_jaxpr: Jaxpr | LazyJaxpr, num_consts: tuple[int, int]) -> Any:
        outs, out_tangents = _apply_rule(primals, tangents, rule_jaxpr, num_consts, call_jaxpr)
        own, _, args = _groups(primals, num_consts)
        closure, _, _ = _groups(tangents, num_consts)
        extra = pushed_closure(call_jaxpr, [*own, *args], closure, jvp_jaxpr)
        return outs, list(map(plus, out_tangents, extra))

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  call_jaxpr: Jaxpr, rule_jaxpr: Jaxpr | LazyJaxpr,
                  num_consts: tuple[int, int]) -> Any:
        outs, out_tangents = _apply_rule(primals, tangents, rule_jaxpr, num_consts, call_jaxpr)
        own, _, args = _groups(primals, num_consts)
        closure, _, _ = _groups(tangents, num_consts)
        extra = closure_tangents(call_jaxpr, [*own, *args], closure, linearize_jaxpr)
        return outs, list(map(plus, out_tangents, extra))

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, axis: MappedAxis,
              batch_jaxpr: Any, call_jaxpr: Jaxpr, rule_jaxpr: Jaxpr | LazyJaxpr,
              num_consts: tuple[int, int]) -> tuple[list[Any], list[int | None]]:
        batched = [a is not None for a in axes]
        own, of_rule, args = _groups(batched, num_consts)
        flags = differentiable_flags(call_jaxpr.in_avals[num_consts[0]:])
        tangents = [b for b, f in zip(args, flags, strict=True) if f]
        call, _ = batch_jaxpr(call_jaxpr, axis, [*own, *args], True)
        of_all = [*of_rule, *args, *tangents]

        def make() -> Jaxpr:
            mapped: Jaxpr = batch_jaxpr(known_jaxpr(rule_jaxpr), axis, of_all, True)[0]
            return mapped

        def make_for(active: tuple[bool, ...]) -> tuple[Jaxpr, Any]:
            jaxpr, nonzero = rule_jaxpr.of(active)  # type: ignore[union-attr]
            of_some = [*of_rule, *args, *compress(tangents, active)]
            return batch_jaxpr(jaxpr, axis, of_some, True)[0], nonzero

        rule = RuleByZeros(make, make_for) if isinstance(rule_jaxpr, RuleByZeros) else \
            LazyJaxpr(make)
        outs = self.bind(*front(operands, axes), call_jaxpr=call, rule_jaxpr=rule,
                         num_consts=num_consts)
        return outs, [0] * len(outs)


def _groups(items: Sequence[Any], num_consts: tuple[int, int]) -> tuple[Any, Any, Any]:
    a, b = num_consts
    return items[:a], items[a:a + b], items[a + b:]


def _apply_rule(primals: Sequence[Any], tangents: Sequence[Any], rule_jaxpr: Jaxpr | LazyJaxpr,
                num_consts: tuple[int, int], call_jaxpr: Jaxpr) -> tuple[list[Any], list[Any]]:
    _, consts, args = _groups(primals, num_consts)
    _, _, arg_tangents = _groups(tangents, num_consts)
    flags = differentiable_flags([get_aval(a) for a in args])
    out_flags = differentiable_flags(call_jaxpr.out_avals)
    if isinstance(rule_jaxpr, RuleByZeros):
        active = tuple([t is not None for t, f in zip(arg_tangents, flags, strict=True) if f])
        jaxpr, nonzero = rule_jaxpr.of(active)
        given = [t for t, f in zip(arg_tangents, flags, strict=True) if f and t is not None]
        results = apply_rule(jaxpr, [*consts, *args, *given])
        found = iter(results[len(out_flags):])
        rest = iter([next(found) if is_given else None for is_given in nonzero])
    else:
        filled = [instantiate(t, p) for p, t, f in zip(args, arg_tangents, flags, strict=True) if f]
        results = apply_rule(known_jaxpr(rule_jaxpr), [*consts, *args, *filled])
        rest = iter(results[len(out_flags):])
    return results[:len(out_flags)], [next(rest) if f else None for f in out_flags]


def pushed_closure(jaxpr: Jaxpr, operands: Sequence[Any], closure: Sequence[Any],
                   jvp_jaxpr: Any) -> list[Any]:
    """Output tangents due to the leading operands, which a function closed over."""
    if all(t is None for t in closure):
        return [None] * len(jaxpr.outvars)
    active = [t is not None for t in closure] + [False] * (len(operands) - len(closure))
    pushed, nonzero = jvp_jaxpr(jaxpr, active)
    results = eval_jaxpr(pushed, (), *operands, *[t for t in closure if t is not None])
    rest = iter(results[len(jaxpr.outvars):])
    return [next(rest) if nz else None for nz in nonzero]


def closure_tangents(jaxpr: Jaxpr, operands: Sequence[Any], closure: Sequence[Any],
                     linearize_jaxpr: Any) -> list[Any]:
    """The same on the tape, where the tangents are."""
    if all(t is None for t in closure):
        return [None] * len(jaxpr.outvars)
    active = [t is not None for t in closure] + [False] * (len(operands) - len(closure))
    split = linearize_jaxpr(jaxpr, active)
    results = eval_jaxpr(split.primal, (), *operands)
    residuals = split.residuals(operands, results[len(jaxpr.outvars):])
    linear = iter(eval_jaxpr(split.linear, (), *residuals, *[t for t in closure if t is not None]))
    return [next(linear) if nz else None for nz in split.nonzero]


custom_jvp_call_p = CustomJVPPrimitive()


class custom_jvp(WithRules[P, R]):  # a decorator, named as in JAX
    """A function whose derivative is given by `defjvp` or `defjvps` instead of being derived.

    Arguments at `nondiff_argnums` are passed to the rule first, and need not be arrays.
    Raises CustomRuleError where there is no rule or it returns other structures, shapes or dtypes
    than the function.

    >>> import functrans as ft
    >>> @ft.custom_jvp
    ... def log1pexp(x):
    ...     return ft.numpy.log(1.0 + ft.numpy.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t / (1.0 + ft.numpy.exp(-x))
    >>> float(ft.grad(log1pexp)(100.0))
    1.0
    >>> @ft.custom_jvp
    ... def product(x, y):
    ...     return x * y
    >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: t * x)
    >>> float(ft.grad(product)(3.0, 5.0))
    5.0
    """

    def __init__(self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (),
                 nondiff_argnames: str | Sequence[str] = ()) -> None:
        check_callable(fun, "custom_jvp")
        functools.update_wrapper(self, fun)  # before our own attributes
        self.fun = fun
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def __repr__(self) -> str:
        return f"<custom_jvp of {name_of(self.fun)}({parameter_names(self.fun)})>"

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule: `jvp(*nondiff, primals, tangents) -> (out, tangent of out)`."""
        check_callable(jvp, "defjvp")
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule per argument, `jvp(t, out, *args)`; None for an argument without one."""
        if self.nondiff_argnums:
            raise CustomRuleError("defjvps does not work with nondiff_argnums.", fix="use defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
            function: Callable[..., Any] = self
            out = function(*primals)
            terms = [rule(t, out, *primals) for rule, t in zip(jvps, tangents, strict=True)
                     if rule is not None]
            total = functools.reduce(plus, terms) if terms else instantiate(None, out)
            return out, total

        self.jvp = jvp

    @property
    def user_functions(self) -> tuple[Callable[..., Any], ...]:
        return (self.fun,) if self.jvp is None else (self.fun, self.jvp)

    @public
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise CustomRuleError(f"the custom_jvp function {name_of(self.fun)} has no rule.",
                                  fix="@f.defjvp\n"
                                      "def rule(primals, tangents): return out, tangent_out")
        given = bind_arguments(self.fun, args, kwargs)
        fixed = {i % len(given): given[i % len(given)] for i in self.nondiff_argnums}
        dynamic = tuple([a for i, a in enumerate(given) if i not in fixed])
        name = name_of(self.fun)
        cells = cell_arguments(dynamic, name)
        leaves, tree = flatten_args(dynamic if cells is None else cells.others, name)
        leaves = alike(leaves)
        rule_args = [fixed[i] for i in sorted(fixed)]
        fun = _filled_in(self.fun, fixed, len(given))
        flat = FlatFunction(fun if cells is None else lambda *others: fun(*cells.among(others)),
                            tree, {}, "custom_jvp")
        rule = _FlatRule(self.jvp, rule_args, tree, flat, name_of(self.jvp), len(leaves), cells)
        values = (*self.user_functions, *rule_args)
        if cells is None:
            outs: Any = JVPRuleCall(flat, rule, name, self, values,
                                    self.symbolic_zeros).apply(get_trace(), leaves)
        else:
            pure = JVPRuleOfCells(flat, rule, cells, name, self.symbolic_zeros)
            outs = pure.results(JVPRuleCall(pure.flat, pure.rule, name, self, values,
                                            True).apply(get_trace(), pure.leaves(leaves)))
        results: R = tree_unflatten(flat.out_tree, outs)
        return results


def _filled_in(fun: Callable[..., Any], fixed: dict[int, Any], count: int) -> Callable[..., Any]:
    def call(*dynamic: Any) -> Any:
        rest = iter(dynamic)
        return fun(*[fixed[i] if i in fixed else next(rest) for i in range(count)])
    return call


class _FlatRule:
    """A user's jvp rule on lists of leaves, with its results checked."""

    def __init__(self, jvp: Callable[..., Any], rule_args: list[Any], tree: Any,
                 flat: FlatFunction, name: str, count: int, cells: CellArguments | None) -> None:
        self.jvp, self.rule_args, self.tree, self.flat = jvp, rule_args, tree, flat
        self.name, self.count, self.cells = name, count, cells

    def __call__(self, *args: Any) -> list[Any]:
        outs, tangents = self.run(args[:self.count], args[self.count:], ())
        return outs + tangents

    def whole(self, leaves: Sequence[Any], cells: Sequence[RefCell] | None = None) -> Any:
        """The arguments of the function, or their tangents with `cells` for those of cells."""
        return tuple(tree_unflatten(self.tree, leaves)) if self.cells is None else \
            self.cells.among(leaves, cells)

    def run(self, primals: Sequence[Any], tangents: Sequence[Any],
            cells: Sequence[RefCell]) -> tuple[list[Any], list[Any]]:
        """Outputs and the tangents of those that are differentiable."""
        given, flags = iter(tangents), differentiable_flags([get_aval(p) for p in primals])
        filled = [next(given) if f else np.zeros(p.shape, dtypes.float0)
                  for p, f in zip(primals, flags, strict=True)]
        with own_lines():
            result = self.jvp(*self.rule_args, self.whole(primals), self.whole(filled, cells))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(
                f"the jvp rule {self.name} returned {type(result).__name__}, not a pair.",
                where=user_source(), fix="return out, tangent_out")
        outs, out_tree = tree_flatten(result[0])
        out_tangents, tangent_tree = tree_flatten(result[1])
        if self.flat.out_tree is None:
            self.flat.out_tree = out_tree
        check_rule_tree(self.flat.out_tree, out_tree, f"the output of the jvp rule {self.name}",
                        "the function's output")
        check_rule_tree(out_tree, tangent_tree, f"the tangent from the jvp rule {self.name}",
                        "its output")
        outs = [to_array(o, f"an output of the jvp rule {self.name}") for o in outs]
        what = f"a tangent from the jvp rule {self.name}"
        checked = [self._tangent(t, get_aval(o), what)
                   for o, t in zip(outs, out_tangents, strict=True)]
        return outs, [t for t in checked if t is not None]

    @staticmethod
    def _tangent(tangent: Any, aval: ShapedArray, what: str) -> Any:
        """A tangent of the type of its output, or a zero; None where there is none."""
        if isinstance(tangent, SymbolicZero):
            return SymbolicZero(tangent_aval(aval)) if differentiable_flags([aval])[0] else None
        is_nothing = getattr(tangent, "dtype", None) == dtypes.float0
        return check_rule_leaf(tangent if is_nothing else to_array(tangent, what), aval, what,
                               "its output")
