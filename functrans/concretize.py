"""What happens when Python asks a tracer for its value: an answer where there is one, else help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dis import opmap
from typing import Any, NoReturn

from functrans.core.dims import Dim
from functrans.core.errors import ConcretizationError, ShapeError, public
from functrans.core.source import describe_source, user_source
from functrans.core.trace import Tracer, leaked
from functrans.transforms.batching import BatchTracer

__all__ = ["install_refusals"]

_STATIC = "; or mark the argument static: jit(f, static_argnums=...)"
_FIXES = {
    "bool()": "functrans.numpy.where(c, a, b) for values, functrans.lax.cond(c, f, g, x) for "
              "branches, functrans.lax.while_loop for loops, & | ~ for and, or, not",
    "int()": "x.astype(int) to stay in the program, functrans.lax.fori_loop for a loop of x "
             "rounds",
    "float()": "x.astype(float) to stay in the program, functrans.numpy.sin for math.sin",
    "complex()": "x.astype(complex) to stay in the program",
    "an index": "x[i] of a functrans array x takes a traced i; functrans.lax.fori_loop(0, n, f, x) "
                "for range(n)",
    "len()": "x.size or x.shape[0] of an array with an axis",
    "a NumPy array": "functrans.numpy has NumPy's functions for traced arrays, and "
                     "functrans.pure_callback calls any other",
    "an element of a NumPy array": "x = functrans.numpy.zeros(n), and x = x.at[i].set(v); or "
                                   "functrans.numpy_code(f), in which NumPy's arrays take it",
    "a Python value": "return it from the function, or functrans.debug.print(\"{}\", x)",
    "formatted text": "functrans.debug.print(\"{x}\", x=x)",
}


_WORDING = {
    "an index": "range(), a list index or a NumPy index by",
    "a NumPy array": "a NumPy array (np.asarray, or a NumPy function that functrans does not "
                     "cover) of",
    "a Python value": "item(), tolist() or tobytes() of",
    "formatted text": "a formatted string of",
}
_MAY_BE_STATIC = ("bool()", "int()", "float()", "complex()", "an index")


def refuse(x: Tracer, wanted: str) -> NoReturn:
    """Raise the error for a tracer whose value Python asked for."""
    if not x._trace.alive:
        raise leaked(x, wanted)
    made = describe_source(x.origin)
    reduce = "" if x.ndim == 0 or wanted != "bool()" else "x.any() or x.all() first; then "
    if isinstance(x, BatchTracer):
        why, static = "vmap runs the function once for all lanes, whose values differ.", ""
    else:
        why = ("the function is run once on stand-ins for its arguments, which have a shape and a "
               "dtype and no value.")
        static = _STATIC if wanted in _MAY_BE_STATIC else ""
    raise ConcretizationError(
        f"{_WORDING.get(wanted, wanted + ' of')} a traced {x.aval} needs its value, which is not "
        f"known while Python runs under {x._trace.kind}{made and '; it was made '}{made}.",
        where=user_source(), why=why, fix=reduce + _FIXES[wanted] + static)


def _refuse_constant(x: Tracer, wanted: str) -> NoReturn:
    """Raise the error for a number whose derivative would be lost without a word."""
    raise ConcretizationError(
        f"{wanted} of a {x.aval} that is differentiated.", where=user_source(),
        why="Python's number is a constant: the derivative of math.sin(x) or x * float(x) would "
            "be wrong.",
        fix="functrans.numpy.sin(x) for math.sin(x); x as it is; x.item() for a constant")


# what NumPy asks for where it stores a number in an array
_STORED = ("float()", "int()", "complex()")


def _is_stored() -> bool:
    """Whether the user's line is `array[i] = x`: an array that asks for a number is not ours."""
    source = user_source()
    return source is not None and source.code.co_code[source.offset] == opmap["STORE_SUBSCR"]


def _converter(wanted: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    stored = wanted in _STORED

    @public
    def method(self: Any) -> Any:
        value = self.concrete
        if value is None:
            refuse(self, wanted)
        if stored and _is_stored():  # it would be a constant, without derivative
            refuse(self, "an element of a NumPy array")
        if wanted in ("float()", "complex()") and self.aval.dtype.kind not in "biu":
            _refuse_constant(self, wanted)
        return convert(value)

    return method


def _iterate(self: Any) -> Iterator[Any]:
    """The parts along the first axis; a tracer with a symbolic first axis has no end."""
    if not self.shape:
        raise ShapeError(f"iteration over a traced {self.aval}, which has no axis.",
                         fix="functrans.lax.fori_loop(0, x, f, init) for a loop of x rounds, "
                             "x[None] for an array of one element")
    if isinstance(self.shape[0], Dim):
        raise ConcretizationError(
            f"iteration over {self.aval}, whose first axis has no known size.",
            where=user_source(), fix="functrans.lax.scan(f, init, x), or functrans.vmap(f)(x)")
    return iter([self[i] for i in range(self.shape[0])])


def _length(self: Any) -> int:
    if not self.shape:
        raise ShapeError(f"len() of a traced {self.aval}, which has no axis.", fix="x.size")
    length: int = self.shape[0]
    return length


def _as_numpy(self: Any, dtype: Any = None, copy: Any = None) -> NoReturn:
    refuse(self, "a NumPy array")


def _format(self: Any, spec: str) -> str:
    if not spec:
        return str(self)
    value = self.concrete
    return refuse(self, "formatted text") if value is None else format(value, spec)


def _item(self: Any, *args: Any) -> Any:
    value = self.concrete
    return refuse(self, "a Python value") if value is None else value.item(*args)


def install_refusals() -> None:
    """Give tracers the conversions of Python, which answer or refuse."""
    conversions: dict[str, Callable[..., Any]] = {
        "__bool__": _converter("bool()", bool), "__int__": _converter("int()", int),
        "__float__": _converter("float()", float), "__complex__": _converter("complex()", complex),
        "__index__": _converter("an index", lambda value: value.__index__()),
        "__iter__": _iterate, "__len__": _length, "__array__": _as_numpy, "__format__": _format,
        "item": _item, "tolist": _converter("a Python value", lambda value: value.tolist()),
        "tobytes": _converter("a Python value", lambda value: value.tobytes()),
    }
    for name, method in conversions.items():
        method.__name__ = name
        setattr(Tracer, name, method)
