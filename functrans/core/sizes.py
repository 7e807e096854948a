"""Symbolic sizes in programs: learning them from values, and putting them in.

A size is either given with the inputs of a program or decided by one of its operations (a loop that
records every iteration). Whoever runs a program learns both from the values it meets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim, Shape, Size
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var

__all__ = ["known_sizes", "learn_sizes", "learned_names", "renamed_sizes", "shape_names",
           "substitute", "substitute_jaxpr"]


def shape_names(shapes: Sequence[Shape]) -> frozenset[str]:
    """The names of all sizes in some shapes."""
    return frozenset(name for shape in shapes for size in shape if isinstance(size, Dim)
                     for name in size.names())


def learned_names(avals: Sequence[ShapedArray]) -> frozenset[str]:
    """The names of sizes that the shapes of values of these types tell."""
    return frozenset(size.name for a in avals for size in a.shape
                     if isinstance(size, Dim) and size.is_name)


def learn_sizes(sizes: dict[str, Any], shape: Shape, actual: Sequence[Size]) -> None:
    """Note the actual size of every named one that is new or has another name there.

    Of an expression, `n - 1` say, the one name that is not known yet is solved for.
    """
    for size, value in zip(shape, actual, strict=False):
        if not isinstance(size, Dim) or size == value:
            continue
        if size.is_name:
            sizes.setdefault(size.name, value)
        elif isinstance(value, int):
            unknown = size.names() - sizes.keys()
            if len(unknown) == 1:
                solution = _solve(size.substitute(sizes), value, next(iter(unknown)))
                if solution is not None:
                    sizes[next(iter(unknown))] = solution


def _solve(size: Size, value: int, name: str) -> int | None:
    """The int that `name` must be where the expression `size` is `value`, if there is just one."""
    import sympy  # noqa: PLC0415  lazy: only expressions of symbolic sizes get here

    assert isinstance(size, Dim)
    symbol = next(s for s in size.expr.free_symbols if str(s) == name)
    roots = sympy.solve(size.expr - value, symbol)
    return int(roots[0]) if len(roots) == 1 and roots[0].is_Integer else None


def known_sizes(avals: Sequence[ShapedArray], shapes: Sequence[Sequence[Size]]) -> dict[str, Any]:
    """The sizes that values of `shapes` give to the names in their types."""
    sizes: dict[str, Any] = {}
    for aval, shape in zip(avals, shapes, strict=True):
        learn_sizes(sizes, aval.shape, shape)
    return sizes


def substitute(value: Any, sizes: Mapping[str, Any]) -> Any:
    """A parameter of an operation with the known sizes put in, bodies included."""
    if isinstance(value, (Dim, ShapedArray)):
        return value.substitute(sizes)
    if isinstance(value, Jaxpr):
        return substitute_jaxpr(value, sizes)
    if type(value) is tuple:
        return tuple([substitute(v, sizes) for v in value])
    return value


_cache: WeakKeyDictionary[Jaxpr, dict[Any, Jaxpr]] = WeakKeyDictionary()


def substitute_jaxpr(jaxpr: Jaxpr, sizes: Mapping[str, Any]) -> Jaxpr:
    """The same program for the known sizes; sizes that it decides itself keep their names."""
    names = jaxpr.size_names - jaxpr.decided_names
    relevant = {name: sizes[name] for name in names if name in sizes}
    if not relevant:
        return jaxpr
    known = _cache.setdefault(jaxpr, {})
    key = frozenset(relevant.items())
    if key not in known:
        known[key] = _substitute_jaxpr(jaxpr, relevant)
    return known[key]


def renamed_sizes(jaxpr: Jaxpr, names: Mapping[str, Size]) -> Jaxpr:
    """The same program with other names for some sizes, those that it decides included."""
    return _substitute_jaxpr(jaxpr, names) if names else jaxpr


def _substitute_jaxpr(jaxpr: Jaxpr, sizes: Mapping[str, Any]) -> Jaxpr:
    env: dict[Var, Var] = {}

    def read(atom: Atom) -> Atom:
        return atom if isinstance(atom, Literal) else env[atom]

    def write(var: Var) -> Var:
        env[var] = Var(var.aval.substitute(sizes))
        return env[var]

    constvars = tuple([write(v) for v in jaxpr.constvars])
    invars = tuple([write(v) for v in jaxpr.invars])
    eqns = []
    for eqn in jaxpr.eqns:
        params = {key: substitute(value, sizes) for key, value in eqn.params.items()}
        ins = tuple([read(a) for a in eqn.invars])
        eqns.append(Equation(eqn.primitive, ins, tuple([write(v) for v in eqn.outvars]), params,
                             eqn.source))
    return Jaxpr(constvars, invars, tuple(eqns), tuple([read(a) for a in jaxpr.outvars]),
                 name=jaxpr.name)
