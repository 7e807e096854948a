"""What the backward pass of a function keeps: by type, name and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import HigherOrder
from functrans.core.source import describe_source
from functrans.inspect.names import input_names
from functrans.primitives.barrier import checkpoint_name_p
from functrans.transforms.flat import check_callable
from functrans.transforms.jit.api import jit
from functrans.transforms.linearize import linearize_jaxpr
from functrans.transforms.tangents import is_differentiable
from functrans.typing import PyTree

__all__ = ["print_saved_residuals", "saved_residuals"]


def saved_residuals(f: Callable[..., Any], *args: PyTree,
                    **kwargs: PyTree) -> list[tuple[ShapedArray, str]]:
    """The type and the origin of each value that the backward pass of `f` gets from the forward.

    Each value is there once. What compiled programs keep may be less: they compute again what costs
    less than memory.

    >>> import functrans as ft
    >>> x = ft.ShapeDtypeStruct((3,), "float32")
    >>> for aval, origin in saved_residuals(lambda x: ft.numpy.sin(x) * x, x):
    ...     print(aval, origin.partition(" at ")[0])
    f32[3] output of cos
    f32[3] from the argument x
    f32[3] output of sin
    """
    check_callable(f, "saved_residuals")
    lowered = jit(f).trace(*args, **kwargs).lower()
    jaxpr = lowered.jaxpr
    names = input_names(lowered, f, args)
    constants = len(names) - lowered.in_tree.num_leaves
    split = linearize_jaxpr(jaxpr, [i >= constants and is_differentiable(a)
                                    for i, a in enumerate(jaxpr.in_avals)])
    saved = iter(split.primal.outvars[len(jaxpr.outvars):])
    found: dict[Any, tuple[ShapedArray, str]] = {}
    for place in split.forwarded:
        atom = split.primal.invars[place] if place is not None else next(saved)
        if isinstance(atom, Var):
            found.setdefault(atom, (atom.aval, _origin(split.primal, atom, names)))
    return list(found.values())


def print_saved_residuals(f: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> None:
    """Print what the backward pass of `f` keeps, a line for each value.

    >>> import functrans as ft
    >>> print_saved_residuals(ft.checkpoint(lambda x: ft.numpy.sin(ft.numpy.sin(x))), 1.0)
    f32[] from the argument x
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(aval, origin)


def _origin(jaxpr: Jaxpr, var: Any, names: list[str]) -> str:
    """Where a value of a program comes from, in words."""
    if var in jaxpr.invars:
        name = names[jaxpr.invars.index(var)]
        return f"from {'a constant' if name.startswith('constant ') else f'the argument {name}'}"
    eqn = _producer(jaxpr, var)
    if isinstance(eqn, Var):  # a body that hands an operand on
        return _origin(jaxpr, eqn, names)
    if eqn is None:
        return "of a constant"
    where = describe_source(eqn.source) if eqn.source is not None else ""
    what = f"named {eqn.params['name']!r}" if eqn.primitive is checkpoint_name_p \
        else f"output of {eqn.primitive.name}"
    return f"{what}{where and ' '}{where}"


def _producer(jaxpr: Jaxpr, var: Any) -> Any:
    """The equation that makes a value, within the bodies of calls; or the variable it is."""
    eqn = next((e for e in jaxpr.eqns if var in e.outvars), None)
    if eqn is None or not isinstance(eqn.primitive, HigherOrder) or eqn.primitive.called is None:
        return eqn
    body, operands = eqn.primitive.called(eqn.invars, **eqn.params)
    inner = body.outvars[eqn.outvars.index(var)]
    if not isinstance(inner, Var):
        return None
    if inner in body.invars:
        operand = operands[body.invars.index(inner)]
        return _outer(jaxpr, operand)
    found = _producer(body, inner)
    if isinstance(found, Var):
        return _outer(jaxpr, operands[body.invars.index(found)])
    return found


def _outer(jaxpr: Jaxpr, operand: Any) -> Equation | Var | None:
    """Where an operand of a call comes from in the program around it."""
    if not isinstance(operand, Var):
        return None
    found: Equation | Var | None = operand if operand in jaxpr.invars \
        else _producer(jaxpr, operand)
    return found
