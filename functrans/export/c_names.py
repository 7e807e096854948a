"""The parameters of an exported C function: names, element types and shapes."""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, Final

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, shape_text
from functrans.core.errors import ArgumentError, shown
from functrans.core.keypath import keystr
from functrans.core.tree import PyTreeDef, tree_paths

__all__ = ["STANDARD_FUNCTIONS", "Parameter", "function_name", "input_parameters",
           "output_parameters", "unique"]

_TYPES: Final = {
    "float32": "float", "float64": "double", "int8": "int8_t", "int16": "int16_t",
    "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", "bool": "uint8_t", "complex64": "float",
    "complex128": "double", "complex32": "uint16_t", "float16": "uint16_t", "bfloat16": "uint16_t"}
_WORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long main register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while
    alignas alignof and asm bool catch class compl concept const_cast constexpr decltype delete
    dynamic_cast explicit export false friend mutable namespace new noexcept not nullptr operator or
    private protected public reinterpret_cast requires static_assert static_cast template this throw
    true try typeid typename using virtual wchar_t xor
    i64 int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t NULL"""
_KEYWORDS: Final = frozenset(_WORDS.split())
"""Of C and C++, and the types in a signature."""
_FUNCTIONS: Final = """
    abs abort aligned_alloc calloc div exit free getenv labs malloc qsort rand random realloc system
    printf puts read write open close
    memchr memcmp memcpy memmove memset signal time
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs
    fdim floor fma fmax fmin fmod frexp gamma hypot j0 j1 jn ldexp lgamma log log10 log1p log2 logb
    lrint lround modf nan nearbyint pow remainder rint round signbit sin sinh sqrt tan tanh tgamma
    trunc y0 y1 yn"""
STANDARD_FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
"""Of the C library: no function of ours has their names."""
_MACROS: Final = frozenset({"assert", "errno", "stdin", "stdout", "stderr", "linux", "unix", "i386",
                            "offsetof", "setjmp"})
LONGEST_NAME: Final = 63
"""The characters by which C tells names apart."""


@dataclass(frozen=True)
class Parameter:
    """An array that the C function reads or writes."""

    name: str
    aval: ShapedArray

    @property
    def ctype(self) -> str:
        return _TYPES.get(self.aval.dtype.name, "uint8_t")

    def comment(self) -> str:
        """Its type and shape for a reader of the header."""
        text = f"{self.aval.dtype.name}[{shape_text(self.aval.shape)}]"
        if dtypes.kind(self.aval.dtype) == "c":
            halves = " as bits of float16" if self.aval.dtype == dtypes.complex32 else ""
            return f"{text}, real and imaginary parts{halves} in turn"
        if self.aval.dtype == np.bool_:
            return text + ", 0 or 1"
        return text + ("" if _TYPES.get(self.aval.dtype.name, "")[:4] != "uint"
                       or self.aval.dtype.kind == "u" else ", as bits")


def identifier(text: str) -> str:
    """The text as a name in C and C++."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "f"
    return f"_{name}" if name[0].isdigit() or name in _KEYWORDS else name


def function_name(given: str | None, derived: str, used: Container[str]) -> str:
    """The name of the C function: the one that is asked for, else one like that in Python.

    Raises ArgumentError for a name that C, its library or the program itself has already.
    """
    if given is None:
        name = unique(_free(derived), _Taken(used))
        if len(name) <= LONGEST_NAME:
            return name
        raise ArgumentError(f"to_c: the function has a name of {len(name)} characters.",
                            why=f"C tells names apart by their first {LONGEST_NAME}.",
                            fix='to_c(f, specs, folder, name="f")')
    why = _refusal(given, used)
    if why:
        raise ArgumentError(f"to_c: the C function cannot have the name {shown(given)}.", why=why,
                            fix=f'another name, such as name="{_like(given, used)}"')
    return given


def _refusal(name: str, used: Container[str]) -> str:
    """Why a function of ours cannot have a name; empty where it can."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return "it is no identifier of C: letters of ASCII, digits and _, no digit first."
    if len(name) > LONGEST_NAME:
        return f"it has {len(name)} characters; C tells names apart by their first {LONGEST_NAME}."
    if name in _KEYWORDS:
        return "it is a word of C or C++."
    if name in _MACROS or name in STANDARD_FUNCTIONS or _in_c_library(name):
        return "the C library has something of that name, which other code would call instead."
    if re.match(r"_[A-Z_]|.*__", name):
        return "names with two underscores, or one and a capital first, belong to the compiler."
    if name.lower().startswith("ft_") or name in used:
        return "the generated program has something of that name."
    return ""


class _Taken:
    """Names that a function whose name nobody asked for does not get."""

    def __init__(self, used: Container[str]) -> None:
        self._used = used

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and len(name) <= LONGEST_NAME and bool(
            _refusal(name, self._used))


def _free(text: str) -> str:
    """The text as a name that begins like none of those that are kept for others."""
    name = re.sub(r"_+", "_", identifier(text))
    return f"my{name if name[0] == '_' else '_' + name}" if re.match(
        "_[A-Z]|ft_", name, re.IGNORECASE if name[0] != "_" else 0) else name


def _like(name: object, used: Container[str]) -> str:
    text = re.sub(r"_+", "_", identifier(str(name)))[:LONGEST_NAME - 8].strip("_")
    return unique(f"my_{text}", _Taken(used))


@cache
def _c_library() -> ctypes.CDLL | None:
    """The library of mathematics, with that of C on which it depends; None where it has no such
    name, and the names above must do."""
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        return None


def _in_c_library(name: str) -> bool:
    library = _c_library()
    return library is not None and hasattr(library, name)


def unique(text: str, used: Container[str]) -> str:
    """The text as a name in C that is not one of those used."""
    name = first = identifier(text)
    for k in count(1):
        if name not in used:
            break
        name = f"{first}_{k}"
    return name


def input_parameters(fun: Callable[..., Any], tree: PyTreeDef, avals: Sequence[ShapedArray],
                     taken: Sequence[str]) -> list[Parameter]:
    """The leaves of the arguments, named as in the signature: `params_w` for `params["w"]`."""
    names = []
    given = _positional(fun)
    for path in tree_paths(tree):
        is_keyword, first, *rest = path
        number = str(first).strip("[]")
        root = given[int(number)] if str(is_keyword) == "[0]" and int(number) < len(given) else (
            f"arg{number}" if str(is_keyword) == "[0]" else keystr([first], simple=True))
        names.append("_".join([root, *(keystr([k], simple=True) for k in rest)]))
    return _parameters(names, avals, taken)


def output_parameters(tree: PyTreeDef, avals: Sequence[ShapedArray],
                      taken: Sequence[str]) -> list[Parameter]:
    """The leaves of the results: `out`, or `out_0`, `out_logits`."""
    names = ["_".join(["out", *(keystr([k], simple=True) for k in path)])
             for path in tree_paths(tree)]
    return _parameters(names, avals, taken)


def _positional(fun: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _parameters(names: Sequence[str], avals: Sequence[ShapedArray],
                taken: Sequence[str]) -> list[Parameter]:
    found: list[Parameter] = []
    used = set(taken)
    for name, aval in zip(names, avals, strict=True):
        found.append(Parameter(unique(name, used), aval))
        used.add(found[-1].name)
    return found
