"""Operations on the components of values: arrays without their short axes.

A value (512, 3) is three arrays (512,), a value (3, 3) nine scalars: `Components`. Each rule gives
the parts of a result from those of the operands; movements among short axes are movements of Python
objects and leave no operation. What has no rule raises `CannotScalarize`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.dims import Shape, Size
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.sizes import known_sizes, learn_sizes, substitute
from functrans.core.source import interpreted
from functrans.core.table import Table
from functrans.primitives.arithmetic import add_p, max_p, min_p, mul_p
from functrans.primitives.barrier import optimization_barrier_p
from functrans.primitives.base import full, full_p
from functrans.primitives.broadcast import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    reduce_sum_p,
    transpose,
    transpose_p,
)
from functrans.primitives.compare import and_p, clamp_p, or_p, select_n_p, xor_p
from functrans.primitives.control_flow.bodies import counted, stage_body
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from functrans.primitives.differentiable import add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.reduce import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from functrans.primitives.shape import (
    concatenate,
    concatenate_p,
    copy_p,
    iota_p,
    pad_p,
    reshape,
    reshape_p,
    rev_p,
    slice,
    slice_p,
)

__all__ = [
    "MOVING",
    "CannotScalarize",
    "has_short_axis",
    "join_components",
    "long_shape",
    "scalarize_jaxpr",
    "split_components",
]

SHORT: Final = 8  # elements of an axis
MOST_COMPONENTS: Final = 32  # of a value


class CannotScalarize(Exception):
    """An operation has no rule, or a value too many components."""


class Components:
    """The components of a value of `shape`: `atoms` has its short axes, each atom the others."""

    __slots__ = ("atoms", "shape")

    def __init__(self, atoms: np.ndarray[Any, Any], shape: Shape) -> None:
        if atoms.size > MOST_COMPONENTS or atoms.shape != tuple([shape[d]
                                                                 for d in short_axes(shape)]):
            raise CannotScalarize
        self.atoms = atoms
        self.shape = shape

    @property
    def one(self) -> Any:
        """The only component."""
        if self.atoms.size != 1:
            raise CannotScalarize
        return self.atoms.flat[0]

    def map(self, fun: Callable[[Any], Any], shape: Shape | None = None) -> Components:
        return Components(_objects(map(fun, self.atoms.flat), self.atoms.shape),
                          self.shape if shape is None else shape)


def _is_short(size: Size) -> bool:
    return isinstance(size, int) and 0 < size <= SHORT


def short_axes(shape: Shape) -> list[int]:
    return [d for d, n in enumerate(shape) if _is_short(n)]


def short_sizes(shape: Shape) -> list[int]:
    """The sizes of the short axes."""
    return [n for n in shape if isinstance(n, int) and _is_short(n)]


def long_axes(shape: Shape) -> list[int]:
    return [d for d, n in enumerate(shape) if not _is_short(n)]


def long_shape(shape: Shape) -> Shape:
    """The shape of a component."""
    return tuple([n for n in shape if not _is_short(n)])


def has_short_axis(shape: Shape) -> bool:
    """Whether a value is more than one component."""
    return any(_is_short(n) and n != 1 for n in shape)


def _objects(items: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """An array of Python objects: NumPy would look into arrays."""
    out = np.empty(math.prod(shape), object)
    for i, x in enumerate(items):
        out[i] = x
    return out.reshape(shape)


def split_components(x: Any, shape: Shape, leading: int = 0) -> Components:
    """The components of x, which has `leading` axes before those of `shape`."""
    at = short_axes(shape)
    sizes = short_sizes(shape)
    if math.prod(sizes) > MOST_COMPONENTS:
        raise CannotScalarize
    whole = get_aval(x).shape
    new = (*whole[:leading], *long_shape(shape))
    atoms = []
    for index in itertools.product(*map(range, sizes)):
        starts, limits = [0] * len(whole), list(whole)
        for d, i in zip(at, index, strict=True):
            starts[leading + d], limits[leading + d] = i, i + 1
        piece = x if tuple(limits) == whole and not any(starts) else slice(x, starts, limits)
        atoms.append(piece if not at else reshape(piece, new))
    return Components(_objects(atoms, sizes), shape)


def join_components(parts: Components, leading: Shape = ()) -> Any:
    """The value of components, which have `leading` axes of their own in front."""
    n, shape = len(leading), parts.shape
    ones = (*leading, *(1 if _is_short(s) else s for s in shape))
    atoms = _objects([reshape(a, ones) for a in parts.atoms.flat], parts.atoms.shape)
    for d in reversed(short_axes(shape)):
        rows = atoms.reshape(-1, atoms.shape[-1])
        atoms = _objects([concatenate(list(row), n + d) for row in rows], atoms.shape[:-1])
    return atoms.item()


def scalarize_jaxpr(jaxpr: Jaxpr, operands: Sequence[Components]) -> list[Components]:
    """The results of a program on the components of its operands."""
    env: dict[Any, Components] = dict(zip(jaxpr.invars, operands, strict=True))

    def read(a: Any) -> Components:
        return Components(_objects([a.value], ()), ()) if type(a) is Literal else env[a]

    sizes = known_sizes(jaxpr.in_avals, [p.shape for p in operands])
    outer = interpreted.source
    try:
        for eqn in jaxpr.eqns:
            interpreted.source = eqn.source or outer
            outs = operation(_sized(eqn, sizes), [read(a) for a in eqn.invars])
            for var, out in zip(eqn.outvars, outs, strict=True):
                env[var] = out
                learn_sizes(sizes, var.aval.shape, out.shape)
    finally:
        interpreted.source = outer
    return [read(a) for a in jaxpr.outvars]


def _sized(eqn: Equation, sizes: Mapping[str, Any]) -> Equation:
    """An equation with the sizes that are known by other names, or have values."""
    if not sizes:
        return eqn
    return Equation(eqn.primitive, eqn.invars,
                    tuple([Var(v.aval.substitute(sizes)) for v in eqn.outvars]),
                    {k: substitute(v, sizes) for k, v in eqn.params.items()}, eqn.source)


def operation(eqn: Equation, operands: Sequence[Components]) -> list[Components]:
    primitive, params = eqn.primitive, eqn.params
    loop = _OF_BODIES.get(primitive)
    if loop is not None:
        return loop(eqn, operands)
    shape = eqn.outvars[0].aval.shape
    if isinstance(primitive, Elementwise) or primitive in _POINTWISE:
        return [_pointwise(primitive, operands, shape, params)]
    rule = _RULES.get(primitive)
    if rule is None or any(_is_half(v.aval) for v in eqn.outvars):
        raise CannotScalarize
    return [rule(eqn, *operands)]


def _is_half(aval: ShapedArray) -> bool:
    """Whether a value is rounded more coarsely than it is computed, by kernels as a whole."""
    return dtypes.computed_dtype(aval.dtype) != aval.dtype


# ------------------------------------------------------------------------------ elementwise

_POINTWISE: Final[frozenset[Primitive]] = frozenset((
    select_n_p, clamp_p, convert_element_type_p, add_any_p, copy_p))


def _pointwise(primitive: Primitive, operands: Sequence[Components], shape: Shape,
               params: Mapping[str, Any]) -> Components:
    sizes = short_sizes(shape)
    arrays = [np.broadcast_to(p.atoms, sizes) if not p.shape else p.atoms for p in operands]
    return Components(_objects([primitive.bind(*atoms, **params)
                                for atoms in zip(*[a.flat for a in arrays], strict=True)], sizes),
                      shape)


# ------------------------------------------------------------------------------ movement


def _broadcast(eqn: Equation, x: Components) -> Components:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    at = {d: i for i, d in enumerate(short_axes(shape))}
    places = {d: i for i, d in enumerate(long_axes(shape))}
    kept = long_shape(shape)
    long_dims = tuple([places[dims[d]] for d in long_axes(x.shape)])
    wide = x.map(lambda a: a if len(long_dims) == len(kept) else
                 broadcast_in_dim(a, kept, long_dims)).atoms if kept else x.atoms
    atoms = np.empty([shape[d] for d in at], object)
    for index in np.ndindex(*atoms.shape):
        source = tuple([0 if x.shape[d] == 1 else index[at[dims[d]]] for d in short_axes(x.shape)])
        atoms[index] = wide[source]
    return Components(atoms, shape)


def _reshape(eqn: Equation, x: Components) -> Components:
    shape = eqn.outvars[0].aval.shape
    if _groups(x.shape) != _groups(shape):
        raise CannotScalarize
    return Components(x.atoms.reshape(short_sizes(shape)), shape)


def _groups(shape: Shape) -> list[Size]:
    """The long axes, and the products of the short ones before, between and behind them."""
    groups: list[Size] = [1]
    for n in shape:
        if _is_short(n):
            groups[-1] = groups[-1] * n
        else:
            groups += [n, 1]
    return groups


def _transpose(eqn: Equation, x: Components) -> Components:
    permutation, shape = eqn.params["permutation"], eqn.outvars[0].aval.shape
    short, long = short_axes(x.shape), long_axes(x.shape)
    atoms = x.atoms.transpose([short.index(d) for d in permutation if d in short])
    order = tuple([long.index(d) for d in permutation if d in long])
    return Components(atoms, shape).map(lambda a: transpose(a, order))


def _slice(eqn: Equation, x: Components) -> Components:
    p, shape = eqn.params, eqn.outvars[0].aval.shape
    bounds = list(zip(p["start_indices"], p["limit_indices"], p["strides"], strict=True))
    long = long_axes(x.shape)
    if long != long_axes(shape):
        raise CannotScalarize
    atoms = x.atoms[tuple([np.s_[a:b:s] for d, (a, b, s) in enumerate(bounds) if d not in long])]
    if all(shape[d] == x.shape[d] for d in long):
        return Components(atoms, shape)
    return Components(atoms, shape).map(lambda a: slice(a, *zip(*[bounds[d] for d in long])))


def _concatenate(eqn: Equation, *operands: Components) -> Components:
    axis, shape = eqn.params["dimension"], eqn.outvars[0].aval.shape
    if any(long_axes(p.shape) != long_axes(shape) for p in operands):
        raise CannotScalarize
    if _is_short(shape[axis]):
        return Components(np.concatenate([p.atoms for p in operands],
                                         short_axes(shape).index(axis)),
                          shape)
    at = long_axes(shape).index(axis)
    rows = zip(*[p.atoms.flat for p in operands], strict=True)
    return Components(_objects([concatenate(row, at) for row in rows], operands[0].atoms.shape),
                      shape)


def _rev(eqn: Equation, x: Components) -> Components:
    short, long = short_axes(x.shape), long_axes(x.shape)
    dimensions = eqn.params["dimensions"]
    atoms = np.flip(x.atoms, tuple([short.index(d) for d in dimensions if d in short]))
    at = tuple([long.index(d) for d in dimensions if d in long])
    return Components(atoms, x.shape).map(lambda a: rev_p.bind(a, dimensions=at) if at else a)


def _pad(eqn: Equation, x: Components, value: Components) -> Components:
    shape, config = eqn.outvars[0].aval.shape, eqn.params["padding_config"]
    long = long_axes(x.shape)
    if long != long_axes(shape) or any(config[d] != (0, 0, 0) for d in long):
        raise CannotScalarize
    kept = long_shape(shape)
    fill = broadcast_in_dim(value.one, kept, ()) if kept else value.one
    short = short_axes(x.shape)
    sizes = short_sizes(shape)
    atoms = _objects([fill] * math.prod(sizes), sizes)
    for index in np.ndindex(*x.atoms.shape):
        new = [config[d][0] + i * (config[d][2] + 1) for d, i in zip(short, index, strict=True)]
        if all(0 <= i < shape[d] for d, i in zip(short, new, strict=True)):
            atoms[tuple(new)] = x.atoms[index]
    return Components(atoms, shape)


def _iota(eqn: Equation) -> Components:
    p, shape = eqn.params, eqn.outvars[0].aval.shape
    kept, at = long_shape(shape), p["dimension"]
    short, sizes = short_axes(shape), short_sizes(shape)
    if at in short:
        axis = short.index(at)
        counts = [full(kept, i, p["dtype"]) for i in range(sizes[axis])]
        return Components(_objects([counts[index[axis]] for index in np.ndindex(*sizes)], sizes),
                          shape)
    row = iota_p.bind(dtype=p["dtype"], shape=kept, dimension=long_axes(shape).index(at))
    return Components(_objects([row] * math.prod(sizes), sizes), shape)


def _full(eqn: Equation) -> Components:
    shape = eqn.outvars[0].aval.shape
    sizes = short_sizes(shape)
    value = full(long_shape(shape), eqn.params["value"], eqn.params["dtype"])
    return Components(_objects([value] * math.prod(sizes), sizes), shape)


# ------------------------------------------------------------------------------ sums, products

_REDUCTIONS: Final[Table[Primitive]] = Table({
    reduce_sum_p: add_p, reduce_prod_p: mul_p, reduce_max_p: max_p, reduce_min_p: min_p,
    reduce_and_p: and_p, reduce_or_p: or_p, reduce_xor_p: xor_p}, otherwise="it reduces nothing")
_OF_BOOLEANS: Final[Mapping[Primitive, Primitive]] = {add_p: or_p, mul_p: and_p}
_SCANS: Final[Table[Primitive]] = Table({
    cumsum_p: add_p, cumprod_p: mul_p, cummax_p: max_p, cummin_p: min_p},
    otherwise="it accumulates nothing")


def _reduce(eqn: Equation, x: Components) -> Components:
    axes, shape = eqn.params["axes"], eqn.outvars[0].aval.shape
    combine = _REDUCTIONS[eqn.primitive]
    if dtypes.kind(eqn.outvars[0].aval.dtype) == "b":
        combine = _OF_BOOLEANS.get(combine, combine)
    short, long = short_axes(x.shape), long_axes(x.shape)
    over = [short.index(d) for d in axes if d in short]
    kept = [i for i in range(len(short)) if i not in over]
    rows = x.atoms.transpose([*kept, *over])
    sizes = rows.shape[:len(kept)]
    rows = rows.reshape(math.prod(sizes), -1)
    at = tuple([long.index(d) for d in axes if d in long])
    sums = [functools.reduce(combine.bind, row) for row in rows]
    return Components(_objects([eqn.primitive.bind(s, axes=at) if at else s for s in sums], sizes),
                      shape)


def _cumulative(eqn: Equation, x: Components) -> Components:
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]
    if not _is_short(x.shape[axis]):
        at = long_axes(x.shape).index(axis)
        return x.map(lambda a: eqn.primitive.bind(a, axis=at, reverse=reverse))
    at = short_axes(x.shape).index(axis)
    atoms = np.moveaxis(x.atoms, at, -1)
    combine = _SCANS[eqn.primitive].bind
    out = np.empty(atoms.shape, object)
    for index in np.ndindex(*atoms.shape[:-1]):
        row = list(atoms[index])[::-1 if reverse else 1]
        for i, total in enumerate(itertools.accumulate(row, combine)):
            out[index][len(row) - 1 - i if reverse else i] = total
    return Components(np.moveaxis(out, -1, at), x.shape)


def _dot(eqn: Equation, x: Components, y: Components) -> Components:
    (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    fx = [d for d in range(len(x.shape)) if d not in (*cx, *bx)]
    fy = [d for d in range(len(y.shape)) if d not in (*cy, *by)]
    if not all(_is_short(x.shape[d]) for d in cx) \
            or (long_shape(tuple([x.shape[d] for d in fx]))
                and long_shape(tuple([y.shape[d] for d in fy]))):
        raise CannotScalarize
    kept = long_shape(out.shape)
    # axes of the result, by operand axis
    places = [{**{d: i for i, d in enumerate(b)}, **{d: start + i for i, d in enumerate(f)}}
              for b, f, start in ((bx, fx, len(bx)), (by, fy, len(bx) + len(fx)))]

    def spread(p: Components, place: Mapping[int, int]) -> np.ndarray[Any, Any]:
        """The components with the long axes of the result."""
        order = {d: i for i, d in enumerate(long_axes(out.shape))}
        at = tuple([order[place[d]] for d in long_axes(p.shape)])
        return p.map(lambda a: broadcast_in_dim(_converted(a, out), kept, at)
                     if at != tuple(range(len(kept))) else _converted(a, out)).atoms

    wide = [spread(p, place) for p, place in zip((x, y), places, strict=True)]
    atoms = np.empty([out.shape[d] for d in short_axes(out.shape)], object)
    at_out = {d: i for i, d in enumerate(short_axes(out.shape))}
    for index in np.ndindex(*atoms.shape):
        terms = []
        for inner in itertools.product(*[range(x.shape[d]) for d in cx]):
            factors = []
            for p, array, place, contracted in ((x, wide[0], places[0], cx),
                                                (y, wide[1], places[1], cy)):
                known = dict(zip(contracted, inner, strict=True))
                factors.append(array[tuple([
                    known[d] if d in known else index[at_out[place[d]]]
                    for d in short_axes(p.shape)])])
            terms.append(mul_p.bind(*factors))
        atoms[index] = functools.reduce(add_p.bind, terms)
    return Components(atoms, out.shape)


def _converted(x: Any, aval: ShapedArray) -> Any:
    if get_aval(x).dtype == aval.dtype:
        return x
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=False)


_RULES: Final[Table[Callable[..., Components]]] = Table({
    broadcast_in_dim_p: _broadcast, reshape_p: _reshape, transpose_p: _transpose, slice_p: _slice,
    concatenate_p: _concatenate, rev_p: _rev, pad_p: _pad, iota_p: _iota, full_p: _full,
    dot_general_p: _dot, **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(_SCANS, _cumulative)}, otherwise="the loop stays one over vectors")


MOVING: Final = frozenset(_RULES) - {broadcast_in_dim_p, reshape_p, full_p, iota_p}
"""Operations that read elements at another place than they write them."""


# ------------------------------------------------------------------------------ loops, branches


def _flat(parts: Sequence[Components]) -> list[Any]:
    return [a for p in parts for a in p.atoms.flat]


def _again(atoms: Sequence[Any], shapes: Sequence[Shape]) -> list[Components]:
    """Values of these shapes, from all of their components in order."""
    rest = iter(atoms)
    found = []
    for shape in shapes:
        sizes = short_sizes(shape)
        found.append(Components(_objects(itertools.islice(rest, math.prod(sizes)), sizes), shape))
    return found


def _body(jaxpr: Jaxpr) -> Jaxpr:
    """A body over components."""
    shapes = [a.shape for a in jaxpr.in_avals]
    avals = [ShapedArray(long_shape(a.shape), a.dtype) for a in jaxpr.in_avals
             for _ in range(math.prod([a.shape[d] for d in short_axes(a.shape)]))]

    def run(*atoms: Any) -> list[Any]:
        return _flat(scalarize_jaxpr(jaxpr, _again(atoms, shapes)))

    return stage_body(run, avals, jaxpr.name)


def _shapes(jaxpr: Jaxpr) -> list[Shape]:
    return [a.shape for a in jaxpr.out_avals]


def _scan(eqn: Equation, operands: Sequence[Components]) -> list[Components]:
    p = eqn.params
    consts, carry, xs = counted(operands, p["num_consts"], p["num_carry"])
    groups = [_flat(consts), _flat(carry), [a for x in xs for a in _stacks(x)]]
    outs = scan_p.bind(*itertools.chain(*groups), **{
        **p, "jaxpr": _body(p["jaxpr"]), "num_consts": len(groups[0]), "num_carry": len(groups[1])})
    shapes = _shapes(p["jaxpr"])
    n = len(groups[1])
    return [*_again(outs[:n], shapes[:p["num_carry"]]),
            *_of_stacks(outs[n:], shapes[p["num_carry"]:], p["length"])]


def _while(eqn: Equation, operands: Sequence[Components]) -> list[Components]:
    p = eqn.params
    tests, consts, carry = counted(operands, p["cond_nconsts"], p["body_nconsts"])
    groups = [_flat(tests), _flat(consts), _flat(carry)]
    shapes = _shapes(p["body_jaxpr"])
    active = shapes[len(carry):][:p.get("num_active", 0)]
    if any(map(has_short_axis, active)):
        raise CannotScalarize
    outs = while_p.bind(*itertools.chain(*groups), **{
        **p, "cond_jaxpr": _body(p["cond_jaxpr"]), "body_jaxpr": _body(p["body_jaxpr"]),
        "cond_nconsts": len(groups[0]), "body_nconsts": len(groups[1])})
    n = len(groups[2])
    return [*_again(outs[:n], shapes[:len(carry)]),
            *_of_stacks(outs[n:], shapes[len(carry):], p.get("record"))]


def _stacks(x: Components) -> list[Any]:
    """The components of the elements of x, each stacked along the first axis of x."""
    if not _is_short(x.shape[0]):
        return list(x.atoms.flat)
    rows = x.atoms.reshape(x.atoms.shape[0], -1)
    return [concatenate([reshape(a, (1, *get_aval(a).shape)) for a in column], 0)
            for column in rows.T]


def _of_stacks(stacks: Sequence[Any], shapes: Sequence[Shape], length: Any) -> list[Components]:
    """Values of which the components of the elements are stacked."""
    rest = iter(stacks)
    found = []
    for shape in shapes:
        sizes = short_sizes(shape)
        columns = list(itertools.islice(rest, math.prod(sizes)))
        if not _is_short(length):
            size = get_aval(columns[0]).shape[0]
            found.append(Components(_objects(columns, sizes), (size, *shape)))
            continue
        rows = [reshape(slice(a, [i] + [0] * (a.ndim - 1), [i + 1, *a.shape[1:]]), a.shape[1:])
                for i in range(length) for a in columns]
        found.append(Components(_objects(rows, [length, *sizes]), (length, *shape)))
    return found


def _cond(eqn: Equation, operands: Sequence[Components]) -> list[Components]:
    index, *rest = operands
    branches = tuple([_body(b) for b in eqn.params["branches"]])
    outs = cond_p.bind(index.one, *_flat(rest), **{**eqn.params, "branches": branches})
    return _again(outs, _shapes(eqn.params["branches"][0]))


def _barrier(eqn: Equation, operands: Sequence[Components]) -> list[Components]:
    outs = optimization_barrier_p.bind(*_flat(operands), **eqn.params)
    return _again(list(outs), [p.shape for p in operands])


_OF_BODIES: Final[Table[Callable[[Equation, Sequence[Components]], list[Components]]]] = Table(
    {scan_p: _scan, while_p: _while, cond_p: _cond, optimization_barrier_p: _barrier},
    otherwise="it has one result and no bodies")
