"""The fingerprint of a program: a text of all that decides what is compiled, the same in every
process.

Names of variables and functions, source lines and weak types are left out. A parameter that has no
such text (a Python function, an object of a class that we do not know) leaves the program without a
fingerprint: it is lowered in every process. Nothing is told by `id` or by a default `repr`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any, Final

import numpy as np

from functrans import _runtime, lowering, primitives
from functrans._runtime import ArrayBase
from functrans.core import config
from functrans.core.avals import ShapedArray
from functrans.core.dims import Dim
from functrans.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from functrans.core.primitive import HigherOrder, Primitive
from functrans.lowering.store.cache import FORMAT, digest
from functrans.primitives.base import Constant
from functrans.version import __version__

__all__ = ["Fingerprint", "compiler_version", "constant_key", "fingerprint"]

# Hashing takes 1 ms a megabyte: programs with more than this in constants are lowered each time.
MAX_CONSTANT_BYTES: Final = 2**24
IMPORTED: Final = time.time()
# Types whose `repr` tells equal values, and no others, apart.
PLAIN: Final = frozenset({int, bool, str, float, complex, bytes, type(None), type(...)})


class Fingerprint:
    """`text` of a program, and its `constants` by `constant_key`.

    Constants are told apart by their content: passes compute with small ones.
    """

    def __init__(self, text: str, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        self.text = text
        self.constants = constants

    def key(self, *options: str) -> str | None:
        """The key of the program as this compiler makes it with these options.

        None while the compiler is being worked on.
        """
        version = compiler_version()
        return None if version is None else digest(FORMAT, version, *options, "", self.text)


class Unserializable(Exception):
    """A part of the program has no text."""


def fingerprint(jaxpr: Jaxpr) -> Fingerprint | None:
    """The fingerprint of a program, or None where a part of it has none; 3 ms for 700 equations."""
    teller = CanonicalPrinter()
    try:
        text = teller.jaxpr(jaxpr)
    except Unserializable:
        return None
    return Fingerprint(text, teller.constants)


def constant_key(value: np.ndarray[Any, Any]) -> str:
    """The dtype, shape and content of an array as a key."""
    return digest(value.dtype.name, value.dtype.str, repr(value.shape), value.tobytes())


class CanonicalPrinter:
    """Writes programs, each body once; later occurrences are the hash of its text."""

    def __init__(self) -> None:
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.constant_bytes = 0
        self.types: dict[int, str] = {}
        self.bodies: dict[int, str] = {}
        self.kept: list[Any] = []  # what `types` and `bodies` know by its id stays alive

    def jaxpr(self, jaxpr: Jaxpr) -> str:
        names: dict[Atom, str] = {}
        lines = [" ".join([self._new(v, names) for v in (*jaxpr.constvars, *jaxpr.invars)]),
                 str(len(jaxpr.constvars))]
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            params = eqn.params
            operands: Sequence[Atom] = eqn.invars
            if primitive.higher_order and isinstance(primitive, HigherOrder) \
                    and primitive.called is not None:  # the passes put the body in its place
                body, operands = primitive.called(operands, **params)
                head = f"call {self.body(body)}"
            elif params:
                texts = [f"{k}={self.value(v)}" for k, v in params.items()]
                head = f"{_name(primitive)}[{' '.join(texts)}]"
            else:
                head = _name(primitive)
            given = " ".join([names[a] if type(a) is Var else self._literal(a) for a in operands])
            made = " ".join([self._new(v, names) for v in eqn.outvars])
            lines.append(f"{head} {given} > {made}")
        lines.append(" ".join([names[a] if type(a) is Var else self._literal(a)
                               for a in jaxpr.outvars]))
        return "\n".join(lines)

    def body(self, jaxpr: Jaxpr) -> str:
        found = self.bodies.get(id(jaxpr))
        if found is None:
            found = self.bodies[id(jaxpr)] = digest(self.jaxpr(jaxpr))
            self.kept.append(jaxpr)
        return found

    def _new(self, var: Var, names: dict[Atom, str]) -> str:
        names[var] = name = str(len(names))
        aval = var.aval
        texts = self.types.get(id(aval))
        if texts is None:
            texts = self.types[id(aval)] = self.aval(aval)
            self.kept.append(aval)
        return name + texts

    def aval(self, aval: ShapedArray) -> str:
        return f":{_dtype(aval.dtype)}{self.value(aval.shape)}"

    def _literal(self, atom: Atom) -> str:
        assert isinstance(atom, Literal)
        value = atom.value
        kind = type(value)
        if kind in PLAIN:
            texts = f"{kind.__name__} {value!r}"
        elif isinstance(value, (np.generic, np.ndarray)) and not value.dtype.hasobject:
            texts = f"{_dtype(value.dtype)}{value.shape} {value.tobytes().hex()}"
        else:
            raise Unserializable
        return f"({texts}{self.aval(atom.aval)})"

    def value(self, value: Any) -> str:
        """The text of a parameter."""
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        if kind is tuple or kind is list:
            if PLAIN.issuperset(map(type, value)):
                return repr(value)
            return f"{kind.__name__}({','.join(map(self.value, value))})"
        if isinstance(value, np.dtype):
            return _dtype(value)
        if isinstance(value, Dim):
            return f"Dim({value.name!r})"
        if kind is Jaxpr:
            return self.body(value)
        if kind is ShapedArray:
            return self.aval(value)
        if kind is Constant:
            return self._constant(value.value)
        return self._other(value, kind)

    def _other(self, value: Any, kind: type) -> str:
        if isinstance(value, Enum):
            return f"{kind.__module__}.{kind.__qualname__}.{value.name}"
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return f"{_dtype(value.dtype)} {value.tobytes().hex()}"
        if kind is ClosedJaxpr:
            consts = ",".join([self._constant(c) for c in value.consts])
            return f"Closed({self.body(value.jaxpr)},{consts})"
        if kind is frozenset:
            return f"frozenset({','.join(sorted(map(self.value, value)))})"
        fields = getattr(kind, "__dataclass_fields__", None)
        if fields is not None and kind.__module__.startswith("functrans."):
            texts = [self.value(getattr(value, name)) for name in fields]
            return f"{kind.__module__}.{kind.__qualname__}({','.join(texts)})"
        raise Unserializable

    def _constant(self, value: Any) -> str:
        if not isinstance(value, (np.ndarray, np.generic, ArrayBase)):
            raise Unserializable
        array = np.asarray(value)
        self.constant_bytes += array.nbytes
        if array.dtype.hasobject or self.constant_bytes > MAX_CONSTANT_BYTES:
            raise Unserializable
        key = constant_key(array)
        self.constants[key] = array
        return key


@cache
def _name(primitive: Primitive) -> str:
    """The name of a primitive of ours; another distribution's code may change under its name."""
    if not type(primitive).__module__.startswith("functrans."):
        raise Unserializable
    return primitive.name


@cache
def _dtype(dtype: np.dtype[Any]) -> str:
    if dtype.fields is not None or dtype.hasobject:
        raise Unserializable
    return f"{dtype.name}{dtype.str}"  # bfloat16 has the `str` of any two bytes


@cache
def compiler_version() -> str | None:
    """What tells this version of the compiler from others.

    An installed package is told by its installer's list of files, which has their hashes (it is
    not to be edited in place), and source by sizes and times of its files: 500 of them take 2 ms,
    and ten times that where the file system is a container's or a network's. None where a file
    was changed since the process began, which may run what it was before.
    """
    texts = [("runtime", os.stat(str(_runtime.__file__)))]
    content = b""
    record = _installers_list()
    try:
        texts.append(("record", os.stat(record)))
        with open(record, "rb") as file:
            content = file.read()
    except OSError:
        for module in (config, primitives, lowering):
            texts.extend(_files(os.path.dirname(str(module.__file__)), ""))
    if max([status.st_mtime for _, status in texts]) > _process_began():
        return None
    return digest(content, *sorted([f"{name} {s.st_size} {s.st_mtime_ns}" for name, s in texts]))


def _installers_list() -> str:
    """Where the list of an installed package's files is; of source there is none.

    Source: Python Packaging User Guide, "Recording installed projects".
    """
    package = os.path.dirname(os.path.dirname(str(config.__file__)))
    inside = str(lowering.__file__).startswith(package + os.sep)
    return f"{package}-{__version__}.dist-info/RECORD" if inside else ""


def _files(folder: str, inside: str) -> list[tuple[str, os.stat_result]]:
    """The files in a folder and those below it, by their paths from it."""
    texts = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                texts.append((inside + entry.name, entry.stat()))
            elif entry.name != "__pycache__":
                texts.extend(_files(entry.path, f"{inside}{entry.name}/"))
    return texts


def _process_began() -> float:
    """When this process was started, in seconds of the clock of files."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return IMPORTED
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
