"""Pytrees: JAX's conventions, key paths, prefixes, registration, and errors by their text."""

import collections
import dataclasses
import functools
import pickle
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from functrans import tree, tree_util
from functrans.core.errors import ArgumentError, RegistrationError, TreeMismatchError
from functrans.core.tree import (
    broadcast_prefix,
    check_same_structure,
    describe_difference,
    flatten_up_to,
    known_leaf,
    tree_structure_slow,
)
from functrans.tree_util import DictKey, GetAttrKey, SequenceKey, keystr


class Point(NamedTuple):
    x: Any
    y: Any


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    name: str = dataclasses.field(default="dense", metadata={"static": True})


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> "Pair":
        return cls(*children)


@known_leaf
class Known:
    """A leaf by declaration."""


trees = st.recursive(
    st.integers() | st.none() | st.floats(allow_nan=False),
    lambda children: (
        st.lists(children, max_size=3)
        | st.tuples(children, children)
        | st.dictionaries(st.sampled_from("abcd"), children, max_size=3)
        | st.builds(Point, children, children)
    ),
    max_leaves=12,
)


@given(trees)
def test_flatten_and_unflatten_are_inverse(x: Any) -> None:
    leaves, treedef = tree.flatten(x)
    assert tree.unflatten(treedef, leaves) == x
    assert tree.unflatten(treedef, iter(leaves)) == x
    assert leaves == tree.leaves(x)
    assert treedef == tree.structure(x) == tree_structure_slow(x)
    assert hash(treedef) == hash(tree_structure_slow(x))
    assert [leaf for _, leaf in tree.leaves_with_path(x)] == leaves


@given(trees)
def test_key_paths_reach_their_leaves(x: Any) -> None:
    for path, leaf in tree.leaves_with_path(x):
        assert eval(f"x{keystr(path)}", {"x": x}) == leaf


@given(trees, trees)
def test_described_differences_agree_with_equality(x: Any, y: Any) -> None:
    same = tree.structure(x) == tree.structure(y)
    assert (describe_difference(x, y) == "") == same


@given(trees)
def test_a_tree_is_a_prefix_of_itself_and_a_leaf_of_all(x: Any) -> None:
    leaves = tree.leaves(x)
    assert broadcast_prefix(x, x) == leaves
    assert broadcast_prefix(7, x) == [7] * len(leaves)
    assert tree.broadcast(7, x) == tree.map(lambda _: 7, x)


def test_none_is_an_empty_tree_and_dict_keys_are_sorted() -> None:
    assert tree.leaves(None) == []
    assert tree.leaves({"b": 1, "a": (2, None)}) == [2, 1]
    assert tree.leaves((None, 1), is_leaf=lambda x: x is None) == [None, 1]
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    assert tree.leaves(ordered) == [1, 2]
    assert list(tree.map(lambda x: x, ordered)) == ["b", "a"]


def test_container_types_are_kept() -> None:
    values = collections.defaultdict(list, {"a": 1}), collections.deque([1, 2]), Point(1, 2)
    doubled = tree.map(lambda x: 2 * x, values)
    assert doubled == (
        collections.defaultdict(list, {"a": 2}),
        collections.deque([2, 4]),
        Point(2, 4),
    )
    assert [type(v) for v in doubled] == [type(v) for v in values]


@pytest.mark.parametrize(
    "x", [1.0, (), [], (1, 2), [1.0], [1] * 7, [1] * 8, (1, (2,)), (None, 1), np.ones(2),
          (np.float32(1), 2), (Known(), 1), [Known()], "text"],
)  # fmt: skip
def test_quick_paths_agree_with_optree(x: Any) -> None:
    leaves, treedef = tree.flatten(x)
    assert treedef == tree_structure_slow(x)
    assert hash(treedef) == hash(tree_structure_slow(x))
    assert treedef.num_leaves == len(leaves)


def test_quick_paths_ask_is_leaf() -> None:
    assert tree.leaves((1, 2), is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2)]


def test_map_takes_trees_that_the_first_is_a_prefix_of() -> None:
    assert tree.map(lambda a, b: (a, b), (1, 2), ([3, 4], None)) == ((1, [3, 4]), (2, None))


def test_map_error_names_the_place_and_both_structures() -> None:
    with pytest.raises(TreeMismatchError) as caught:
        tree.map(lambda a, b: a, {"w": (1, 2), "b": 0}, {"w": [1, 2], "b": 0})
    text = str(caught.value)
    assert "tree_map: tree 2 has another structure than the first" in text
    assert "at ['w'] a tuple of 2 was expected and a list of 2 found" in text
    assert "{'b': *, 'w': (*, *)}" in text and "{'b': *, 'w': [*, *]}" in text


def test_an_error_in_the_mapped_function_is_not_touched() -> None:
    def fail(a: int, b: int) -> int:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        tree.map(fail, (1,), (2,))


def test_broadcast_prefix() -> None:
    def is_none(x: Any) -> bool:
        return x is None

    full = ({"w": 1, "b": 2}, [3, 4], None)
    assert broadcast_prefix((0, None, 5), full, is_none) == [0, 0, None, None]
    assert broadcast_prefix((0, [1, 2], 5), full, is_none) == [0, 0, 1, 2]
    assert broadcast_prefix((0, 1, 2), tree.structure(full)) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("prefix", "full", "expected"),
    [
        ((0,), (1, 2), "at the root a tuple of 1 was expected and a tuple of 2 found"),
        ((0, (1,)), (1, 2), "at [1] a tuple of 1 was expected and a leaf found"),
        ({"a": 0}, {"a": 1, "c": 2}, "(Dict key mismatch: unexpected 'c')"),
        ({"a": 0, "c": 1}, {"a": 1}, "(Dict key mismatch: missing 'c')"),
        (Point(0, (0,)), Point(1, 2), "at .y a tuple of 1 was expected and a leaf found"),
    ],
)
def test_broadcast_prefix_error(prefix: Any, full: Any, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        broadcast_prefix(prefix, full, what="in_axes", full_what="the arguments of loss")
    text = str(caught.value)
    assert expected in text
    assert "in_axes: its structure is no prefix of the structure of the arguments of loss" in text
    assert "Fix: give one leaf for a whole subtree" in text


def test_check_same_structure_says_what_and_where() -> None:
    check_same_structure({"a": 0}, tree.structure({"a": 1}), "the carry")
    with pytest.raises(TreeMismatchError) as caught:
        check_same_structure({"a": (0, 0)}, {"a": (0, None)}, "the carry", where="x.py:3")
    text = str(caught.value)
    assert "the carry has the wrong structure: at ['a'][1] a leaf was expected and None" in text
    assert "Where: x.py:3" in text
    assert "{'a': (*, *)}" in text and "{'a': (*, None)}" in text


def test_many_differences_are_cut() -> None:
    text = describe_difference([0] * 9, [(0,)] * 9)
    assert text.count("was expected") == 3 and text.endswith("and 6 more")
    assert describe_difference(Layer(1, 2, "a"), Layer(1, 2, "b")).endswith("other static data")


def test_wrong_number_of_leaves() -> None:
    with pytest.raises(TreeMismatchError, match=r"3 leaves given to the structure .*which has 2"):
        tree.unflatten(tree.structure((0, 0)), [1, 2, 3])
    with pytest.raises(TreeMismatchError, match="0 leaves"):
        tree.unflatten(tree.structure(0), [])


def test_reduce_all_any_transpose() -> None:
    assert tree.reduce(lambda a, b: a - b, (10, [1, 2])) == 7
    assert tree.reduce(lambda a, b: a + b, (), 5) == 5
    assert tree.all((1, [True])) and not tree.all((1, 0)) and tree.all(())
    assert tree.any((0, 1)) and not tree.any(())
    moved = tree.transpose(tree.structure((0, 0)), None, ({"a": 1}, {"a": 2}))
    assert moved == {"a": (1, 2)}
    with pytest.raises(TreeMismatchError, match="an inner tree"):
        tree.transpose(tree.structure((0, 0)), None, ({"a": 1}, {"b": 2}))
    with pytest.raises(ArgumentError):
        tree.transpose(tree.structure(()), tree.structure(0), ())


def test_structures_of_tuples_children_and_built_trees() -> None:
    leaf, pair = tree.structure(0), tree.structure((0, 0))
    assert tree_util.treedef_tuple([leaf, pair]) == tree.structure((0, (0, 0)))
    assert tree_util.treedef_children(pair) == [leaf, leaf]
    assert tree_util.treedef_is_leaf(leaf) and not tree_util.treedef_is_leaf(pair)
    built = tree_util.build_tree(tree.structure({"a": (0, 0), "b": 0}), [[1, 2], 3])
    assert built == {"a": (1, 2), "b": 3}
    assert tree_util.all_leaves([1, "x"]) and not tree_util.all_leaves([1, None])


def test_keys_print_like_access_code() -> None:
    ((path, _),) = tree.leaves_with_path({"p": [Layer(None, 1.0)]})
    assert path == (DictKey("p"), SequenceKey(0), GetAttrKey("b"))
    assert keystr(path) == "['p'][0].b"
    assert keystr(path, simple=True, separator="/") == "p/0/b"
    assert [keystr(p) for p, _ in tree.leaves_with_path(Pair(1, 2))] == [
        "[<flat index 0>]",
        "[<flat index 1>]",
    ]
    assert tree.map_with_path(lambda p, a, b: (keystr(p), a, b), [1], [2]) == [("[0]", 1, 2)]


def test_dataclasses() -> None:
    layer = Layer(1, (2, 3), "first")
    assert tree.leaves(layer) == [1, 2, 3]
    assert tree.map(lambda x: -x, layer) == Layer(-1, (-2, -3), "first")
    assert tree.structure(layer) != tree.structure(Layer(1, (2, 3), "second"))

    @functools.partial(tree_util.register_dataclass, data_fields=["a"], meta_fields=["n"])
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        a: Any
        n: int

    assert tree.map(lambda x: x + 1, Frozen(1, 5)) == Frozen(2, 5)

    @tree_util.register_dataclass(data_fields=["a"], meta_fields=[], drop_fields=["cache"])
    @dataclasses.dataclass
    class Dropped:
        a: Any
        cache: Any = None

    assert tree.map(lambda x: x, Dropped(1, "kept?")) == Dropped(1, None)


def test_dataclass_fields_must_match() -> None:
    @dataclasses.dataclass
    class Model:
        a: int
        b: int

    with pytest.raises(RegistrationError, match=r"missing \['b'\], unexpected \['c'\]"):
        tree_util.register_dataclass(Model, ["a"], ["c"])
    with pytest.raises(RegistrationError, match="takes both"):
        tree_util.register_dataclass(Model, ["a"])
    with pytest.raises(RegistrationError, match="is not a dataclass"):
        tree_util.register_dataclass(Known)


def test_registering_twice_and_non_classes_are_refused() -> None:
    with pytest.raises(RegistrationError, match="Pair cannot be registered"):
        tree_util.register_pytree_node_class(Pair)
    with pytest.raises(RegistrationError, match="is not a class"):
        tree_util.register_pytree_node(1, None, None)  # type: ignore[arg-type]


def test_registering_with_keys_and_static() -> None:
    class Named:
        def __init__(self, a: Any) -> None:
            self.a = a

    tree_util.register_pytree_with_keys(
        Named, lambda n: (((GetAttrKey("a"), n.a),), None), lambda _, kids: Named(*kids)
    )
    assert [keystr(p) for p, _ in tree.leaves_with_path([Named(1)])] == ["[0].a"]
    assert tree.map(lambda x: x + 1, Named(1)).a == 2

    @tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert tree.leaves((Mode("a"), 1)) == [1]
    assert tree.structure(Mode("a")) == tree.structure(Mode("a"))
    assert tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.map(lambda x: x, Mode("a")) == Mode("a")


def test_partial_is_a_tree_of_its_arguments() -> None:
    part = tree_util.Partial(pow, 2, mod=None)
    assert [keystr(p) for p, _ in tree.leaves_with_path(part)] == [".args[0]"]
    assert tree.map(lambda x: x + 1, part)(2) == 9
    nested = tree_util.Partial(tree_util.Partial(pow, 2), 3)
    assert tree.leaves(nested) == [2, 3] and nested() == 8
    held = tree_util.Partial(functools.partial(pow, 2), 3)
    assert tree.leaves(held) == [3] and held() == 8
    again = tree_util.Partial(functools.partial(pow, 2), 4)
    assert tree.structure(held) == tree.structure(again)


def test_flatten_up_to() -> None:
    assert flatten_up_to(tree.structure(0), (1, 2)) == [(1, 2)]
    with pytest.raises(TreeMismatchError, match="grads: its structure is no prefix"):
        flatten_up_to(tree.structure((0, 0)), (1,), what="grads")


def test_structures_pickle() -> None:
    treedef = tree.structure({"a": [1, Point(1, None)]})
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_is_leaf_may_take_the_path():
    nested = {"a": (1, [2, None]), "b": [3, (4, 5), None], "c": ()}
    asked = []

    def is_leaf(path, node):
        asked.append(keystr(path))
        return keystr(path) in ("['a'][1]", "['b'][2]") or (len(path) == 2 and node == (4, 5))

    pairs, treedef = tree.flatten_with_path(nested, is_leaf=is_leaf, is_leaf_takes_path=True)
    assert [(keystr(p), x) for p, x in pairs] == [
        ("['a'][0]", 1), ("['a'][1]", [2, None]), ("['b'][0]", 3), ("['b'][1]", (4, 5)),
        ("['b'][2]", None)]
    assert asked == ["", "['a']", "['a'][0]", "['a'][1]", "['b']", "['b'][0]", "['b'][1]",
                     "['b'][2]", "['c']"]
    assert tree.unflatten(treedef, [x for _, x in pairs]) == nested
    assert tree.leaves_with_path(nested, is_leaf, is_leaf_takes_path=True) == pairs
    mapped = tree.map_with_path(lambda p, x, y: (keystr(p), y), nested, nested, is_leaf=is_leaf,
                                is_leaf_takes_path=True)
    assert mapped["a"][1] == ("['a'][1]", [2, None]) and mapped["c"] == ()
    assert tree_util.tree_leaves_with_path(1, lambda p, x: False, is_leaf_takes_path=True) == [
        ((), 1)]


@given(st.recursive(st.integers(), lambda x: st.lists(x, max_size=3) | st.tuples(x, x)
                    | st.dictionaries(st.sampled_from("abc"), x)), st.integers(0, 3))
def test_paths_stop_the_descent_anywhere(nested, depth):
    pairs = tree.leaves_with_path(nested, lambda p, _: len(p) >= depth, is_leaf_takes_path=True)
    plain = tree.leaves_with_path(nested)
    assert all(len(p) <= depth for p, _ in pairs)
    assert [(p + q, x) for p, sub in pairs for q, x in tree.leaves_with_path(sub)] == plain
