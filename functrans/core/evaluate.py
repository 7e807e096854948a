"""Running jaxprs: through the current trace (`eval_jaxpr`) or on NumPy arrays (`NumPyProgram`).

`NumPyProgram` is the reference: each equation becomes one call of its primitive's NumPy evaluation,
and a value is dropped after its last use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import dtypes
from functrans.core.avals import get_aval
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.prune import prune_jaxpr
from functrans.core.sizes import learn_sizes, learned_names, substitute
from functrans.core.source import GENERATED, Source, interpreted

__all__ = ["NumPyProgram", "eval_jaxpr", "interpret", "program_of", "resolve"]


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Apply the equations of `jaxpr` in the current trace; values are arrays or tracers."""
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    outer = interpreted.source
    try:
        if jaxpr.size_names:
            return _eval_symbolic(jaxpr, env, outer)
        return _eval(jaxpr, env, outer)
    finally:
        interpreted.source = outer


def _eval(jaxpr: Jaxpr, env: dict[Var, Any], source: Source | None) -> list[Any]:
    at = interpreted
    for eqn in jaxpr.eqns:
        at.source = eqn.source or source
        ins = [a.operand if type(a) is Literal else env[a] for a in eqn.invars]
        outs = eqn.primitive.bind(*ins, **eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, outs, strict=True))
        else:
            env[eqn.outvars[0]] = outs
    return [a.operand if type(a) is Literal else env[a] for a in jaxpr.outvars]


def _eval_symbolic(jaxpr: Jaxpr, env: dict[Var, Any], source: Source | None) -> list[Any]:
    """`eval_jaxpr` where sizes have names: these stand for what the values at hand have."""
    sizes: dict[str, Any] = {}
    for var, x in env.items():
        learn_sizes(sizes, var.aval.shape, get_aval(x).shape)
    for eqn in jaxpr.eqns:
        interpreted.source = eqn.source or source
        ins = [a.operand if type(a) is Literal else env[a] for a in eqn.invars]
        params = {k: substitute(v, sizes) for k, v in eqn.params.items()} if sizes else eqn.params
        outs = eqn.primitive.bind(*ins, **params)
        for var, x in zip(eqn.outvars, outs if eqn.primitive.multiple_results else (outs,),
                          strict=True):
            env[var] = x
            learn_sizes(sizes, var.aval.shape, get_aval(x).shape)
    return [a.operand if type(a) is Literal else env[a] for a in jaxpr.outvars]


class NumPyProgram:
    """A jaxpr made ready to run on NumPy arrays, again and again.

    With known sizes it is one straight-line Python function (a step costs 0.1 us more than the call
    of its NumPy function; a loop over steps cost 0.6 us). With named sizes, which change from run
    to run, it is a loop that learns them on the way.
    """

    __slots__ = ("_quiet", "run")

    def __init__(self, jaxpr: Jaxpr) -> None:
        jaxpr = prune_jaxpr(jaxpr)
        self._quiet = not jaxpr.eqns
        self.run: Callable[[Sequence[Any]], list[Any]] = (
            partial(_run_symbolic, jaxpr) if jaxpr.size_names else _straight_line(jaxpr))

    def __call__(self, args: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Evaluate on constants followed by inputs; all are NumPy arrays."""
        if self._quiet:
            return self.run(args)
        with np.errstate(all="ignore"):
            return self.run(args)


def _straight_line(jaxpr: Jaxpr) -> Callable[[Sequence[Any]], list[Any]]:
    """The program as a Python function of a list of arrays; values die after their last use."""
    scope: dict[str, Any] = {"asarray": np.asarray, "__name__": __name__}
    names: dict[Var, str] = {}

    def read(atom: Atom) -> str:
        if isinstance(atom, Literal):
            name = f"literal{len(scope)}"
            scope[name] = np.asarray(atom.value)
            return name
        return names[atom]

    def write(var: Var) -> str:
        names[var] = f"v{len(names)}"
        return names[var]

    last_use = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars}
    outs = set(jaxpr.outvars)
    inputs = [write(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
    lines = [f"{', '.join(inputs)}, = args"] if inputs else []
    for i, eqn in enumerate(jaxpr.eqns):
        ins = ", ".join(map(read, eqn.invars))
        results = ", ".join(map(write, eqn.outvars))
        if eqn.primitive.multiple_results:
            results = f"[{results}]"
        scope[f"f{i}"] = _runner(eqn.primitive, eqn.invars)
        params = ""
        if eqn.params:
            scope[f"p{i}"] = _with_source(eqn, dict(eqn.params))
            params = f", **p{i}" if ins else f"**p{i}"
        lines.append(f"{results} = f{i}({ins}{params})")
        dead = [v for v in (*eqn.invars, *eqn.outvars)
                if isinstance(v, Var) and v not in outs and last_use.get(v, i) == i]
        if dead:
            lines.append(f"del {', '.join(dict.fromkeys(names[v] for v in dead))}")
    lines.append(f"return [{', '.join(f'asarray({read(a)})' for a in jaxpr.outvars)}]")
    source = "def run(args):\n    " + "\n    ".join(lines)
    exec(compile(source, GENERATED, "exec"), scope)
    run: Callable[[Sequence[Any]], list[Any]] = scope["run"]
    return run


def _run_symbolic(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    env: dict[Atom, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))
    last_use = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.invars}
    outs = set(jaxpr.outvars)
    sizes: dict[str, Any] = {}
    for var, x in env.items():
        learn_sizes(sizes, var.aval.shape, np.shape(x))
    for i, eqn in enumerate(jaxpr.eqns):
        ins = [np.asarray(a.value) if isinstance(a, Literal) else env[a] for a in eqn.invars]
        params = _with_source(eqn, {k: resolve(v, sizes) for k, v in eqn.params.items()})
        result = _runner(eqn.primitive, eqn.invars)(*ins, **params)
        for var, x in zip(eqn.outvars, result if eqn.primitive.multiple_results else (result,),
                          strict=True):
            env[var] = x
            learn_sizes(sizes, var.aval.shape, np.shape(x))
        for v in (*eqn.invars, *eqn.outvars):
            if v not in outs and last_use.get(v, i) == i:
                env.pop(v, None)
    return [np.asarray(a.value if isinstance(a, Literal) else env[a]) for a in jaxpr.outvars]


def _with_source(eqn: Equation, params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "source": eqn.source} if eqn.primitive.tells_source else params


def resolve(value: Any, sizes: dict[str, Any]) -> Any:
    """A parameter with the known sizes put in; a body learns what it can from its own inputs."""
    if isinstance(value, Jaxpr):
        missing = value.size_names - learned_names(value.in_avals)
        return substitute(value, {k: v for k, v in sizes.items() if k in missing})
    if type(value) is tuple:
        return tuple([resolve(v, sizes) for v in value])
    return substitute(value, sizes)


def _runner(primitive: Any, invars: Sequence[Atom]) -> Any:
    if primitive.widens_halves and any(dtypes.is_narrow(a.aval.dtype) for a in invars):
        return primitive.run
    return primitive.evaluate


_programs: WeakKeyDictionary[Jaxpr, NumPyProgram] = WeakKeyDictionary()


def program_of(jaxpr: Jaxpr) -> NumPyProgram:
    """The program of `jaxpr`, made once."""
    program = _programs.get(jaxpr)
    if program is None:
        program = _programs[jaxpr] = NumPyProgram(jaxpr)
    return program


def interpret(jaxpr: Jaxpr, args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Evaluate a jaxpr without constants on NumPy arrays."""
    arrays = [a._np if isinstance(a, ArrayBase) else np.asarray(a) for a in args]
    return program_of(jaxpr)(arrays)
