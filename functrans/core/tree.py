"""Pytrees: nested containers whose leaves are arrays, with JAX's conventions, on optree.

Tuples, lists, dicts (keys sorted), OrderedDict, defaultdict, deque, namedtuples and registered
classes are nodes; None is a node without leaves; everything else is a leaf. Registration is in
`functrans.core.tree_registry`, the printed keys are in `functrans.core.keypath`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, overload

import optree

from functrans.core.errors import HERE, ArgumentError, TreeMismatchError
from functrans.core.keypath import KeyPath, keystr, to_key_path

if TYPE_CHECKING:
    from functrans.typing import Array, PyTree

__all__ = [
    "NAMESPACE",
    "PyTreeDef",
    "all_leaves",
    "broadcast_prefix",
    "build_tree",
    "check_same_structure",
    "describe_difference",
    "known_leaf",
    "map_leaves",
    "tree_all",
    "tree_any",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_paths",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

_T = TypeVar("_T")

NAMESPACE: Final = "functrans"
PyTreeDef: TypeAlias = optree.PyTreeSpec
IsLeaf: TypeAlias = Callable[[Any], bool]

LEAF: Final[PyTreeDef] = optree.treespec_leaf()

# Types known to be leaves: trees made of nothing else are flattened without going through optree
# (0.2 us instead of 0.8 us for one leaf, 0.5 instead of 1.1 for a pair).
_leaf_types: Final[set[type]] = {bool, int, float, complex, str, bytes}


def known_leaf(cls: type[_T]) -> type[_T]:
    """Class decorator: instances of `cls` are leaves, now and always (Array, Tracer, ShapedArray).

    An optimisation only; other classes are leaves too, unless they are registered as nodes.
    """
    _leaf_types.add(cls)
    return cls


@functools.lru_cache(maxsize=64)
def _flat_spec(size: int, as_list: bool) -> PyTreeDef:
    """The structure of a tuple or list of `size` leaves."""
    return tree_structure_slow([0] * size if as_list else (0,) * size)


def tree_structure_slow(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """`tree_structure` through optree, without the quick paths."""
    return optree.tree_structure(tree, is_leaf, namespace=NAMESPACE)


# ---------------------------------------------------------------------------- flatten and rebuild


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, left to right, and its structure.

    `is_leaf` is asked at every node, None included, and stops the descent where it is true.

    >>> tree_flatten((1, {"b": 2, "a": 3}, None))
    ([1, 3, 2], PyTreeSpec((*, {'a': *, 'b': *}, None)))
    """
    kind = type(tree)
    if kind in _leaf_types:
        return [tree], LEAF
    if (
        is_leaf is None
        and (kind is tuple or kind is list)
        and len(tree) < 8
        and _leaf_types.issuperset(map(type, tree))
    ):
        return list(tree), _flat_spec(len(tree), kind is list)
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> PyTree:
    """The tree of structure `treedef` with these leaves; the inverse of `tree_flatten`.

    Raises TreeMismatchError if the number of leaves differs.

    >>> tree_unflatten(tree_structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    if treedef is LEAF:
        leaves = list(leaves)
        if len(leaves) == 1:
            return leaves[0]
    given = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
    if len(given) != treedef.num_leaves:
        raise TreeMismatchError(
            f"tree_unflatten: {len(given)} leaves given to the structure {_show(treedef)}, "
            f"which has {treedef.num_leaves}.",
        )
    return treedef.unflatten(given)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree, left to right.

    >>> tree_leaves([1, (2, None), {"a": 3}])
    [1, 2, 3]
    """
    if type(tree) in _leaf_types:
        return [tree]
    return optree.tree_leaves(tree, is_leaf, namespace=NAMESPACE)


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """The structure of a tree: hashable, comparable, printable.

    >>> ft.tree.structure({"a": 1, "b": (2, 3)})
    PyTreeSpec({'a': *, 'b': (*, *)})
    """
    return tree_flatten(tree, is_leaf)[1]


@overload
def tree_map(f: Callable[..., Array], tree: _T, *rest: PyTree, is_leaf: IsLeaf | None = None
             ) -> _T: ...


@overload
def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf | None = None
             ) -> PyTree: ...


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: IsLeaf | None = None
             ) -> PyTree:
    """Apply `f` to the leaves of `tree`, and to the subtrees of `rest` at the same places.

    Raises TreeMismatchError, with the key path, if `tree` is no prefix of one of `rest`.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(map(f, leaves))
    columns = _like_the_first(treedef, rest, "tree_map")
    return treedef.unflatten(map(f, leaves, *columns))


def _like_the_first(treedef: PyTreeDef, rest: Sequence[PyTree], what: str) -> list[list[Any]]:
    """The subtrees of further trees at the leaves of the first."""
    columns = []
    for number, other in enumerate(rest, 2):
        try:
            columns.append(treedef.flatten_up_to(other))
        except ValueError as error:
            full = tree_structure(other)
            found = next(_differences(treedef, full, (), prefix=True), str(error))
            raise TreeMismatchError(
                f"{what}: tree {number} has another structure than the first: {found}.",
                why=f"the first tree has the structure {_show(treedef)},\ntree {number} has "
                    f"{_show(full)}.",
                fix="trees with the same containers and keys; where the first has a leaf, others "
                    "may have a subtree") from None
    return columns


def map_leaves(f: Callable[..., Any], tree: _T, *rest: PyTree, is_leaf: IsLeaf | None = None
               ) -> _T:
    """`tree_map` where type checkers cannot see that `f` returns arrays."""
    same: _T = tree_map(f, tree, *rest, is_leaf=is_leaf)
    return same


def flatten_up_to(treedef: PyTreeDef, tree: Any, *, what: str = "tree") -> list[Any]:
    """The subtrees of `tree` at the leaves of `treedef`, which must be a prefix of it.

    Raises TreeMismatchError, with the key path, where it is not.

    >>> flatten_up_to(tree_structure((0, 0)), (1, [2, 3]))
    [1, [2, 3]]
    """
    if treedef is LEAF:
        return [tree]
    try:
        return treedef.flatten_up_to(tree)
    except (ValueError, TypeError) as error:
        raise _prefix_error(treedef, tree_structure(tree), what, str(error)) from None


@overload
def tree_reduce(function: Callable[[_T, Any], _T], tree: PyTree, initializer: _T,
                is_leaf: IsLeaf | None = None) -> _T: ...


@overload
def tree_reduce(function: Callable[[Any, Any], _T], tree: PyTree, *,
                is_leaf: IsLeaf | None = None) -> _T: ...


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: PyTree,
    initializer: Any = ...,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """Combine the leaves of a tree, left to right, with a function of two arguments.

    >>> tree_reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]}, 10)
    16
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is ...:
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_all(tree: PyTree, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true; true for a tree without leaves.

    >>> ft.tree.all({"a": True, "b": [True, False]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_any(tree: PyTree, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether at least one leaf is true.

    >>> ft.tree.any({"a": False, "b": [True, False]})
    True
    """
    return any(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether every element of an iterable is a leaf (None is not).

    >>> ft.tree_util.all_leaves([1, 2.0]), ft.tree_util.all_leaves([1, (2,)])
    (True, False)
    """
    return all(tree_structure(x, is_leaf) == LEAF for x in iterable)


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: PyTree) -> PyTree:
    """Turn a tree of trees inside out.

    `inner_treedef` None stands for the structure of the first subtree. Raises TreeMismatchError
    if the tree is not `outer_treedef` with `inner_treedef` at its leaves.

    >>> outer, inner = tree_structure([0, 0]), tree_structure({"a": 0, "b": 0})
    >>> tree_transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    subtrees = flatten_up_to(outer_treedef, pytree_to_transpose, what="tree_transpose")
    if inner_treedef is None:
        inner_treedef = tree_structure(subtrees[0])
    if not inner_treedef.num_leaves or not outer_treedef.num_leaves:
        raise ArgumentError("tree_transpose: a structure without leaves cannot change places.")
    for subtree in subtrees:
        check_same_structure(inner_treedef, subtree, "tree_transpose: an inner tree")
    columns = zip(*(inner_treedef.flatten_up_to(subtree) for subtree in subtrees), strict=True)
    return inner_treedef.unflatten([outer_treedef.unflatten(column) for column in columns])


# ------------------------------------------------------------------------------------- key paths


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Like `tree_flatten`, with pairs (key path, leaf) for the leaves.

    With `is_leaf_takes_path`, `is_leaf` is called with the path of a node and the node.

    >>> paths, treedef = tree_flatten_with_path({"w": [1, 2]})
    >>> [(keystr(path), leaf) for path, leaf in paths]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    if is_leaf is not None and is_leaf_takes_path:
        decided = _decided_leaves(tree, is_leaf, ())  # in the order in which optree asks
        is_leaf = lambda _: next(decided)
    accessors, leaves, treedef = optree.tree_flatten_with_accessor(
        tree, is_leaf, namespace=NAMESPACE
    )
    return list(zip(map(to_key_path, accessors), leaves, strict=True)), treedef


def _decided_leaves(tree: Any, is_leaf: Callable[[KeyPath, Any], bool],
                    path: KeyPath) -> Iterator[bool]:
    """For every node from the root on, left to right, whether the descent stops there."""
    stops = bool(is_leaf(path, tree))
    yield stops
    if stops:
        return
    accessors, children, treedef = optree.tree_flatten_with_accessor(
        tree, lambda x: x is not tree, namespace=NAMESPACE
    )
    if treedef != LEAF:
        for accessor, child in zip(accessors, children, strict=True):
            yield from _decided_leaves(child, is_leaf, path + to_key_path(accessor))


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The pairs (key path, leaf) of a tree, left to right.

    >>> [(ft.tree_util.keystr(path), x) for path, x in ft.tree.leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@overload
def tree_map_with_path(
    f: Callable[..., Array], tree: _T, *rest: PyTree, is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> _T: ...


@overload
def tree_map_with_path(
    f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree: ...


def tree_map_with_path(
    f: Callable[..., Any], tree: PyTree, *rest: PyTree, is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> PyTree:
    """Like `tree_map`, with the key path as the first argument of `f`.

    With `is_leaf_takes_path`, `is_leaf` is called with the path of a node and the node.

    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": 0, "b": (0, 0)})
    {'a': "['a']", 'b': ("['b'][0]", "['b'][1]")}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _like_the_first(treedef, rest, "tree_map_with_path")
    paths, leaves = [path for path, _ in pairs], [leaf for _, leaf in pairs]
    return treedef.unflatten(map(f, paths, leaves, *columns))


def tree_paths(treedef: PyTreeDef) -> list[KeyPath]:
    """The key paths of the leaves of a structure."""
    return [to_key_path(accessor) for accessor in treedef.accessors()]


# ------------------------------------------------------------------------------------- structures


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    >>> ft.tree_util.treedef_children(ft.tree.structure((1, [2, 3])))
    [PyTreeSpec(*), PyTreeSpec([*, *])]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose elements have these structures.

    >>> ft.tree_util.treedef_tuple([ft.tree.structure(1), ft.tree.structure([2])])
    PyTreeSpec((*, [*]))
    """
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is that of one leaf.

    >>> ft.tree_util.treedef_is_leaf(ft.tree.structure(5))
    True
    """
    return treedef == LEAF


def build_tree(treedef: PyTreeDef, xs: PyTree) -> PyTree:
    """The tree of structure `treedef` from a tree with its nesting, made of any iterables.

    >>> structure = ft.tree.structure([0, 0])
    >>> ft.tree_util.build_tree(structure, [{"a": 1}, 2])
    [{'a': 1}, 2]
    """
    if treedef == LEAF:
        return xs
    children = treedef.children()
    subtrees = [build_tree(child, x) for child, x in zip(children, xs, strict=True)]
    return _one_level(treedef).unflatten(subtrees)


# ----------------------------------------------------------------------------- prefixes and errors


def broadcast_prefix(
    prefix_tree: PyTree,
    full_tree: PyTree,
    is_leaf: IsLeaf | None = None,
    *,
    what: str = "prefix tree",
    full_what: str = "the tree",
) -> list[Any]:
    """The leaves of a prefix of a tree, each repeated for all leaves of the tree below it.

    `full_tree` may be a structure. `what` and `full_what` name the two in the error. Raises
    TreeMismatchError, with the key path and both structures, if it is no prefix.

    >>> broadcast_prefix((0, None), ([1, 2], {"a": 3}), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    prefix_leaves, prefix_def = tree_flatten(prefix_tree, is_leaf)
    full_def = full_tree if isinstance(full_tree, PyTreeDef) else tree_structure(full_tree)
    if prefix_def is LEAF:
        return prefix_leaves * full_def.num_leaves
    if prefix_def == full_def:
        return prefix_leaves
    try:
        subtrees = prefix_def.flatten_up_to(full_def.unflatten([_HOLE] * full_def.num_leaves))
    except (ValueError, TypeError) as error:
        raise _prefix_error(prefix_def, full_def, what, str(error), full_what) from None
    out: list[Any] = []
    for leaf, subtree in zip(prefix_leaves, subtrees, strict=True):
        out += [leaf] * (1 if subtree is _HOLE else tree_structure(subtree).num_leaves)
    return out


_HOLE: Final = object()


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """The tree with the structure of `full_tree` and the leaves of its prefix, repeated.

    >>> tree_broadcast((1, 2), (0, [0, 0]))
    (1, [2, 2])
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf, what="tree_broadcast")
    return tree_structure(full_tree, is_leaf).unflatten(leaves)


def _prefix_error(
    prefix: PyTreeDef, full: PyTreeDef, what: str, reason: str, full_what: str = "the tree"
) -> TreeMismatchError:
    differences = list(_differences(prefix, full, (), prefix=True))
    found = differences[0] if differences else reason
    return TreeMismatchError(
        f"{what}: its structure is no prefix of the structure of {full_what}: {found}.",
        why=f"{what} has the structure {_show(prefix)},\n{full_what} has {_show(full)}.",
        fix="give one leaf for a whole subtree, or the same containers with the same keys",
    )


def check_same_structure(
    expected: Any, actual: Any, what: str, *, where: object = HERE, fix: str = ""
) -> None:
    """Raise TreeMismatchError unless two trees (or structures) have the same structure.

    >>> check_same_structure({"a": 0}, {"a": 1}, "the cotangent")
    """
    want = expected if isinstance(expected, PyTreeDef) else tree_structure(expected)
    got = actual if isinstance(actual, PyTreeDef) else tree_structure(actual)
    if want != got:
        raise TreeMismatchError(
            f"{what} has the wrong structure: {describe_difference(want, got)}.",
            where=where,
            why=f"expected {_show(want)},\ngot {_show(got)}.",
            fix=fix,
        )


def describe_difference(expected: Any, actual: Any) -> str:
    """How two trees (or structures) differ, with key paths; empty if they do not.

    >>> describe_difference({"a": (0, 0)}, {"a": (0, 0, 0)})
    "at ['a'] a tuple of 2 was expected and a tuple of 3 found"
    """
    want = expected if isinstance(expected, PyTreeDef) else tree_structure(expected)
    got = actual if isinstance(actual, PyTreeDef) else tree_structure(actual)
    differences = list(_differences(want, got, (), prefix=False))
    if len(differences) > 3:
        differences[3:] = [f"and {len(differences) - 3} more"]
    return "; ".join(differences)


def _differences(a: PyTreeDef, b: PyTreeDef, path: KeyPath, *, prefix: bool) -> Iterator[str]:
    """The places where structures differ, outermost first; a leaf of `a` fits all if `prefix`."""
    if a == b or (prefix and a == LEAF):
        return
    a_level, b_level = _one_level(a), _one_level(b)
    if a_level != b_level:
        place = f"at {keystr(path)} " if path else "at the root "
        yield f"{place}{_root(a)} was expected and {_root(b)} found" + _key_difference(a, b)
        return
    keys = [to_key_path(accessor) for accessor in a_level.accessors()]
    for key, a_child, b_child in zip(keys, a.children(), b.children(), strict=True):
        yield from _differences(a_child, b_child, path + key, prefix=prefix)


def _one_level(treedef: PyTreeDef) -> PyTreeDef:
    return treedef.one_level() or treedef


def _root(treedef: PyTreeDef) -> str:
    """The root of a structure in words."""
    if treedef == LEAF:
        return "a leaf"
    if treedef.type is type(None):
        return "None"
    assert treedef.type is not None
    name = treedef.type.__name__
    return f"a {name} of {treedef.num_children}"


def _key_difference(a: PyTreeDef, b: PyTreeDef) -> str:
    """Which keys of two nodes of one type are missing or unexpected, for a message."""
    if a.type is not b.type or a == LEAF:
        return ""
    missing = [key for key in a.entries() if key not in b.entries()]
    extra = [key for key in b.entries() if key not in a.entries()]
    if a.type in (tuple, list) or not (missing or extra):
        return "" if a.num_children != b.num_children else " with other static data"
    parts = [("missing", missing), ("unexpected", extra)]
    named = [f"{word} {', '.join(map(repr, keys))}" for word, keys in parts if keys]
    what = "Dict key mismatch: " if issubclass(a.type or object, dict) else ""
    return f" ({what}{'; '.join(named)})"


def _show(treedef: PyTreeDef, limit: int = 500) -> str:
    """A structure in a message, cut where it is long."""
    text = str(treedef).removeprefix("PyTreeSpec(").removesuffix(")")
    text = text.removesuffix(f", namespace={NAMESPACE!r}")
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
