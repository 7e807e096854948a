"""`Primitive`: an operation that a user names, with rules that are given one by one.

It is an adapter. Primitives of the package are classes with all their rules; this one asks its
instance, and translates between the forms that rules have here and in JAX: a zero tangent, which is
None here, is a `Zero`, and an operand that is transposed an `UndefinedPrimal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from functrans._runtime import ArrayBase, wrap
from functrans.core import config, dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.axes import MappedAxis
from functrans.core.convert import to_array, to_arrays
from functrans.core.cost import Cost
from functrans.core.errors import ArgumentError, CustomRuleError, MissingRuleError, shown
from functrans.core.evaluate import interpret
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import HigherOrder, Linear, Primitive
from functrans.core.source import user_source
from functrans.core.trace import Tracer, leaked, run_in
from functrans.core.tree_registry import register_pytree_node
from functrans.device import current_device
from functrans.transforms.closed import stage_closed
from functrans.transforms.jit.primitive import jit_p
from functrans.transforms.tangents import instantiate_aval, tangent_aval

__all__ = ["LoweredFunction", "UndefinedPrimal", "UserPrimitive", "Zero"]

_Rule = TypeVar("_Rule", bound=Callable[..., Any])


class Zero:
    """A tangent or cotangent that is zero, known by its type alone; a tree without leaves."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        return Zero(tangent_aval(get_aval(x)))

    def instantiate(self) -> Any:
        """Zeros of the type."""
        return instantiate_aval(None, self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class UndefinedPrimal:
    """The place of an operand in which an operation is transposed: a type without a value.

    It is a tree without leaves.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


register_pytree_node(Zero, lambda x: ((), x.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval),
                     lambda aval, _: UndefinedPrimal(aval))


@dataclass(frozen=True, eq=False)
class LoweredFunction:
    """A function of arrays that a compiled program runs in place of an operation."""

    fun: Callable[..., Any]
    multiple_results: bool


_HOW: Mapping[str, tuple[str, str]] = {
    "impl": ("evaluation", "p.def_impl(fun)"),
    "type": ("type", "@p.def_abstract_eval\ndef type_of(x): return ShapedArray(x.shape, x.dtype)"),
    "lowering": ("lowering", "functrans.interpreters.mlir.register_lowering(p, mlir.lower_fun(f, "
                             "multiple_results=False))"),
    "jvp": ("derivative", "functrans.interpreters.ad.primitive_jvps[p] = rule"),
    "transpose": ("transpose", "functrans.interpreters.ad.primitive_transposes[p] = rule"),
    "batch": ("batching", "functrans.interpreters.batching.primitive_batchers[p] = rule")}


class UserPrimitive(HigherOrder):
    """An operation by the name of `name`; `multiple_results` says that results are a list.

    `def_impl` gives what is called on arrays, `def_abstract_eval` the types of the results; the
    other rules are set in `functrans.interpreters`. Raises MissingRuleError where one is asked for
    that was not given.

    >>> import functrans as ft
    >>> from functrans.extend.core import Primitive
    >>> from functrans.interpreters import ad, mlir
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
    >>> ad.deflinear2(twice_p, lambda ct, x: [twice_p.bind(ct)])
    >>> ft.jit(ft.grad(twice_p.bind))(3.0).item()
    2.0
    >>> half_p = Primitive("half")
    >>> half_p.def_impl(lambda x: x / 2)(4.0)
    2.0
    """

    name: str  # type: ignore[misc]  # of an instance
    multiple_results: bool  # type: ignore[misc]
    call_primitive = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.multiple_results = False
        self.rules: dict[str, Callable[..., Any]] = {}
        """By what they are for, in JAX's form."""
        self._lowerings: dict[str | None, LoweredFunction] = {}
        self._programs: dict[Any, Jaxpr] = {}

    # --- what a user gives

    def def_impl(self, impl: _Rule) -> _Rule:
        """Set what is called on arrays: `impl(*arrays, **params)`."""
        self.rules["impl"] = impl
        return impl

    def def_abstract_eval(self, abstract_eval: _Rule) -> _Rule:
        """Set the types of results: `abstract_eval(*types, **params)`."""
        self.rules["type"] = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: _Rule) -> _Rule:
        """Set the types of results and effects, of which there have to be none."""
        def types(*avals: Any, **params: Any) -> Any:
            result, effects = abstract_eval(*avals, **params)
            if effects:
                raise ArgumentError(f"the primitive {self.name} has effects: {shown(effects)}.",
                                    why="an operation of a user is its function, which may be "
                                        "merged, moved and left out.",
                                    fix="functrans.io_callback(fun, types, x) in that function")
            return result

        self.rules["type"] = types
        return abstract_eval

    def def_lowering(self, lowered: LoweredFunction, platform: str | None) -> None:
        """Set what compiled programs run, on one platform or on all."""
        self._lowerings["cuda" if platform == "gpu" else platform] = lowered
        self._programs.clear()

    def rule(self, which: str) -> Callable[..., Any]:
        """A rule; raises MissingRuleError where there is none."""
        found = self.rules.get(which)
        if found is None:
            what, fix = _HOW[which]
            raise MissingRuleError(f"the primitive {self.name} has no {what} rule.",
                                   where=user_source(), fix=fix)
        return found

    def get_bind_params(self, params: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Functions and parameters to bind again with those of an equation."""
        return [], dict(params)

    # --- what transforms and compilers ask

    def type(self, *avals: ShapedArray, **params: Any) -> Any:
        found = self.rule("type")(*avals, **params)
        if self.multiple_results:
            return [self._type(a) for a in found]
        return self._type(found)

    def _type(self, found: Any) -> ShapedArray:
        aval = getattr(found, "aval", None)
        if not isinstance(aval, ShapedArray):
            raise CustomRuleError(
                f"the type rule of {self.name} returned {shown(found)}.", where=user_source(),
                fix="a ShapedArray(shape, dtype)"
                    + (" for each result" if self.multiple_results else ""))
        return ShapedArray(tuple(aval.shape), dtypes.as_dtype(aval.dtype), aval.weak_type)

    def cost(self, *avals: Any, **params: Any) -> Cost:
        if self._lowerings:
            return super().cost(*avals, **params)
        return Primitive.cost(self, *avals, **params)

    def called(self, operands: Sequence[Any], /, **params: Any) -> tuple[Jaxpr, Sequence[Any]]:
        return self.program(tuple(map(get_aval, operands)), params), operands

    def program(self, avals: tuple[ShapedArray, ...], params: Mapping[str, Any]) -> Jaxpr:
        """The function that compiled programs run, for operands of these types."""
        platform = "cuda" if current_device().platform == "gpu" else "cpu"
        lowered = self._lowerings.get(platform) or self._lowerings.get(None)
        if lowered is None:
            what, fix = _HOW["lowering"]
            raise MissingRuleError(
                f"the primitive {self.name} has no {what} for {platform}.", where=user_source(),
                why="a compiled program runs a function of arrays in its place.", fix=fix)
        key = (platform, avals, tuple(sorted(params.items())), config.current())
        known = self._programs.get(key)
        if known is None:
            known = self._programs[key] = self._staged(lowered, avals, params)
        return known

    def _staged(self, lowered: LoweredFunction, avals: tuple[ShapedArray, ...],
                params: Mapping[str, Any]) -> Jaxpr:
        def flat(*args: Any) -> list[Any]:
            outs = lowered.fun(*args, **params)
            return to_arrays(outs if lowered.multiple_results else [outs], self.name)

        jaxpr = stage_closed(flat, avals, name=self.name)
        types = self._types(avals, params)
        if len(types) != len(jaxpr.outvars) \
                or not all(a.matches(b) for a, b in zip(types, jaxpr.out_avals, strict=True)):
            raise CustomRuleError(
                f"the function that {self.name} is lowered to returns "
                f"{', '.join(map(str, jaxpr.out_avals))}, its type rule says "
                f"{', '.join(map(str, types))}.", where=user_source())
        return jaxpr

    def _types(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> list[ShapedArray]:
        types = self.type(*avals, **params)
        return list(types) if self.multiple_results else [types]

    def evaluate(self, *arrays: Any, **params: Any) -> Any:
        """The results as NumPy arrays, of the function that is compiled where there is one."""
        if self._lowerings:
            outs = interpret(self.program(tuple(map(get_aval, arrays)), params), arrays)
            return outs if self.multiple_results else outs[0]
        outs = self.evaluate_eagerly(arrays, params)
        return list(map(np.asarray, outs)) if self.multiple_results else np.asarray(outs)

    def evaluate_eagerly(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        for x in args:
            if isinstance(x, Tracer):
                raise leaked(x, self.name)
        operands = to_arrays(args, self.name)
        if "impl" not in self.rules and self._lowerings:
            return self.compiled(operands, params)
        result = run_in(None, self.rule("impl"), *operands, **params)
        if "type" not in self.rules:
            return [to_array(r, self.name) for r in result] if self.multiple_results else \
                to_array(result, self.name)
        outs = self._types(list(map(get_aval, operands)), params)
        results = list(result) if self.multiple_results else [result]
        if len(results) != len(outs):
            raise CustomRuleError(f"{self.name} returned {len(results)} results, its type rule "
                                  f"says {len(outs)}.", where=user_source())
        found = [self._result(r, a) for r, a in zip(results, outs, strict=True)]
        return found if self.multiple_results else found[0]

    def _result(self, result: Any, aval: ShapedArray) -> Any:
        if isinstance(result, ArrayBase) and aval.matches(get_aval(result)):
            return result
        array = np.asarray(result)
        if array.shape != aval.shape:
            raise CustomRuleError(f"{self.name} returned an array of shape {array.shape}, its "
                                  f"type rule says {aval}.", where=user_source())
        return wrap(array.astype(aval.dtype, copy=False), aval.weak_type)

    def compiled(self, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """The results of the compiled function on arrays."""
        jaxpr = self.program(tuple(map(get_aval, operands)), params)
        outs = jit_p.evaluate_eagerly(operands, {"jaxpr": jaxpr, "name": self.name})
        return outs if self.multiple_results else outs[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], /, *, jvp_jaxpr: Any,
            **params: Any) -> tuple[Any, Any]:
        return self._push(primals, tangents, params)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], /, *, linearize_jaxpr: Any,
                  **params: Any) -> tuple[Any, Any]:
        return self._push(primals, tangents, params)

    def _push(self, primals: Sequence[Any], tangents: Sequence[Any],
              params: Mapping[str, Any]) -> tuple[Any, Any]:
        given = [Zero.from_primal_value(p) if t is None else t
                 for p, t in zip(primals, tangents, strict=True)]
        outs, out_tangents = self.rule("jvp")(tuple(primals), tuple(given), **params)
        if self.multiple_results:
            return list(outs), [_none_for_zero(t) for t in out_tangents]
        return outs, _none_for_zero(out_tangents)

    def transpose(self, cts: Any, /, *operands: Any, transpose_jaxpr: Any,
                  **params: Any) -> list[Any]:
        if self.multiple_results:
            types = self._types([x.aval if isinstance(x, Linear) else get_aval(x)
                                 for x in operands], params)
            cts = [Zero(a) if ct is None else ct for ct, a in zip(cts, types, strict=True)]
        given = [UndefinedPrimal(x.aval) if isinstance(x, Linear) else x for x in operands]
        found = list(self.rule("transpose")(cts, *given, **params))
        if len(found) != len(operands):
            raise CustomRuleError(
                f"the transpose rule of {self.name} returned {len(found)} cotangents for "
                f"{len(operands)} operands.", where=user_source(),
                fix="a list with None for each operand that is not linear")
        return [_none_for_zero(ct) for ct in found]

    def batch_over(self, mapped: MappedAxis, batch_jaxpr: Any, operands: Sequence[Any],
                   axes: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        given = tuple(operands), tuple(axes)
        if "batch with axis" in self.rules:
            outs, found = self.rules["batch with axis"](mapped, *given, **params)
        else:
            outs, found = self.rule("batch")(*given, **params)
        return (list(outs), list(found)) if self.multiple_results else (outs, found)

    batch = batch_over


def _none_for_zero(x: Any) -> Any:
    """A tangent or cotangent as the package has it."""
    is_nothing = isinstance(x, Zero) or getattr(x, "dtype", None) == dtypes.float0
    return None if is_nothing else x
