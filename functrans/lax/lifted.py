"""Loops and branches whose functions touch cells: these are carried, or results of each branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.cells import FrameKind, RefCell, framed, lifting
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.transforms.flat import adopt_attributes

__all__ = ["chosen", "repeated", "scanned"]


def scanned(run: Callable[..., Any], f: Callable[..., Any], pair: Callable[[Any], Any], init: Any,
            xs: Any, what: str) -> tuple[Any, Any]:
    """`run(body, init, xs, hidden keys)` of a scan; of a cell among xs, each element is a cell."""
    leaves, tree = tree_flatten(xs)
    among = [i for i, x in enumerate(leaves) if isinstance(x, RefCell)]
    stacked = [leaves[i] for i in among]

    def once(owner: object, cells: tuple[RefCell, ...]) -> tuple[Any, Any]:
        def body(carry: Any, x: Any) -> tuple[Any, Any]:
            carry, values = carry if cells else (carry, ())
            with framed(FrameKind.BODY, owner, what, cells, values) as last:
                parts = list(tree_flatten(x)[0]) if among else []
                inner = [type(leaves[i])(parts[i]) for i in among]
                for i, cell in zip(among, inner, strict=True):
                    parts[i] = cell
                carry, y = pair(f(carry, tree_unflatten(tree, parts) if among else x))
                if among:
                    y = y, [cell.value for cell in inner]
                return ((carry, last()) if cells else carry), y

        adopt_attributes(body, f)
        elements = [x.value if isinstance(x, RefCell) else x for x in leaves]
        given = tree_unflatten(tree, elements) if among else xs
        start = (init, [c.value for c in cells]) if cells else init
        carry, ys = run(body, start, given, bool(cells))
        if cells:
            carry = _written(carry, cells)
        return carry, _written(ys, stacked) if among else ys

    return lifting(once)


def repeated(run: Callable[..., Any], test: Callable[..., Any], body: Callable[..., Any],
             init: Any, what: str) -> Any:
    """`run(test, body, init, hidden keys)` of a while loop."""
    def once(owner: object, cells: tuple[RefCell, ...]) -> Any:
        def holds(carry: Any) -> Any:
            carry, values = carry if cells else (carry, ())
            with framed(FrameKind.SEALED, owner, f"the condition of {what}", cells, values):
                return test(carry)

        def step(carry: Any) -> Any:
            carry, values = carry if cells else (carry, ())
            with framed(FrameKind.BODY, owner, what, cells, values) as last:
                carry = body(carry)
                return (carry, last()) if cells else carry

        adopt_attributes(holds, test)
        adopt_attributes(step, body)
        start = (init, [c.value for c in cells]) if cells else init
        found = run(holds, step, start, bool(cells))
        return _written(found, cells) if cells else found

    return lifting(once)


def chosen(run: Callable[[Sequence[Any]], Any], branches: Sequence[Callable[..., Any]],
           what: str) -> Any:
    """`run(branches)` of a choice."""
    def once(owner: object, cells: tuple[RefCell, ...]) -> Any:
        values = [c.value for c in cells]

        def lifted(branch: Callable[..., Any]) -> Callable[..., Any]:
            def run_branch(*operands: Any) -> Any:
                with framed(FrameKind.BODY, owner, what, cells, values) as last:
                    out = branch(*operands)
                    return (out, last()) if cells else out

            adopt_attributes(run_branch, branch)
            return run_branch

        # a function that is several of the branches stays one
        of = {id(b): lifted(b) for b in branches}
        out = run([of[id(b)] for b in branches])
        return _written(out, cells) if cells else out

    return lifting(once)


def _written(found: Any, cells: Sequence[RefCell]) -> Any:
    """The first part of a result, the second of which is what cells have from now on."""
    result, values = found
    for cell, value in zip(cells, values, strict=True):
        cell.value = value
    return result
