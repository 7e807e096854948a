"""`vjp`, `linearize` and `linear_transpose` for users: pytrees in, pytrees out, checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, TypeVarTuple, overload

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, DTypeError, ShapeError, public
from functrans.core.keypath import keystr
from functrans.core.record import Record
from functrans.core.source import user_source
from functrans.core.tree import (
    PyTreeDef,
    check_same_structure,
    tree_flatten,
    tree_paths,
    tree_unflatten,
)
from functrans.core.tree_registry import register_dataclass
from functrans.primitives.base import zeros
from functrans.primitives.differentiable import add_any
from functrans.transforms.cells import CellArguments, cell_arguments, refuse_twice, write_all
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args
from functrans.transforms.forward import check_tangent_cells, check_tangents, public_tangent
from functrans.transforms.jvp import strip_tangents
from functrans.transforms.linear import transpose_flat
from functrans.transforms.linear_functions import LinearFunction, register_linear_function
from functrans.transforms.linearize import LinearMap, linearize_flat
from functrans.transforms.tangents import is_differentiable

if TYPE_CHECKING:
    from functrans.typing import PyTree

R = TypeVar("R")
A = TypeVar("A")
Primals = TypeVarTuple("Primals")  # whose types the cotangents have

__all__ = ["JVP", "VJP", "Linearization", "float0_zeros", "linear_transpose", "linearization",
           "linearize", "vjp"]


def float0_zeros(x: Any) -> Any:
    """The gradient of an integer: an array of dtype float0, which holds nothing."""
    return np.zeros(get_aval(x).shape, dtypes.float0)


class GradValue(Record):
    """The cotangent of this input is returned."""


class DontWant(Record):
    """The cotangent of this input is not asked for."""


@register_dataclass
class GradRef(Record):
    """In the place of a cotangent that was added to a reference."""


@register_dataclass
class DidntWant(Record):
    """In the place of a cotangent that was not asked for."""


def accumulate(wanted: Any, cotangent: Any) -> Any:
    """What is returned for a cotangent, which is added where a reference wants it."""
    if isinstance(wanted, RefCell):
        wanted.value = add_any(wanted.value, cotangent)
        return GradRef()
    return DidntWant() if isinstance(wanted, DontWant) else cotangent


class Types(NamedTuple):
    """What is known of a derivative without its residuals.

    The primals at `cells` are what is in cells; what is there afterwards follows the outputs.
    """

    active: list[bool]
    primals: list[ShapedArray]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    outs: list[ShapedArray]
    cells: list[int]


@register_linear_function
class VJP(LinearFunction):
    """The pullback of a function at a point: cotangents of the output to those of the inputs.

    It holds the residuals of the forward pass, as the leaves of a pytree, and may be called any
    number of times. The cotangent of an input that is a reference is that of what was in it at
    first.
    """

    __slots__ = ()
    _types: Types

    @public
    def __call__(self, *cotangent: Any) -> Any:
        if len(cotangent) != 1:
            raise ArgumentError(
                f"the function from vjp takes one cotangent, got {len(cotangent)}.",
                why="it has the structure of the output: a tuple for several outputs.",
                fix="pull((ct_0, ct_1)) for a function that returns a tuple")
        found = self._pulled(cotangent[0], [None] * len(self._types.cells))
        return tree_unflatten(self._types.in_tree, found)

    def _pulled(self, cotangent: Any, of_last: list[Any]) -> list[Any]:
        """The cotangents of the inputs, for one of the output and of what is in cells last."""
        types = self._types
        cts, tree = tree_flatten(cotangent)
        if tree != types.out_tree:
            check_same_structure(types.out_tree, tree, "the cotangent (compared with the output)")
        cts = [check_cotangent(ct, aval, types.out_tree, i)
               for i, (ct, aval) in enumerate(zip(cts, types.outs, strict=True))]
        results = iter(self._derivative.backwards([*cts, *of_last]))
        full: list[Any] = []
        for aval, active in zip(types.primals, types.active, strict=True):
            ct = next(results) if active else np.zeros(aval.shape, dtypes.float0)
            full.append(zeros(aval.strong()) if ct is None else ct)
        return full

    @public
    def with_refs(self, *wanted: Any) -> Callable[[Any], Any]:
        """The same function of a cotangent, which adds those of the inputs to references.

        `wanted` has the structure of the inputs: a reference at each place whose cotangent is to
        be added to it (the result has `ad.GradRef()` there), `ad.DontWant()` where there is to be
        none (`ad.DidntWant()`), anything else, such as `ad.GradValue()`, where it is returned.
        The reference for an input that is one itself has the cotangent of its last value before
        the call, and of its first one afterwards. Raises TreeMismatchError for another structure,
        ShapeError or DTypeError for a reference of another type.

        >>> import functrans as ft
        >>> g = ft.new_ref(0.0)
        >>> for x in (2.0, 3.0):
        ...     _, pull = ft.vjp(lambda x: x * x, x)
        ...     _ = pull.with_refs(g)(1.0)
        >>> g[...].item()
        10.0
        """
        leaves, tree = tree_flatten(wanted)
        if tree != self._types.in_tree:
            check_same_structure(self._types.in_tree, tree,
                                 "with_refs: what is wanted (compared with the primals)")
        for i, (x, aval) in enumerate(zip(leaves, self._types.primals, strict=True)):
            if isinstance(x, RefCell):
                _check_accumulator(x, aval, keystr(tree_paths(tree)[i]))
        states = {i: leaves[i] for i in self._types.cells
                  if isinstance(leaves[i], RefCell) and self._types.active[i]}
        if states:
            refuse_twice([x for x in leaves if isinstance(x, RefCell)], "with_refs")

        @public
        def pull(cotangent: Any) -> Any:
            cts = self._pulled(cotangent, [states[i].value if i in states else None
                                           for i in self._types.cells])
            write_all(list(states.values()), [cts[i] for i in states])
            return tree_unflatten(tree, [
                GradRef() if i in states else accumulate(x, ct)
                for i, (x, ct) in enumerate(zip(leaves, cts, strict=True))])

        return pull

    def __repr__(self) -> str:
        return f"VJP({', '.join(map(str, self._types.outs))})"


@register_linear_function
class JVP(LinearFunction):
    """The derivative of a function at a point: tangents of the inputs to those of the output.

    Its residuals are the leaves of a pytree. The tangent of a reference is in a reference: at
    first of what was in it before the function, afterwards of what the function left there.
    """

    __slots__ = ()
    _types: Types

    @public
    def __call__(self, *tangents: Any) -> Any:
        types = self._types
        given, tree = tree_flatten(tangents)
        if tree != types.in_tree:
            check_same_structure(types.in_tree, tree, "the tangents (compared with the primals)")
        check_tangent_cells(types.cells, given, tree, "linearize")
        cells: list[Any] = [given[i] for i in types.cells]
        refuse_twice([c for c in cells if isinstance(c, RefCell)], "linearize")
        given = [t.value if isinstance(t, RefCell) else t for t in given]
        checked = check_tangents(types.primals, given, tree, "linearize: the tangent")
        results = self._derivative.forwards([t for t in checked if t is not None])
        for i, cell, t in zip(types.cells, cells, results[len(types.outs):], strict=True):
            if isinstance(cell, RefCell):
                cell.value = public_tangent(t, types.primals[i])
        return tree_unflatten(types.out_tree, [public_tangent(t, o) for t, o in
                                               zip(results, types.outs, strict=False)])

    def __repr__(self) -> str:
        return f"JVP({', '.join(map(str, self._types.outs))})"


def _check_accumulator(cell: RefCell, aval: ShapedArray, path: str) -> None:
    what = f"with_refs: {cell.type} at {path} is for the cotangent of {aval.strong()}."
    if cell.type.shape != aval.shape:
        raise ShapeError(what, where=user_source(), why="a cotangent has the shape of its input.",
                         fix="functrans.new_ref(functrans.numpy.zeros_like(x))")
    if cell.type.dtype != aval.dtype:
        raise DTypeError(what, where=user_source(), why="a reference keeps its dtype.",
                         fix="functrans.new_ref(functrans.numpy.zeros_like(x))")


def check_cotangent(ct: Any, aval: ShapedArray, tree: PyTreeDef, index: int) -> Any:
    """A cotangent as an array of the output's type; None for one of dtype float0."""
    if not is_differentiable(aval):
        return None
    return fitting_cotangent(ct, aval, tree, index)


def fitting_cotangent(ct: Any, aval: ShapedArray, tree: PyTreeDef, index: int) -> Any:
    """A cotangent as an array of the output's type."""
    where = f"the cotangent at {keystr(tree_paths(tree)[index]) or 'the output'}"
    ct = to_array(ct, where)
    got = get_aval(ct)
    if got.shape != aval.shape:
        raise ShapeError(f"{where} is {got}, the output {aval}.", where=user_source(),
                         why="a cotangent has the shape of its output.")
    if got.dtype != aval.dtype:
        if not got.weak_type or (dtypes.kind(got.dtype) == "c") > (dtypes.kind(aval.dtype) == "c"):
            raise DTypeError(f"{where} is {got}, the output {aval}.", where=user_source(),
                             why="a cotangent has the dtype of its output.",
                             fix=f"cotangent.astype({aval.dtype.name!r})")
        ct = ct.astype(aval.dtype)
    return ct


@overload
def vjp(fun: Callable[..., R], *primals: *Primals, has_aux: Literal[False] = False
        ) -> tuple[R, Callable[[PyTree], tuple[*Primals]]]: ...


@overload
def vjp(fun: Callable[..., tuple[R, A]], *primals: *Primals, has_aux: Literal[True]
        ) -> tuple[R, Callable[[PyTree], tuple[*Primals]], A]: ...


def vjp(  # type: ignore[misc]  # mypy: that PyTree is any type
        fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False) -> tuple[PyTree, ...]:
    """The value of `fun` at `primals` and the function that pulls cotangents back.

    Returns (out, vjp_fun), and the auxiliary output with `has_aux`. `vjp_fun` takes one cotangent
    with the structure, shapes and dtypes of out and returns a tuple, one entry per primal.
    Raises TreeMismatchError, ShapeError or DTypeError where a cotangent does not fit.

    >>> import functrans as ft
    >>> out, pull = ft.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in pull(1.0)]
    [3.0, 2.0]
    """
    check_callable(fun, "vjp")
    found = linearization(fun, primals, "vjp", has_aux)
    found.write()
    pull = VJP(found.derivative, found.types)
    return (found.out, pull, found.aux) if has_aux else (found.out, pull)


@overload
def linearize(fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False
              ) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(fun: Callable[..., tuple[R, A]], *primals: PyTree, has_aux: Literal[True]
              ) -> tuple[R, Callable[..., R], A]: ...


def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False
              ) -> tuple[PyTree, ...]:
    """The value of `fun` at `primals` and its derivative there as a linear function of tangents.

    Returns (out, jvp_fun), and the auxiliary output with `has_aux`; `jvp_fun(*tangents)` repeats
    none of the work of the value.

    >>> import functrans as ft
    >>> out, push = ft.linearize(lambda x: x ** 3, 2.0)
    >>> float(out), float(push(1.0)), float(push(2.0))
    (8.0, 12.0, 24.0)
    """
    check_callable(fun, "linearize")
    found = linearization(fun, primals, "linearize", has_aux)
    found.write()
    push = JVP(found.derivative, found.types)
    return (found.out, push, found.aux) if has_aux else (found.out, push)


class Linearization(NamedTuple):
    """A function at a point: its output, and its derivative, as `linearization` finds them.

    `write` puts into the cells among the arguments what the function leaves there.
    """

    out: Any
    outs: list[Any]
    out_tree: PyTreeDef
    aux: Any
    derivative: LinearMap
    active: list[bool]
    primals: list[Any]
    in_tree: PyTreeDef
    cells: CellArguments | None
    last: list[Any]

    @property
    def types(self) -> Types:
        """What is known of the derivative without its residuals."""
        return Types(self.active, list(map(get_aval, self.primals)), self.in_tree, self.out_tree,
                     list(map(get_aval, self.outs)), self.cells.places if self.cells else [])

    def write(self) -> None:
        if self.cells is not None:
            write_all(self.cells.cells, self.last)


def _is_active(x: Any) -> bool:
    return is_differentiable(get_aval(x))


def linearization(fun: Callable[..., Any], args: tuple[Any, ...], what: str, has_aux: bool,
                  is_active: Callable[[Any], bool] = _is_active) -> Linearization:
    """`fun` and its derivative at arguments, in the leaves that are active."""
    cells = cell_arguments(args, what)
    if cells is not None:
        fun, args = cells.pure(fun, what, has_aux), cells.values
    leaves, tree = flatten_args(args, what)
    active = [is_active(x) for x in leaves]
    flat = FlatFunction(fun, tree, {}, what, has_aux)
    outs, derivative = linearize_flat(flat, leaves, active)
    out, out_tree, last = tree_unflatten(flat.out_tree, outs), flat.out_tree, []
    if cells is not None:
        out, last = out
        outs, out_tree = tree_flatten(out)
    return Linearization(out, outs, out_tree, strip_tangents(flat.aux) if has_aux else None,
                         derivative, active, leaves, tree, cells, last)


def linear_transpose(fun: Callable[..., Any], *primals: PyTree
                     ) -> Callable[[PyTree], tuple[PyTree, ...]]:
    """The transpose of a linear function; `primals` give only shapes and dtypes.

    Floating and complex values go to such, or integers to integers. Raises
    NotDifferentiableError when an operation of `fun` is not linear in them, DTypeError for others.

    >>> import functrans as ft
    >>> transposed = ft.linear_transpose(lambda x: 3.0 * x, ft.ShapeDtypeStruct((), "float32"))
    >>> float(transposed(1.0)[0])
    3.0
    """
    check_callable(fun, "linear_transpose")
    specs, tree = tree_flatten(primals)
    avals = [ShapedArray(tuple(x.shape), dtypes.as_dtype(x.dtype)) if hasattr(x, "shape")
             else get_aval(to_array(x)).strong() for x in specs]

    @public
    def transposed(cotangent: Any) -> tuple[Any, ...]:
        flat = FlatFunction(fun, tree, {}, "linear_transpose")
        cts, ct_tree = tree_flatten(cotangent)
        arrays = [to_array(ct, "the cotangent") for ct in cts]

        def checked(*leaves: Any) -> list[Any]:
            outs = flat(*leaves)
            if ct_tree != flat.out_tree:
                check_same_structure(flat.out_tree, ct_tree,
                                     "the cotangent (compared with the output)")
            _check_linear(avals, [get_aval(out) for out in outs])
            for i, (ct, out) in enumerate(zip(arrays, outs, strict=True)):
                arrays[i] = fitting_cotangent(ct, get_aval(out), ct_tree, i)
            return outs

        results = transpose_flat(checked, avals, arrays)
        filled = [zeros(a) if r is None else r for r, a in zip(results, avals, strict=True)]
        arguments: tuple[Any, ...] = tree_unflatten(tree, filled)
        return arguments

    return transposed


def _check_linear(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Linear maps go from floating to floating, or from integer to integer values."""
    letters = [{dtypes.kind(a.dtype) for a in side} for side in (avals, outs)]
    if any(all(found <= set(kinds) for found in letters) for kinds in ("fc", "iu")):
        return
    given, made = (", ".join(map(str, side)) for side in (avals, outs))
    raise DTypeError(f"linear_transpose of a function from {given} to {made}.",
                     where=user_source(),
                     why="a linear map goes from floating or complex to floating or complex "
                         "values, or from integers to integers.",
                     fix="pass floats: 1.0 instead of 1, x.astype('float32')")
