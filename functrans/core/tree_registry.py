"""Registration of classes as pytree nodes, and `Partial`, a function with its data as a node."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import optree

from functrans._runtime import register_node
from functrans.core.errors import RegistrationError
from functrans.core.keypath import GetAttrKey, NamedKey
from functrans.core.tree import NAMESPACE

__all__ = [
    "Partial",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
]

_T = TypeVar("_T", bound=type)


def _register(nodetype: type, flatten: Any, unflatten: Any, entry: Any = optree.AutoEntry) -> None:
    """Register with optree, whose refusals become errors of ours."""
    if not isinstance(nodetype, type):
        raise RegistrationError(f"{nodetype!r} is not a class and cannot be a pytree node.")
    try:
        with warnings.catch_warnings():
            # a namedtuple is a node already: registering it replaces how it is flattened
            warnings.filterwarnings("ignore", "PyTree type .* is a subclass of", UserWarning)
            optree.register_pytree_node(
                nodetype, flatten, unflatten, path_entry_type=entry, namespace=NAMESPACE
            )
    except (ValueError, TypeError) as error:
        raise RegistrationError(
            f"{nodetype.__qualname__} cannot be registered as a pytree node: {error}",
            why="a class is registered once, and built-in containers are registered already.",
        ) from None
    # the call path of jit flattens arguments itself: 1 us, where a call by way of Python takes 35
    register_node(nodetype, lambda x: flatten(x)[:2])


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make instances of a class nodes: `flatten_func(x) -> (children, aux_data)` and
    `unflatten_func(aux_data, children) -> x`, with hashable aux_data.

    Raises RegistrationError if the class is a node already.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
        return
    _register(nodetype, flatten_func, unflatten_func)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Like `register_pytree_node`, with children given as pairs (key, child).

    Keys print in key paths by their `str`; see `functrans.tree_util.GetAttrKey`. `flatten_func`
    is taken for speed by other systems and not needed here.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> key = ft.tree_util.GetAttrKey
    >>> ft.tree_util.register_pytree_with_keys(
    ...     Pair, lambda p: (((key("a"), p.a), (key("b"), p.b)), None),
    ...     lambda _, children: Pair(*children))
    >>> [ft.tree_util.keystr(path) for path, _ in ft.tree.leaves_with_path(Pair(1, 2))]
    ['.a', '.b']
    """

    def flatten(x: Any) -> tuple[list[Any], Any, list[Any]]:
        pairs, aux = flatten_with_keys(x)
        pairs = list(pairs)
        return [child for _, child in pairs], aux, [key for key, _ in pairs]

    _register(nodetype, flatten, unflatten_func, NamedKey)


def register_pytree_node_class(cls: _T) -> _T:
    """Class decorator: a node by its methods `tree_flatten()` and classmethod `tree_unflatten`.

    >>> @register_pytree_node_class
    ... class Point:
    ...     def __init__(self, x): self.x = x
    ...     def tree_flatten(self): return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children): return cls(*children)
    """
    # that the class has the methods is for its author: a Protocol would fix their signatures
    _register(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: _T) -> _T:
    """Class decorator: as `register_pytree_node_class`, by `tree_flatten_with_keys()`.

    >>> @ft.tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten_with_keys(self):
    ...         return ((ft.tree_util.GetAttrKey("x"), self.x),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> ft.tree.map(lambda x: x + 1, Box(4)).x
    5
    """
    unflatten = cls.tree_unflatten  # type: ignore[attr-defined]  # as above
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), unflatten)
    return cls


def register_static(cls: _T) -> _T:
    """Class decorator: instances are nodes without leaves, compared by `==` and `hash`.

    >>> @register_static
    ... class Activation(str):
    ...     pass
    """
    _register(cls, lambda x: ((), x), lambda x, _: x)
    return cls


def register_dataclass(
    nodetype: Any = None,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Any:
    """Make a dataclass a node: its data fields are children, its meta fields static, hashable.

    Without the names, fields declared `dataclasses.field(metadata=dict(static=True))` are meta and
    all others data; `drop_fields` are left out and get their defaults. Usable as a decorator, with
    and without arguments. Raises RegistrationError if the names are not exactly the fields.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = dataclasses.field(metadata=dict(static=True))
    >>> from functrans.core.tree import tree_leaves
    >>> tree_leaves(Layer(1.0, "first"))
    [1.0]
    """
    if nodetype is None:
        return functools.partial(
            register_dataclass,
            data_fields=data_fields,
            meta_fields=meta_fields,
            drop_fields=drop_fields,
        )
    data, meta = _split_fields(nodetype, data_fields, meta_fields, drop_fields)

    def flatten(x: Any) -> tuple[list[Any], tuple[Any, ...], tuple[str, ...]]:
        return [getattr(x, name) for name in data], tuple([getattr(x, n) for n in meta]), data

    def unflatten(aux: tuple[Any, ...], children: Iterable[Any]) -> Any:
        fields = dict(zip(data, children, strict=True))
        return nodetype(**fields, **dict(zip(meta, aux, strict=True)))

    _register(nodetype, flatten, unflatten, optree.GetAttrEntry)
    return nodetype


def _split_fields(
    cls: Any,
    data_fields: Sequence[str] | None,
    meta_fields: Sequence[str] | None,
    drop_fields: Sequence[str],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the data and of the meta fields of a dataclass, checked."""
    is_dataclass = isinstance(cls, type) and dataclasses.is_dataclass(cls)
    if (data_fields is None) != (meta_fields is None):
        raise RegistrationError("register_dataclass takes both data_fields and meta_fields.")
    if not is_dataclass and data_fields is None:
        raise RegistrationError(
            f"register_dataclass: {cls!r} is not a dataclass.",
            fix="@ft.tree_util.register_dataclass\n@dataclasses.dataclass\nclass Params: ...",
        )
    fields = [f for f in dataclasses.fields(cls) if f.init] if is_dataclass else []
    if data_fields is None or meta_fields is None:
        static = [f.name for f in fields if f.metadata.get("static", False)]
        dynamic = [f.name for f in fields if f.name not in static and f.name not in drop_fields]
        return tuple(dynamic), tuple(static)
    named = {*data_fields, *meta_fields, *drop_fields}
    known = {f.name for f in fields}
    if is_dataclass and named != known:
        missing, extra = sorted(known - named), sorted(named - known)
        raise RegistrationError(
            f"register_dataclass: data_fields and meta_fields are not the fields of "
            f"{cls.__qualname__}: missing {missing}, unexpected {extra}.",
        )
    return tuple(data_fields), tuple(meta_fields)


@dataclasses.dataclass(frozen=True, slots=True)
class _Boxed:
    """A `functools.partial` that `Partial` holds as it is, compared by what it binds."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*self.args, *args, **{**dict(self.keywords), **keywords})


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree: the arguments are children, the function is static.

    >>> from functrans.core.tree import tree_map
    >>> tree_map(lambda x: 10 * x, Partial(pow, 2))(3)
    8000
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> "Partial":
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            # functools.partial would take over the arguments of func, and make them children.
            func = _Boxed(func.func, func.args, tuple(sorted(func.keywords.items())))
        return super().__new__(cls, func, *args, **keywords)


register_pytree_with_keys(
    Partial,
    lambda p: (((GetAttrKey("args"), p.args), (GetAttrKey("keywords"), p.keywords)), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
