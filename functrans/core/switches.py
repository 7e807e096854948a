"""Settings of JAX's that say what is refused, shown or checked, and traces that see to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from functrans.core import config
from functrans.core.custom import CustomCall
from functrans.core.errors import BackendError
from functrans.core.primitive import Primitive
from functrans.core.source import user_source
from functrans.core.trace import Params, Trace, process_in, run_in, set_trace
from functrans.core.trace import get_trace as current_trace

__all__ = ["DTYPE_PROMOTION", "RANK_PROMOTION", "NoExecutionTrace", "WatchTrace", "no_execution",
           "watching"]

DTYPE_PROMOTION: Final = ("standard", "strict")
RANK_PROMOTION: Final = ("allow", "warn", "raise")


class WatchTrace(Trace):
    """Operations are those of the trace around it, one after the other through Python.

    The runtime's own paths take operands of any ranks and dtypes: while a setting looks at these
    they are left.
    """

    __slots__ = ()
    kind = "a setting"
    watches = True

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        return run_in(self.parent, process_in, self.parent, primitive, args, params)

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        return run_in(self.parent, call.apply, self.parent, args)


class NoExecutionTrace(Trace):
    """Refuses every operation that it is asked to compute; what is being traced is not computed."""

    __slots__ = ()
    kind = "no_execution"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        raise self.refusal(primitive.name)

    def refusal(self, name: str) -> BackendError:
        """The error for an operation or a program."""
        return BackendError(f"{name} was to be computed within no_execution.",
                            where=user_source(), why="nothing is computed there.",
                            fix="ft.eval_shape(fun, x) and ft.make_jaxpr(fun)(x) compute nothing")


@contextmanager
def watching(**changes: Any) -> Iterator[config.Config]:
    """Context manager: settings that Python looks at for each operation."""
    outer = current_trace()
    with config.scope(**changes) as found:
        set_trace(WatchTrace(outer))
        try:
            yield found
        finally:
            set_trace(outer)


@contextmanager
def no_execution(new_val: bool = True) -> Iterator[None]:
    """Context manager: whatever would be computed is an error; tracing goes on.

    Raises BackendError for an operation on arrays, and for a call of a compiled function.

    >>> import functrans as ft
    >>> x = ft.numpy.ones(3)
    >>> with ft.no_execution():
    ...     ft.eval_shape(lambda x: x @ x, x)
    ShapeDtypeStruct(shape=(), dtype=float32)
    >>> with ft.no_execution():
    ...     x + 1
    Traceback (most recent call last):
        ...
    functrans.core.errors.BackendError: add was to be computed within no_execution.
    ...
    """
    if not new_val:
        yield
        return
    outer = current_trace()
    set_trace(NoExecutionTrace(outer))
    try:
        yield
    finally:
        set_trace(outer)
