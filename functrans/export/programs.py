"""Jaxprs as plain values, and back.

The jaxprs of a file are a table in which a body stands before those that call it: no file nests
without end, none calls itself. Variables are numbers, inputs first. What is read is checked as it
is made: every equation by its primitive's type rule, every call against the program it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from functrans._runtime import ArrayBase
from functrans.core.avals import ShapedArray
from functrans.core.check import check_types
from functrans.core.dims import Size
from functrans.core.dtypes import float0
from functrans.core.errors import ExportError, FunctransError
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.primitive import Primitive
from functrans.export.constants import ArrayReader, ArrayWriter
from functrans.export.kinds import (
    dtype_named,
    name_of_dtype,
    number_from,
    number_of,
    text_from,
)
from functrans.export.parameters import INSTEAD, OPTIONAL, PARAMETERS, PRIMITIVES
from functrans.export.plain import damaged
from functrans.export.rules import check_rules
from functrans.export.sizes import SizeReader, SizeWriter

__all__ = ["ProgramReader", "ProgramWriter"]

MOST_LEVELS: Final = 64
"""How deep bodies call bodies at most."""
MOST_EQUATIONS: Final = 2_000_000
"""Equations at most, each as often as its body is called."""
MOST_AXES: Final = 32

EXPORTED: Final = frozenset(PRIMITIVES.values())


class ProgramWriter:
    """Collects the jaxprs, sizes and arrays of a program."""

    def __init__(self, decided: frozenset[str]) -> None:
        self.sizes = SizeWriter(decided)
        self.arrays = ArrayWriter()
        self.jaxprs: list[Any] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._kept: list[Jaxpr] = []  # numbers are by identity

    def size(self, size: Size) -> Any:
        return self.sizes.size(size)

    def array(self, value: Any) -> int:
        array = value._np if isinstance(value, ArrayBase) else np.asarray(value)
        return self.arrays.number(array)

    def aval(self, aval: ShapedArray) -> list[Any]:
        return [name_of_dtype(aval.dtype), aval.weak_type, *map(self.size, aval.shape)]

    def jaxpr(self, jaxpr: Jaxpr, order: int) -> int:
        """The number of a jaxpr, whose rules are written to some order of derivatives."""
        key = (id(jaxpr), order)
        if key not in self._numbers:
            plain = self._plain(jaxpr, order)
            self._kept.append(jaxpr)
            self._numbers[key] = len(self.jaxprs)
            self.jaxprs.append(plain)
        return self._numbers[key]

    def _plain(self, jaxpr: Jaxpr, order: int) -> list[Any]:
        inputs = (*jaxpr.constvars, *jaxpr.invars)
        numbers: dict[Var, int] = {v: k for k, v in enumerate(inputs)}

        def atom(a: Atom) -> Any:
            if isinstance(a, Literal):
                return [*self.aval(a.aval), number_of(np.asarray(a.value, a.aval.dtype))[1]]
            return numbers[a]

        eqns = []
        for eqn in jaxpr.eqns:
            params = self._params(eqn, order)
            ins = [atom(a) for a in eqn.invars]
            numbers.update(zip(eqn.outvars, range(len(numbers), len(numbers) + len(eqn.outvars))))
            outs = [self.aval(v.aval) for v in eqn.outvars]
            eqns.append([eqn.primitive.name, params, ins, outs])
        name = jaxpr.name if jaxpr.name.isprintable() else "fn"
        return [name[:200], [self.aval(v.aval) for v in inputs], eqns,
                [atom(a) for a in jaxpr.outvars]]

    def _params(self, eqn: Equation, order: int) -> list[list[Any]]:
        primitive = eqn.primitive
        kinds = PARAMETERS.get(primitive, {})
        if primitive not in EXPORTED or not kinds.keys() >= eqn.params.keys():
            raise _unexportable(eqn)
        try:
            return [[name, kinds[name].write(value, self, order)]
                    for name, value in sorted(eqn.params.items())]
        except ExportError as error:
            if error.where is None:
                error.where = eqn.source
            raise


def _unexportable(eqn: Equation) -> ExportError:
    reasons = PARAMETERS.without or {}
    why = reasons.get(eqn.primitive, "only primitives of functrans have a place in a file.")
    return ExportError(f"{eqn.primitive.name} cannot be exported.", where=eqn.source, why=why,
                       fix=INSTEAD.get(why, ""))


class ProgramReader:
    """The jaxprs of a file, checked; raises ExportError where they are none."""

    def __init__(self, sizes: SizeReader, arrays: ArrayReader, plain: Any) -> None:
        self.sizes = sizes
        self.arrays = arrays
        self._jaxprs: list[Jaxpr] = []
        self._levels: dict[Jaxpr, int] = {}
        self._counts: dict[Jaxpr, int] = {}
        if not isinstance(plain, list):
            raise damaged("its programs are no list")
        for number, p in enumerate(plain):
            try:
                jaxpr = self._read(p)
            except ExportError as error:
                error.what = error.what.replace("read: ", f"read: program {number}: ", 1)
                raise
            self._measure(jaxpr)
            self._jaxprs.append(jaxpr)

    def size(self, plain: Any) -> Size:
        return self.sizes.size(plain)

    def array(self, plain: Any) -> Any:
        return self.arrays[plain]

    def jaxpr(self, plain: Any) -> Jaxpr:
        if type(plain) is not int or not 0 <= plain < len(self._jaxprs):
            raise damaged(f"there is no program {plain!r:.50} before its caller")
        return self._jaxprs[plain]

    def aval(self, plain: Any) -> ShapedArray:
        if not isinstance(plain, list) or not 2 <= len(plain) <= 2 + MOST_AXES \
                or type(plain[1]) is not bool:
            raise damaged("a type is no list of dtype, weakness and sizes")
        shape = tuple([self.size(n) for n in plain[2:]])
        if any(isinstance(n, int) and n < 0 for n in shape):
            raise damaged("a size is negative")
        return ShapedArray(shape, dtype_named(plain[0]), plain[1])

    def _read(self, plain: Any) -> Jaxpr:
        name, inputs, eqns, outs = _parts(plain, 4)
        invars = tuple([Var(self.aval(p)) for p in _parts(inputs)])
        known: list[Var] = list(invars)
        made = tuple([self._equation(p, known) for p in _parts(eqns)])
        outvars = tuple([self._atom(p, known) for p in _parts(outs)])
        return Jaxpr((), invars, made, outvars, name=text_from(name))

    def _atom(self, plain: Any, known: Sequence[Var]) -> Atom:
        if type(plain) is int and 0 <= plain < len(known):
            return known[plain]
        if not isinstance(plain, list) or len(plain) != 3:
            raise damaged(f"there is no value {plain!r:.50} here")
        aval = self.aval(plain[:2])
        if aval.dtype == float0:
            raise damaged("a number of no dtype")
        return Literal(number_from([plain[0], plain[2]]), aval)

    def _equation(self, plain: Any, known: list[Var]) -> Equation:
        name, params, ins, outs = _parts(plain, 4)
        primitive = PRIMITIVES.get(name) if isinstance(name, str) else None
        if primitive is None:
            raise damaged(f"there is no primitive {name!r:.50}")
        invars = tuple([self._atom(p, known) for p in _parts(ins)])
        outvars = tuple([Var(self.aval(p)) for p in _parts(outs)])
        eqn = Equation(primitive, invars, outvars, self._params(primitive, params))
        try:
            check_types(eqn)
            check_rules(eqn)
        except FunctransError as error:
            raise damaged(f"{name}: {error.what}") from None
        except Exception as error:  # rules may fail in any way on what no operation has
            raise damaged(f"{name}: {type(error).__name__}: {error}"[:300]) from None
        known.extend(outvars)
        return eqn

    def _params(self, primitive: Primitive, plain: Any) -> dict[str, Any]:
        name, kinds = primitive.name, PARAMETERS.get(primitive, {})
        params: dict[str, Any] = {}
        for entry in _parts(plain):
            key, value = _parts(entry, 2)
            if not isinstance(key, str) or key not in kinds or key in params:
                raise damaged(f"{name} has no parameter {key!r:.50}, or has it twice")
            params[key] = kinds[key].read(value, self)
        for key in kinds.keys() - params.keys() - OPTIONAL.get(primitive, frozenset()):
            raise damaged(f"{name} is without its parameter {key}")
        return params

    def _measure(self, jaxpr: Jaxpr) -> None:
        """Bound what unfolding the calls would make: two calls of two calls ... are too many."""
        bodies = [body for eqn in jaxpr.eqns for body in subjaxprs(eqn)]
        self._levels[jaxpr] = 1 + max((self._levels[b] for b in bodies), default=0)
        self._counts[jaxpr] = len(jaxpr.eqns) + sum(self._counts[b] for b in bodies)
        if self._levels[jaxpr] > MOST_LEVELS:
            raise damaged(f"programs call programs more than {MOST_LEVELS} deep")
        if self._counts[jaxpr] > MOST_EQUATIONS:
            raise damaged(f"its programs have more than {MOST_EQUATIONS} operations")


def _parts(plain: Any, count: int | None = None) -> list[Any]:
    if not isinstance(plain, list) or (count is not None and len(plain) != count):
        raise damaged(f"a list{'' if count is None else f' of {count}'} is missing")
    return plain
