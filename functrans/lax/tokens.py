"""Tokens, which order what is computed, and what is kept though nobody reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functrans.callbacks import debug_callback
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError
from functrans.core.source import user_source
from functrans.core.tree import tree_flatten, tree_leaves, tree_map
from functrans.lax.parallel import ppermute
from functrans.primitives.barrier import optimization_barrier
from functrans.primitives.base import full
from functrans.tree_util import register_pytree_node_class
from functrans.typing import AxisName, PyTree

__all__ = ["Token", "after_all", "create_token", "dce_sink", "precv", "psend"]


@register_pytree_node_class
class Token:
    """A value that says only what it comes after: a pytree, to be handed on.

    A token that `psend` gives holds what was sent, for `precv`.

    >>> token = ft.lax.create_token()
    >>> isinstance(token.block_until_ready(), ft.extend.core.Token)
    True
    """

    def __init__(self, mark: Any, sent: PyTree = None) -> None:
        self.mark, self.sent = mark, sent

    def tree_flatten(self) -> tuple[tuple[Any, PyTree], None]:
        """What it holds; nothing is static."""
        return (self.mark, self.sent), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> Token:
        """The token of `tree_flatten`."""
        return cls(*children)

    def block_until_ready(self) -> Token:
        """The token itself, once what it comes after is computed."""
        for leaf in tree_leaves((self.mark, self.sent)):
            leaf.block_until_ready()
        return self

    def __repr__(self) -> str:
        return "Token()"


def create_token(_: object = None) -> Token:
    """A token that comes after nothing.

    >>> create_token()
    Token()
    """
    return Token(full((), False, "bool"))


def after_all(*operands: Token) -> Token:
    """A token that comes after all of some tokens; raises ArgumentError for other operands.

    >>> import functrans as ft
    >>> ft.lax.after_all(ft.lax.create_token(), ft.lax.create_token())
    Token()
    """
    if not all(isinstance(t, Token) for t in operands):
        raise ArgumentError("after_all takes tokens.", where=user_source(),
                            fix="lax.create_token(); lax.optimization_barrier for arrays")
    if not operands:
        return create_token()
    return Token(optimization_barrier(tuple([t.mark for t in operands]))[0])


def dce_sink(val: PyTree) -> None:
    """Compute the values of a pytree though nobody reads them.

    What no result depends on is left out of programs; this counts as reading, on the host.

    >>> import functrans as ft
    >>> ft.jit(lambda x: (ft.lax.dce_sink(x * 2), x)[1])(1.0).item()
    1.0
    """
    debug_callback(_read, val)


def _read(_: Any) -> None:
    """What values are handed to."""


def psend(x: PyTree, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Token:
    """Send a pytree along a named axis by (source, destination) pairs; `precv` has what came.

    >>> import functrans as ft
    >>> def shift(x):
    ...     token = ft.lax.psend(x, "i", [(0, 1), (1, 2)])
    ...     return ft.lax.precv(token, x, "i", [(0, 1), (1, 2)])
    >>> ft.vmap(shift, axis_name="i")(ft.numpy.array([1, 2, 3])).tolist()
    [0, 1, 2]
    """
    sent = ppermute(x, axis_name, perm)
    # the token is of the first array, as one that comes after it
    leaves = tree_leaves(sent)
    mark = full((), False, "bool")
    if leaves:
        mark = optimization_barrier((mark, leaves[0]))[0]
    return Token(mark, (sent, _TokenPairs(axis_name, perm)))


def precv(token: Token, out_shape: PyTree, axis_name: AxisName,
          perm: Sequence[tuple[int, int]]) -> PyTree:
    """What `psend` sent along the axis with the same pairs; zeros where nothing was sent.

    `out_shape` has the types of what comes. Raises ArgumentError where they, or the pairs, are not
    those of what was sent.

    >>> pairs = [(0, 1), (1, 2)]
    >>> def shift(x):
    ...     return lax.precv(lax.psend(x, "i", pairs), x, "i", pairs)
    >>> ft.vmap(shift, axis_name="i")(jnp.array([5, 6, 7])).tolist()
    [0, 5, 6]
    """
    if not isinstance(token, Token) or token.sent is None:
        raise ArgumentError("precv: the token is not one that psend gave.", where=user_source(),
                            fix="token = lax.psend(x, axis_name, perm)")
    sent, pairs = token.sent
    wanted, tree = tree_flatten(out_shape)
    leaves, sent_tree = tree_flatten(sent)
    types = [(tuple(x.shape), x.dtype) for x in wanted]
    if tree != sent_tree or types != [(get_aval(x).shape, x.dtype) for x in leaves]:
        raise ArgumentError(f"precv: out_shape has {types}, and "
                            f"{[str(get_aval(x)) for x in leaves]} was sent.", where=user_source())
    if pairs != _TokenPairs(axis_name, perm):
        raise ArgumentError(f"precv over {axis_name!r} with {list(perm)}, and {pairs} was sent.",
                            where=user_source())
    return tree_map(to_array, sent)


@register_pytree_node_class
class _TokenPairs:
    """Along which axis something was sent, and from where to where: a tree without leaves."""

    def __init__(self, axis_name: Any, perm: Sequence[tuple[int, int]]) -> None:
        self.key = axis_name, tuple([(int(s), int(d)) for s, d in perm])

    def tree_flatten(self) -> tuple[tuple[()], Any]:
        return (), self.key

    @classmethod
    def tree_unflatten(cls, key: Any, _: Any) -> _TokenPairs:
        return cls(*key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TokenPairs) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{list(self.key[1])} over {self.key[0]!r}"
