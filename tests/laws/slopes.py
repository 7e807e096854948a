"""First and second derivatives of functions of mpmath numbers, from each side of a point."""

from collections.abc import Callable
from typing import Any

import mpmath

INF = float("inf")


def _settled(at: Callable[[Any], Any], h: Any) -> Any:
    """The limit of at(h) as h goes to 0; an infinity where it grows, None where it has no value."""
    try:
        near, nearer = at(h), at(h / 10**4)
    except (ValueError, ZeroDivisionError):  # outside of the domain
        return None
    if mpmath.isnan(nearer) or mpmath.isinf(nearer):
        return None
    if abs(near - nearer) <= mpmath.mpf(10) ** -7 * (abs(nearer) + mpmath.mpf(10) ** -10):
        return float(nearer)
    if abs(nearer) < abs(near):
        return 0.0  # it goes to 0, slower than the step
    return INF if nearer > 0 else -INF


def step(x: float) -> Any:
    return mpmath.mpf(10) ** -14 * (abs(mpmath.mpf(x)) or 1)


def _real(value: Callable[..., Any]) -> Callable[..., Any]:
    def real(*xs: Any) -> Any:
        out = value(*xs)
        if isinstance(out, mpmath.mpc):
            if out.imag:
                raise ValueError("complex")
            out = out.real
        return out
    return real


def slopes(value: Callable[[Any], Any], x: float, low: float = -INF, high: float = INF
           ) -> list[tuple[Any, Any]]:
    """First and second derivative from the left and from the right of x, inside the domain."""
    value, x_, h0 = _real(value), mpmath.mpf(x), step(x)
    sides = []
    for s in [s for s, end in ((-1, low), (1, high)) if x != end]:
        def first(h: Any, s: int = s) -> Any:
            return (value(x_ + 2 * s * h) - value(x_ + s * h)) / (s * h)

        def second(h: Any, s: int = s) -> Any:
            return (value(x_ + 3 * s * h) - 2 * value(x_ + 2 * s * h) + value(x_ + s * h)) / h**2

        sides.append((_settled(first, h0), _settled(second, h0)))
    return sides


def mixed(value: Callable[[Any, Any], Any], x: float, y: float) -> list[Any]:
    """The mixed derivative in each of the four quadrants around (x, y)."""
    value = _real(value)
    x_, y_, hx, hy = mpmath.mpf(x), mpmath.mpf(y), step(x), step(y) / 3

    def quadrant(s: int, t: int) -> Callable[[Any], Any]:
        def at(h: Any) -> Any:
            k = h * hy / hx
            ends = [value(x_ + i * s * h, y_ + j * t * k) * (-1) ** (i + j)
                    for i in (1, 2) for j in (1, 2)]
            return sum(ends) / (s * t * h * k)
        return at

    return [_settled(quadrant(s, t), hx) for s in (-1, 1) for t in (-1, 1)]
