"""Where an operation outside of all traces is evaluated: on the GPU of its operands, else here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans._runtime import ArrayBase
from functrans.core.cuda import PUT_ON_CPU, SHARDED, gpu_of

if TYPE_CHECKING:
    from functrans.core.primitive import Primitive

__all__ = ["evaluate", "evaluate_on_mesh", "is_off_host", "is_on_gpu", "set_gpu_evaluator",
           "set_mesh_evaluator"]

HOST: Final = (0, PUT_ON_CPU)

Evaluator = Callable[["Primitive", Sequence[Any], Mapping[str, Any]], Any]
_evaluators: Final[list[Evaluator]] = []
_mesh_evaluators: Final[list[Evaluator]] = []


def set_gpu_evaluator(evaluator: Evaluator) -> None:
    """What evaluates on GPUs: a layer above that compiles."""
    _evaluators[:] = [evaluator]


def set_mesh_evaluator(evaluator: Evaluator) -> None:
    """What evaluates on the devices of a mesh: a layer above that compiles. It gives a list."""
    _mesh_evaluators[:] = [evaluator]


def evaluate_on_mesh(primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The list of results of a primitive on the devices of a mesh."""
    return _mesh_evaluators[0](primitive, args, params)


def is_off_host(x: Any) -> bool:
    """Whether x is an Array whose data is elsewhere: on a GPU, or in shards."""
    return isinstance(x, ArrayBase) and x._place not in HOST


def is_on_gpu(x: Any) -> bool:
    """Whether x is an Array on a GPU."""
    return isinstance(x, ArrayBase) and x._place not in HOST and x._place != SHARDED


def evaluate(primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Apply a primitive to concrete values.

    What makes arrays of nothing makes them on the default device.
    """
    for x in args:
        if isinstance(x, ArrayBase) and x._place not in HOST:
            if not any(isinstance(y, ArrayBase) and y._place == SHARDED for y in args):
                return _evaluators[0](primitive, args, params)
            if primitive.compiles:
                return primitive.evaluate_eagerly(args, params)
            outs = evaluate_on_mesh(primitive, args, params)
            return outs if primitive.multiple_results else outs[0]
    if primitive.creates and params["shape"] and gpu_of(()) is not None:
        return _evaluators[0](primitive, args, params)
    return primitive.evaluate_eagerly(args, params)
