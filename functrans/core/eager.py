"""Where an operation outside of all traces is evaluated: on the GPU of its operands, else here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from functrans._runtime import ArrayBase
from functrans.core.cuda import PUT_ON_CPU, gpu_of

if TYPE_CHECKING:
    from functrans.core.primitive import Primitive

__all__ = ["evaluate", "is_on_gpu", "set_gpu_evaluator"]

HOST: Final = (0, PUT_ON_CPU)

Evaluator = Callable[["Primitive", Sequence[Any], Mapping[str, Any]], Any]
_evaluators: Final[list[Evaluator]] = []


def set_gpu_evaluator(evaluator: Evaluator) -> None:
    """What evaluates on GPUs: a layer above that compiles."""
    _evaluators[:] = [evaluator]


def is_on_gpu(x: Any) -> bool:
    """Whether x is an Array on a GPU."""
    return isinstance(x, ArrayBase) and x._place not in HOST


def evaluate(primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Apply a primitive to concrete values.

    What makes arrays of nothing makes them on the default device.
    """
    for x in args:
        if isinstance(x, ArrayBase) and x._place not in HOST:
            return _evaluators[0](primitive, args, params)
    if primitive.creates and params["shape"] and gpu_of(()) is not None:
        return _evaluators[0](primitive, args, params)
    return primitive.evaluate_eagerly(args, params)
