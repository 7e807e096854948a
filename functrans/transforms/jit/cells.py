"""Jitted functions that touch cells: a pure one, of what is in them and for what will be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functrans import _runtime
from functrans.core.cells import FrameKind, RefCell, framed, touched_by
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.transforms.jit.sizes import NamedSizes
from functrans.transforms.static import StaticArguments

if TYPE_CHECKING:
    from functrans.transforms.jit.calls import Calls, Jitted

__all__ = ["OfCells"]


class OfCells:
    """The calls of a jitted function while there are cells."""

    def __init__(self, jitted: Jitted, traces: object, calls: type[Calls]) -> None:
        self._jitted, self._owner, self._calls = jitted, traces, calls
        self._closed_over: dict[Any, list[RefCell]] = {}
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def call(self, pure: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call, where `pure()` is one that touches none."""
        jitted = self._jitted
        dynamic, fixed = jitted.static.split(args, kwargs)
        leaves, tree = tree_flatten(dynamic)
        places = tuple([i for i, x in enumerate(leaves) if isinstance(x, RefCell)])
        given = [leaves[i] for i in places]
        if len(set(given)) < len(given):
            raise ArgumentError(f"jit of {jitted.name}: one reference is two of its arguments.",
                                where=user_source(),
                                why="a write into one would have to be seen in the other.")
        where = tree, fixed, places
        known = self._closed_over.setdefault(where, [])
        while True:
            run = self._program(where, known, given, leaves) if places or known else pure
            cell, out = touched_by(self._owner, run)
            if cell is None:
                return out
            if cell in given:
                raise ArgumentError(
                    f"jit of {jitted.name}: a reference is an argument, and closed over as well.",
                    where=user_source(),
                    why="a write into one would have to be seen in the other.")
            known.append(cell)

    def _program(self, where: Any, known: Sequence[RefCell], given: Sequence[RefCell],
                 leaves: Sequence[Any]) -> Callable[[], Any]:
        cells = tuple(known)
        key = where, cells
        if key not in self._compiled:
            self._compiled[key] = self._made(where, cells, [type(c) for c in given])
        compiled, places = self._compiled[key], where[2]

        def run() -> Any:
            others = [x for i, x in enumerate(leaves) if i not in places]
            out, of_cells, of_given = compiled([c.value for c in cells], [c.value for c in given],
                                               others)
            for c, value in zip((*cells, *given), (*of_cells, *of_given), strict=True):
                if value is not None:
                    c.value = value
            return out

        return run

    def _made(self, where: tuple[PyTreeDef, Any, tuple[int, ...]], cells: tuple[RefCell, ...],
              classes: Sequence[type[RefCell]]) -> Callable[..., Any]:
        jitted, (tree, fixed, places) = self._jitted, where
        fun = jitted.static.restore(jitted.fun, fixed)

        def pure(values: list[Any], given: list[Any], others: list[Any]) -> Any:
            with framed(FrameKind.PROGRAM, self._owner, jitted.name, cells, values) as last:
                inner = [cls(x) for cls, x in zip(classes, given, strict=True)]
                rest, of_places = iter(others), dict(zip(places, inner, strict=True))
                args, kwargs = tree_unflatten(tree, [
                    of_places[i] if i in of_places else next(rest)
                    for i in range(tree.num_leaves)])
                out = fun(*args, **kwargs)
                return (out, _changed(last(), values), _changed([c.value for c in inner], given))

        pure.__name__ = jitted.name
        static = StaticArguments.of(pure, None, None)
        calls = self._calls(dataclasses.replace(
            jitted, fun=pure, static=static, donate=(), require_inplace=False,
            named=NamedSizes(None, static)))
        call: Any = _runtime.JitFunction(calls.miss, (), ())
        call.__name__ = jitted.name
        call.calls = calls
        return call  # type: ignore[no-any-return]


def _changed(values: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """None for what nobody wrote into."""
    return [None if x is y else x for x, y in zip(values, before, strict=True)]
