"""Functions of many operations, outside of `jit`: the second call with arguments of some types
makes a program of what NumPy evaluates, which the following ones run.

An operation that is evaluated by itself costs 1 to 5 us besides its arithmetic: the checks of the
Python code that composes it, its type rule, and an array around its result. The program has the
same evaluations in the same order, so that results have the same bits, and is not compiled: it
takes half a millisecond to make. Traces, so derivatives and maps, see the function itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from functrans._runtime import ArrayBase, get_trace, wrap
from functrans.core import config
from functrans.core.avals import get_aval
from functrans.core.cuda import gpu_of
from functrans.core.dtypes import float0
from functrans.core.eager import HOST
from functrans.core.evaluate import NumPyProgram
from functrans.core.jaxpr import Equation
from functrans.core.prune import has_effects
from functrans.core.recording import recorder
from functrans.core.staging import StageTrace, stage_in
from functrans.core.tree import LEAF, PyTreeDef, tree_flatten, tree_unflatten

__all__ = ["composite"]

P = ParamSpec("P")
R = TypeVar("R")

KEPT: Final = 2048
"""Calls of different types that are remembered, of all functions together."""
LONGEST: Final = 16
"""Items of a sequence among the arguments: longer ones are data."""
EQUAL_BY_VALUE: Final = frozenset((bool, int, str, type(None), type(Ellipsis), type))
SEEN: Final = object()
"""In the place of a program: one call came, and another one is worth making it."""


@dataclass(frozen=True, slots=True)
class EagerProgram:
    """What evaluates a function on arrays of some types."""

    run: NumPyProgram
    consts: list[Any]
    dtypes: list[np.dtype[Any]]
    weak: list[bool]
    out_tree: PyTreeDef

    def __call__(self, arrays: Sequence[Any]) -> Any:
        # a result may be a view of an argument: not of an array that somebody may write into
        given = [x._np if isinstance(x, ArrayBase) else np.array(x, d)
                 for x, d in zip(arrays, self.dtypes, strict=True)]
        outs = [wrap(o, w) for o, w in zip(self.run([*self.consts, *given]), self.weak,
                                           strict=True)]
        return outs[0] if self.out_tree == LEAF else tree_unflatten(self.out_tree, outs)


_programs: Final[dict[Any, Any]] = {}


def composite(fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, for calls in a row outside of all traces by a program of what NumPy evaluates.

    Arguments are arrays, numbers, texts, dtypes, and sequences of these; a call with others, and a
    function that asks for values, is what it is. The function must return arrays alone.

    >>> double_sum = composite(lambda x, y: 2 * (x + y))
    >>> [double_sum(ft.numpy.arange(2), 1).tolist() for _ in range(3)]
    [[2, 4], [2, 4], [2, 4]]
    """
    @functools.wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if get_trace() is not None:
            return fun(*args, **kwargs)
        arrays: list[Any] = []
        settings = config.current()
        key: list[Any] = [fun, settings]
        try:
            for x in args:
                _add(x, key, arrays)
            for name, x in kwargs.items():
                key.append(name)
                _add(x, key, arrays)
            found = _programs.get(at := tuple(key))
        except TypeError:  # of another kind, or an argument that has no hash
            return fun(*args, **kwargs)
        if type(found) is EagerProgram:
            result: R = found(arrays)
            return result
        if found is SEEN and arrays and gpu_of(()) is None and recorder() is None \
                and not settings.disable_jit and not settings.checks:
            program = _programs[at] = _program(fun, args, kwargs, arrays)
            if program is not None:
                return program(arrays)  # type: ignore[no-any-return]
        elif at not in _programs:
            if len(_programs) >= KEPT:
                with suppress(RuntimeError, StopIteration):  # another thread changes it
                    _programs.pop(next(iter(_programs)), None)
            _programs[at] = SEEN
        return fun(*args, **kwargs)

    return call


def _add(x: Any, key: list[Any], arrays: list[Any]) -> None:
    """Say in a key of what type an argument is, or which value it has, if it is no array."""
    kind = type(x)
    if isinstance(x, ArrayBase):
        if x._place not in HOST:
            raise TypeError
        key += (x.shape, x.dtype, x.weak_type)
        arrays.append(x)
    elif kind is np.ndarray:
        key += (kind, x.shape, x.dtype)
        arrays.append(x)
    elif kind in EQUAL_BY_VALUE or isinstance(x, np.dtype):
        key += (kind, x)
    elif kind is float:
        key += (kind, x, math.copysign(1.0, x))
    elif (kind is tuple or kind is list) and len(x) <= LONGEST:
        key += (kind, len(x))
        for item in x:
            _add(item, key, arrays)
    else:
        raise TypeError


def _program(fun: Callable[..., Any], args: Any, kwargs: Any,
             arrays: Sequence[Any]) -> EagerProgram | None:
    """What evaluates the function; None where that could be another than what it does itself."""
    trees: list[PyTreeDef] = []

    def flat(*leaves: Any) -> list[Any]:
        rest = iter(leaves)
        outs, tree = tree_flatten(fun(*_refilled(args, rest), **{
            name: _refilled(x, rest) for name, x in kwargs.items()}))
        trees.append(tree)
        return outs

    trace = StageTrace(None, getattr(fun, "__name__", "fn"))
    try:
        closed = stage_in(trace, flat, list(map(get_aval, arrays)))
    except Exception:
        return None  # the function itself says what is wrong
    jaxpr = closed.jaxpr
    # what no equation makes is an argument, a constant or no array at all
    made = {v for eqn in jaxpr.eqns for v in eqn.outvars}
    if trace.asked_for_values or jaxpr.size_names or not made.issuperset(jaxpr.outvars) \
            or any(map(_is_for_others, jaxpr.eqns)) \
            or any(a.dtype == float0 for a in jaxpr.out_avals):
        return None
    consts = [x._np if isinstance(x, ArrayBase) else np.asarray(x) for x in closed.consts]
    dtypes, weak = [a.dtype for a in jaxpr.in_avals], [a.weak_type for a in jaxpr.out_avals]
    program = EagerProgram(NumPyProgram(jaxpr), consts, dtypes, weak, trees[-1])
    return None if _shares(program, arrays) else program


def _refilled(x: Any, leaves: Iterator[Any]) -> Any:
    """An argument with tracers in place of arrays."""
    if isinstance(x, (ArrayBase, np.ndarray)):
        return next(leaves)
    if type(x) is tuple or type(x) is list:
        return type(x)([_refilled(item, leaves) for item in x])
    return x


def _is_for_others(eqn: Equation) -> bool:
    """Whether an equation acts on the world, or is evaluated by a compiled program."""
    return has_effects(eqn) or eqn.primitive.compiles


def _shares(program: EagerProgram, arrays: Sequence[Any]) -> bool:
    """Whether results are in the memory of constants, which belong to the program."""
    if not program.consts:
        return False
    outs = program.run([*program.consts, *[x._np if isinstance(x, ArrayBase) else np.asarray(x, d)
                                           for x, d in zip(arrays, program.dtypes, strict=True)]])
    return any(np.may_share_memory(o, c) for o in outs for c in program.consts)
