"""Loops and branches whose functions touch cells: these are carried, or results of each branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.cells import FrameKind, RefCell, framed, lifting, own_cells
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.transforms.cells import kinds_of, with_tokens, write_all
from functrans.transforms.flat import adopt_attributes

__all__ = ["chosen", "repeated", "scanned"]


def scanned(run: Callable[..., Any], f: Callable[..., Any], pair: Callable[[Any], Any], init: Any,
            xs: Any, what: str) -> tuple[Any, Any]:
    """`run(body, init, xs, hidden keys)` of a scan; of a cell among xs, each element is a cell."""
    leaves, tree = tree_flatten(xs)
    among = [i for i, x in enumerate(leaves) if isinstance(x, RefCell)]
    stacked = with_tokens([leaves[i] for i in among])
    kinds = kinds_of(stacked)

    def once(owner: object, cells: tuple[RefCell, ...]) -> tuple[Any, Any]:
        def body(carry: Any, x: Any) -> tuple[Any, Any]:
            carry, values = carry if cells else (carry, ())
            with framed(FrameKind.BODY, owner, what, cells, values) as last:
                if among:
                    contents, parts = x
                    inner = own_cells(kinds, contents)
                    for i, cell in zip(among, inner, strict=False):
                        parts[i] = cell
                    x = tree_unflatten(tree, parts)
                carry, y = pair(f(carry, x))
                if among:
                    y = y, [cell.value for cell in inner]
                return ((carry, last()) if cells else carry), y

        adopt_attributes(body, f)
        # a leaf that is a cell is None among the parts
        given = ([c.value for c in stacked], [None if isinstance(x, RefCell) else x
                                              for x in leaves]) if among else xs
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
    write_all(cells, values)
    return result
