"""A program that also says whether, and where, there is something to report.

It has one result more: the number of the first site (`plan`) at which something was found, or
`NONE`. Looking is a reduction over values that a kernel holds anyway, so that it joins that kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.avals import ShapedArray, get_aval
from functrans.core.jaxpr import Equation, Jaxpr, Literal
from functrans.core.sizes import known_sizes, learn_sizes, substitute
from functrans.core.source import interpreted
from functrans.primitives.arithmetic import min as minimum
from functrans.primitives.base import full
from functrans.primitives.broadcast import transpose_p
from functrans.primitives.callback import Callback
from functrans.primitives.check import check_p
from functrans.primitives.compare import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    eq,
    is_finite,
    ne,
    select_n,
)
from functrans.primitives.control_flow.bodies import counted, stage_body
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.control_flow.while_loop import while_p
from functrans.primitives.reduce import reduce_min, reduce_or
from functrans.transforms.checks.nonfinite_propagation import NAN, NEGATIVE, POSITIVE
from functrans.transforms.checks.plan import CheckPlan, Site, called_by
from functrans.transforms.closed import stage_closed

__all__ = ["NONE", "with_flags"]

NONE: Final = 2**31 - 1
_ERROR: Final = ShapedArray((), np.dtype(np.int32))

Recorder = Callable[[Equation], Any]
"""The callback that stands for that of an equation."""


def with_flags(plan: CheckPlan, sites: Sequence[Site], recorder: Recorder) -> Jaxpr:
    """The planned program with the number of the first error as its last result."""
    emitter = _Emitter(sites, recorder)

    def fun(*args: Any) -> list[Any]:
        outs, error = emitter.run(plan, plan.jaxpr, args)
        return [*outs, error]

    return stage_closed(fun, plan.jaxpr.in_avals, name=plan.jaxpr.name)


class _Emitter:
    def __init__(self, sites: Sequence[Site], recorder: Recorder) -> None:
        self.sites = sites
        self.recorder = recorder

    def run(self, plan: CheckPlan, jaxpr: Jaxpr, args: Sequence[Any]) -> tuple[list[Any], Any]:
        """The results of a program in the current trace, and its first error."""
        errors: list[Any] = []
        outer = interpreted.source
        try:
            outs = self.apply(plan, jaxpr, args, errors)
        finally:
            interpreted.source = outer
        return outs, first_of(errors)

    def apply(self, plan: CheckPlan, jaxpr: Jaxpr, args: Sequence[Any],
              errors: list[Any]) -> list[Any]:
        """The results; what may be wrong is appended to `errors`, in the order of the program."""
        env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
        sizes: dict[str, Any] | None = None
        if jaxpr.size_names:
            sizes = known_sizes(jaxpr.in_avals, [get_aval(x).shape for x in args])

        def read(atom: Any) -> Any:
            return atom.value if type(atom) is Literal else env[atom]

        turned = _transposed_values(jaxpr)
        later: dict[Any, list[int]] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            interpreted.source = eqn.source
            if sizes:
                eqn = eqn.replace(params={k: substitute(v, sizes) for k, v in eqn.params.items()})
            values = [read(a) for a in eqn.invars]
            if eqn.primitive is check_p:
                errors += [numbered(any_of(bitwise_not(values[0])), n) for n in plan.sites[i]]
                continue
            outs = self.equation(eqn, values, plan.inner.get(i, ()), read, errors)
            for var, x in zip(eqn.outvars, outs, strict=True):
                env[var] = x
                if sizes is not None:
                    learn_sizes(sizes, var.aval.shape, get_aval(x).shape)
            for n in plan.sites.get(i, ()):
                var = eqn.outvars[self.sites[n].out]
                later.setdefault(turned.get(var, var), []).append(n)
            for var in eqn.outvars:
                errors += [numbered(found(env[var], self.sites[n]), n) for n in later.pop(var, ())]
        return [read(a) for a in jaxpr.outvars]

    def equation(self, eqn: Equation, values: Sequence[Any], inner: Sequence[CheckPlan], read: Any,
                 errors: list[Any]) -> list[Any]:
        params = eqn.params
        if inner and (call := called_by(eqn)) is not None:
            jaxpr, operands = call
            return self.apply(inner[0], _for_known_sizes(inner[0], jaxpr),
                              [read(a) for a in operands],
                              errors)
        if any(plan.looks for plan in inner):
            if eqn.primitive is cond_p:
                return self.branches(values, params, inner, errors)
            if eqn.primitive is scan_p:
                return self.scan(values, params, inner[0], errors)
            if eqn.primitive is while_p:
                return self.loop(values, params, inner, errors)
        if isinstance(eqn.primitive, Callback):
            params = {**params, "callback": self.recorder(eqn)}
        outs = eqn.primitive.bind(*values, **params)
        return list(outs) if eqn.primitive.multiple_results else [outs]

    def body(self, plan: CheckPlan, jaxpr: Jaxpr) -> Jaxpr:
        """A body with its first error as its last result."""
        def fun(*args: Any) -> list[Any]:
            outs, error = self.run(plan, jaxpr, args)
            return [*outs, error]

        return stage_body(fun, jaxpr.in_avals, jaxpr.name)

    def branches(self, values: Sequence[Any], params: Any, inner: Sequence[CheckPlan],
                 errors: list[Any]) -> list[Any]:
        bodies = tuple([self.body(p, _for_known_sizes(p, b))
                        for p, b in zip(inner, params["branches"], strict=True)])
        outs: list[Any] = cond_p.bind(*values, branches=bodies)
        errors.append(outs.pop())
        return outs

    def scan(self, values: Sequence[Any], params: Any, plan: CheckPlan,
             errors: list[Any]) -> list[Any]:
        body = self.body(plan, _for_known_sizes(plan, params["jaxpr"]))
        outs: list[Any] = scan_p.bind(*values, **{**params, "jaxpr": body})
        errors.append(reduce_min(outs.pop(), (0,)))
        return outs

    def loop(self, values: Sequence[Any], params: Any, inner: Sequence[CheckPlan],
             errors: list[Any]) -> list[Any]:
        """A loop that ends with the first error: without it a NaN might keep it going."""
        test = _for_known_sizes(inner[0], params["cond_jaxpr"])
        once = _for_known_sizes(inner[1], params["body_jaxpr"])
        n_tests, n_consts = params["cond_nconsts"], params["body_nconsts"]
        tests, _, init = counted(values, n_tests, n_consts)

        def goes_on(*args: Any) -> list[Any]:
            error, holds = args[-2:]
            return [bitwise_and(holds, eq(error, np.int32(NONE)))]

        def iteration(*args: Any) -> list[Any]:
            tests, consts, carry = counted(args[:-2], n_tests, n_consts)
            outs, error = self.run(inner[1], once, [*consts, *carry])
            after, records = counted(outs, len(carry))
            (holds,), wrong = self.run(inner[0], test, [*tests, *after])
            return [*after, minimum(minimum(error, wrong), args[-2]), holds, *records]

        (holds,), wrong = self.run(inner[0], test, [*tests, *init])
        avals = [get_aval(x).strong() for x in values]
        carry = [*once.in_avals[n_consts:], _ERROR, ShapedArray((), np.dtype(np.bool_))]
        outs = while_p.bind(
            *values, wrong, holds, **{
                **params, "cond_jaxpr": stage_body(goes_on, carry, test.name),
                "body_jaxpr": stage_body(iteration, [*avals[:n_tests + n_consts], *carry],
                                         once.name),
                "cond_nconsts": 0, "body_nconsts": n_tests + n_consts})
        errors.append(outs[len(init)])
        return [*outs[:len(init)], *outs[len(init) + 2:]]


def _transposed_values(jaxpr: Jaxpr) -> dict[Any, Any]:
    """Values that are transposed and nothing else, and what they are then.

    That is looked at: a product writes itself as its transpose where nothing else reads it.
    """
    uses: Counter[Any] = Counter(a for eqn in jaxpr.eqns for a in eqn.invars)
    uses.update(jaxpr.outvars)
    return {eqn.invars[0]: eqn.outvars[0] for eqn in jaxpr.eqns
            if eqn.primitive is transpose_p and uses[eqn.invars[0]] == 1}


def _for_known_sizes(plan: CheckPlan, jaxpr: Jaxpr) -> Jaxpr:
    """The planned jaxpr for the sizes that a substitution gave to the one it was planned for."""
    if jaxpr is plan.origin:
        return plan.jaxpr
    sizes = known_sizes(plan.origin.in_avals, [a.shape for a in jaxpr.in_avals])
    known: Jaxpr = substitute(plan.jaxpr, sizes)
    return known


def any_of(x: Any) -> Any:
    """Whether any element of a boolean array is true."""
    return reduce_or(x, tuple(range(get_aval(x).ndim))) if get_aval(x).ndim else x


def found(x: Any, site: Site) -> Any:
    """Whether a value has what a site looks for."""
    if not site.expected:
        return any_of(bitwise_not(is_finite(x)))
    tests = []
    if site.bits & NAN:
        tests.append(ne(x, x))
    for bit, infinity in ((POSITIVE, np.inf), (NEGATIVE, -np.inf)):
        if site.bits & bit:
            tests.append(eq(x, np.asarray(infinity, x.dtype)))
    total = tests[0]
    for test in tests[1:]:
        total = bitwise_or(total, test)
    return any_of(total)


def numbered(wrong: Any, number: int) -> Any:
    """The number where a condition holds, else `NONE`."""
    return select_n(wrong, np.int32(NONE), np.int32(number))


def first_of(errors: Sequence[Any]) -> Any:
    """The lowest of some numbers of errors."""
    if not errors:
        return full((), NONE, np.int32)
    first = errors[0]
    for error in errors[1:]:
        first = minimum(first, error)
    return first
