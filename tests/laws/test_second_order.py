"""Derivatives of elementwise functions to second order are those of mathematics, in both modes.

At each point of the grid (ties, zeros, ones, ends of domains, both sides of branches) the four ways
of differentiating twice agree with mpmath. Where the derivatives from the two sides differ they
agree with each other, and lie between those of the sides: at a kink the first derivative is that of
one side or a mean of both (0 for abs at 0), and nothing is said of the second.
"""

import inspect
from functools import lru_cache

import mpmath
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans import lax
from functrans.core.errors import FunctransError
from functrans.scipy import special
from tests.laws.elementwise import ONE, TWO
from tests.laws.slopes import mixed, slopes

DIGITS = 60


def by_grad(fun, i=0):
    return ft.grad(lambda *xs: jnp.sum(fun(*xs)), i)


def by_jvp(fun, i=0):
    def derivative(*xs):
        one = np.ones(xs[i].shape)
        return ft.jvp(lambda v: fun(*xs[:i], v, *xs[i + 1:]), (xs[i],), (one,))[1]
    return derivative


MODES = {"grad": by_grad, "jvp": by_jvp}


def same(x, y, tolerance):
    if np.isnan(x) or np.isnan(y) or np.isinf(x) or np.isinf(y):
        return x == y or (np.isnan(x) and np.isnan(y))
    return abs(x - y) <= tolerance * (1 + abs(y))


def is_kink(sides):
    known = [s for s in sides if s is not None]
    return any(not same(s, known[0], 1e-6) for s in known)


def wrong(found, sides, tolerance):
    """What is wrong with the derivatives that the modes found, given those of the sides."""
    known = [s for s in sides if s is not None]
    values = list(found.values())
    if not known or (is_kink(known) and np.isinf(known).any()):  # nothing, or a pole
        return None
    if not is_kink(known):
        right = all(same(v, known[0], tolerance) for v in values)
    else:
        right = all(min(known) - 1e-9 <= v <= max(known) + 1e-9 and same(v, values[0], 1e-9)
                    for v in values)
    return None if right else f"sides {known}, found {found}"


def is_pole(value, x):
    """Whether a function has no value at x: then it has no derivatives there."""
    try:
        return not mpmath.isfinite(value(mpmath.mpf(x)))
    except (ValueError, ZeroDivisionError):
        return True


@lru_cache
def expected_of_one(value, points, low, high):
    with mpmath.workdps(DIGITS):
        return [[] if low < x < high and is_pole(value, x) else slopes(value, x, low, high)
                for x in points]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ONE)
def test_one_operand(name):
    case = ONE[name]
    x = np.array(case.points)
    first = {m: np.asarray(d(case.fun)(x)) for m, d in MODES.items()}
    second = {f"{m} of {n}": np.asarray(MODES[m](MODES[n](case.fun))(x))
              for m in MODES for n in MODES}
    found = []
    for i, sides in enumerate(expected_of_one(case.value, case.points, case.low, case.high)):
        steep = [s[0] for s in sides]
        found.append((x[i], 1, wrong({m: d[i] for m, d in first.items()}, steep, case.tolerance)))
        if not (len(sides) == 2 and is_kink(steep)):
            found.append((x[i], 2, wrong({m: d[i] for m, d in second.items()},
                                         [s[1] for s in sides], 100 * case.tolerance)))
    assert not [f for f in found if f[2]]


@lru_cache
def expected_of_two(value, points):
    with mpmath.workdps(DIGITS):
        found = []
        for x, y in points:
            in_x = slopes(lambda v, y=y: value(v, mpmath.mpf(y)), x)
            in_y = slopes(lambda v, x=x: value(mpmath.mpf(x), v), y)
            found.append((in_x, in_y, mixed(value, x, y)))
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name):
    case = TWO[name]
    x, y = (np.array(v) for v in zip(*case.points, strict=True))
    first = [{m: np.asarray(d(case.fun, i)(x, y)) for m, d in MODES.items()} for i in (0, 1)]
    second = {(i, j): {f"{m} in {i} of {n} in {j}": np.asarray(MODES[m](MODES[n](case.fun, j), i)(
        x, y)) for m in MODES for n in MODES} for i in (0, 1) for j in (0, 1)}
    second[0, 1] |= second.pop((1, 0))  # Hessians are symmetric
    found = []
    for k, (in_x, in_y, across) in enumerate(expected_of_two(case.value, case.points)):
        at = case.points[k]
        steep = [[s[0] for s in sides] for sides in (in_x, in_y)]
        curved = {(0, 0): [s[1] for s in in_x], (1, 1): [s[1] for s in in_y], (0, 1): across}
        for i in (0, 1):
            found.append((at, i, wrong({m: d[k] for m, d in first[i].items()}, steep[i],
                                       case.tolerance)))
        for pair, sides in curved.items():
            if not any(is_kink(steep[i]) for i in pair) and not is_kink(sides):
                found.append((at, pair, wrong({m: d[k] for m, d in second[pair].items()}, sides,
                                              100 * case.tolerance)))
    assert not [f for f in found if f[2]]


# what rounds, is made of the parts of complex numbers, or has laws of its own
ELSEWHERE = {"numpy": "around real_if_close spacing tril triu unwrap", "lax": "",
             "nn": "huber_loss l2_loss log_cosh squared_error",  # tests/nn/test_losses.py
             # tests/scipy/
             "special": "bei beip ber berp cosdg cosm1 cotdg dawsn ellipe ellipk ellipkm1 "
                        "erfcinv erfcx erfi exp1 exp10 expi exprel gammasgn j0 j1 k0 k0e k1 k1e "
                        "it2struve0 itmodstruve0 itstruve0 kei keip ker kerp kolmogi kolmogorov "
                        "lambertw log_expit rgamma sindg spence tandg wrightomega y0 y1 zetac"}
MODULES = {"numpy": jnp, "lax": lax, "nn": ft.nn, "special": special}


def is_elementwise(fun):
    """Whether a function of one array gives each element a number of its own, not itself."""
    x = np.array([[0.2, 0.4], [0.55, 0.7]])
    try:
        out = np.asarray(fun(x))
        alone = [np.asarray(fun(np.full((2, 2), v))) for v in x.ravel()]
    except (FunctransError, TypeError, ValueError, IndexError, AttributeError):
        return False
    return out.shape == x.shape and out.dtype == x.dtype and not np.array_equal(out, x) \
        and np.ptp(out) > 0 and all(a.shape == x.shape and a.flat[i] == out.flat[i]
                                    for i, a in enumerate(alone))


@pytest.mark.parametrize("module", MODULES)
def test_every_elementwise_function_is_covered(module):
    covered = {name.split()[0].split(".")[-1] for name in (*ONE, *TWO)} \
        | set(ELSEWHERE[module].split())
    functions = {name: getattr(MODULES[module], name) for name in MODULES[module].__all__}
    missing = [name for name, fun in functions.items()
               if callable(fun) and not inspect.isclass(fun) and name not in covered
               and is_elementwise(fun)]
    assert missing == []
