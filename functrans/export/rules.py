"""What type rules leave to those who make equations: operands of calls fit the program called, and
parameters are such as the functions of functrans give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from functrans.core.avals import ShapedArray
from functrans.core.errors import JaxprError
from functrans.core.jaxpr import Equation, Jaxpr, subjaxprs
from functrans.core.primitive import HigherOrder
from functrans.core.table import Table
from functrans.primitives.check import CHECK, INDEX, check_p
from functrans.primitives.control_flow.bodies import check_operands
from functrans.primitives.conv import conv_general_dilated_p
from functrans.primitives.shape import pad_p
from functrans.primitives.sort import sort_p
from functrans.primitives.transcendental import polygamma_p
from functrans.primitives.window import window_put_p, window_take_p
from functrans.transforms.custom_call import LazyJaxpr, RuleByZeros, differentiable_flags
from functrans.transforms.custom_jvp import custom_jvp_call_p
from functrans.transforms.custom_vjp import custom_vjp_call_p
from functrans.transforms.linear_solve import PROGRAMS, linear_solve_p
from functrans.transforms.tangents import tangent_aval

__all__ = ["check_rules", "has_rules"]

Operands = Sequence[ShapedArray]


def check_rules(eqn: Equation) -> None:
    """Raise JaxprError unless parameters are in range, and the operands of a call and of its rules
    have the types of theirs.
    """
    primitive, params = eqn.primitive, eqn.params
    operands = [a.aval for a in eqn.invars]
    _check_parameters(eqn, operands)
    check = CHECKS.get(primitive)
    if check is not None:
        check(eqn, operands)
    if isinstance(primitive, HigherOrder) and primitive.called is not None:
        body, given = primitive.called(operands, **params)
        check_operands(primitive.name, body.in_avals, given)


def has_rules(jaxpr: Jaxpr) -> bool:
    """Whether every function with rules of its own that a program calls has them there."""
    waiting, seen = [jaxpr], {jaxpr}
    while waiting:
        for eqn in waiting.pop().eqns:
            params = eqn.params
            if any(isinstance(params.get(key), LazyJaxpr)
                   and not isinstance(params.get(key), RuleByZeros) for key in _RULES):
                return False
            bodies = {params["call_jaxpr"]} if "call_jaxpr" in params else {*subjaxprs(eqn)}
            waiting += bodies - seen
            seen |= bodies
    return True


_RULES = ("rule_jaxpr", "fwd_jaxpr", "bwd_jaxpr")
_POSITIVE = ("window_dimensions", "window_strides", "base_dilation", "window_dilation",
             "lhs_dilation", "rhs_dilation", "strides")
_DISTINCT = ("axes", "dimensions", "permutation", "broadcast_dimensions")
_COUNTS = (("num_consts", "num_carry"), ("cond_nconsts", "body_nconsts"))


def _check_parameters(eqn: Equation, operands: Operands) -> None:
    params = eqn.params
    for key in params.keys() & _POSITIVE:
        _need(eqn, key, isinstance(params[key], tuple) and all(
            n > 0 for n in params[key] if isinstance(n, int)))
    for key in params.keys() & _DISTINCT:
        _need(eqn, key, len({*params[key]}) == len(params[key]) and all(
            type(n) is int and n >= 0 for n in params[key]))
    for first, second in _COUNTS:
        if first in params and second in params:
            _need(eqn, second, params[first] + params[second] <= len(operands))


def _need(eqn: Equation, key: str, holds: bool) -> None:
    if not holds:
        raise JaxprError(f"{key}={eqn.params[key]} is out of range.")


# --- of one primitive


def _check_conv(eqn: Equation, operands: Operands) -> None:
    groups = eqn.params.get("group_axes") or ((),) * 3
    specs = [[*spec, *(g if isinstance(g, tuple) else (g,))]
             for spec, g in zip(eqn.params["dimension_numbers"], groups, strict=True)]
    ranks = [a.ndim for a in (*operands, *(v.aval for v in eqn.outvars))]
    _need(eqn, "dimension_numbers", [sorted(spec) for spec in specs]
          == [list(range(n)) for n in ranks])


def _check_pad(eqn: Equation, operands: Operands) -> None:
    _need(eqn, "padding_config", all(type(interior) is int and interior >= 0
                                     for _, _, interior in eqn.params["padding_config"]))


def _check_check(eqn: Equation, operands: Operands) -> None:
    params = eqn.params
    _need(eqn, "kind", params["kind"] in (CHECK, INDEX))
    _need(eqn, "names", len(params["names"]) == len(operands) - 1)
    _need(eqn, "lanes", all(params["lanes"] <= len(a.shape) for a in operands))


def _check_sort(eqn: Equation, operands: Operands) -> None:
    _need(eqn, "num_keys", 1 <= eqn.params["num_keys"] <= len(operands))


def _check_polygamma(eqn: Equation, operands: Operands) -> None:
    _need(eqn, "n", eqn.params["n"] >= 1)


def _check_window_put(eqn: Equation, operands: Operands) -> None:
    window = {k: v for k, v in eqn.params.items() if k != "shape"}
    image = operands[0].with_shape(eqn.params["shape"])
    _need(eqn, "shape", window_take_p.type(image, operands[1], **window).matches(operands[0]))


def _check_custom_jvp(eqn: Equation, operands: Operands) -> None:
    args, first, _ = _operand_groups(eqn, operands, 2)
    outs, rule = eqn.params["call_jaxpr"].out_avals, eqn.params["rule_jaxpr"]
    if not isinstance(rule, LazyJaxpr):
        _check(eqn, rule, [*first, *args, *_tangents(args)], [*outs, *_tangents(outs)])


def _check_custom_vjp(eqn: Equation, operands: Operands) -> None:
    args, first, second = _operand_groups(eqn, operands, 3)
    outs = eqn.params["call_jaxpr"].out_avals
    forward, backward = eqn.params["fwd_jaxpr"], eqn.params["bwd_jaxpr"]
    if isinstance(forward, LazyJaxpr) or isinstance(backward, LazyJaxpr):
        return
    residuals = forward.out_avals[len(outs):]
    _check(eqn, forward, [*first, *args], [*outs, *residuals])
    _check(eqn, backward, [*second, *residuals, *_tangents(outs)], _tangents(args))


def _check_linear_solve(eqn: Equation, operands: Operands) -> None:
    counts = _counts(eqn, operands, len(PROGRAMS))
    _need(eqn, "vecmat", ("vecmat" in eqn.params) == ("transpose_solve" in eqn.params))
    b, start = list(operands[sum(counts):]), 0
    for name, count in zip(PROGRAMS, counts, strict=True):
        if name in eqn.params:
            program, given = eqn.params[name], [*operands[start:start + count], *b]
            with_aux = program.out_avals[len(b):] if name in ("solve", "transpose_solve") else ()
            _check(eqn, program, given, [*b, *with_aux])
        start += count


def _operand_groups(eqn: Equation, operands: Operands,
                    count: int) -> tuple[Operands, Operands, Operands]:
    """The arguments of a call, and what its first and second rule close over."""
    counts = _counts(eqn, operands, count)
    second = counts[0] + counts[1]
    return operands[sum(counts):], operands[counts[0]:second], operands[second:sum(counts)]


def _counts(eqn: Equation, operands: Operands, count: int) -> tuple[int, ...]:
    """How many operands belong to each of the `count` programs of a call."""
    counts: tuple[int, ...] = eqn.params["num_consts"]
    if not isinstance(counts, tuple) or len(counts) != count \
            or any(type(n) is not int or n < 0 for n in counts) or sum(counts) > len(operands):
        raise JaxprError(f"num_consts={counts} does not divide {len(operands)} operands.")
    return counts


def _check(eqn: Equation, rule: Jaxpr, ins: Sequence[Any], outs: Sequence[Any]) -> None:
    name = f"the rule of {eqn.primitive.name}"
    check_operands(name, rule.in_avals, ins)
    check_operands(f"{name}, its results", rule.out_avals, outs)


def _tangents(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The types of the tangents of the differentiable ones."""
    return [tangent_aval(a) for a, f in zip(avals, differentiable_flags(avals), strict=True) if f]


CHECKS: Final[Table[Callable[[Equation, Operands], None]]] = Table({
    conv_general_dilated_p: _check_conv,
    pad_p: _check_pad,
    check_p: _check_check,
    sort_p: _check_sort,
    polygamma_p: _check_polygamma,
    window_put_p: _check_window_put,
    custom_jvp_call_p: _check_custom_jvp,
    custom_vjp_call_p: _check_custom_vjp,
    linear_solve_p: _check_linear_solve,
}, otherwise="its type rule refuses what is out of range, or no kind lets it through")
