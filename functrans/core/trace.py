"""Tracing: one current trace per thread, no levels and no stack.

A transform makes a `Trace` whose parent is the trace that was current, wraps its inputs in its own
`Tracer`s and makes itself current while the user's function runs. `Primitive.bind` hands every
operation to the current trace. A trace whose tracers do not take part passes the operation to its
parent; otherwise it runs the primitive's rule with the parent as the current trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np

from functrans._runtime import ArrayBase, get_trace, set_trace, user_frames
from functrans.core.avals import ShapedArray
from functrans.core.eager import evaluate
from functrans.core.errors import LeakedTracerError
from functrans.core.source import Source, describe_source, user_source

if TYPE_CHECKING:
    from functrans.core.custom import CustomCall
    from functrans.core.primitive import Primitive
    from functrans.typing import Array

__all__ = ["ARRAYS", "Trace", "Tracer", "ensure_compile_time_eval", "eval_context", "get_trace",
           "is_array", "process_in", "run_in", "set_trace"]

Params = Mapping[str, Any]
R = TypeVar("R")


class Trace:
    """One run of one interpreter; `parent` interprets what its rules do (None evaluates).

    `frames` holds the user's line that asked for the run: 0.1 us, for messages. `evaluates` says
    that operations on arrays alone are evaluated, by it and all of its parents: the runtime does so
    at once (0.2 us instead of 1.2).
    """

    __slots__ = ("__weakref__", "alive", "evaluates", "frames", "is_manual", "parent")
    kind: ClassVar[str] = "a transform"
    # an operation without tracers of its own is its parent's
    passes_others_on: ClassVar[bool] = False
    # it looks at operations that are evaluated, and not at compiled programs
    watches: ClassVar[bool] = False
    # by which the backward rules are ordered that write into references
    has_tokens: ClassVar[bool] = False

    def __init__(self, parent: Trace | None) -> None:
        self.parent = parent
        self.alive = True
        self.evaluates: bool = self.passes_others_on and (parent is None or parent.evaluates)
        self.frames = user_frames(1)
        # within a shard_map: types say along which axes of its mesh values vary
        self.is_manual: bool = parent is not None and parent.is_manual

    @property
    def main(self) -> object:
        """What traces of one transform have in common, by JAX's name."""
        return getattr(self, "tag", self)

    def describe(self) -> str:
        """The transform and the line that called for it, in a sentence."""
        called = describe_source(Source(*self.frames[0])) if self.frames else ""
        return f"{self.kind}{called and ', called '}{called}"

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        """Interpret `primitive` on `args`, whatever traces these belong to."""
        raise TypeError(f"{type(self).__name__} does not interpret operations")

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        """Interpret a call of a function with custom rules; by default, run the function."""
        return list(self.run(call.fun, *args))

    def keeps(self, trace: Trace) -> bool:
        """Whether values of `trace` live as long as this one does."""
        return trace is self

    def token(self, cell: Any) -> Any:
        """The token of a cell, where the trace has some."""
        raise TypeError(f"{type(self).__name__} has no tokens")

    def set_token(self, cell: Any, value: Any) -> None:
        """The token after another call."""
        raise TypeError(f"{type(self).__name__} has no tokens")

    def run(self, fun: Callable[..., R], *args: Any) -> R:
        """Call `fun` with this trace current."""
        previous = set_trace(self)
        try:
            return fun(*args)
        finally:
            set_trace(previous)


class Tracer:
    """A stand-in for an array inside a transform.

    Its operators and array methods are installed by `functrans.array`, which knows NumPy's rules;
    here are only the facts that every tracer has.
    """

    __slots__ = ("__weakref__", "_trace")
    __array_priority__ = 1000

    _trace: Trace

    @property
    def aval(self) -> ShapedArray:
        raise TypeError("a tracer class must give an aval")

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> Any:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def concrete(self) -> Any:
        """The array that this tracer stands for where Python may know it, else None."""
        return None

    @property
    def inside(self) -> tuple[Any, ...]:
        """The values of enclosing traces that this tracer is made of."""
        return ()

    @property
    def origin(self) -> Source | None:
        """Where in the user's code this tracer was made, when that is known."""
        return None

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self  # it stands for an immutable array

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"


# What is an array, for isinstance: tracers stand for arrays wherever one is declared. It costs
# nothing, where isinstance(tracer, Array) calls Python.
ARRAYS = cast("tuple[type[Array], ...]", (ArrayBase, Tracer))


def is_array(x: Any) -> bool:
    """True of what an operation takes besides Python scalars."""
    return isinstance(x, (ArrayBase, Tracer, np.ndarray, np.generic))


def process_in(trace: Trace | None, primitive: Primitive, args: tuple[Any, ...],
               params: Params) -> Any:
    """Interpret an operation in `trace`, or evaluate it when there is none."""
    if trace is None:
        return evaluate(primitive, args, params)
    return trace.process(primitive, args, params)


def run_in(trace: Trace | None, fun: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call `fun` with `trace` (None to evaluate) current."""
    previous = set_trace(trace)
    try:
        return fun(*args, **kwargs)
    finally:
        set_trace(previous)


def leaked(tracer: Tracer, primitive_name: str) -> LeakedTracerError:
    """The error for a tracer met outside the function call it belongs to."""
    trace = tracer._trace
    state = "That run is over" if not trace.alive else "That run does not enclose this operation"
    origin = describe_source(tracer.origin)
    return LeakedTracerError(
        f"{primitive_name} received a traced {tracer.aval} that escaped. It was made"
        f"{origin and ' '}{origin} under {trace.describe()}. {state}.",
        where=user_source(),
        why="a traced value means something only inside the function that is being transformed.",
        fix="return the value from that function instead of storing it in a global, an attribute "
            "or a closure")


class CompileTimeTrace(Trace):
    """Evaluates operations on known values; those on traced ones are what they are without it."""

    __slots__ = ()
    kind = "ensure_compile_time_eval"
    passes_others_on = True

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.evaluates = True

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: Params) -> Any:
        known = not any(isinstance(a, Tracer) for a in args)
        within = None if known else self.parent
        return run_in(within, process_in, within, primitive, args, params)

    def process_custom(self, call: CustomCall, args: Sequence[Any]) -> list[Any]:
        if any(isinstance(a, Tracer) for a in args) or call.closes_over(lambda _: True):
            return run_in(self.parent, call.apply, self.parent, args)
        return call.apply(None, args)


class ensure_compile_time_eval:  # a context manager, named as JAX's
    """Context manager: operations on known values are computed at once, also while tracing.

    Python control flow may then depend on them. Those on values that are being traced are traced.

    >>> import functrans as ft
    >>> @ft.jit
    ... def f(x):
    ...     with ft.ensure_compile_time_eval():
    ...         steps = 2 if ft.numpy.arange(3).sum() > 1 else 1
    ...     return x * steps
    >>> f(1.0).item()
    2.0
    """

    def __enter__(self) -> None:
        self._outer = get_trace()
        set_trace(None if self._outer is None else CompileTimeTrace(self._outer))

    def __exit__(self, *error: object) -> None:
        set_trace(self._outer)


class eval_context:  # a context manager, named as JAX's
    """Context manager: operations are computed at once, also while tracing.

    An operation on a value that is being traced raises LeakedTracerError.

    >>> import functrans as ft
    >>> @ft.jit
    ... def f(x):
    ...     with ft.core.eval_context():
    ...         return x * int(ft.numpy.arange(3).sum())
    >>> f(1.0).item()
    Traceback (most recent call last):
    ...
    functrans.core.errors.LeakedTracerError: ...
    """

    def __enter__(self) -> None:
        self._outer = get_trace()
        set_trace(None)

    def __exit__(self, *error: object) -> None:
        set_trace(self._outer)
