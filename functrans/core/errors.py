"""Every error that functrans raises: one class per cause, each also the built-in a user catches.

A message has up to four parts, each on lines of its own: what happened; where in the user's code;
why it is an error; how to fix it, as code.
"""

import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType, MethodType, TracebackType
from typing import Any, Final, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np

from functrans import _runtime
from functrans.core import config
from functrans.core.key_dtypes import KEY_DTYPES
from functrans.core.missing_names import argument_fix, module_fix
from functrans.core.source import (
    CALLED_LIBRARIES,
    is_internal_module,
    user_source,
    user_traceback,
)

__all__ = [
    "ArgumentError",
    "AxisNameError",
    "AxisSizeError",
    "BackendError",
    "BranchTypeError",
    "CallbackError",
    "CarryTypeError",
    "CheckError",
    "CollectiveError",
    "ConcretizationError",
    "CustomRuleError",
    "DTypeError",
    "DefectError",
    "DeviceError",
    "DeviceMemoryError",
    "DonatedArrayError",
    "ExportError",
    "FailedCheckError",
    "FallbackWarning",
    "ForkedDeviceError",
    "FunctransError",
    "HostStepError",
    "HostStepWarning",
    "ImmutableArrayError",
    "IndexingError",
    "IntegerGradError",
    "IntegerOverflowError",
    "JaxprError",
    "KernelFaultError",
    "KeyReuseError",
    "KeyTypeError",
    "LeakedTracerError",
    "MissingNameError",
    "MissingRuleError",
    "NestingError",
    "NoDriverError",
    "NonArrayError",
    "NonScalarGradError",
    "NotCoveredError",
    "NotDifferentiableError",
    "NotFiniteError",
    "OldDriverError",
    "OutOfBoundsError",
    "OutOfMemoryError",
    "PromotionError",
    "RegistrationError",
    "ShapeError",
    "ShardingError",
    "StaticArgumentError",
    "TreeMismatchError",
    "explain_missing_names",
    "hide_internal_frames",
    "hides_frames",
    "missing_attribute",
    "public",
    "publish",
    "shown",
]


_E = TypeVar("_E", bound=BaseException)
_P = ParamSpec("_P")
_R = TypeVar("_R")

_NO_KEYWORDS: Final[Mapping[str, Any]] = MappingProxyType({})
HERE: Final[object] = object()
"""As `where`: the innermost line of the user that is running now."""


@runtime_checkable
class Place(Protocol):
    """A place in the user's code: `str()` names it, `text` is its source line (core.source)."""

    @property
    def text(self) -> str: ...


class FunctransError(Exception):
    """Base class of all errors of functrans; its text says what, where, why, and the fix.

    `where` is anything whose `str()` names the user's line, best with its source text on a second
    line; by default it is the line that is running. It is formatted only when the message is read.
    Empty parts are left out.

    >>> print(FunctransError("x is odd.", where="train.py:3, in step", why="w", fix="x = 2"))
    x is odd.
      Where: train.py:3, in step
      Why: w
      Fix: x = 2
    """

    def __init__(self, what: str, *, where: object = HERE, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = user_source() if where is HERE else where
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        where = _place(self.where)
        parts = (("Where", where), ("Why", self.why), ("Fix", self.fix))
        return "\n".join([self.what, *(_part(label, text) for label, text in parts if text)])

    def __reduce__(self) -> tuple[Any, ...]:
        state = {**self.__dict__, "where": _place(self.where) or None}
        return _rebuild, (type(self), self.args, state)


def _place(where: object) -> str:
    """A place as text, with its source line where that is known; empty for None."""
    if where is None:
        return ""
    return f"{where}\n{where.text}" if isinstance(where, Place) else str(where)


def _part(label: str, text: str) -> str:
    """One labelled part of a message; further lines are indented under the first."""
    first, *rest = text.rstrip().splitlines()
    return "\n".join([f"  {label}: {first}", *(f"    {line}" for line in rest)])


def _rebuild(
    cls: type[FunctransError], args: tuple[Any, ...], state: dict[str, Any]
) -> FunctransError:
    """Make an error from its pickled parts."""
    error = cls(*args)
    error.__dict__.update(state)
    return error


class ArgumentError(FunctransError, TypeError, ValueError):
    """An argument of a functrans function is of the wrong kind or out of range."""


class NonArrayError(ArgumentError):
    """An array (or number) is needed and something else was given."""


class KeyTypeError(ArgumentError):
    """A random function got something that is no key, or a batch of keys where one is needed."""


class KeyReuseError(FunctransError, RuntimeError):
    """A random key was used twice, while `debug_key_reuse` looked for that."""


class ConcretizationError(FunctransError, TypeError):
    """Python asked for the value of a traced array: bool(), int(), float(), an index, an `if`."""


class NestingError(FunctransError, RecursionError):
    """Functions in functions, or containers in containers, are nested deeper than Python allows."""


class LeakedTracerError(FunctransError, RuntimeError):
    """A traced value was used after the transformation that made it had ended."""


class TreeMismatchError(FunctransError, ValueError, TypeError):
    """Two pytrees that must have one structure, or one be a prefix of the other, do not."""


class RegistrationError(FunctransError, ValueError, TypeError):
    """A pytree node, primitive or backend cannot be registered as asked."""


class AxisSizeError(FunctransError, ValueError):
    """The arguments mapped by `vmap` or `scan` disagree in size, or there is no size."""


class AxisNameError(FunctransError, NameError):
    """A collective names an axis that no enclosing `vmap` binds."""


class ShardingError(FunctransError, ValueError):
    """An array does not lie on a mesh as asked, or meshes do not fit together."""


class CollectiveError(FunctransError, RuntimeError):
    """The devices of a program wait for each other, and one of them does not come."""


class ShapeError(FunctransError, ValueError, TypeError):
    """Shapes do not fit together (ValueError as in NumPy, TypeError as in jax.lax)."""


class DTypeError(FunctransError, TypeError, ValueError):
    """A dtype that does not exist here, or that the operation does not take."""


class PromotionError(DTypeError):
    """Dtypes that have no common dtype to which both promote without a cast."""


class IntegerOverflowError(FunctransError, OverflowError):
    """A Python int does not fit the integer dtype it would get."""


class NonScalarGradError(FunctransError, TypeError):
    """The gradient of a function whose result is not one real scalar."""


class IntegerGradError(FunctransError, TypeError):
    """A derivative with respect to an integer or boolean input."""


class NotDifferentiableError(FunctransError, TypeError):
    """An operation has no derivative in the operand or in the mode that is asked for."""


class MissingNameError(FunctransError, AttributeError):
    """A module or an array has no attribute of a name; the message says what does the same."""


class MissingRuleError(FunctransError, NotImplementedError, TypeError):
    """A primitive was declared without a rule that it needs."""


class CustomRuleError(FunctransError, TypeError):
    """A custom_jvp or custom_vjp rule is missing, or returns the wrong structure or types."""


class StaticArgumentError(FunctransError, ValueError, TypeError):
    """A static argument of `jit` is unhashable, or is named but not there."""


class CarryTypeError(FunctransError, TypeError):
    """The body of scan, while_loop or fori_loop changes the type of a carried value."""


class BranchTypeError(FunctransError, TypeError):
    """The branches of cond or switch return different types."""


class IndexingError(FunctransError, IndexError, TypeError):
    """An index that arrays do not take, or a static index out of bounds."""


class ImmutableArrayError(FunctransError, TypeError):
    """An attempt to write into an array."""


class DonatedArrayError(FunctransError, RuntimeError):
    """An array was used after its memory had been donated to a jitted call."""


class NotCoveredError(FunctransError, TypeError):
    """A NumPy function, or an argument of one, that functrans.numpy does not cover."""


class CallbackError(FunctransError, RuntimeError):
    """A host callback returned something else than it declared."""


class JaxprError(FunctransError, ValueError, TypeError):
    """A jaxpr that is not well formed."""


class ExportError(FunctransError, ValueError):
    """A program cannot be exported, or the file of an exported one cannot be read."""


class BackendError(FunctransError, RuntimeError):
    """A backend or a device that is not there or cannot run the program."""


class MemoryLimitError(BackendError):
    """A program needs more memory than `jit` was told that it may."""


class HostStepError(BackendError):
    """A part of a program for a GPU has to run on the host, which the settings refuse."""


class DefectError(FunctransError, RuntimeError):
    """A defect of functrans: a compiler failed on a program that it must compile.

    `report` has the program, what failed, and the versions of what took part.
    """

    report = ""


class NoDriverError(BackendError):
    """There is no CUDA driver, or no device of it, where one is asked for."""


class OldDriverError(BackendError):
    """The CUDA driver is older than the kernels."""


class DeviceError(FunctransError, RuntimeError):
    """The driver of a device refused a call."""


class KernelFaultError(DeviceError):
    """A kernel failed while it ran: the device's memory is lost to the process."""


class ForkedDeviceError(DeviceError):
    """A device was used after a fork of the process that had opened it."""


class OutOfMemoryError(FunctransError, MemoryError):
    """Memory could not be allocated; the message says how much was asked."""


class DeviceMemoryError(OutOfMemoryError):
    """A device has not enough memory; the message says who has it."""


class CheckError(FunctransError, RuntimeError, ValueError):
    """A value is not what a checked program may compute, or what `check` asks of it."""


class NotFiniteError(CheckError, FloatingPointError):
    """An operation of a checked program gave a NaN, or an infinity from finite operands."""


class OutOfBoundsError(CheckError, IndexError):
    """An index of a checked program is out of bounds."""


class FailedCheckError(CheckError, AssertionError):
    """A condition that `check` was given does not hold."""


class FallbackWarning(UserWarning):
    """A compiler failed on a part of a program, which it then computed in another way."""


class HostStepWarning(UserWarning):
    """A part of a program for a GPU runs on the host, between copies, and need not."""


def hide_internal_frames(exc: _E) -> _E:
    """Drop the frames inside the package from the tracebacks of `exc` and of what it chains to.

    Frames are kept where the config says `internal_frames` (environment variable
    FUNCTRANS_DEBUG=1).
    """
    if config.current().internal_frames:
        return exc
    todo: list[BaseException] = [exc]
    seen: set[int] = set()
    while todo:
        error = todo.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = user_traceback(error.__traceback__)
        todo += [e for e in (error.__cause__, error.__context__) if e is not None]
    return exc


def shown(x: Any) -> str:
    """repr(x) on one line, without addresses, cut where it is long; for messages."""
    try:
        text = _ADDRESS.sub("", " ".join(repr(x).split()))
    except (ValueError, RecursionError):  # an int of very many digits, a container in itself
        text = f"a very large {type(x).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def public(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`fun` as users call it: no frame of the package is in the traceback of what it raises.

    0.1 us a call. What the runtime calls (operators, elementwise functions, `jit`) needs no
    wrapper: the runtime does the same on its way out.
    """
    return functools.wraps(fun)(hides_frames(fun))


def hides_frames(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """`public`, for who names the function and gives it attributes."""
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            outside = _leaving(error, fun, args, kwargs)
            if outside is error:
                raise  # as it is now, without this frame
        raise outside

    return call


def missing_attribute(module: str, name: str) -> AttributeError:
    """The error for an attribute that a public module does not have."""
    what = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):  # asked for by tools, which expect to fail
        return AttributeError(what)
    return MissingNameError(f"{what}.", fix=module_fix(module, name))


def explain_missing_names(namespace: dict[str, Any]) -> None:
    """Let a public module say which name does what a missing one does elsewhere.

    Its `dir()`, which consoles complete names from, is what it offers.
    """
    module = namespace["__name__"]

    def __getattr__(name: str) -> Any:
        raise missing_attribute(module, name)

    def __dir__() -> list[str]:
        return sorted(namespace["__all__"])

    namespace.setdefault("__getattr__", __getattr__)
    namespace.setdefault("__dir__", __dir__)


def publish(namespace: dict[str, Any], names: Sequence[str]) -> None:
    """Make the functions of a public module `public`; the package itself uses them as they are."""
    explain_missing_names(namespace)
    made: dict[int, Any] = {}  # two names of one function stay one function
    for name in names:
        value = namespace[name]
        if isinstance(value, (FunctionType, MethodType)):
            namespace[name] = made.setdefault(id(value), public(value))


def _leaving(error: BaseException, fun: Any = None, args: Sequence[Any] = (),
             kwargs: Mapping[str, Any] = _NO_KEYWORDS) -> BaseException:
    """The error that the user gets for one that leaves the package.

    NumPy's and the runtime's own for memory get a place; what Python says of an argument that was
    not foreseen becomes an ArgumentError that names the function, its arguments and the line.
    """
    if isinstance(error, config.SettingError):
        return ArgumentError(f"{error}.")
    if isinstance(error, RecursionError) and not isinstance(error, FunctransError) \
            and _is_mostly_ours(error.__traceback__):
        return _nested(error)
    if _is_unforeseen(error) and not any(map(_may_have_failed, (*args, *kwargs.values()))):
        given = ", ".join([*map(_kind_of, args),
                           *(f"{k}={_kind_of(v)}" for k, v in kwargs.items())])
        name = getattr(fun, "__name__", "") or "an operation"
        if any(getattr(x, "dtype", x) in KEY_DTYPES for x in (*args, *kwargs.values())
               if isinstance(x, np.dtype) or hasattr(x, "aval")):
            return KeyTypeError(f"{name}({given}): random keys are no numbers.",
                                where=user_source(), fix="functrans.random.key_data(key) gives "
                                                         "their words, as uint32")
        reason = " ".join(str(error).split())[:200]
        if _TRACER.search(reason):
            return hide_internal_frames(ConcretizationError(
                "a function that functrans does not know was called with a traced array.",
                why=f"{type(error).__name__}: {_TRACER.sub('a traced array', reason)}.",
                fix="the function of that name in functrans.numpy, lax, nn or scipy, or "
                    "functrans.pure_callback(fun, result_type, x) for one in another library"))
        unforeseen = ArgumentError(
            f"{name}({given}) failed." if fun is not None else f"{name} failed.",
            why=f"{type(error).__name__}: {reason}.",
            fix=(f"see help({name}). " if fun is not None else "") + "If the arguments are right "
                "this is a defect of functrans, and FUNCTRANS_DEBUG=1 shows where it is")
        if config.current().internal_frames:
            unforeseen.__cause__ = error
        if isinstance(error, RecursionError):
            # read where derivative rules call each other; any exception may have it
            unforeseen.depth = 0  # type: ignore[attr-defined]
        return unforeseen
    if fun is not None and _is_wrong_call(error):
        # "_view() takes ..." names what the user did not write
        what = str(error).rstrip(".").removeprefix("_")
        return ArgumentError(f"{what}.", fix=argument_fix(fun, str(error)))
    if isinstance(error, MemoryError) and not isinstance(error, FunctransError) \
            and _is_ours(error.__traceback__):
        what = str(error).removeprefix("out of memory: ")
        error = OutOfMemoryError(
            f"out of memory: {what or 'an allocation failed'}".rstrip(".") + ".",
            fix="use smaller arrays or a narrower dtype, vmap(fun, chunk_size=n) or "
                "functrans.lax.map for batches, functrans.checkpoint under grad")
    return hide_internal_frames(error)


def _is_wrong_call(error: BaseException) -> bool:
    """Whether Python says that a public function does not take the arguments."""
    return type(error) is TypeError and error.__traceback__ is not None \
        and error.__traceback__.tb_next is None and bool(_ARITY.search(str(error)))


def _nested(error: RecursionError) -> NestingError:
    """A RecursionError with its meaning: functions of the package brought Python there."""
    if _CONTAINERS.search(str(error)):
        return NestingError(
            "a pytree has containers in containers, too deep to be taken apart.",
            why=f"{' '.join(str(error).split())}", fix="a flat list or dict of the leaves, or one "
            "array with one more axis")
    limit = sys.getrecursionlimit()
    return NestingError(
        f"Python's limit of {limit} nested calls was reached.",
        why="jit, grad, vmap and other functions that call one another take 5 to 10 calls for each "
            "level; or a function calls itself without an end.",
        fix=f"sys.setrecursionlimit({10 * limit}); or a loop in place of functions that are made "
            "of one another, such as functrans.lax.scan or fori_loop")


def _is_unforeseen(error: BaseException) -> bool:
    """Whether Python, or NumPy, complained inside of the package of what the user passed."""
    if not isinstance(error, _COMPLAINTS) or isinstance(error, FunctransError):
        return False
    if hasattr(error, "depth"):  # of the user's rules, which call each other: who began will say
        return False
    if type(error).__module__.partition(".")[0] not in ("builtins", "numpy"):
        return False
    traceback = error.__traceback__
    if traceback is None:  # raised by the runtime, which says what is wrong
        return False
    depth = 0
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if not is_internal_module(module) and not (
                depth and module.partition(".")[0] in CALLED_LIBRARIES):
            return False
        depth += 1
        traceback = traceback.tb_next
    # the wrapper alone: Python says that the call has the wrong arguments, as for any function
    return depth > 1 and not (isinstance(error, TypeError) and _ARITY.search(str(error)))


def _may_have_failed(x: Any) -> bool:
    """Whether an argument is a function, which may have raised the error without a frame."""
    return callable(x) and not isinstance(x, type)


def _kind_of(x: Any) -> str:
    """An argument in a message: the type of an array, a short value, or the class."""
    aval = getattr(x, "aval", None)
    if aval is not None or isinstance(x, (bool, int, float, complex, str, type(None))):
        return str(aval) if aval is not None else shown(x)
    return f"<{type(x).__name__}>"


def _is_mostly_ours(traceback: TracebackType | None) -> bool:
    """Whether most frames up to the error are ours: a user's endless recursion has many others."""
    balance = 1
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        library = module.partition(".")[0]
        is_user = not is_internal_module(module) and library not in CALLED_LIBRARIES
        balance += -1 if is_user else 1
        traceback = traceback.tb_next
    return balance > 0


def _is_ours(traceback: TracebackType | None) -> bool:
    """Whether an error was raised inside the package (or by the runtime, which has no frames)."""
    if traceback is None:
        return True
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = traceback.tb_frame.f_globals.get("__name__", "")
    return is_internal_module(module) or module.partition(".")[0] == "numpy"


_COMPLAINTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError,
               AssertionError)
_CONTAINERS = re.compile("containers are nested|flattening|unflattening|the tree")
_ARITY = re.compile(r"positional argument|keyword argument|missing \d+ required|multiple values")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_TRACER = re.compile(r"\b[A-Z]\w*Tracer\b")


_runtime.set_error_filter(_leaving)
