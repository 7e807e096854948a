"""The rules of a custom_vjp function: on lists of leaves, and as jaxprs for staged calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Protocol

import numpy as np

from functrans.core import dtypes
from functrans.core.avals import ShapedArray, get_aval
from functrans.core.cells import RefCell
from functrans.core.convert import to_array
from functrans.core.errors import CustomRuleError, TreeMismatchError
from functrans.core.jaxpr import ClosedJaxpr, Jaxpr
from functrans.core.record import Record
from functrans.core.source import own_lines, user_source
from functrans.core.staging import stage
from functrans.core.tree import LEAF, flatten_up_to, known_leaf, tree_flatten, tree_unflatten
from functrans.transforms.cells import CellArguments
from functrans.transforms.closed import stage_closed, without_consts
from functrans.transforms.custom_call import (
    LazyJaxpr,
    RuleByZeros,
    RunningRule,
    check_rule_leaf,
    check_rule_tree,
    differentiable_flags,
    staging_rule_of,
)
from functrans.transforms.flat import FlatFunction, name_of
from functrans.transforms.tangents import SymbolicZero, instantiate_aval

__all__ = ["CustomVJPPrimal", "FlatRules", "StagedRules"]

Flags = tuple[bool, ...]


class RuleOwner(Protocol):
    """A custom_vjp function as far as its rules go."""

    fun: Callable[..., Any]
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    symbolic_zeros: bool


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


_NUMBERS = (bool, int, float, complex)
_SAVED = object()


@known_leaf
class CustomVJPPrimal(Record):
    """An argument of a forward rule with `symbolic_zeros=True`: its value, and whether the
    derivative in it is asked for.

    >>> def fwd(x, y):
    ...     return x.value * y.value, (y.value if x.perturbed else None)
    >>> f = ft.custom_vjp(lambda x, y: x * y)
    >>> f.defvjp(fwd, lambda y, ct: (ct * y, None), symbolic_zeros=True)
    >>> float(ft.grad(f)(2.0, 5.0))
    5.0
    """

    value: Any
    perturbed: bool


class FlatRules:
    """A user's forward and backward rules on lists of leaves, with their results checked."""

    def __init__(self, owner: RuleOwner, fixed: dict[int, Any], count: int, tree: Any,
                 avals: list[ShapedArray], cells: CellArguments | None) -> None:
        self.owner, self.fixed, self.count, self.tree = owner, fixed, count, tree
        self.avals = avals
        self.cells = cells
        self.cell_avals = [ShapedArray(c.type.shape, c.type.dtype) for c in cells.cells] \
            if cells is not None else []
        self.flat = FlatFunction(lambda *args: self.fill(owner.fun)(*self.whole(args)), tree, {},
                                 "custom_vjp")
        self.residuals: dict[tuple[bool, ...], tuple[Any, list[Any]]] = {}
        self.out_avals: list[ShapedArray] = []

    def fill(self, fun: Any) -> Callable[..., Any]:
        def call(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            return fun(*[self.fixed[i] if i in self.fixed else next(rest)
                         for i in range(self.count)])
        return call

    def whole(self, args: Sequence[Any]) -> Any:
        """The arguments, with the cells among them."""
        return args if self.cells is None else self.cells.among(args)

    def forward(self, *leaves: Any, perturbed: tuple[bool, ...]) -> tuple[list[Any], int]:
        name = name_of(self.owner.fwd)
        given = ([CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=True)]
                 if self.owner.symbolic_zeros else leaves)
        with own_lines():
            result = self.fill(self.owner.fwd)(*self.whole(tree_unflatten(self.tree, given)))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise CustomRuleError(f"the forward rule {name} returned {type(result).__name__}, not "
                                  "a pair.", where=user_source(), fix="return out, residuals")
        outs, out_tree = tree_flatten(result[0])
        if self.flat.out_tree is None:
            self.flat.out_tree = out_tree
        check_rule_tree(self.flat.out_tree, out_tree, f"the output of the forward rule {name}",
                        "the function's output")
        residuals, tree = tree_flatten(result[1])
        # Python's numbers stay what they are, so that the backward rule can branch on them
        fixed = [r if type(r) in _NUMBERS or isinstance(r, RefCell) else _SAVED
                 for r in residuals]
        self.residuals[perturbed] = tree, fixed
        outs = [to_array(o, f"an output of the forward rule {name}") for o in outs]
        self.out_avals = [get_aval(o) for o in outs]
        saved = [to_array(r, f"a residual of the forward rule {name}")
                 for r, f in zip(residuals, fixed, strict=True) if f is _SAVED]
        return [*outs, *saved], len(outs)

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                 perturbed: tuple[bool, ...]) -> list[Any]:
        return self.backward_of_cells(residuals, cts, perturbed=perturbed)[0]

    def backward_of_cells(self, residuals: Sequence[Any], cts: Sequence[Any], *,
                          perturbed: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
        """The cotangents of the leaves that are no cells, and of what was in the cells."""
        name = name_of(self.owner.bwd)
        tree, fixed = self.residuals[perturbed]
        saved = iter(residuals)
        filled = [self.cotangent(ct, a) for ct, a in zip(cts, self.out_avals, strict=True)]
        with own_lines(), RunningRule(self.owner, name_of(self.owner.fun)):
            # only where the rule is set: the call of a function without one is refused
            result = self.owner.bwd(  # type: ignore[misc]
                *[self.fixed[i] for i in sorted(self.fixed)],
                tree_unflatten(tree, [next(saved) if f is _SAVED else f for f in fixed]),
                tree_unflatten(self.flat.out_tree, filled))
        return self.check(result, name)

    def cotangent(self, ct: Any, aval: ShapedArray) -> Any:
        if ct is not None:
            return ct
        if not differentiable_flags([aval])[0]:
            return np.zeros(aval.shape, dtypes.float0)
        if self.owner.symbolic_zeros:
            return SymbolicZero(aval)
        return instantiate_aval(None, aval.strong())

    def check(self, result: Any, name: str) -> tuple[list[Any], list[Any]]:
        what = f"the backward rule {name}"
        arguments = self.whole(tree_unflatten(self.tree, self.avals))
        count = len(arguments)
        if not isinstance(result, (tuple, list)) or len(result) != count:
            got = f"{len(result)} entries" if isinstance(result, (tuple, list)) else \
                type(result).__name__
            raise CustomRuleError(
                f"{what} returned {got}; the function has {count} differentiable argument"
                f"{'' if count == 1 else 's'}.",
                where=user_source(), why="it returns a tuple with one cotangent per argument.",
                fix="return (ct_x,) for one argument; None stands for zero")
        checked: list[Any] = []
        of_cells: list[Any] = []
        for i, (ct, argument) in enumerate(zip(result, arguments, strict=True)):
            avals, tree = tree_flatten(argument)
            given = [None] * len(avals) if ct is None else self.filled(ct, argument, tree, i, what)
            for leaf, aval in zip(given, avals, strict=True):
                into = checked
                if isinstance(aval, RefCell):
                    into, aval = of_cells, self.cell_avals[len(of_cells)]
                if leaf is None or isinstance(leaf, SymbolicZero) \
                        or getattr(leaf, "dtype", None) == dtypes.float0:
                    into.append(None)
                else:
                    into.append(check_rule_leaf(
                        to_array(leaf, f"a cotangent from {what}"), aval,
                        f"the cotangent of argument {i} from {what}", "the argument"))
        return checked, of_cells

    def filled(self, ct: Any, argument: Any, tree: Any, index: int, what: str) -> list[Any]:
        """The leaves of a cotangent, with None for each leaf of a subtree that None stands for."""
        leaves, ct_tree = tree_flatten(ct)
        if ct_tree == tree:
            return leaves
        prefix, prefix_tree = tree_flatten(ct, is_leaf=lambda x: x is None)
        try:
            subtrees = flatten_up_to(prefix_tree, argument)
        except TreeMismatchError:
            subtrees = []
        filled: list[Any] = []
        for leaf, subtree in zip(prefix, subtrees, strict=False):
            avals, subtree_def = tree_flatten(subtree)
            if leaf is not None and subtree_def != LEAF:
                break
            filled += [leaf] if leaf is not None else [None] * len(avals)
        else:
            if subtrees:
                return filled
        check_rule_tree(tree, ct_tree, f"the cotangent of argument {index} from {what}",
                        "the argument")
        raise AssertionError("structures that agree were told apart")
