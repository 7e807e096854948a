"""`checkpoint`: recompute the values of a function in the backward pass instead of keeping them.

The derivative of a checkpointed jaxpr is its jvp, again checkpointed, and linear in the tangents;
transposing that evaluates the jaxpr anew and runs the recorded linear part backwards.
Source: Griewank and Walther, Algorithm 799: revolve, ACM TOMS 26 (2000), one level.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

from functrans._runtime import get_trace
from functrans.core.avals import get_aval
from functrans.core.cells import cells_in_use
from functrans.core.evaluate import eval_jaxpr, interpret
from functrans.core.jaxpr import Atom, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Linear
from functrans.core.prune import prune_jaxpr
from functrans.core.sizes import known_sizes, learn_sizes, substitute
from functrans.core.source import interpreted
from functrans.core.staging import stage
from functrans.core.tree import tree_unflatten
from functrans.primitives.barrier import optimization_barrier
from functrans.transforms.cells import with_cells_carried
from functrans.transforms.closed import stage_closed
from functrans.transforms.custom_vjp import custom_vjp_call_p
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args, name_of, wraps
from functrans.transforms.linearize import LinearizeTrace, LinearMap
from functrans.transforms.program_call import ProgramCall
from functrans.transforms.static import StaticArguments
from functrans.transforms.tangents import tangent_aval

if TYPE_CHECKING:
    from functrans._array_types import SameDecorator

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["checkpoint", "checkpoint_p"]

Policy = Callable[..., bool]


class Checkpoint(ProgramCall):
    """A jaxpr whose inner values are not kept for the backward pass, but those `policy` names."""

    def evaluate(self, *arrays: Any, jaxpr: Jaxpr, **params: Any) -> list[Any]:
        return interpret(jaxpr, arrays)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, linearize_jaxpr: Any,
                  jaxpr: Jaxpr, policy: Policy | None = None,
                  **params: Any) -> tuple[list[Any], list[Any]]:
        n = len(jaxpr.outvars)
        kept = _saveable(jaxpr, policy)
        forward = jaxpr
        if kept:
            forward = Jaxpr((), jaxpr.invars, jaxpr.eqns, jaxpr.outvars + kept, name=jaxpr.name)
        active = tuple(t is not None for t in tangents)
        if not kept and _has_backward_rules(jaxpr):
            # values by the forward rules, which an outer forward mode can differentiate
            primal = linearize_jaxpr(jaxpr, active).primal
            forward = prune_jaxpr(Jaxpr((), primal.invars, primal.eqns, primal.outvars[:n],
                                        name=jaxpr.name))
        outs = self.bind(*primals, jaxpr=forward, policy=policy, **params)
        push, nonzero = _tangent_jaxpr(jaxpr, active, kept)
        results = iter(self.bind(*primals, *outs[n:], *[t for t in tangents if t is not None],
                                 jaxpr=push, policy=policy, **params))
        return outs[:n], [next(results) if nz else None for nz in nonzero]

    def transpose(self, cts: Sequence[Any], *operands: Any, transpose_jaxpr: Any, jaxpr: Jaxpr,
                  prevent_cse: bool = True, **params: Any) -> list[Any]:
        linear = [isinstance(x, Linear) for x in operands]
        values = [x for x in operands if not isinstance(x, Linear)]
        if prevent_cse and values:
            values = optimization_barrier(values)
        back = transpose_jaxpr(jaxpr, linear, [ct is not None for ct in cts])
        results = iter(eval_jaxpr(back, (), *values, *[ct for ct in cts if ct is not None]))
        return [next(results) if lin else None for lin in linear]


checkpoint_p = Checkpoint()

_push_cache: WeakKeyDictionary[Jaxpr, dict[Any, tuple[Jaxpr, tuple[bool, ...]]]] = \
    WeakKeyDictionary()


def _saveable(jaxpr: Jaxpr, policy: Policy | None) -> tuple[Var, ...]:
    """The results that the policy says to keep."""
    if policy is None:
        return ()
    return tuple(v for eqn in jaxpr.eqns
                 if policy(eqn.primitive, *(a.aval for a in eqn.invars), **eqn.params)
                 for v in eqn.outvars)


def _has_backward_rules(jaxpr: Jaxpr) -> bool:
    """Whether the program, or a body in it, calls a function with a custom_vjp rule."""
    return any(eqn.primitive is custom_vjp_call_p or any(map(_has_backward_rules, subjaxprs(eqn)))
               for eqn in jaxpr.eqns)


def _tangent_jaxpr(jaxpr: Jaxpr, active: tuple[bool, ...],
                   kept: tuple[Var, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    """(inputs, kept values, tangents of the active inputs) -> nonzero tangents of the outputs."""
    known = _push_cache.setdefault(jaxpr, {})
    key = (active, kept)
    if key not in known:
        known[key] = _make_tangent_jaxpr(jaxpr, active, kept)
    return known[key]


def _make_tangent_jaxpr(jaxpr: Jaxpr, active: tuple[bool, ...],
                        kept: tuple[Var, ...]) -> tuple[Jaxpr, tuple[bool, ...]]:
    n, m = len(jaxpr.invars), len(kept)
    nonzero: list[bool] = []

    def fun(*args: Any) -> list[Any]:
        saved = dict(zip(kept, args[n:n + m], strict=True))
        # linearized, since a loop that computes values and tangents alike could not be transposed
        trace = LinearizeTrace(get_trace())
        inputs = [trace.linear.new(tangent_aval(get_aval(p))) if a else None
                  for p, a in zip(args[:n], active, strict=True)]
        primals = [trace.join(p, t) for p, t in zip(args[:n], inputs, strict=True)]
        _, tangents, _ = trace.split(trace.run(_replay, jaxpr, primals, saved, trace))
        trace.alive = trace.linear.alive = False
        nonzero.extend(t is not None for t in tangents)
        derivative = LinearMap(trace.linear, inputs, tangents)
        return [t for t in derivative.forwards(args[n + m:]) if t is not None]

    avals = [*jaxpr.in_avals, *(v.aval for v in kept),
             *(tangent_aval(x) for x, a in zip(jaxpr.in_avals, active, strict=True) if a)]
    return prune_jaxpr(stage_closed(fun, avals, name=f"tangent_{jaxpr.name}")), tuple(nonzero)


def _replay(jaxpr: Jaxpr, inputs: Sequence[Any], saved: dict[Var, Any],
            trace: LinearizeTrace) -> list[Any]:
    """Evaluate `jaxpr`, with the kept values in place of those that would be recomputed."""
    env: dict[Var, Any] = dict(zip(jaxpr.invars, inputs, strict=True))
    sizes = known_sizes(jaxpr.in_avals, [get_aval(x).shape for x in inputs])

    def read(atom: Atom) -> Any:
        return atom.operand if isinstance(atom, Literal) else env[atom]

    outer = interpreted.source
    try:
        for eqn in jaxpr.eqns:
            interpreted.source = eqn.source
            params = {k: substitute(p, sizes) for k, p in eqn.params.items()} if sizes \
                else eqn.params
            outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
            for v, out in zip(eqn.outvars, outs if eqn.primitive.multiple_results else (outs,),
                              strict=True):
                learn_sizes(sizes, v.aval.shape, get_aval(out).shape)
                _, (tangent,), _ = trace.split((out,))
                env[v] = trace.join(saved[v], tangent) if v in saved else out
    finally:
        interpreted.source = outer
    return [read(v) for v in jaxpr.outvars]


@overload
def checkpoint(fun: Callable[P, R], *, prevent_cse: bool = True,
               policy: Policy | None = None, static_argnums: int | Sequence[int] = (),
               static_argnames: str | Sequence[str] = ()) -> Callable[P, R]: ...


@overload
def checkpoint(fun: None = None, *, prevent_cse: bool = True,
               policy: Policy | None = None, static_argnums: int | Sequence[int] = (),
               static_argnames: str | Sequence[str] = ()) -> SameDecorator: ...


def checkpoint(fun: Callable[..., Any] | None = None, *, prevent_cse: bool = True,
               policy: Policy | None = None, static_argnums: int | Sequence[int] = (),
               static_argnames: str | Sequence[str] = ()) -> Callable[..., Any]:
    """`fun`, but its inner values are recomputed in the backward pass instead of being kept.

    Arguments named by `static_argnums` or `static_argnames` are Python values of any kind.
    Raises StaticArgumentError where `fun` has no such argument.

    `policy(primitive, *avals, **params) -> bool` says of which operations the results are kept all
    the same (see `functrans.checkpoint_policies`); `prevent_cse` keeps compilers from merging the
    recomputation with the first computation. Without `fun`, returns a decorator.

    >>> import functrans as ft
    >>> float(ft.grad(ft.checkpoint(lambda x: ft.numpy.sin(ft.numpy.sin(x))))(0.0))
    1.0
    """
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy,
                                 static_argnums=static_argnums, static_argnames=static_argnames)
    check_callable(fun, "checkpoint")
    known = StaticArguments.of(fun, static_argnums, static_argnames, "checkpoint")

    @wraps(fun, "checkpoint")
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        static = {i % len(args) if i < 0 else i for i in known.argnums}
        named = {k: v for k, v in kwargs.items() if k in known.argnames}
        dynamic = tuple(a for i, a in enumerate(args) if i not in static)

        def call(given: Any, keywords: Any) -> Any:
            rest = iter(given)
            return fun(*[a if i in static else next(rest) for i, a in enumerate(args)],
                       **keywords, **named)

        def run(pure: Callable[..., Any], given: tuple[Any, ...]) -> Any:
            leaves, tree = flatten_args(given, "checkpoint")
            flat = FlatFunction(pure, tree, {}, "checkpoint")
            closed = stage(flat, [x.aval for x in leaves], name=name)
            outs = checkpoint_p.bind(*closed.consts, *leaves, jaxpr=closed.jaxpr.hoist_consts(),
                                     prevent_cse=prevent_cse, policy=policy)
            return tree_unflatten(flat.out_tree, outs)

        name = name_of(fun)
        given = dynamic, {k: v for k, v in kwargs.items() if k not in named}
        return with_cells_carried(run, call, given, name) if cells_in_use() else run(call, given)

    return checkpointed
