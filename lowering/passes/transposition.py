"""Programs that are linear in some values, transposed: cotangents of these from those of results.

The transforms transpose what they have recorded. Passes see programs as they came out of that, so
they ask each operation whether it is linear, or affine, in the operands that depend on the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final

from functrans.core import dtypes
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Linear, Primitive
from functrans.core.source import interpreted
from functrans.primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from functrans.primitives.base import full_p, zeros
from functrans.primitives.broadcast import broadcast_in_dim_p, reduce_sum_p, transpose_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.bodies import counted, stage_body
from functrans.primitives.control_flow.scan import scan_p
from functrans.primitives.convert import convert_element_type_p
from functrans.primitives.cumulative import cumsum_p
from functrans.primitives.differentiable import add_any, add_any_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from functrans.primitives.index import gather_p, scatter_add_p
from functrans.primitives.masked import masked_div_p, masked_mul_p
from functrans.primitives.scatter import scatter_mul_p, scatter_p
from functrans.primitives.shape import concatenate_p, copy_p, pad_p, reshape_p, rev_p, slice_p

__all__ = ["NotLinearError", "evaluate", "is_zero", "linear_values", "offset", "offsets", "read",
           "transpose"]


class NotLinearError(Exception):
    """An operation is not linear in operands that depend on the inputs."""


def _all(n: int) -> range:
    return range(n)


JOINTLY: Final[Mapping[Primitive, Callable[[int], Iterable[int]]]] = {
    **dict.fromkeys((add_p, sub_p, add_any_p, concatenate_p, pad_p), _all),
    **dict.fromkeys((
        neg_p, convert_element_type_p, reshape_p, slice_p, broadcast_in_dim_p, reduce_sum_p,
        transpose_p, rev_p, cumsum_p, copy_p, gather_p, dynamic_slice_p, div_p, masked_div_p,
        scatter_mul_p),
        lambda n: (0,)),
    select_n_p: lambda n: range(1, n),
    dynamic_update_slice_p: lambda n: (0, 1),
    scatter_add_p: lambda n: (0, 2),
    scatter_p: lambda n: (0, 2),
}
"""The operands in which an operation is linear, all together; it is affine where some are not."""
PRODUCTS: Final = frozenset({mul_p, dot_general_p, masked_mul_p})
"""Linear in one operand, whichever."""


def linear_values(jaxpr: Jaxpr, inputs: Iterable[Var]) -> set[Var]:
    """The values of a program that depend on some inputs; an error unless they are affine."""
    linear = set(inputs)
    for eqn in jaxpr.eqns:
        on = [i for i, a in enumerate(eqn.invars) if a in linear]
        if not on:
            continue
        found = _loop_results(eqn, linear) if eqn.primitive is scan_p else eqn.outvars
        if eqn.primitive is scan_p:
            pass
        elif eqn.primitive in PRODUCTS:
            _require(len(on) == 1, eqn)
        else:
            may = JOINTLY.get(eqn.primitive)
            _require(may is not None and set(on) <= set(may(len(eqn.invars)))
                     and not (eqn.primitive is scatter_p and 2 in on), eqn)  # one place, twice
        for v in found:
            _require(dtypes.kind(v.aval.dtype) == "f", eqn)
        linear.update(found)
    return linear


def _require(holds: bool, eqn: Equation) -> None:
    if not holds:
        raise NotLinearError(eqn.primitive.name)


def _loop_results(eqn: Equation, linear: set[Var]) -> list[Var]:
    """The results of a loop that depend on its linear operands."""
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    flags = [a in linear for a in eqn.invars]
    while True:
        inside = linear_values(body, [v for v, flag in zip(body.invars, flags, strict=True)
                                      if flag])
        carried = [flag or out in inside
                   for flag, out in zip(flags[first:first + n], body.outvars, strict=False)]
        if carried == flags[first:first + n]:
            break
        flags[first:first + n] = carried
    for v, flag in zip(body.invars, flags, strict=True):
        _require(not flag or dtypes.kind(v.aval.dtype) == "f", eqn)
    return [v for k, v in enumerate(eqn.outvars)
            if (carried[k] if k < n else body.outvars[k] in inside)]


def is_zero(x: Atom, makers: Mapping[Atom, Equation]) -> bool:
    """Whether a value is known to be zero everywhere."""
    if isinstance(x, Literal):
        return bool(x.value == 0)
    eqn = makers.get(x)
    if eqn is None:
        return False
    if eqn.primitive is full_p:
        return bool(eqn.params["value"] == 0)
    return eqn.primitive is broadcast_in_dim_p and is_zero(eqn.invars[0], makers)


def offsets(jaxpr: Jaxpr, linear: set[Var]) -> list[Equation]:
    """The equations that are not linear but affine: some results are not zero for zeros."""
    makers: dict[Atom, Equation] = {v: e for e in jaxpr.eqns for v in e.outvars}

    def has_offset(eqn: Equation) -> bool:
        if eqn.primitive is scan_p:
            return _loop_has_offset(eqn, linear, makers)
        return eqn.primitive in JOINTLY and any(
            eqn.invars[i] not in linear and not is_zero(eqn.invars[i], makers)
            for i in JOINTLY[eqn.primitive](len(eqn.invars)))

    return [eqn for eqn in jaxpr.eqns if not linear.isdisjoint(eqn.outvars) and has_offset(eqn)]


def _loop_has_offset(eqn: Equation, linear: set[Var], makers: Mapping[Atom, Equation]) -> bool:
    body: Jaxpr = eqn.params["jaxpr"]
    first, n = eqn.params["num_consts"], eqn.params["num_carry"]
    becomes = [v in linear for v in eqn.outvars[:n]]
    _, carry, _ = counted(eqn.invars, first, n)
    if any(flag and a not in linear and not is_zero(a, makers)
           for flag, a in zip(becomes, carry, strict=True)):
        return True
    inputs = [v for k, v in enumerate(body.invars)
              if eqn.invars[k] in linear or (first <= k < first + n and becomes[k - first])]
    inside = linear_values(body, inputs)
    return bool(offsets(body, inside)) or any(
        isinstance(out, Literal) and not is_zero(out, {})
        for out, flag in zip(body.outvars, becomes, strict=False) if flag)


def evaluate(eqns: Iterable[Equation], env: MutableMapping[Var, Any]) -> None:
    """Apply equations in the current trace to the values of variables."""
    outer = interpreted.source
    try:
        for eqn in eqns:
            interpreted.source = eqn.source or outer
            outs = eqn.primitive.bind(*[read(a, env) for a in eqn.invars], **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else (outs,),
                           strict=True))
    finally:
        interpreted.source = outer


def read(a: Atom, env: Mapping[Var, Any]) -> Any:
    """The value of an atom."""
    return a.operand if isinstance(a, Literal) else env[a]


def transpose(eqns: Sequence[Equation], linear: set[Var], env: Mapping[Var, Any],
              cts: MutableMapping[Var, Any],
              visit: Callable[[Equation, list[Any]], None] | None = None) -> None:
    """Add the cotangents of all `linear` values to `cts`, which has those of results.

    `env` has the other values that equations read. `visit` is told of each equation with
    cotangents of its results, None for zero.
    """
    outer = interpreted.source
    try:
        for eqn in reversed(eqns):
            found = [cts.get(v) for v in eqn.outvars]
            if all(ct is None for ct in found) or linear.isdisjoint(eqn.outvars):
                continue
            interpreted.source = eqn.source or outer
            if visit is not None:
                visit(eqn, found)
            operands = [Linear(a.aval) if a in linear else read(a, env) for a in eqn.invars]
            if eqn.primitive.higher_order:
                given = eqn.primitive.transpose(found, *operands, **eqn.params,
                                                transpose_jaxpr=_transposed)
            else:
                given = eqn.primitive.transpose(
                    found if eqn.primitive.multiple_results else found[0], *operands,
                    **eqn.params)
            for a, ct in zip(eqn.invars, given, strict=True):
                if ct is not None and a in linear:
                    assert isinstance(a, Var)
                    cts[a] = ct if cts.get(a) is None else add_any(cts[a], ct)
    finally:
        interpreted.source = outer


def _transposed(jaxpr: Jaxpr, linear: Sequence[bool], nonzero: Sequence[bool] | None = None
                ) -> Jaxpr:
    """The program (other inputs, cotangents of results) -> cotangents of the linear inputs."""
    nonzero = (True,) * len(jaxpr.outvars) if nonzero is None else nonzero
    inputs = [v for v, flag in zip(jaxpr.invars, linear, strict=True) if flag]
    others = [v for v, flag in zip(jaxpr.invars, linear, strict=True) if not flag]
    results = [a for a, flag in zip(jaxpr.outvars, nonzero, strict=True) if flag]
    values = linear_values(jaxpr, inputs)

    def backward(*args: Any) -> list[Any]:
        env: dict[Var, Any] = dict(zip(others, args, strict=False))
        evaluate([e for e in jaxpr.eqns if values.isdisjoint(e.outvars)], env)
        cts: dict[Var, Any] = {}
        for a, ct in zip(results, args[len(others):], strict=True):
            if a in values:
                assert isinstance(a, Var)
                cts[a] = ct if a not in cts else add_any(cts[a], ct)
        transpose(jaxpr.eqns, values, env, cts)
        return [zeros(v.aval.strong()) if cts.get(v) is None else cts[v] for v in inputs]

    avals = [*[v.aval for v in others], *[a.aval.strong() for a in results]]
    return stage_body(backward, avals, f"transpose_{jaxpr.name}")


def offset(eqn: Equation, linear: set[Var], env: Mapping[Var, Any]) -> list[Any]:
    """The results of an equation where the linear operands are zero."""
    values = [zeros(a.aval.strong()) if a in linear else read(a, env) for a in eqn.invars]
    outs = eqn.primitive.bind(*values, **eqn.params)
    return list(outs) if eqn.primitive.multiple_results else [outs]
