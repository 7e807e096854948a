"""Jitted functions that touch cells: a pure one, of what is in them and for what will be."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from functrans import _runtime
from functrans.core.cells import (
    FrameKind,
    RefCell,
    framed,
    own_cells,
    touched_by,
)
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, tree_flatten, tree_unflatten
from functrans.transforms.cells import kinds_of, refuse_twice, with_tokens
from functrans.transforms.jit.sizes import NamedSizes
from functrans.transforms.static import StaticArguments

if TYPE_CHECKING:
    from functrans.transforms.jit.calls import Calls, Jitted

T = TypeVar("T")

__all__ = ["CellCall", "OfCells"]


class CellCall:
    """The arguments of a call, with the cells among them."""

    def __init__(self, jitted: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        dynamic, self.fixed = jitted.static.split(args, kwargs)
        self.leaves, self.tree = tree_flatten(dynamic)
        places = tuple([i for i, x in enumerate(self.leaves) if isinstance(x, RefCell)])
        self.given = [self.leaves[i] for i in places]
        refuse_twice(self.given, f"jit of {jitted.name}")
        self.where = self.tree, self.fixed, places

    def arguments(self, cells: Sequence[RefCell], given: Sequence[RefCell]) -> tuple[Any, ...]:
        """The arguments of the pure function."""
        others = [x for x in self.leaves if not isinstance(x, RefCell)]
        return [c.value for c in cells], [c.value for c in given], others

    def run(self, program: Callable[..., Any], cells: Sequence[RefCell],
            given: Sequence[RefCell]) -> Any:
        """The result; cells have what the program says afterwards."""
        out, of_cells, of_given = program(*self.arguments(cells, given))
        for c, value in zip((*cells, *given), (*of_cells, *of_given), strict=True):
            if value is not None:
                c.value = value
        return out


class OfCells:
    """The calls of a jitted function while there are cells."""

    def __init__(self, jitted: Jitted, traces: object, calls: type[Calls]) -> None:
        self._jitted, self._owner, self._calls = jitted, traces, calls
        self._closed_over: dict[Any, list[RefCell]] = {}
        self._compiled: dict[Any, Callable[..., Any]] = {}

    def call(self, pure: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call, where `pure()` is one that touches none."""
        call = CellCall(self._jitted, args, kwargs)
        given = with_tokens(call.given)

        def run(cells: tuple[RefCell, ...]) -> Any:
            if not given and not cells:
                return pure()
            return call.run(self._program(call, given, cells), cells, given)

        return self._with_those_touched(call, run)

    def trace(self, make: Callable[[Any, Any], T], args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[T, CellCall, tuple[RefCell, ...]]:
        """`make(calls, arguments)` of the pure function, and what its calls are made of."""
        call = CellCall(self._jitted, args, kwargs)

        def run(cells: tuple[RefCell, ...]) -> tuple[T, CellCall, tuple[RefCell, ...]]:
            if not call.given and not cells:
                return make(None, (args, kwargs)), call, cells
            program = self._program(call, call.given, cells)
            return make(program.calls, (call.arguments(cells, call.given), {})), call, cells

        return self._with_those_touched(call, run)

    def _with_those_touched(self, call: CellCall,
                            run: Callable[[tuple[RefCell, ...]], T]) -> T:
        known = self._closed_over.setdefault(call.where, [])
        while True:
            cell, out = touched_by(self._owner, functools.partial(run, tuple(known)))
            if cell is None:
                return cast("T", out)
            if cell in call.given:
                raise ArgumentError(
                    f"jit of {self._jitted.name}: a reference is an argument, and closed over as "
                    "well.", where=user_source(),
                    why="a write into one would have to be seen in the other.")
            known.append(cell)

    def _program(self, call: CellCall, given: Sequence[RefCell],
                 cells: tuple[RefCell, ...]) -> Any:
        kinds = kinds_of(given)
        key = call.where, kinds, cells
        if key not in self._compiled:
            self._compiled[key] = self._made(call.where, cells, kinds)
        return self._compiled[key]

    def _made(self, where: tuple[PyTreeDef, Any, tuple[int, ...]],
              cells: tuple[RefCell, ...],
              kinds: Sequence[tuple[type[RefCell], int | None]]) -> Callable[..., Any]:
        jitted, (tree, fixed, places) = self._jitted, where
        fun = jitted.static.restore(jitted.fun, fixed)

        def pure(values: list[Any], given: list[Any], others: list[Any]) -> Any:
            with framed(FrameKind.PROGRAM, self._owner, jitted.name, cells, values) as last:
                inner = own_cells(kinds, given)
                rest, of_places = iter(others), dict(zip(places, inner, strict=False))
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
