"""Trees level by level, and what combines their leaves in any order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import optree

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import NAMESPACE, IsLeaf, tree_flatten_with_path, tree_leaves

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["flatten_one_level", "flatten_one_level_with_keys", "is_tree_node", "static",
           "tree_reduce_associative"]


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: PyTree, *,
                            identity: Any = ..., is_leaf: IsLeaf | None = None) -> Any:
    """The leaves combined by an associative function, neighbours first: in log2 n steps.

    `identity` is the result of a tree without leaves, which is an ArgumentError otherwise.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", list("abcde"))
    '(((ab)(cd))e)'
    """
    found = tree_leaves(tree, is_leaf)
    if not found:
        if identity is ...:
            raise ArgumentError("tree_reduce_associative of a tree without leaves.",
                                where=user_source(), fix="identity=0")
        return identity
    while len(found) > 1:
        pairs = [operation(a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
        found = [*pairs, *found[len(found) - len(found) % 2:]]
    return found[0]


def flatten_one_level(tree: PyTree) -> tuple[Iterable[Any], Hashable]:
    """The children of a node, and what its class needs besides to make it again.

    Raises ArgumentError for a leaf.

    >>> flatten_one_level({"b": [1, 2], "a": 3})
    ([3, [1, 2]], ('a', 'b'))
    """
    children, data = _level("flatten_one_level", tree)[:2]
    return list(children), tuple(data) if isinstance(data, list) else data


def flatten_one_level_with_keys(tree: PyTree) -> tuple[Iterable[Any], Hashable]:
    """The same, each child behind the key that leads to it.

    >>> flatten_one_level_with_keys([5, (6, 7)])[0]
    [(SequenceKey(idx=0), 5), (SequenceKey(idx=1), (6, 7))]
    """
    children, data = flatten_one_level(tree)
    keys = [path[0] for path, _ in tree_flatten_with_path(tree, lambda x: x is not tree)[0]]
    return list(zip(keys, children, strict=True)), data


def _level(name: str, tree: Any) -> Any:
    try:
        return optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    except ValueError:
        raise ArgumentError(f"{name}: {type(tree).__name__} is a leaf.", where=user_source(),
                            why="it is no container, and its class is not registered.") from None


def is_tree_node(typ: type) -> bool:
    """Whether instances of a class are nodes of trees: containers and registered classes.

    >>> is_tree_node(dict), is_tree_node(type(None)), is_tree_node(int)
    (True, True, False)
    """
    return optree.register_pytree_node.get(typ, namespace=NAMESPACE) is not None


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that `register_dataclass` takes as static, not as a child.

    The arguments are those of `dataclasses.field`.

    >>> import dataclasses, functrans as ft
    >>> @ft.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: float
    ...     activation: str = ft.tree.static(default="relu")
    >>> ft.tree.leaves(Layer(1.0))
    [1.0]
    """
    metadata = {**kwargs.pop("metadata", {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)
