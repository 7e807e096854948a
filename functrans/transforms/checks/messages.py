"""What to do about a NaN or an infinity, by the operation that gave it."""

from __future__ import annotations

from typing import Final

from functrans.core.jaxpr import Equation
from functrans.transforms.checks.spread import NAN

__all__ = ["advice"]

_OPERANDS: Final = {
    "log": "log needs positive numbers: log(maximum(x, 1e-30)), or where(x > 0, x, 1) inside it",
    "log1p": "log1p needs numbers above -1",
    "sqrt": "sqrt needs numbers that are not negative: sqrt(maximum(x, 0))",
    "rsqrt": "rsqrt needs positive numbers: rsqrt(x + 1e-6)",
    "pow": "a negative number has no fractional power: abs(x) ** y, or where(x > 0, x, 1) ** y",
    "exp": "exp of more than 88 overflows in float32: subtract the maximum first, or use "
           "logsumexp, log_softmax",
    "div": "divide by where(y == 0, 1, y), or by y + 1e-6",
    **dict.fromkeys(("solve", "triangular_solve", "lu", "cholesky"), "the matrix is singular, or "
                    "not positive definite: add a small multiple of the identity"),
    "asin": "asin needs numbers from -1 to 1: clip(x, -1, 1)",
    "acos": "acos needs numbers from -1 to 1: clip(x, -1, 1)",
}
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
    known = _OPERANDS.get(eqn.primitive.name)
    if known is not None:
        return known
    if wrong & NAN:
        return "see the ranges of the operands: an infinity among them gives NaN in a difference " \
               "or in a product with 0"
    return 'the numbers are too large for the dtype: scale them, or use x.astype("float64")'
