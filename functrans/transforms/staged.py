"""Functions as programs: `make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `closure_convert`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval, shape_text
from functrans.core.axes import MappedAxis
from functrans.core.cells import FrameKind, RefArray, RefCell, cells_in_use, framed, lifting
from functrans.core.convert import to_array
from functrans.core.dims import Dim, Size
from functrans.core.errors import ArgumentError, public, shown
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from functrans.core.sharding import Sharding
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import (
    check_same_structure,
    known_leaf,
    tree_flatten,
    tree_map,
    tree_structure,
    tree_unflatten,
)
from functrans.primitives.base import zeros
from functrans.primitives.references import ref_get_p, ref_set_p
from functrans.transforms.cells import CellArguments
from functrans.transforms.flat import FlatFunction, check_callable, name_of, wraps

if TYPE_CHECKING:
    from functrans.typing import Array, PyTree

R = TypeVar("R")

__all__ = ["ShapeDtypeStruct", "aval_of", "closure_convert", "eval_shape", "make_jaxpr"]


def _size(size: Any) -> Size:
    if isinstance(size, Dim):
        return size
    try:
        known = operator.index(size)
    except TypeError:
        known = -1
    if known < 0:
        raise ArgumentError(f"ShapeDtypeStruct: a size is an int from 0 on or has a name, got "
                            f"{shown(size)}.", where=user_source(),
                            fix='functrans.dim("B") for a size that is not known')
    return known


@known_leaf
class ShapeDtypeStruct:
    """Shape and dtype of an array that need not exist, and its sharding, if it has one.

    Raises DTypeError when `dtype` names no dtype.

    >>> import functrans as ft
    >>> ft.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    @public
    def __init__(self, shape: Any, dtype: Any, *, sharding: Sharding | None = None,
                 weak_type: bool = False) -> None:
        self.shape = tuple(map(_size, (shape,) if isinstance(shape, str) else shape))
        self.dtype = dtypes.as_dtype(dtype)
        self.weak_type = weak_type
        self.sharding = sharding

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Any:
        return self.aval.size

    @property
    def aval(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, self.weak_type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.aval == other.aval \
            and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = "" if self.sharding is None else f", sharding={self.sharding!r}"
        shape = f"({shape_text(self.shape).replace(',', ', ')}{',' if self.ndim == 1 else ''})"
        return f"ShapeDtypeStruct(shape={shape}, dtype={self.dtype.name}{weak}{place})"


def aval_of(x: Any) -> ShapedArray:
    """The type of an argument that is given as a value, or only by shape and dtype."""
    if isinstance(x, (ShapeDtypeStruct, Tracer)):
        return x.aval
    if isinstance(x, ShapedArray):
        return x
    return get_aval(to_array(x))


@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
               axis_env: Sequence[tuple[Any, int]] | None = None, *,
               return_shape: Literal[False] = False) -> Callable[..., ClosedJaxpr]: ...


@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
               axis_env: Sequence[tuple[Any, int]] | None = None, *,
               return_shape: Literal[True]) -> Callable[..., tuple[ClosedJaxpr, PyTree]]: ...


def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
               axis_env: Sequence[tuple[Any, int]] | None = None, *,
               return_shape: bool = False) -> Callable[..., Any]:
    """The function that returns the jaxpr of `fun` on arguments of given types.

    Arguments are arrays, numbers or ShapeDtypeStructs; with `return_shape` the output's structure
    of ShapeDtypeStructs is returned too. `axis_env` has the names and sizes of axes that
    collectives in `fun` refer to.

    >>> import functrans as ft
    >>> ft.make_jaxpr(ft.numpy.sin)(ft.ShapeDtypeStruct((3,), "float32"))
    { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }
    """
    return jaxpr_maker(fun, static_argnums, axis_env, return_shape)


def jaxpr_maker(fun: Callable[..., Any], static_argnums: int | Sequence[int],
                axis_env: Sequence[tuple[Any, int]] | None,
                return_shape: bool, keeps_arrays: bool = False) -> Callable[..., Any]:
    """The same; with `keeps_arrays` scalar arrays that `fun` closes over are constants, as in JAX,
    so that a known one and a traced one make the same program."""
    check_callable(fun, "make_jaxpr")
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun, "make_jaxpr")
    def jaxpr_of(*args: Any, **kwargs: Any) -> Any:
        fixed = {i % len(args): args[i] for i in static}
        dynamic = tuple(a for i, a in enumerate(args) if i not in fixed)

        def call(given: Any, keywords: Any) -> Any:
            rest = iter(given)
            return fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))],
                       **keywords)

        with ExitStack() as axes:
            for name, size in axis_env or ():
                axes.enter_context(MappedAxis(size, name).bound())
            closed, out_tree = stage_call(call, (dynamic, kwargs), name_of(fun),
                                              keeps_arrays)
        if not return_shape:
            return closed
        shapes = [_struct(a) for a in closed.out_avals]
        return closed, tree_unflatten(out_tree, shapes)

    return jaxpr_of


def stage_call(fun: Callable[..., Any], args: Any, name: str,
               keeps_arrays: bool = False) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of a function of pytrees, and the structure of its output."""
    if cells_in_use():
        return _stage_of_cells(fun, args, name, keeps_arrays)
    leaves, tree = tree_flatten(args)
    flat = FlatFunction(fun, tree, {}, name)
    avals = [aval_of(x) for x in leaves]
    return stage(flat, avals, name=name, keeps_arrays=keeps_arrays), flat.out_tree


def _stage_of_cells(fun: Callable[..., Any], args: Any, name: str,
                    keeps_arrays: bool) -> tuple[ClosedJaxpr, Any]:
    """The same, where cells that the function is given or touches are inputs and constants.

    In between the program is pure: cells are read before it, and written after it.
    """
    given = CellArguments(args, name)
    avals = [x.type if isinstance(x, RefCell) else aval_of(x) for x in given.leaves]

    def once(owner: object, cells: tuple[RefCell, ...]) -> tuple[ClosedJaxpr, Any]:
        trees: list[Any] = []

        def pure(*inputs: Any) -> list[Any]:
            values = inputs[:len(cells)]
            with framed(FrameKind.PROGRAM, owner, name, cells, values) as last:
                filled, own = given.filled(tree_unflatten(given.tree, inputs[len(cells):]))
                flat = FlatFunction(lambda: fun(*filled), tree_structure(()), {}, name)
                outs = flat()
                trees.append(flat.out_tree)
                return [*outs, *last(), *[c.value for c in own]]

        types = [c.type for c in cells]
        closed = stage(pure, [_contents(a) for a in (*types, *avals)], name=name,
                       keeps_arrays=keeps_arrays)
        return _with_cells(closed, cells, types, avals), trees[-1]

    return lifting(once)


def _contents(aval: ShapedArray) -> ShapedArray:
    return ShapedArray(aval.shape, aval.dtype) if isinstance(aval, RefArray) else aval


def _with_cells(closed: ClosedJaxpr, cells: Sequence[RefCell], types: Sequence[ShapedArray],
                avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program of what is in cells as one of the cells, of which some are its constants."""
    jaxpr = closed.jaxpr
    count = sum(isinstance(a, RefArray) for a in (*types, *avals))
    first = len(jaxpr.outvars) - count
    used = {v for eqn in jaxpr.eqns for v in eqn.invars} | {*jaxpr.outvars[:first]}
    inputs, reads, writes = [], [], []
    last = iter(jaxpr.outvars[first:])
    for var, aval in zip(jaxpr.invars, (*types, *avals), strict=True):
        if not isinstance(aval, RefArray):
            inputs.append(var)
            continue
        cell, after = Var(aval), next(last)
        inputs.append(cell)
        if var in used or (after is not var and var in jaxpr.outvars):
            reads.append(Equation(ref_get_p, (cell,), (var,), {}, None))
        if after is not var:
            writes.append(Equation(ref_set_p, (cell, after), (), {}, None))
    n = len(cells)
    jaxpr = Jaxpr((*inputs[:n], *jaxpr.constvars), tuple(inputs[n:]),
                  (*reads, *jaxpr.eqns, *writes), jaxpr.outvars[:first], name=jaxpr.name)
    return ClosedJaxpr(jaxpr, (*cells, *closed.consts))


def _struct(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


@overload
def eval_shape(fun: Callable[..., Array], *args: PyTree, **kwargs: PyTree
               ) -> ShapeDtypeStruct: ...


@overload
def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> PyTree: ...


def eval_shape(fun: Callable[..., Any], *args: PyTree, **kwargs: PyTree) -> PyTree:
    """The structure of ShapeDtypeStructs that `fun` would return, without computing it.

    >>> import functrans as ft
    >>> ft.eval_shape(lambda x: x @ x.T, ft.ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    check_callable(fun, "eval_shape")

    def types_as_values(a: Any, k: Any) -> Any:
        return tree_map(lambda x: zeros(x.aval) if isinstance(x, ShapeDtypeStruct) else x,
                        fun(*a, **k))

    closed, out_tree = stage_call(types_as_values, (args, kwargs), name_of(fun))
    return tree_unflatten(out_tree, [_struct(a) for a in closed.out_avals])


def closure_convert(fun: Callable[..., R], *example_args: PyTree
                    ) -> tuple[Callable[..., R], list[Array]]:
    """`fun` with what it closes over as explicit arguments: (converted, values).

    `converted(*args, *values)` equals `fun(*args)`; the values are the floating arrays and tracers
    that `fun` closes over.

    >>> import functrans as ft
    >>> y = ft.numpy.float32(2.0)
    >>> converted, values = ft.closure_convert(lambda x: x * y, 1.0)
    >>> float(converted(3.0, *values))
    6.0
    """
    check_callable(fun, "closure_convert")
    _, in_tree = tree_flatten(example_args)
    closed, out_tree = stage_call(fun, example_args, name_of(fun))
    hoisted = [not isinstance(c, RefCell) and dtypes.kind(get_aval(c).dtype) in "fc"
               for c in closed.consts]
    values = [c for c, h in zip(closed.consts, hoisted, strict=True) if h]

    @public
    def converted(*args_and_values: Any) -> Any:
        count = len(args_and_values) - len(values)
        args, given = args_and_values[:count], iter(args_and_values[count:])
        leaves, tree = tree_flatten(tree_map(to_array, args))
        if tree != in_tree:
            check_same_structure(in_tree, tree, "closure_convert: the tuple of arguments")
        consts = [next(given) if h else c for c, h in zip(closed.consts, hoisted, strict=True)]
        return tree_unflatten(out_tree, eval_jaxpr(closed.jaxpr, consts, *leaves))

    return converted, values
