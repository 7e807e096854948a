"""The rules of a custom_vjp function as jaxprs, for the calls that programs have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any

from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr
from functrans.core.staging import stage
from functrans.transforms.closed import stage_closed, without_consts
from functrans.transforms.custom_call import (
    LazyJaxpr,
    RuleByZeros,
    differentiable_flags,
    staging_rule_of,
)
from functrans.transforms.tangents import instantiate_aval

__all__ = ["StagedRules"]

Flags = tuple[bool, ...]


class StagedRules:
    """The rules of a call as jaxprs: args -> outputs and residuals, and back.

    The backward one takes residuals and the cotangents of differentiable outputs, and returns
    those of differentiable arguments. `forward(*args, perturbed=flags)` returns outputs and
    residuals, and how many are outputs; `backward(residuals, cts, perturbed=flags)` a cotangent or
    None for every argument.
    """

    def __init__(self, forward: Callable[..., Sequence[Any]],
                 backward: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray],
                 name: str, owner: object) -> None:
        self._forward, self._backward = forward, backward
        self._avals, self._name, self._owner = avals, name, owner
        self._flags = differentiable_flags(avals)
        self._types: dict[Flags, tuple[list[ShapedArray], list[ShapedArray]]] = {}
        self._pair: tuple[Jaxpr, Jaxpr] | None = None

    def stage(self) -> tuple[ClosedJaxpr, ClosedJaxpr]:
        """Both, for derivatives in all arguments."""
        with staging_rule_of(self._owner):
            fwd = stage(partial(self._run_forward, self._flags), self._avals,
                        name=f"fwd_{self._name}")
            self._know(self._flags, fwd.out_avals)
            bwd = stage(self._flat_backward(self._flags, None), self._backward_avals(self._flags),
                        name=f"bwd_{self._name}")
        return fwd, bwd

    def lazily(self) -> tuple[LazyJaxpr, LazyJaxpr]:
        """Both, to be staged when a derivative asks for them."""
        return LazyJaxpr(lambda: self._closed()[0]), LazyJaxpr(lambda: self._closed()[1])

    def by_zeros(self) -> tuple[RuleByZeros, RuleByZeros]:
        """Both, for the arguments that are differentiated and the cotangents that are not zero.

        The pattern of the forward one has a flag for each argument, the pattern of the backward
        one these and a flag for each differentiable output.
        """
        return (RuleByZeros(lambda: self._closed()[0], self._forward_for),
                RuleByZeros(lambda: self._closed()[1], self._backward_for))

    def _closed(self) -> tuple[Jaxpr, Jaxpr]:
        """Both without constants: what the rules close over becomes equations."""
        if self._pair is None:
            fwd, bwd = self.stage()
            self._pair = without_consts(fwd), without_consts(bwd)
        return self._pair

    def _run_forward(self, perturbed: Flags, *leaves: Any) -> list[Any]:
        results, self._num_outs = self._forward(*leaves, perturbed=perturbed)
        return list(results)

    def _know(self, perturbed: Flags, avals: Sequence[ShapedArray]) -> None:
        self._types[perturbed] = list(avals[:self._num_outs]), list(avals[self._num_outs:])

    def _forward_for(self, perturbed: Flags) -> tuple[Jaxpr, None]:
        with staging_rule_of(self._owner):
            jaxpr = stage_closed(partial(self._run_forward, perturbed), self._avals,
                                 name=f"fwd_{self._name}")
        self._know(perturbed, jaxpr.out_avals)
        return jaxpr, None

    def _backward_for(self, pattern: tuple[Flags, Flags]) -> tuple[Jaxpr, None]:
        perturbed, given = pattern
        if perturbed not in self._types:
            self._forward_for(perturbed)
        with staging_rule_of(self._owner):
            return stage_closed(self._flat_backward(perturbed, given),
                                self._backward_avals(perturbed, given),
                                name=f"bwd_{self._name}"), None

    def _backward_avals(self, perturbed: Flags, given: Flags | None = None) -> list[ShapedArray]:
        outs, residuals = self._types[perturbed]
        cts = [a.strong() for a in compress(outs, differentiable_flags(outs))]
        return [*residuals, *(cts if given is None else compress(cts, given))]

    def _flat_backward(self, perturbed: Flags, given: Flags | None) -> Callable[..., list[Any]]:
        outs, residuals = self._types[perturbed]

        def run(*flat: Any) -> list[Any]:
            rest = iter(flat[len(residuals):])
            of_floats = iter(given if given is not None else [True] * len(outs))
            cts = [next(rest) if f and next(of_floats) else None
                   for f in differentiable_flags(outs)]
            results = self._backward(list(flat[:len(residuals)]), cts, perturbed=perturbed)
            return [instantiate_aval(ct, a.strong()) for ct, a, f in
                    zip(results, self._avals, self._flags, strict=True) if f]

        return run
