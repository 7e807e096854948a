"""All primitives with their samples, found by importing every module of functrans.primitives."""

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import functrans as ft
import functrans.primitives
from functrans.core import dtypes
from functrans.core.errors import FunctransError, NotDifferentiableError
from functrans.core.primitive import Primitive

DTYPES = {"f": ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2",
                "float4_e2m1fn"),
          "i": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int4",
                "uint4"),
          "c": ("complex64", "complex128")}
OF_INTEGERS = ("argmax", "argmin", "sort", "top_k", "cummax", "cumsum")
"""Their samples are floats, and they take integers too."""


@dataclass(frozen=True)
class Case:
    """One primitive on one sample."""

    primitive: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]
    index: int

    def __str__(self) -> str:
        return f"{self.primitive.name}-{self.index}"

    def apply(self, *args):
        return self.primitive.bind(*args, **self.params)

    def outs(self, *args):
        """The results as a list."""
        result = self.apply(*args)
        return list(result) if self.primitive.multiple_results else [result]

    @property
    def floating(self) -> list[int]:
        """The operands with derivatives."""
        return [i for i, a in enumerate(self.args) if dtypes.kind(a.dtype) in "fc"]

    def wide(self) -> "Case":
        """The same in float64 and complex128."""
        args = tuple(a.astype({"f": np.float64, "c": np.complex128}[dtypes.kind(a.dtype)])
                     if dtypes.kind(a.dtype) in "fc" else a for a in self.args)
        return Case(self.primitive, args, self.params, self.index)


def all_primitives() -> list[Primitive]:
    found = {}
    for module in pkgutil.walk_packages(functrans.primitives.__path__, "functrans.primitives."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Primitive):
                found[id(value)] = value
    return sorted(found.values(), key=lambda p: p.name)


def all_cases() -> list[Case]:
    return [Case(p, tuple(np.asarray(a) for a in s.args), dict(s.params), i)
            for p in all_primitives() for i, s in enumerate(p.samples())]


def variants(case: Case, dtypes_of: dict[str, tuple[str, ...]] = DTYPES):
    """The sample with its numbers in the other dtypes that the primitive takes."""
    for kind, names in dtypes_of.items():
        old = {a.dtype for a in case.args if dtypes.kind(a.dtype).replace("u", "i") == kind}
        if kind == "f" and case.primitive.name in OF_INTEGERS:
            names += dtypes_of["i"]
        for name in names if len(old) == 1 else ():
            new = np.dtype(getattr(ml_dtypes, name, name))
            with np.errstate(all="ignore"):
                args = tuple([a.astype(new) if a.dtype in old else a for a in case.args])
            found = Case(case.primitive, args, case.params, case.index)
            try:
                ft.make_jaxpr(lambda *xs, found=found: found.outs(*xs))(*args)
            except (TypeError, ValueError, FunctransError):
                continue
            yield found


def groups(cases: list[Case], size: int = 8) -> list[list[Case]]:
    """Samples that one program computes: at most `size` of a primitive."""
    found: list[list[Case]] = []
    for case in cases:
        if found and found[-1][0].primitive is case.primitive and len(found[-1]) < size:
            found[-1].append(case)
        else:
            found.append([case])
    return found


def wide_outs(case: Case) -> list[np.ndarray]:
    return [np.asarray(o) for o in case.wide().outs(*case.wide().args)]


def differentiable_cases() -> list[Case]:
    """Cases whose floating results keep float64, so that finite differences mean something."""
    return [case.wide() for case in all_cases() if is_smooth(case)]


def has_derivative(case: Case) -> bool:
    """Whether floating operands have derivatives, which some primitives refuse by design."""
    if case.primitive.finite_differences or not case.floating:
        return bool(case.floating)
    wide = case.wide()

    def fun(*xs):
        given = dict(zip(wide.floating, xs, strict=True))
        return wide.outs(*[given.get(i, a) for i, a in enumerate(wide.args)])

    try:
        ft.vjp(fun, *[wide.args[i] for i in wide.floating])
    except NotDifferentiableError:
        return False
    return True


def is_smooth(case: Case) -> bool:
    primitive = case.primitive
    if not case.floating or primitive.stops_derivatives or not primitive.finite_differences:
        return False
    floating = [o.dtype for o in wide_outs(case) if dtypes.kind(o.dtype) in "fc"]
    return bool(floating) and all(dtype in (np.float64, np.complex128) for dtype in floating)
