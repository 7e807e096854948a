"""The structures of arguments and results as plain values: nested built-in containers."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Final

from functrans.core.errors import ExportError
from functrans.core.tree import PyTreeDef, tree_structure, tree_unflatten
from functrans.export.nodes import node_by_name, node_of
from functrans.export.plain import damaged

__all__ = ["read_tree", "tree_plain"]

_LEAF: Final = object()
_SEQUENCES: Final = {"tuple": tuple, "list": list, "deque": collections.deque}
_MAPPINGS: Final = {"dict": dict, "ordered dict": collections.OrderedDict}


def tree_plain(tree: PyTreeDef, what: str) -> Any:
    """A structure as a plain value; raises ExportError for containers that only Python knows."""
    return _plain(tree_unflatten(tree, [_LEAF] * tree.num_leaves), what)


def _plain(x: Any, what: str) -> Any:
    if x is _LEAF or x is None:
        return "*" if x is _LEAF else None
    for name, kind in _SEQUENCES.items():
        if type(x) is kind:
            return [name, *[_plain(child, what) for child in x]]
    for name, mapping in _MAPPINGS.items():
        if type(x) is mapping:
            for key in x:
                if type(key) not in (str, int):
                    raise ExportError(f"a {name} in {what} has the key {key!r}.",
                                      why="keys in an exported program are text and integers.")
            return [name, list(x), *[_plain(child, what) for child in x.values()]]
    node = node_of(type(x))
    if node is not None:
        children, rest = node.flatten(x)
        return ["node", node.name, rest, *[_plain(child, what) for child in children]]
    raise ExportError(
        f"{what} of the exported function have a {type(x).__name__}.",
        why="the program is to be loaded where that class is not.",
        fix="take and return tuples, lists and dicts, or register the class here and there: "
            "functrans.export.register_pytree_node_serialization, or "
            "register_namedtuple_serialization")


def read_tree(plain: Any) -> PyTreeDef:
    """The structure that `tree_plain` wrote; raises ExportError for anything else."""
    return tree_structure(_read(plain))


def _read(plain: Any) -> Any:
    if plain is None:
        return None
    if plain == "*":
        return 0
    if not isinstance(plain, list) or not plain or not isinstance(plain[0], str):
        raise damaged("a structure has a part of no kind")
    name, *children = plain
    if name in _SEQUENCES:
        return _SEQUENCES[name]([_read(c) for c in children])
    if name == "node":
        return _read_node(children)
    if name not in _MAPPINGS or not children or not isinstance(children[0], list):
        raise damaged(f"there is no container {name!r:.50}")
    keys: Sequence[Any] = children[0]
    if len(keys) != len(children) - 1 or any(type(k) not in (str, int) for k in keys) \
            or len(set(keys)) != len(keys):
        raise damaged("the keys of a dict do not fit its values")
    return _MAPPINGS[name](zip(keys, map(_read, children[1:]), strict=True))


def _read_node(parts: Sequence[Any]) -> Any:
    if len(parts) < 2 or not isinstance(parts[0], str) or not isinstance(parts[1], bytes):
        raise damaged("a node of a class has no name")
    node = node_by_name(parts[0])
    if node is None:
        raise ExportError(
            f"the exported program has arguments or results of a class named {parts[0]!r:.80}.",
            where=None, why="no class is registered under that name here.",
            fix="functrans.export.register_pytree_node_serialization, or "
                "register_namedtuple_serialization, before loading")
    children = [_read(child) for child in parts[2:]]
    try:
        return node.make(children, parts[1])
    except Exception as error:  # whatever the function of the user raises for what it did not write
        raise damaged(f"no {parts[0]!r:.80} is made of {len(children)} parts") from error
