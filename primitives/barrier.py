"""optimization_barrier and others: identities that say something to transforms and compilers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from functrans.core.avals import ShapedArray
from functrans.core.convert import to_arrays
from functrans.core.jaxpr import Equation
from functrans.core.primitive import Primitive, Sample
from functrans.core.tree import tree_flatten, tree_unflatten
from functrans.primitives.base import LinearPrimitive, sample_array

if TYPE_CHECKING:
    from functrans.typing import Array, ArrayLike

T = TypeVar("T")

__all__ = ["checkpoint_name", "checkpoint_name_p", "optimization_barrier",
           "optimization_barrier_p", "stop_gradient_p"]


class OptimizationBarrier(Primitive):
    """The operands themselves; equations are not merged or moved across.

    With `last_first` what reads a result is computed after the last operand is.
    """

    multiple_results = True
    widens_halves = False
    is_quiet = True

    def type(self, *avals: ShapedArray, last_first: bool = False) -> list[ShapedArray]:
        return list(avals)

    def evaluate(self, *arrays: Any, last_first: bool = False) -> list[Any]:
        return list(arrays)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any],
            **params: Any) -> tuple[list[Any], list[Any]]:
        outs = list(self.bind(*primals, **params))
        given = [t for t in tangents if t is not None]
        passed = iter(self.bind(*given))
        return outs, [None if t is None else next(passed) for t in tangents]

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        passed = iter(self.bind(*[ct for ct in cts if ct is not None]))
        return [None if ct is None else next(passed) for ct in cts]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], **params: Any) -> Any:
        return self.bind(*operands, **params), list(axes)

    def prune(self, eqn: Equation, used: Sequence[bool]) -> Equation:
        """The barrier for the results that are `used`, and for what must be computed first."""
        if eqn.params.get("last_first"):
            used = [*used[:-1], True]
        return eqn.replace(
            invars=tuple([x for x, u in zip(eqn.invars, used, strict=True) if u]),
            outvars=tuple([v for v, u in zip(eqn.outvars, used, strict=True) if u]))

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2), sample_array(2, seed=1)))
        yield Sample((sample_array(3, 2), sample_array(2, seed=1)), {"last_first": True})


class CheckpointName(LinearPrimitive):
    """x itself, with a name that checkpoint policies can refer to."""

    name = "name"
    widens_halves = False
    is_quiet = True

    def type(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def evaluate(self, x: Any, *, name: str) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(primals[0], **params), tangents[0]

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None], *, name: str) -> Any:
        return self.bind(operands[0], name=name), axes[0]

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2),), {"name": "hidden"})


class StopGradient(Primitive):
    """x itself, with a derivative of zero."""

    widens_halves = False
    is_quiet = True
    stops_derivatives = True

    def type(self, x: ShapedArray) -> ShapedArray:
        return x

    def evaluate(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.bind(*primals), None

    def batch(self, operands: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self.bind(operands[0]), axes[0]

    def samples(self) -> Iterator[Sample]:
        yield Sample((sample_array(3, 2),))


optimization_barrier_p = OptimizationBarrier()
stop_gradient_p = StopGradient()
checkpoint_name_p = CheckpointName()


def optimization_barrier(operand: T) -> T:
    """A pytree of arrays as it is; a compiler merges and moves nothing across.

    >>> import functrans as ft
    >>> ft.lax.optimization_barrier({"x": ft.numpy.arange(2)})["x"].tolist()
    [0, 1]
    """
    leaves, tree = tree_flatten(operand)
    held: T = tree_unflatten(tree, optimization_barrier_p.bind(*to_arrays(leaves, "operand")))
    return held


def checkpoint_name(x: ArrayLike, name: str) -> Array:
    """x, named for the policies of `checkpoint`.

    >>> import functrans as ft
    >>> float(ft.checkpoint_name(ft.numpy.float32(2.0), "hidden"))
    2.0
    """
    return checkpoint_name_p.bind(x, name=name)
