"""What to do about a NaN or an infinity, by the operation that gave it."""

from __future__ import annotations

from typing import Final

from functrans.core.jaxpr import Equation
from functrans.core.table import Table
from functrans.primitives.arithmetic import div_p, log_p, pow_p
from functrans.primitives.linalg import cholesky_p, lu_p
from functrans.primitives.solve import solve_p, triangular_solve_p
from functrans.primitives.transcendental import acos_p, asin_p, exp_p, log1p_p, rsqrt_p, sqrt_p
from functrans.transforms.checks.nonfinite_propagation import NAN

__all__ = ["advice"]

_OPERANDS: Final[Table[str]] = Table({
    log_p: "log needs positive numbers: log(maximum(x, 1e-30)), or where(x > 0, x, 1) inside it",
    log1p_p: "log1p needs numbers above -1",
    sqrt_p: "sqrt needs numbers that are not negative: sqrt(maximum(x, 0))",
    rsqrt_p: "rsqrt needs positive numbers: rsqrt(x + 1e-6)",
    pow_p: "a negative number has no fractional power: abs(x) ** y, or where(x > 0, x, 1) ** y",
    exp_p: "exp of more than 88 overflows in float32: subtract the maximum first, or use "
             "logsumexp, log_softmax",
    div_p: "divide by where(y == 0, 1, y), or by y + 1e-6",
    **dict.fromkeys((solve_p, triangular_solve_p, lu_p, cholesky_p), "the matrix is singular, or "
                    "not positive definite: add a small multiple of the identity"),
    asin_p: "asin needs numbers from -1 to 1: clip(x, -1, 1)",
    acos_p: "acos needs numbers from -1 to 1: clip(x, -1, 1)",
}, otherwise="advice goes by what was found")
_BACKWARD: Final = (
    "the derivative is not finite there (sqrt, norm and pow at 0, log near 0): move the argument "
    "away, sqrt(x + 1e-12), or choose a safe one by where inside the function")


def advice(eqn: Equation, wrong: int, brought: bool) -> str:
    """How to avoid what went wrong in an equation; `brought`: an operand is NaN."""
    if brought and wrong & NAN:
        return "the NaN came with the arguments: take it out before, where(isnan(x), 0, x), or " \
               "look at what made them"
    if eqn.source is not None and eqn.source.backward:
        return _BACKWARD
    known = _OPERANDS.get(eqn.primitive)
    if known is not None:
        return known
    if wrong & NAN:
        return "see the ranges of the operands: an infinity among them gives NaN in a difference " \
               "or in a product with 0"
    return 'the numbers are too large for the dtype: scale them, or use x.astype("float64")'
