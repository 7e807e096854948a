"""Classes of users as containers of arguments and results of exported programs.

A file has the name under which a class was registered. Who loads it registers the class, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import optree

from functrans.core.errors import RegistrationError, public
from functrans.core.source import user_source
from functrans.core.tree import NAMESPACE
from functrans.core.tree_levels import flatten_one_level

__all__ = ["RegisteredNode", "node_by_name", "node_of", "register_namedtuple_serialization",
           "register_pytree_node_serialization"]

T = TypeVar("T")


@dataclass(frozen=True)
class RegisteredNode:
    """How instances of a class are taken apart, and made again, with the rest of them as bytes."""

    name: str
    flatten: Callable[[Any], tuple[list[Any], bytes]]
    make: Callable[[list[Any], bytes], Any]


_by_type: Final[dict[type, RegisteredNode]] = {}
_by_name: Final[dict[str, RegisteredNode]] = {}


def node_of(cls: type) -> RegisteredNode | None:
    return _by_type.get(cls)


def node_by_name(name: str) -> RegisteredNode | None:
    return _by_name.get(name)


def _register(nodetype: type, node: RegisteredNode) -> None:
    if not isinstance(node.name, str) or not node.name:
        raise RegistrationError(f"serialized_name is {node.name!r}, which is no text.",
                                where=user_source(), fix='serialized_name="my.module.Params"')
    for known, what in ((_by_type.get(nodetype), nodetype.__qualname__),
                        (_by_name.get(node.name), repr(node.name))):
        if known is not None:
            raise RegistrationError(f"{what} is registered for serialization already.",
                                    where=user_source(),
                                    why="a class has one name, and a name one class.")
    _by_type[nodetype] = _by_name[node.name] = node


@public
def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Let programs be exported that take or return a named tuple; returns the class.

    The program is loaded where the class is registered under the same name. Raises
    RegistrationError for a class that is none, and for what is registered already.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> _ = register_namedtuple_serialization(Point, serialized_name="example.Point")
    >>> import functrans as ft
    >>> exported = ft.export.export(lambda p: Point(p.y, p.x))(Point(1.0, 2.0))
    >>> [float(v) for v in ft.export.deserialize(exported.serialize()).call(Point(3.0, 4.0))]
    [4.0, 3.0]
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple)
            and hasattr(nodetype, "_fields")):
        raise RegistrationError(f"{nodetype!r} is no class of named tuples.", where=user_source(),
                                fix="register_pytree_node_serialization")
    make: Any = nodetype
    _register(nodetype, RegisteredNode(serialized_name, lambda x: (list(x), b""),
                             lambda children, _: make(*children)))
    return nodetype


@public
def register_pytree_node_serialization(
        nodetype: type[T], *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
        deserialize_auxdata: Callable[[bytes], Any],
        from_children: Callable[[Any, Iterable[Any]], Any] | None = None) -> type[T]:
    """Let programs be exported that take or return instances of a pytree node; returns the class.

    `serialize_auxdata` gives the auxiliary data of an instance as bytes, `deserialize_auxdata`
    takes them, and `from_children(aux, children)` makes an instance, by default as the node was
    registered. Raises RegistrationError for a class that is no node, or that is registered already.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _ = ft.tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.a, p.b), None), lambda aux, children: Pair(*children))
    >>> _ = ft.export.register_pytree_node_serialization(
    ...     Pair, serialized_name="my.Pair", serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None)
    >>> exported = ft.export.export(lambda p: p.a + p.b)(Pair(1.0, 2.0))
    >>> ft.export.deserialize(exported.serialize()).call(Pair(1.0, 2.0)).item()
    3.0
    """
    handler = optree.register_pytree_node.get(nodetype, namespace=NAMESPACE) \
        if isinstance(nodetype, type) else None
    if handler is None:
        raise RegistrationError(f"{nodetype!r} is no pytree node.", where=user_source(),
                                fix="functrans.tree_util.register_pytree_node(cls, ...)")
    again = from_children or handler.unflatten_func

    def flatten(x: Any) -> tuple[list[Any], bytes]:
        children, aux = flatten_one_level(x)
        return list(children), bytes(serialize_auxdata(aux))

    _register(nodetype, RegisteredNode(serialized_name, flatten,
                             lambda children, data: again(deserialize_auxdata(data), children)))
    return nodetype
