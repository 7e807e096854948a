"""Errors as values, as in `jax.experimental.checkify`.

A function that is checkified returns, before its results, an `Error`: whether, and where, something
was found, and the arguments. What it was is found out when somebody asks, by running the function
again, one operation after the other (`transforms/checks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core import config
from functrans.core.avals import get_aval
from functrans.core.convert import to_array
from functrans.core.errors import ArgumentError, CheckError, publish
from functrans.core.errors import CheckError as JaxRuntimeError
from functrans.core.evaluate import eval_jaxpr
from functrans.core.jaxpr import Jaxpr
from functrans.core.key_dtypes import KEY_DTYPES
from functrans.core.source import user_source
from functrans.core.staging import stage
from functrans.core.trace import Tracer
from functrans.core.tree import LEAF, tree_flatten, tree_structure, tree_unflatten
from functrans.numpy import equal
from functrans.primitives.callback import HostFunction
from functrans.transforms.checks.api import check as check_values
from functrans.transforms.checks.exact import EagerReplay
from functrans.transforms.checks.flags import NONE, with_flags
from functrans.transforms.checks.nonfinite_propagation import NOTHING
from functrans.transforms.checks.plan import Site, plan_of, searched
from functrans.transforms.flat import FlatFunction, check_callable, flatten_args, name_of, wraps
from functrans.tree import unflatten
from functrans.tree_util import register_pytree_node

P = ParamSpec("P")
R = TypeVar("R")

__all__ = ["Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
           "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
           "init_error", "nan_checks", "user_checks"]

ErrorCategory = str
user_checks: frozenset[ErrorCategory] = frozenset()  # a `check` is looked at always
nan_checks = frozenset({"nan"})
div_checks = frozenset({"inf"})
float_checks = nan_checks | div_checks
index_checks = frozenset({"index"})
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


_inside: ContextVar[bool] = ContextVar("functrans_checkify", default=False)


@contextmanager
def _within() -> Iterator[None]:
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


class _CheckedRun:
    """The checked program of an error, by which it is found out."""

    def __init__(self, jaxpr: Jaxpr, checks: frozenset[str]) -> None:
        self.jaxpr = jaxpr
        self.checks = checks

    def found(self, args: Sequence[Any]) -> CheckError | None:
        """The error that a run on these arguments meets."""
        try:
            EagerReplay(None).run(self.jaxpr, args, [False] * len(args), searched(self.checks))
        except CheckError as error:
            return error
        return None


class Error:
    """What a checkified function found: a pytree, which leaves `jit`, `vmap` and loops.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> from functrans.experimental import checkify
    >>> error, out = ft.jit(checkify.checkify(jnp.log, checkify.nan_checks))(-1.0)
    >>> print(error.get().splitlines()[0])
    log gave NaN: b:f32[] = log a.
    >>> error.throw()
    Traceback (most recent call last):
    ...
    functrans.core.errors.NotFiniteError: log gave NaN: b:f32[] = log a...
    >>> type(error.get_exception()).__name__
    'NotFiniteError'
    """

    def __init__(self, number: Any, args: Sequence[Any], program: _CheckedRun | None) -> None:
        self._number, self._args, self._program = number, args, program

    def get_exception(self) -> CheckError | None:
        """The first error, in the order of the program; None where nothing was found.

        Under `vmap` that of the first element. Raises ArgumentError while the error is traced.
        """
        if isinstance(self._number, Tracer):
            raise ArgumentError("an Error was asked what it found, and is traced.",
                                where=user_source(), why="nothing is computed yet.",
                                fix="return the error, and ask it outside; check_error(error) "
                                    "hands it on")
        if self._program is None:
            return None
        numbers = np.asarray(self._number)
        lanes = np.argwhere(numbers != NONE)
        if not len(lanes):
            return None
        lane = tuple(lanes[0])
        args = [_values(x)[lane] for x in self._args]
        return self._program.found(args)

    def get(self) -> str | None:
        """The text of the first error, or None."""
        error = self.get_exception()
        return None if error is None else str(error)

    def throw(self) -> None:
        """Raise the first error, a CheckError, if there is one."""
        error = self.get_exception()
        if error is not None:
            raise error

    def __repr__(self) -> str:
        return f"Error({'traced' if isinstance(self._number, Tracer) else self.get()})"


register_pytree_node(Error, lambda e: ((e._number, e._args), e._program),
                     lambda program, children: Error(children[0], children[1], program))


def init_error() -> Error:
    """An error that found nothing.

    >>> from functrans.experimental import checkify
    >>> checkify.init_error().get() is None
    True
    """
    return Error(np.int32(NONE), (), None)


def checkify(f: Callable[P, R],
             errors: Iterable[str] = user_checks) -> Callable[P, tuple[Error, R]]:
    """`f`, returning an Error and its results instead of raising.

    `errors` is `user_checks` (what `check` says, which is always looked at), `nan_checks`,
    `div_checks` (infinities where no operand has one, of divisions and other operations),
    `index_checks` or their union. Composes with jit, grad, vmap and loops.

    >>> import functrans as ft, functrans.numpy as jnp
    >>> from functrans.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{x} must be positive", x=x)
    ...     return jnp.sqrt(x)
    >>> error, out = checkify.checkify(f)(-4.0)
    >>> print(error.get().splitlines()[0])
    -4.0 must be positive.
    """
    check_callable(f, "checkify")
    checks = frozenset(errors)
    if not checks <= frozenset(config.CHECKS):
        raise ArgumentError(f"checkify got errors={errors!r}.",
                            fix="errors=checkify.all_checks, or user_checks, nan_checks, "
                                "float_checks, index_checks")

    @wraps(f, "checkify")
    def checkified(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, tree = flatten_args(args, name_of(f))
        flat = FlatFunction(f, tree, kwargs, "checkify")
        with config.scope(checks=checks), _within():
            staged = stage(flat, [get_aval(x) for x in leaves], name=name_of(f))
        jaxpr = staged.jaxpr.hoist_consts()
        operands = [*staged.consts, *leaves]
        sites: list[Site] = []
        plan = plan_of(jaxpr, checks, [NOTHING] * len(operands), sites)
        *outs, number = eval_jaxpr(with_flags(plan, sites, _callback), (), *operands)
        return Error(number, operands, _CheckedRun(jaxpr, checks)), unflatten(flat.out_tree, outs)

    return checkified


def _values(x: Any) -> np.ndarray[Any, Any]:
    """The numbers of an argument, or its keys, which do not convert to NumPy by themselves."""
    keys = isinstance(x, ArrayBase) and x.dtype in KEY_DTYPES
    return x._np if keys else np.asarray(x)


def _callback(eqn: Any) -> HostFunction:
    callback: HostFunction = eqn.params["callback"]
    return callback


def check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A condition that must hold everywhere; `msg` may have places, `{}` and `{name}`, for values.

    A value may be a tree, in whose place its leaves are shown.
    Inside a checkified function the error says so where it does not; elsewhere, where JAX refuses
    a check, the program stops with FailedCheckError.

    >>> from functrans.experimental import checkify
    >>> f = checkify.checkify(lambda x: checkify.check(x > 0, "not positive: {x}", x=x))
    >>> f(-1.0)[0].get().splitlines()[0], f(1.0)[0].get()
    ('not positive: -1.0.', None)
    """
    names = [f"value{i}" for i in range(len(fmt_args))]
    for name in names:
        msg = msg.replace("{}", f"{{{name}}}", 1)
    values: dict[str, Any] = {}
    for name, value in {**dict(zip(names, fmt_args, strict=True)), **fmt_kwargs}.items():
        if tree_structure(value) == LEAF:
            values[name] = value
            continue
        leaves, tree = tree_flatten(value)
        places = [_Place(f"{name}_{i}") for i in range(len(leaves))]
        msg = msg.replace(f"{{{name}}}", _with_places(str(tree_unflatten(tree, places))))
        values |= {place.name: leaf for place, leaf in zip(places, leaves, strict=True)}
    check_values(pred, msg, **values)


@dataclass(frozen=True)
class _Place:
    """A leaf of a tree in a message."""

    name: str

    def __repr__(self) -> str:
        return f"Array(<<{self.name}>>)"


def _with_places(text: str) -> str:
    """The text of a tree as a format, in which its leaves are named."""
    braces = text.replace("{", "{{").replace("}", "}}")
    return braces.replace("<<", "{").replace(">>", "}")


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that is looked at in programs that are checkified or checked, and in no others.

    >>> from functrans.experimental import checkify
    >>> checkify.debug_check(jnp.array(False), "seen only under checkify")
    """
    if config.current().checks or _inside.get():
        check(pred, msg, *fmt_args, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise the error if it found something, or hand it on to the function that is checkified.

    >>> from functrans.experimental import checkify
    >>> def f(x):
    ...     error, _ = checkify.checkify(lambda x: checkify.check(x > 0, "not positive"))(x)
    ...     checkify.check_error(error)
    >>> checkify.checkify(f)(-1.0)[0].get().splitlines()[0]
    'a checkified function found an error.'
    """
    number = to_array(error._number, "check_error")
    if isinstance(number, Tracer):
        check_values(equal(number, NONE), "a checkified function found an error")
    else:
        error.throw()


publish(globals(), __all__)
