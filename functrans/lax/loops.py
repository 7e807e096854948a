"""scan, while_loop, fori_loop and map: loops whose body is traced once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import config, dtypes
from functrans.core.avals import get_aval
from functrans.core.cells import cells_in_use
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Size, known_relation
from functrans.core.errors import (
    ArgumentError,
    AxisSizeError,
    ConcretizationError,
    DTypeError,
    ShapeError,
    hide_internal_frames,
)
from functrans.core.keypath import keystr
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import is_array
from functrans.core.tree import (
    PyTreeDef,
    tree_map,
    tree_paths,
    tree_structure,
    tree_unflatten,
)
from functrans.core.varying import vary
from functrans.lax.bodies import Carry, leaves_of, retyped, stage_carrying
from functrans.lax.lifted import repeated, scanned
from functrans.primitives.arithmetic import add
from functrans.primitives.base import zeros
from functrans.primitives.broadcast import size_array
from functrans.primitives.compare import lt
from functrans.primitives.control_flow import scan_p, while_p
from functrans.primitives.convert import convert_element_type
from functrans.primitives.shape import concatenate, expand_dims, reshape, slice_in_dim, squeeze
from functrans.transforms.flat import FlatFunction, check_callable, name_of
from functrans.transforms.vmap import vmap
from functrans.typing import Array, ArrayLike

T = TypeVar("T")
C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")

__all__ = ["fori_loop", "map", "scan", "while_loop"]


def scan(f: Callable[[C, X], tuple[C, Y]], init: C, xs: X | None = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[C, Y]:
    """Run `carry, y = f(carry, x)` over the elements of `xs`; returns the last carry and all ys.

    `xs` is a pytree of arrays, which are read along their first axis; the ys are stacked along a
    new first axis. With `xs=None`, `length` iterations are run. `reverse` goes from the last
    element to the first. `unroll` tells compilers how many iterations to write out. The carry has
    one structure with the same shapes and dtypes throughout.
    Raises CarryTypeError where it changes, AxisSizeError where the sizes of `xs` differ.

    >>> import functrans as ft
    >>> total, sums = ft.lax.scan(lambda c, x: (c + x, c + x), 0.0, ft.numpy.arange(4.0))
    >>> float(total), sums.tolist()
    (6.0, [0.0, 1.0, 3.0, 6.0])
    """
    check_callable(f, "scan")
    try:
        return _scan(f, init, xs, length, reverse, unroll)
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _scan(f: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool,
          unroll: int | bool, what: str = "scan", hidden: int = 0) -> tuple[Any, Any]:
    if cells_in_use():
        def run(body: Any, carry: Any, xs: Any, more: int) -> Any:
            return _pure_scan(body, carry, xs, length, reverse, unroll, what, hidden + more)

        return scanned(run, f, lambda out: _pair(f, out), init, xs, what)
    return _pure_scan(f, init, xs, length, reverse, unroll, what, hidden)


def _pure_scan(f: Callable[..., Any], init: Any, xs: Any, length: Any, reverse: bool,
               unroll: int | bool, what: str, hidden: int) -> tuple[Any, Any]:
    leaves, tree = leaves_of(init, f"{what}: the initial carry")
    carry = Carry(what, leaves, tree, hidden)
    elements, xs_tree = leaves_of(xs, f"{what}: xs")
    size = _scan_length(what, elements, xs_tree, length)
    if config.current().disable_jit and isinstance(size, int):
        return _python_scan(f, tree_unflatten(tree, leaves), elements, xs_tree, size, reverse)

    def body(c: Any, x: Any) -> tuple[Any, Any]:
        return _pair(f, f(c, x))

    x_avals = [get_aval(x).with_shape(x.shape[1:]) for x in elements]
    closed, ys_tree = stage_carrying(f, body, carry, x_avals, xs_tree)
    if unroll is True:
        unroll = size if isinstance(size, int) else 1
    outs = scan_p.bind(*closed.consts, *carry.leaves, *elements,
                       jaxpr=closed.jaxpr.hoist_consts(), length=size, reverse=bool(reverse),
                       unroll=max(int(unroll), 1), num_consts=len(closed.consts),
                       num_carry=len(carry.leaves))
    count = len(carry.leaves)
    return tree_unflatten(tree, outs[:count]), tree_unflatten(ys_tree, outs[count:])


def _pair(f: Callable[..., Any], out: Any) -> tuple[Any, Any]:
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        found = f"a {type(out).__name__} of {len(out)}" if isinstance(out, (tuple, list)) \
            else "an array" if is_array(out) else f"a {type(out).__name__}"
        raise ArgumentError(f"scan: {name_of(f)} must return a pair (carry, y), got {found}.",
                            where=user_source(), fix="return carry, None")
    return out[0], out[1]


def _scan_length(what: str, xs: list[Any], tree: PyTreeDef, length: Any) -> Size:
    """The one size of the first axes of xs and of `length`."""
    paths = tree_paths(tree)
    for x, path in zip(xs, paths, strict=True):
        if not x.ndim:
            raise ShapeError(f"{what}: xs{keystr(path)} is the scalar {get_aval(x)}.",
                             where=user_source(), why="xs are read along their first axis.",
                             fix="close over what is the same in all iterations")
    if length is not None and not isinstance(length, Dim):
        try:
            length = int(length)
        except ConcretizationError as error:
            raise ConcretizationError(
                f"{what}: the length is traced.", where=user_source(),
                why="the number of iterations must be known, since it is the size of the ys.",
                fix="lax.fori_loop or lax.while_loop, which carry values only") from error
        if length < 0:
            raise AxisSizeError(f"{what}: the length is {length}.", where=user_source())
    if not xs and length is None:
        raise AxisSizeError(f"{what}: there are no xs, and no length.", where=user_source(),
                            fix="scan(f, init, xs) or scan(f, init, length=n)")
    size: Size = xs[0].shape[0] if length is None else length
    if any(x.shape[0] != size for x in xs):
        sizes = [f"xs{keystr(p)} has {x.shape[0]}" for x, p in zip(xs, paths, strict=True)]
        if length is not None:
            sizes.insert(0, f"length is {length}")
        raise AxisSizeError(f"{what}: the sizes of the first axes differ: {', '.join(sizes)}.",
                            where=user_source(), why="all xs are read in step.")
    return size


def _python_scan(f: Callable[..., Any], carry: Any, xs: list[Any], tree: PyTreeDef, size: int,
                 reverse: bool) -> tuple[Any, Any]:
    """The loop in Python, for debuggers."""
    if size == 0:
        carry_avals = [get_aval(x) for x in leaves_of(carry, "scan: the initial carry")[0]]
        x_avals = [get_aval(x).with_shape(x.shape[1:]) for x in xs]
        call = FlatFunction(lambda c, x: _pair(f, f(c, x))[1], tree_structure(
            (carry, tree_unflatten(tree, xs))), {}, "scan")
        closed = stage(call, [*carry_avals, *x_avals])
        empty = [zeros(a.with_shape((0, *a.shape))) for a in closed.out_avals]
        return carry, tree_unflatten(call.out_tree, empty)
    ys = []
    for i in reversed(range(size)) if reverse else range(size):
        x = [squeeze(slice_in_dim(x, i, i + 1), (0,)) for x in xs]
        carry, y = _pair(f, f(carry, tree_unflatten(tree, x)))
        ys.append(tree_map(to_array, y))
    if reverse:
        ys.reverse()
    return carry, tree_map(lambda *each: concatenate([expand_dims(y, (0,)) for y in each], 0), *ys)


def while_loop(cond_fun: Callable[[T], ArrayLike], body_fun: Callable[[T], T],
               init_val: T) -> T:
    """Run `val = body_fun(val)` as long as `cond_fun(val)` holds; returns the last value.

    The value is a pytree of one structure with the same shapes and dtypes throughout; `cond_fun`
    returns a boolean scalar. Reverse mode saves what every iteration needs, on a tape that grows
    with the number of iterations. Where `vmap` makes the predicate an array, elements that are done
    keep their value. Raises CarryTypeError where the body changes a type, DTypeError or ShapeError
    for another predicate.

    >>> import functrans as ft
    >>> float(ft.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1.0))
    128.0
    >>> float(ft.grad(lambda x: ft.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, x))(1.0))
    128.0
    """
    check_callable(cond_fun, "while_loop: cond_fun")
    check_callable(body_fun, "while_loop: body_fun")
    try:
        last: T = _while("while_loop", cond_fun, body_fun, init_val)
        return last
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _while(what: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any,
           hidden: int = 0) -> Any:
    if cells_in_use():
        def run(test: Any, body: Any, init: Any, more: int) -> Any:
            return _pure_while(what, test, body, init, hidden + more)

        return repeated(run, cond_fun, body_fun, init, what)
    return _pure_while(what, cond_fun, body_fun, init, hidden)


def _pure_while(what: str, cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any],
                init: Any, hidden: int) -> Any:
    leaves, tree = leaves_of(init, f"{what}: the initial value")
    if config.current().disable_jit:
        value = tree_unflatten(tree, leaves)
        holds = to_array(cond_fun(value), f"{what}: the predicate")
        if isinstance(holds, ArrayBase):
            while holds:
                value = body_fun(value)
                holds = cond_fun(value)
            return value
    carry = Carry(what, leaves, tree, hidden)
    body, _ = stage_carrying(body_fun, lambda c, _: (body_fun(c), None), carry, (),
                             tree_structure(None))
    flat = FlatFunction(cond_fun, tree_structure((tree_unflatten(tree, leaves),)), {}, what)
    test = stage(flat, carry.avals, name=name_of(cond_fun))
    _check_predicate(what, cond_fun, test.out_avals, flat.out_tree)
    axes = test.out_avals[0].varying
    if axes:  # each device runs the loop for itself
        carry.leaves = [vary(x, axes) for x in carry.leaves]
        body, _ = stage_carrying(body_fun, lambda c, _: (body_fun(c), None), carry, (),
                                 tree_structure(None))
        test = retyped(test, carry.avals, axes, [axes])
        body = retyped(body, carry.avals, axes, [axes] * len(carry.leaves))
    outs = while_p.bind(*test.consts, *body.consts, *carry.leaves,
                        cond_jaxpr=test.jaxpr.hoist_consts(), body_jaxpr=body.jaxpr.hoist_consts(),
                        cond_nconsts=len(test.consts), body_nconsts=len(body.consts))
    return tree_unflatten(tree, outs)


def _check_predicate(what: str, cond_fun: Any, avals: Any, tree: PyTreeDef) -> None:
    if tree != tree_structure(0):
        raise ArgumentError(f"{what}: {name_of(cond_fun)} must return a boolean scalar, got the "
                            f"structure {tree}.", where=user_source())
    (aval,) = avals
    if aval.shape:
        raise ShapeError(f"{what}: {name_of(cond_fun)} must return a boolean scalar, got {aval}.",
                         where=user_source(), fix="reduce it: return (x > 0).any()")
    if dtypes.kind(aval.dtype) != "b":
        raise DTypeError(f"{what}: {name_of(cond_fun)} must return a boolean scalar, got {aval}.",
                         where=user_source(), fix="return x != 0")


def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Array, T], T], init_val: T, *,
              unroll: int | bool | None = None) -> T:
    """Run `val = body_fun(i, val)` for i in range(lower, upper); returns the last value.

    The bounds are integers, or both floating, traced ones too; where both are known the loop is
    a scan, and otherwise a while loop (`unroll` is for the former). Types as in `while_loop`.
    Raises CarryTypeError where the body changes a type, DTypeError for bounds of other dtypes.

    >>> import functrans as ft
    >>> int(ft.lax.fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    check_callable(body_fun, "fori_loop")
    try:
        last: T = _fori_loop(lower, upper, body_fun, init_val, unroll)
        return last
    except Exception as error:
        raise hide_internal_frames(error) from error.__cause__


def _fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any,
               unroll: Any) -> Any:
    if isinstance(lower, (int, Dim)) and isinstance(upper, (int, Dim)) \
            and not (isinstance(lower, int) and isinstance(upper, int)):
        return _loop_of_sizes(lower, upper, body_fun, init, unroll)
    first, last = (to_array(size_array(x, np.int32) if isinstance(x, Dim) else x,
                            f"fori_loop: the {side} bound")
                   for x, side in ((lower, "lower"), (upper, "upper")))
    for bound, side in ((first, "lower"), (last, "upper")):
        if dtypes.kind(bound.dtype) not in "iuf" or bound.ndim:
            raise DTypeError(f"fori_loop: the {side} bound is {get_aval(bound)}, not a real "
                             "scalar.", where=user_source())
    if (dtypes.kind(first.dtype) == "f") != (dtypes.kind(last.dtype) == "f"):
        raise DTypeError(f"fori_loop: one bound is {get_aval(first)}, the other {get_aval(last)}.",
                         where=user_source(), why="the counter has one dtype.",
                         fix="fori_loop(0, int(n), f, x)")
    if isinstance(first, ArrayBase) and isinstance(last, ArrayBase):
        one = 1 if first.weak_type else np.ones((), first.dtype)[()]
        count = _count(first, last)

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            i, value = carry
            return (add(i, one), body_fun(i, value)), None

        step.__name__ = name_of(body_fun)  # which messages name
        (_, value), _ = _scan(step, (first, init), None, count, False, unroll or 1, "fori_loop", 1)
        return value
    if unroll is not None:
        raise ArgumentError("fori_loop: unroll needs bounds that are known.", where=user_source(),
                            why="with a traced bound the loop is a while loop.")
    dtype = dtypes.result_type(first, last)
    first, last = (convert_element_type(x, dtype) for x in (first, last))

    def body(carry: Any) -> Any:
        i, value = carry
        return add(i, np.ones((), dtype)[()]), body_fun(i, value)

    body.__name__ = name_of(body_fun)
    return _while("fori_loop", lambda carry: lt(carry[0], last), body, (first, init), 1)[1]


def _count(first: Any, last: Any) -> int:
    """How often a counter that grows by one is below the last value."""
    if dtypes.kind(first.dtype) != "f":
        return max(int(last) - int(first), 0)
    rounds = float(last) - float(first)
    if not math.isfinite(rounds):
        raise ArgumentError(f"fori_loop: the bounds are {float(first)} and {float(last)}.",
                            where=user_source(), fix="functrans.lax.while_loop")
    return max(math.ceil(rounds), 0)


def _loop_of_sizes(lower: Size, upper: Size, body_fun: Callable[[Any, Any], Any], init: Any,
                   unroll: Any) -> Any:
    """A loop from one size to another: a scan, whose length is symbolic too."""
    count = 0 if known_relation("<", upper, lower) else upper - lower
    start = size_array(lower, np.int32)

    def step(carry: Any, _: Any) -> tuple[Any, None]:
        i, value = carry
        return (add(i, np.int32(1)), body_fun(i, value)), None

    step.__name__ = name_of(body_fun)
    (_, value), _ = _scan(step, (start, init), None, count, False, unroll or 1, "fori_loop", 1)
    return value


def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """`f` of every element of `xs` along its first axis, one after the other, stacked.

    Arrays of shape (n, ...) give (n, *shape of f's result).

    `xs` is a pytree of arrays. With `batch_size`, that many elements are computed at a time, by
    vmap, and with 0 all of them. Raises AxisSizeError where the sizes of `xs` differ.

    >>> import functrans as ft
    >>> ft.lax.map(lambda x: x ** 2, ft.numpy.arange(3.0)).tolist()
    [0.0, 1.0, 4.0]
    """
    check_callable(f, "map")
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    if not isinstance(batch_size, int) or batch_size < 0:
        raise ArgumentError(f"map: batch_size must be a positive int, or 0 for all at a time, got "
                            f"{batch_size!r}.", where=user_source())
    if batch_size == 0:
        results: Y = vmap(f)(xs)
        return results
    leaves, tree = leaves_of(xs, "map: xs")
    size = _scan_length("map", leaves, tree, None)
    if isinstance(size, Dim):
        raise ConcretizationError(f"map: with batch_size the size of xs, {size}, must be known.",
                                  where=user_source())
    count = size // batch_size
    many = vmap(f)
    parts = []
    if count:
        head = [slice_in_dim(x, 0, count * batch_size) for x in leaves]
        head = [reshape(x, (count, batch_size, *x.shape[1:])) for x in head]
        ys = scan(lambda _, x: ((), many(x)), (), tree_unflatten(tree, head))[1]
        parts.append(tree_map(lambda y: reshape(y, (count * batch_size, *y.shape[2:])), ys))
    if count * batch_size < size or not count:
        rest = [slice_in_dim(x, count * batch_size, size) for x in leaves]
        parts.append(many(tree_unflatten(tree, rest)))
    joined: Y = parts[0] if len(parts) == 1 else \
        tree_map(lambda *each: concatenate(each, 0), *parts)
    return joined
