"""Between user functions on pytrees and the flat functions that interpreters run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from functrans._runtime import ArrayBase, JitFunction
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, NonArrayError, hides_frames, shown
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.trace import Tracer
from functrans.core.tree import (
    PyTreeDef,
    tree_flatten,
    tree_flatten_with_path,
    tree_paths,
    tree_unflatten,
)

__all__ = ["FlatFunction", "adopt_attributes", "argument_name", "check_callable", "flatten_args",
           "name_of", "normalize_argnums", "parameter_names", "wraps"]

P = ParamSpec("P")
R = TypeVar("R")


class FlatFunction:
    """A function on pytrees as one on lists of leaves; `out_tree` is known once it has run.

    With `has_aux` the function returns a pair, and the second part goes to `aux`.
    """

    __slots__ = ("_fun", "_has_aux", "_in_tree", "_kwargs", "_what", "aux", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: PyTreeDef, kwargs: dict[str, Any],
                 what: str, has_aux: bool = False) -> None:
        self._fun = fun
        self._in_tree = in_tree
        self._kwargs = kwargs
        self._what = what
        self._has_aux = has_aux
        self.out_tree: Any = None
        self.aux: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        args = tree_unflatten(self._in_tree, leaves)
        out = self._fun(*args, **self._kwargs)
        if self._has_aux:
            out, self.aux = split_aux(out, self._what)
        outs, self.out_tree = tree_flatten(out)
        return [x if isinstance(x, (ArrayBase, Tracer)) else self._output(x, i)
                for i, x in enumerate(outs)]

    def _output(self, x: Any, index: int) -> Any:
        try:
            return to_array(x)
        except NonArrayError as error:
            path = keystr(tree_paths(self.out_tree)[index])
            raise NonArrayError(
                f"{self._what}: the function returned {shown(x)}, of type {type(x).__name__}"
                f"{path and ', at '}{path}.", where=error.where,
                why="the outputs of a function that is transformed are arrays and numbers.",
                fix="return arrays only, or pass other things out by has_aux=True") from None


def split_aux(out: Any, what: str) -> tuple[Any, Any]:
    """The pair that a function with has_aux=True must return."""
    if not isinstance(out, tuple) or len(out) != 2:
        got = f"a tuple of {len(out)}" if isinstance(out, tuple) else (
            str(out.aval) if isinstance(out, (ArrayBase, Tracer)) else shown(out))
        raise ArgumentError(f"{what}(..., has_aux=True) needs a function that returns a pair "
                            f"(output, auxiliary), got {got}.", fix="return loss, aux")
    return out


def flatten_args(args: Sequence[Any], what: str,
                 keywords: bool = False) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tuple of arguments, as arrays, and its structure.

    With `keywords` it is a pair of positional and keyword arguments.
    """
    leaves, tree = tree_flatten(tuple(args))
    try:
        return [x if isinstance(x, (ArrayBase, Tracer)) else to_array(x) for x in leaves], tree
    except TypeError:
        pass
    paths, _ = tree_flatten_with_path(tuple(args))
    for path, x in paths:
        if isinstance(x, RefCell):
            raise NonArrayError(
                f"{what}: {argument_name(path, keywords)} is a reference.", where=user_source(),
                why="it stands for a place, and this is a function of arrays.",
                fix="close over it: lambda x: f(x, ref); or make it inside: "
                    "lambda v: f(functrans.new_ref(v))")
    return [to_array(x, f"{what}: {argument_name(path, keywords)}") for path, x in paths], tree


def argument_name(path: Any, keywords: bool) -> str:
    """`argument 0`, `argument 1 at ['w']` or `keyword argument x`, for the path of a leaf."""
    named = keywords and str(path[0]) == "[1]"
    first, *rest = path[1:] if keywords else path
    inner = keystr(rest)
    return (f"{'keyword argument' if named else 'argument'} "
            f"{keystr([first], simple=True)}{inner and ' at '}{inner}")


def check_callable(fun: Any, what: str) -> None:
    if not callable(fun):
        raise ArgumentError(f"{what} takes a function, got {shown(fun)} of type "
                            f"{type(fun).__name__}.", fix=f"{what}(fun)(x), not {what}(fun(x))"
                            if isinstance(fun, (ArrayBase, Tracer, float, int)) else "")


def name_of(fun: Any) -> str:
    """What to call a function in messages and printed programs."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None)
    return name if isinstance(name, str) else type(fun).__name__


def parameter_names(fun: Any) -> str:
    """`w, x, *rest`: the parameters of a function, `...` where Python does not know them."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return "..."
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*",
                             inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join([stars.get(p.kind, "") + p.name for p in parameters])


def wraps(fun: Callable[..., Any], what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """functools.wraps for any callable, with the transform's name in front of the function's.

    What is raised by the function, or by the transform, shows no frames of the package.
    """
    def decorate(wrapper: Callable[P, R]) -> Callable[P, R]:
        outer = hides_frames(wrapper)
        adopt_attributes(outer, fun)
        outer.__name__ = f"{what}_{name_of(fun)}"
        return outer
    return decorate


_TYPES = {"__name__": str, "__qualname__": str, "__annotations__": dict}
_NAMES = frozenset(("__wrapped__", *functools.WRAPPER_ASSIGNMENTS))
_OF_JIT = frozenset(("calls", "trace", "lower", "clear_cache", "eval_shape",
                     "_reduce"))


def adopt_attributes(wrapper: Any, fun: Callable[..., Any]) -> None:
    """functools.update_wrapper, without what `jit` gave a function that it compiled.

    A name that is no text, which objects of libraries may have, is left out.
    """
    own = getattr(fun, "__dict__", {})
    assigned = [name for name in functools.WRAPPER_ASSIGNMENTS
                if name not in own or isinstance(own[name], _TYPES.get(name, object))]
    functools.update_wrapper(wrapper, fun, assigned, updated=())
    compiled = isinstance(fun, JitFunction)
    for name, value in own.items():
        if name not in _NAMES and not (compiled and name in _OF_JIT):
            setattr(wrapper, name, value)


def normalize_argnums(argnums: Any, count: int, what: str) -> tuple[int, ...]:
    """Positions of positional arguments as non-negative ints."""
    given = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
    result = []
    for i in given:
        if not isinstance(i, int):
            raise ArgumentError(f"{what}: argnums must be an int or a tuple of ints, got "
                                f"{argnums!r}.")
        if not -count <= i < count:
            raise ArgumentError(
                f"{what}: argnums={argnums} names argument {i}, but the call has {count} "
                "positional arguments.", why="keyword arguments are not differentiated.",
                fix="pass the argument by position")
        result.append(i % count)
    if len(set(result)) != len(result):
        raise ArgumentError(f"{what}: argnums={argnums} names one argument twice.")
    return tuple(result)


