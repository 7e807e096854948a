"""One-hot arrays that are made by comparing indices with positions along an axis, as factors.

`one_hot(i)[.., k]` is `i[..] == k`, converted to numbers or choosing between 1 and 0; also where it
is multiplied by another array, broadcast or transposed before something reads it.
"""

from __future__ import annotations

from functrans.core import dtypes
from functrans.core.dims import Size
from functrans.core.jaxpr import Atom, Equation, Literal
from functrans.lowering.passes.networks.network import Factor, Group, NetworkArray, OneHot
from functrans.primitives.arithmetic import mul_p
from functrans.primitives.broadcast import broadcast_in_dim_p, transpose_p
from functrans.primitives.compare import eq_p, select_n_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.shape import iota_p, reshape_p

__all__ = ["Makers", "before_broadcast", "constant_of", "has_one_hots", "selection_factors",
           "selection_of"]

Makers = dict[Atom, Equation]
Factors = tuple[Factor, ...]
Axes = tuple[Group, ...]

DEEPEST = 8  # operations between the comparison and what reads it


def before_broadcast(x: Atom, shape: tuple[Size, ...], axes: Axes, makers: Makers) -> NetworkArray:
    """x, or what it repeats, with names from `axes`."""
    eqn = makers.get(x)
    if eqn is not None and eqn.primitive is broadcast_in_dim_p:
        source = eqn.invars[0]
        dims = eqn.params["broadcast_dimensions"]
        if all(source.aval.shape[k] == shape[d] for k, d in enumerate(dims)):
            return NetworkArray(source, tuple([axes[d] for d in dims]))
    return NetworkArray(x, axes if x.aval.shape else ())


def constant_of(x: Atom, makers: Makers) -> float | None:
    """The number that every element of x is, or None."""
    if isinstance(x, Literal):
        return float(x.value)
    eqn = makers.get(x)
    if eqn is not None and eqn.primitive is broadcast_in_dim_p \
            and isinstance(eqn.invars[0], Literal):
        return float(eqn.invars[0].value)
    return None


def has_one_hots(factors: Factors) -> bool:
    return any(isinstance(f, OneHot) for f in factors)


def selection_of(array: NetworkArray, makers: Makers) -> Factors:
    """The factors of an array that may be one-hot: itself where it is not."""
    if not isinstance(array.source, Atom):
        return (array,)
    return selection_factors(array.source, array.axes, makers) or (array,)


def selection_factors(x: Atom, axes: Axes, makers: Makers, depth: int = DEEPEST) -> Factors | None:
    """A one-hot array, or its product with others, as factors with names from `axes`."""
    eqn = makers.get(x)
    if eqn is None or depth == 0:
        return None
    if eqn.primitive is eq_p:
        return _compared(eqn, axes, makers)
    if eqn.primitive is convert_element_type_p:
        return selection_factors(eqn.invars[0], axes, makers, depth - 1) \
            if dtypes.kind(x.aval.dtype) in "fiu" else None
    if eqn.primitive is mul_p:
        return _multiplied(eqn, axes, makers, depth)
    if eqn.primitive is select_n_p:
        return _chosen(eqn, axes, makers, depth)
    inner = _moved(eqn, axes)
    return None if inner is None else selection_factors(eqn.invars[0], inner, makers, depth - 1)


def _moved(eqn: Equation, axes: Axes) -> Axes | None:
    """The names of the axes of an operand that is broadcast, transposed or given axes of size 1."""
    if eqn.primitive not in (broadcast_in_dim_p, transpose_p, reshape_p):
        return None
    x, shape = eqn.invars[0], eqn.outvars[0].aval.shape
    if eqn.primitive is broadcast_in_dim_p:
        return _repeated(x, shape, eqn.params["broadcast_dimensions"], axes)
    if eqn.primitive is transpose_p:
        places = eqn.params["permutation"]
        return tuple([axes[places.index(d)] for d in range(len(places))])
    long = [d for d, n in enumerate(shape) if n != 1]
    if [shape[d] for d in long] != [n for n in x.aval.shape if n != 1]:
        return None
    rest = iter([axes[d] for d in long])
    return tuple([() if n == 1 else next(rest) for n in x.aval.shape])


def _repeated(x: Atom, shape: tuple[Size, ...], dims: tuple[int, ...], axes: Axes) -> Axes:
    return tuple([axes[d] if n == shape[d] else ()
                  for n, d in zip(x.aval.shape, dims, strict=True)])


def _multiplied(eqn: Equation, axes: Axes, makers: Makers, depth: int) -> Factors | None:
    sides = [selection_factors(x, axes, makers, depth - 1) for x in eqn.invars]
    if sides == [None, None] or any(not x.aval.shape for x in eqn.invars):
        return None
    return tuple([f for x, found in zip(eqn.invars, sides, strict=True)
                  for f in found or (before_broadcast(x, x.aval.shape, axes, makers),)])


def _chosen(eqn: Equation, axes: Axes, makers: Makers, depth: int) -> Factors | None:
    """Something where a comparison holds, zero elsewhere."""
    which, *cases = eqn.invars
    if len(cases) != 2 or which.aval.shape != eqn.outvars[0].aval.shape \
            or constant_of(cases[0], makers) != 0:
        return None
    found = selection_factors(which, axes, makers, depth - 1)
    if found is None or constant_of(cases[1], makers) == 1:
        return found
    return (*found, before_broadcast(cases[1], cases[1].aval.shape, axes, makers))


def _compared(eqn: Equation, axes: Axes, makers: Makers) -> Factors | None:
    """Indices compared with the positions along an axis that they do not vary along."""
    x, y = eqn.invars
    if dtypes.kind(x.aval.dtype) not in "iu" or x.aval.dtype.itemsize < 4:  # sizes must fit
        return None
    for indices, positions in ((x, y), (y, x)):
        outer = _positions(positions, axes, makers)
        if outer is None or _positions(indices, axes, makers) is not None:
            continue
        array = _indices(indices, axes, makers)
        if len(outer) == 1 and outer[0] not in array.indices:
            assert isinstance(array.source, Atom)
            return (OneHot(array.source, array.indices, outer[0], False),)
    return None


def _indices(x: Atom, axes: Axes, makers: Makers) -> NetworkArray:
    eqn = makers.get(x)
    if eqn is not None and eqn.primitive in (broadcast_in_dim_p, reshape_p):
        inner = _moved(eqn, axes)
        if inner is not None:
            return _indices(eqn.invars[0], inner, makers)
    return NetworkArray(x, axes if x.aval.shape else ())


def _positions(x: Atom, axes: Axes, makers: Makers) -> Group | None:
    """The axis along which the elements of x are 0, 1, 2, ...; None where they are others."""
    eqn = makers.get(x)
    if eqn is None:
        return None
    if eqn.primitive is iota_p:
        return axes[eqn.params["dimension"]]
    inner = _moved(eqn, axes)
    return None if inner is None else _positions(eqn.invars[0], inner, makers)
