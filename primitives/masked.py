"""Products and quotients that are 0 where their first operand is, whatever the second one is.

The cotangent of a branch that `where` does not take is 0, and so is what it contributes to a
gradient, although the derivative of the branch may be infinite or NaN there (sqrt at 0). Reverse
mode multiplies such cotangents by these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.core.primitive import Linear
from functrans.primitives.arithmetic import neg
from functrans.primitives.elementwise import Elementwise, Operation, bilinear, fit

__all__ = ["masked_div", "masked_div_p", "masked_mul", "masked_mul_p"]


class MaskedMul(Elementwise):
    """x * y, and 0 where x is 0 although y is infinite or NaN."""

    derivatives = (lambda t, out, x, y: masked_mul(t, y), lambda t, out, x, y: masked_mul(x, t))
    transpose = bilinear(lambda ct, y: masked_mul(ct, y), lambda ct, x: masked_mul(x, ct))

    def evaluate(self, x: Any, y: Any) -> Any:
        return np.where(np.equal(x, 0), np.zeros((), np.result_type(x, y)), np.multiply(x, y))


class MaskedDiv(Elementwise):
    """x / y, and 0 where x is 0 although y is 0 or NaN."""

    domain = ((-2.0, 2.0), (0.5, 2.0))
    derivatives = (lambda t, out, x, y: masked_div(t, y),
                   lambda t, out, x, y: neg(masked_mul(masked_div(out, y), t)))

    def evaluate(self, x: Any, y: Any) -> Any:
        return np.where(np.equal(x, 0), np.zeros((), np.result_type(x, y)), np.true_divide(x, y))

    def transpose(self, ct: Any, x: Linear, y: Any) -> tuple[Any, None]:
        return fit(masked_div(ct, y), x), None


masked_mul_p, masked_div_p = MaskedMul(), MaskedDiv()
masked_mul: Operation = masked_mul_p.bind
masked_div: Operation = masked_div_p.bind
