"""Running jaxprs: through the current trace (`eval_jaxpr`) or on NumPy arrays (`Program`).

`Program` is the reference: each equation becomes one call of its primitive's NumPy evaluation, and
a value is dropped after its last use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.jaxpr import Atom, Jaxpr, Literal, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.sizes import learn_sizes, learned_names, substitute

__all__ = ["Program", "eval_jaxpr", "interpret", "program_of"]


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply the equations of `jaxpr` in the current trace; values are arrays or tracers."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    if jaxpr.size_names:
        return _eval_symbolic(jaxpr, env)
    for eqn in jaxpr.eqns:
        ins = [a.value if type(a) is Literal else env[a] for a in eqn.invars]  # type: ignore[index]
        outs = eqn.primitive.bind(*ins, **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outs, strict=True))
        else:
            env[eqn.outvars[0]] = outs
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]  # type: ignore[index]


def _eval_symbolic(jaxpr: Jaxpr, env: dict[Var, Any]) -> list[Any]:
    """`eval_jaxpr` where sizes have names: these stand for what the values at hand have."""
    sizes: dict[str, Any] = {}
    for var, x in env.items():
        learn_sizes(sizes, var.aval.shape, get_aval(x).shape)
    for eqn in jaxpr.eqns:
        ins = [a.value if type(a) is Literal else env[a] for a in eqn.invars]  # type: ignore[index]
        params = {k: substitute(v, sizes) for k, v in eqn.params.items()} if sizes else eqn.params
        outs = eqn.primitive.bind(*ins, **params)
        for var, x in zip(eqn.outvars, outs if eqn.primitive.multiple_results else (outs,),
                          strict=True):
            env[var] = x
            learn_sizes(sizes, var.aval.shape, get_aval(x).shape)
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]  # type: ignore[index]


class Program:
    """A jaxpr made ready to run on NumPy arrays, again and again."""

    __slots__ = ("_in_slots", "_literals", "_out_slots", "_shapes", "_size", "_steps")

    def __init__(self, jaxpr: Jaxpr) -> None:
        jaxpr = prune_jaxpr(jaxpr)
        slots: dict[Var, int] = {}
        literals: list[tuple[int, Any]] = []

        def slot(atom: Atom) -> int:
            if isinstance(atom, Literal):
                literals.append((len(slots) + len(literals), np.asarray(atom.value)))
                return literals[-1][0]
            if atom not in slots:
                slots[atom] = len(slots) + len(literals)
            return slots[atom]

        self._in_slots = [slot(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
        self._shapes: dict[int, Any] | None = {} if jaxpr.size_names else None
        if self._shapes is not None:
            for v in (*jaxpr.constvars, *jaxpr.invars, *(v for e in jaxpr.eqns for v in e.outvars)):
                self._shapes[slot(v)] = v.aval.shape
        last_use: dict[int, int] = {}
        ins_of = []
        for i, eqn in enumerate(jaxpr.eqns):
            ins = [slot(a) for a in eqn.invars]
            ins_of.append(ins)
            last_use.update((s, i) for s in ins)
        self._out_slots = [slot(a) for a in jaxpr.outvars]
        kept = set(self._out_slots) | {s for s, _ in literals}
        self._steps = []
        for i, eqn in enumerate(jaxpr.eqns):
            outs = [slot(v) for v in eqn.outvars]
            dead = {s for s in ins_of[i] if last_use[s] == i and s not in kept}
            dead.update(s for s in outs if s not in last_use and s not in kept)
            self._steps.append((_runner(eqn.primitive, eqn.invars), ins_of[i], outs,
                                eqn.primitive.multiple_results, dict(eqn.params), tuple(dead)))
        self._literals = literals
        self._size = len(slots) + len(literals)

    def __call__(self, args: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Evaluate on constants followed by inputs; all are NumPy arrays."""
        with np.errstate(all="ignore"):
            return self.run(args)

    def run(self, args: Sequence[Any]) -> list[Any]:
        """`__call__` for callers who have silenced NumPy's warnings already."""
        env: list[Any] = [None] * self._size
        for s, value in self._literals:
            env[s] = value
        for s, value in zip(self._in_slots, args, strict=True):
            env[s] = value
        sizes: dict[str, Any] = {}
        if self._shapes is not None:
            for s in self._in_slots:
                self._learn(sizes, s, env[s])
        for run, ins, outs, many, params, dead in self._steps:
            if self._shapes is not None:
                params = {k: _resolve(v, sizes) for k, v in params.items()}
            result = run(*[env[s] for s in ins], **params)
            if many:
                for s, r in zip(outs, result, strict=True):
                    env[s] = r
            else:
                env[outs[0]] = result
            if self._shapes is not None:
                for s in outs:
                    self._learn(sizes, s, env[s])
            for s in dead:
                env[s] = None
        return [np.asarray(env[s]) for s in self._out_slots]

    def _learn(self, sizes: dict[str, Any], slot: int, value: Any) -> None:
        assert self._shapes is not None
        learn_sizes(sizes, self._shapes.get(slot, ()), np.shape(value))


def _resolve(value: Any, sizes: dict[str, Any]) -> Any:
    """A parameter with the known sizes put in; a body learns what it can from its own inputs."""
    if isinstance(value, Jaxpr):
        missing = value.size_names - learned_names(value.in_avals)
        return substitute(value, {k: v for k, v in sizes.items() if k in missing})
    if type(value) is tuple:
        return tuple([_resolve(v, sizes) for v in value])
    return substitute(value, sizes)


def _runner(primitive: Any, invars: Sequence[Atom]) -> Any:
    if primitive.widens_halves and any(dtypes.is_half(a.aval.dtype) for a in invars):
        return primitive.run
    return primitive.evaluate


_programs: WeakKeyDictionary[Jaxpr, Program] = WeakKeyDictionary()


def program_of(jaxpr: Jaxpr) -> Program:
    """The program of `jaxpr`, made once."""
    program = _programs.get(jaxpr)
    if program is None:
        program = _programs[jaxpr] = Program(jaxpr)
    return program


def interpret(jaxpr: Jaxpr, args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Evaluate a jaxpr without constants on NumPy arrays."""
    arrays = [a._np if isinstance(a, ArrayBase) else np.asarray(a) for a in args]
    return program_of(jaxpr)(arrays)
