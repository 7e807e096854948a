"""What custom_jvp and custom_vjp share: signatures, checks, and their functions under vmap."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from functrans._runtime import get_trace
from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import run_scoped
from functrans.core.custom import CustomCall
from functrans.core.errors import CustomRuleError
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import user_source
from functrans.core.tree import PyTreeDef, describe_difference
from functrans.primitives.broadcast import broadcast_batch, move_axis
from functrans.primitives.differentiable import add_any
from functrans.transforms.batching import BatchTrace
from functrans.transforms.tangents import (
    SymbolicZero,
    instantiate_aval,
    is_differentiable,
    tangent_aval,
)

__all__ = ["LazyJaxpr", "RuleByZeros", "RunningRule", "batched_function", "bind_arguments",
           "check_rule_leaf", "check_rule_tree", "dense", "differentiable_flags", "known_jaxpr",
           "nondiff_positions", "plus", "rule_stays_lazy", "staging_rule_of"]


class LazyJaxpr:
    """A rule's jaxpr that is made when a derivative asks for it.

    Rules call functions whose staged calls have rules again: inside the staging of a rule these
    are left lazy. They close over arrays at most.
    """

    __slots__ = ("_jaxpr", "_make")

    def __init__(self, make: Callable[[], Jaxpr]) -> None:
        self._make = make
        self._jaxpr: Jaxpr | None = None

    @property
    def jaxpr(self) -> Jaxpr:
        if self._jaxpr is None:
            self._jaxpr = self._make()
        return self._jaxpr

    def map(self, change: Callable[[Jaxpr], Jaxpr]) -> LazyJaxpr:
        return LazyJaxpr(lambda: change(self.jaxpr))

    def __repr__(self) -> str:
        return "..."


class RuleByZeros(LazyJaxpr):
    """A rule that sees which tangents are zero: a jaxpr for each pattern of these.

    `make_for(pattern)` returns the jaxpr and what is known of its results; `jaxpr` is for tangents
    of which none is known to be zero.
    """

    __slots__ = ("_known", "_make_for")

    def __init__(self, make: Callable[[], Jaxpr],
                 make_for: Callable[[Any], tuple[Jaxpr, Any]]) -> None:
        super().__init__(make)
        self._make_for = make_for
        self._known: dict[Any, tuple[Jaxpr, Any]] = {}

    def of(self, pattern: Any) -> tuple[Jaxpr, Any]:
        """The jaxpr for a pattern, and what is known of its results."""
        found = self._known.get(pattern)
        if found is None:
            found = self._known[pattern] = self._make_for(pattern)
        return found


def known_jaxpr(rule: Jaxpr | LazyJaxpr) -> Jaxpr:
    """The jaxpr of a rule, made now if it was left lazy."""
    return rule.jaxpr if isinstance(rule, LazyJaxpr) else rule


_staging: ContextVar[tuple[int, ...]] = ContextVar("functrans_rules", default=())
_EAGER_RULES = 3


def rule_stays_lazy(call: CustomCall, owner: object) -> bool:
    """Whether the rule of a call is to be staged only when a derivative asks for it.

    Rules call functions with rules, without end (the derivative of sin, of cos, ...). One that
    closes over a tracer must be staged while that lives: for derivatives up to the third.
    """
    if call.closes_over(lambda _: True):
        return _staging.get().count(id(owner)) >= _EAGER_RULES
    return bool(_staging.get())


@contextmanager
def staging_rule_of(owner: object) -> Iterator[None]:
    """Mark the staging of a rule of `owner`."""
    token = _staging.set((*_staging.get(), id(owner)))
    try:
        yield
    finally:
        _staging.reset(token)


_running: ContextVar[tuple[int, ...]] = ContextVar("functrans_running_rules", default=())
_ENDLESS = 6
"""How often a rule runs inside of itself where that has no end: Python stops at 20 and more."""


class RunningRule:
    """Context of a run of a rule of `owner`, which says so where rules call each other endlessly.

    An error that comes of the recursion has `depth`, how often the rule was running.
    """

    __slots__ = ("_depth", "_name", "_owner", "_token", "_where")

    def __init__(self, owner: object, name: str) -> None:
        self._owner, self._name = id(owner), name

    def __enter__(self) -> None:
        running = _running.get()
        self._depth = running.count(self._owner)
        self._where = None if self._depth else user_source()
        self._token = _running.set((*running, self._owner))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        _running.reset(self._token)
        if not isinstance(error, RecursionError) and not hasattr(error, "depth"):
            return
        deepest = max(self._depth, getattr(error, "depth", 0))
        if self._depth or deepest < _ENDLESS:
            # of any exception: rules that call this one go on counting
            error.depth = deepest  # type: ignore[union-attr]
            return
        raise CustomRuleError(
            f"the derivative rule of {self._name} differentiates {self._name} again, without end.",
            where=self._where, why="to differentiate the function is to call its rule.",
            fix="write the derivative out in the rule, or differentiate another function that "
                "computes the same") from None


def bind_arguments(fun: Callable[..., Any], args: tuple[Any, ...],
                   kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments with keywords and defaults put in their places."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):
        return args
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise CustomRuleError(f"{fun!r} has keyword-only parameters ({names}).",
                              why="rules take arguments by position.",
                              fix="make them positional, or close over them")
    return bound.args


def nondiff_positions(fun: Callable[..., Any], argnums: int | Sequence[int],
                      argnames: str | Sequence[str]) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated, given by number and by name."""
    positions = [argnums] if isinstance(argnums, int) else list(argnums)
    names = [argnames] if isinstance(argnames, str) else list(argnames)
    parameters = list(inspect.signature(fun).parameters) if names else []
    for name in names:
        if name not in parameters:
            raise CustomRuleError(f"nondiff_argnames names {name!r}, which is no parameter of "
                                  f"{getattr(fun, '__name__', fun)!r}.", where=user_source(),
                                  fix=f"one of {', '.join(parameters)}")
        positions.append(parameters.index(name))
    return tuple(dict.fromkeys(positions))


def differentiable_flags(avals: Sequence[ShapedArray]) -> tuple[bool, ...]:
    return tuple(is_differentiable(a) for a in avals)


def check_rule_tree(expected: PyTreeDef, actual: PyTreeDef, what: str, like: str) -> None:
    """Raise CustomRuleError unless a rule's result has the structure of `like`."""
    if expected == actual:
        return
    raise CustomRuleError(
        f"{what} has another structure than {like}: {describe_difference(expected, actual)}.",
        where=user_source(), fix="return the same containers, in the same order")


def check_rule_leaf(value: Any, like: ShapedArray, what: str, like_text: str) -> Any:
    """A rule's (co)tangent as an array of the type of the value it belongs to; None for float0."""
    expected = tangent_aval(like)
    if expected.dtype == dtypes.float0:
        return None
    got = get_aval(value)
    if got.shape != expected.shape or (got.dtype != expected.dtype and not got.weak_type):
        raise CustomRuleError(f"{what} is {got}, {like_text} {expected}.", where=user_source(),
                              why="tangents and cotangents have the type of their value.",
                              fix=f"reshape it, or .astype({expected.dtype.name!r})")
    return value if got.dtype == expected.dtype else value.astype(expected.dtype)


def plus(x: Any, y: Any) -> Any:
    """Sum of two tangents, where None is zero."""
    if x is None or y is None:
        return y if x is None else x
    return add_any(x, y)


def batched_function(trace: BatchTrace, fun: Callable[..., Sequence[Any]],
                     axes: Sequence[int | None]) -> Callable[..., list[Any]]:
    """`fun` run under a batching trace: whole values in, outputs with the mapped axis in front."""
    def run(*values: Any) -> list[Any]:
        here = trace.over(get_trace())
        args = [_one_zero(v) if isinstance(v, SymbolicZero) and a is not None else here.join(v, a)
                for v, a in zip(values, axes, strict=True)]
        outs, mapped, _ = here.split(run_scoped(here, fun, args))
        here.alive = False
        return [_many_zeros(o, trace.axis.size) if isinstance(o, SymbolicZero) else
                broadcast_batch(o, trace.axis.size) if a is None else move_axis(o, a, 0)
                for o, a in zip(outs, mapped, strict=True)]

    def _one_zero(zero: SymbolicZero) -> SymbolicZero:
        return SymbolicZero(zero.aval.with_shape(zero.shape[1:]))

    def _many_zeros(zero: SymbolicZero, size: Any) -> SymbolicZero:
        return SymbolicZero(zero.aval.with_shape((size, *zero.shape)))

    return run


def dense(rule: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """A rule that returns arrays for the tangents that it knows to be zero."""
    def run(*args: Any) -> list[Any]:
        return [instantiate_aval(None, x.aval) if isinstance(x, SymbolicZero) else x
                for x in rule(*args)]
    return run
