"""Pytrees under short names: `ft.tree.map`, `ft.tree.leaves` and so on, as in jax.tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functrans.core.errors import publish
from functrans.core.tree import broadcast_prefix as broadcast_prefix
from functrans.core.tree import tree_all as all
from functrans.core.tree import tree_any as any
from functrans.core.tree import tree_broadcast as broadcast
from functrans.core.tree import tree_flatten as flatten
from functrans.core.tree import tree_flatten_with_path as flatten_with_path
from functrans.core.tree import tree_leaves as leaves
from functrans.core.tree import tree_leaves_with_path as leaves_with_path
from functrans.core.tree import tree_map as map
from functrans.core.tree import tree_map_with_path as map_with_path
from functrans.core.tree import tree_reduce as reduce
from functrans.core.tree import tree_structure as structure
from functrans.core.tree import tree_transpose as transpose
from functrans.core.tree import tree_unflatten as unflatten
from functrans.core.tree_levels import static as static
from functrans.core.tree_levels import tree_reduce_associative as reduce_associative

__all__ = [
    "all",
    "any",
    "broadcast",
    "broadcast_prefix",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "summary",
    "transpose",
    "unflatten",
]

if TYPE_CHECKING:
    from functrans.core.tree_summary import Summary


def summary(tree: Any, depth: int | None = None) -> Summary:
    """A table of the arrays of a tree: shapes, dtypes, bytes, the least and largest number, NaN.

    Printed, or in a notebook a table that folds. Levels below `depth` are one line each; on a
    terminal a large tree is folded until it fits. `.leaves` has the rows as data. Arrays on a GPU
    are copied to the host one by one; types and tracers have no values.

    >>> import functrans as ft
    >>> params = {"w": ft.numpy.ones((2, 3)), "b": ft.numpy.zeros(3)}
    >>> print(ft.tree.summary(params))
          shape     dtype  bytes  min  max  NaN
    tree  2 arrays          36 B
      .b  [3]       f32     12 B    0    0
      .w  [2,3]     f32     24 B    1    1
    """
    # later: who looks at a tree
    from functrans.core.tree_summary import summary_of  # noqa: PLC0415

    return summary_of(tree, depth)


publish(globals(), __all__)
