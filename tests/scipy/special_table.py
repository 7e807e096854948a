"""Special functions of several arguments: the grid of each, and what is right where SciPy is not.

`GRIDS` has the extremes of each argument of a domain: tiny and huge numbers, whole and broken ones,
ends, infinity and NaN. `RIGHT` has the function of mpmath that decides where ours and SciPy's
values differ.
"""

import mpmath
import numpy as np

NAN = np.nan
POSITIVE = (1e-300, 1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, 1e5, 1e10, 1e300)
FROM_ZERO = (0.0, *POSITIVE)
REAL = (*(-x for x in reversed(POSITIVE)), -0.0, *FROM_ZERO, NAN)
SHARE = (0.0, 1e-300, 1e-30, 1e-5, 0.25, 0.5, 0.9, 1.0, NAN)
"""1 - 1e-16 is no number of float32."""
SHAPES = (1e-5, 0.1, 0.5, 1.0, 2.5, 30.0, 1e3, 1e5)
WHOLE = (0.0, 1.0, 2.0, 7.0, 30.0)
ORDERS = (0.0, 0.5, 1.0, 2.0, 2.5, 7.0, 30.0, 150.0, -0.5, -1.0)
ARGUMENTS = (-1e5, -30.0, -2.5, -1e-5, 0.0, 1e-5, 0.3, 1.0, 2.0, 7.5, 30.0, 700.0, 1e5, NAN)
DEGREES = (*WHOLE, 0.5, 2.5, 7.3, 30.25, 1e-5, -0.5, -2.5)
WEIGHTS = (-0.9, -0.5, 1e-5, 0.5, 1.0, 2.5)
INSIDE = (-0.9, -1e-5, 0.0, 0.3, 0.9, 1.0, 1.5, NAN)
HALF_LINE = (-30.0, -1.0, -1e-5, 0.0, 1e-5, 0.3, 1.0, 7.5, 30.0, 100.0, NAN)
MODULI = (-1e10, -30.0, -1.0, -1e-5, 0.0, 0.5, 0.9, 1.0, NAN)
AMPLITUDES = (-30.0, -2.5, -1.0, -1e-5, 0.0, 1e-300, 1e-5, 0.3, 1.0, 1.5, 7.5, NAN)
CARLSON = (0.0, 1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, 1e5, 1e10)

GRIDS = {
    "bdtri": (WHOLE, WHOLE, SHARE),
    "beta": (POSITIVE[1:-1], tuple(x for x in REAL if abs(x) < 1e10)),
    "betaincinv": (SHAPES, SHAPES, (0.0, *SHARE[2:])),
    "betainccinv": (SHAPES, SHAPES, (0.0, *SHARE[2:])),
    "betaln": (POSITIVE[:-1], POSITIVE[:-1]),
    "binom": ((-2.5, -0.5, 1e-30, 1e-5, 0.5, 1.0, 2.5, 30.0, 1e5, NAN),
              (-2.5, -1.0, 0.0, 1e-5, 0.5, 1.0, 2.5, 7.0, 30.0)),
    "chdtri": (SHAPES, SHARE),
    "comb": (FROM_ZERO[:-2], (*WHOLE, 2.5)),
    "ellipeinc": (AMPLITUDES, (-np.inf, *MODULI)),
    "ellipkinc": (AMPLITUDES, (-np.inf, *MODULI[:-2], 1.0 - 2.0**-20, NAN)),
    "elliprc": (CARLSON, tuple(x for x in REAL if 1e-30 <= abs(x) < 1e300)),
    "elliprd": (CARLSON, CARLSON, CARLSON[1:]),
    "elliprf": (CARLSON, CARLSON, CARLSON[1:]),
    "elliprg": (FROM_ZERO, FROM_ZERO, FROM_ZERO),
    "elliprj": (CARLSON, CARLSON, CARLSON[1:], (1e-100, *CARLSON[1:], 1e100)),
    "eval_gegenbauer": (DEGREES, (*WEIGHTS[2:], 30.0, 100.0), (-0.999, *INSIDE)),
    "eval_genlaguerre": (DEGREES, WEIGHTS, HALF_LINE),
    "eval_hermite": (WHOLE, (-30.0, -2.5, 0.0, 1e-5, 0.3, 7.5, 1e10, NAN)),
    "eval_hermitenorm": (WHOLE, (-30.0, -2.5, 0.0, 1e-5, 0.3, 7.5, 1e10, NAN)),
    "eval_jacobi": (DEGREES, WEIGHTS, (*WEIGHTS, 30.0, 100.0, 100.5), (-0.9999, *INSIDE)),
    "eval_laguerre": (DEGREES, HALF_LINE),
    "eval_legendre": (DEGREES, INSIDE),
    "eval_sh_chebyt": (DEGREES, (0.1, 0.3, 0.5, 0.9, 1.0)),
    "eval_sh_chebyu": (DEGREES[:-2], (0.1, 0.3, 0.5, 0.9, 1.0)),
    "eval_sh_jacobi": (DEGREES[:-2], (1.0, 2.5, 7.0), (0.5, 1.0), (0.1, 0.3, 0.5, 0.9, 1.0)),
    "eval_sh_legendre": (DEGREES, (0.1, 0.3, 0.5, 0.9, 1.0, 1.5)),
    "expn": ((*WHOLE, 150.0, 1e5), ARGUMENTS),
    "fdtri": (SHAPES[1:-1], SHAPES[1:-1], SHARE[3:]),
    "gammaincinv": (SHAPES, SHARE),
    "gammainccinv": (SHAPES, SHARE),
    "gdtr": (POSITIVE, POSITIVE, FROM_ZERO),
    "gdtrc": (POSITIVE, POSITIVE, FROM_ZERO),
    "gdtrix": (SHAPES, SHAPES, SHARE),
    "hyp0f1": ((-2.5, -0.5, 1e-5, 0.3, 1.0, 2.5, 30.0, 700.0, 1e5),
               (-1e300, -1e10, -2e6, -1e5, -100.0, -30.0, -1.0, -1e-5, 0.0, 0.3, 1.0, 30.0, 1e3)),
    "hyp1f1": ((-30.0, -2.5, -2.0, -0.5, 0.0, 1e-5, 0.5, 1.0, 2.5, 30.0),
               (-2.5, -0.5, 0.5, 1.0, 2.5, 30.0, 100.0),
               (-100.0, -30.0, -1.0, -1e-5, 0.0, 1e-5, 1.0, 30.0, 100.0, NAN)),
    "hyp2f1": ((-30.3, -7.0, -2.5, -2.0, 0.0, 1e-5, 0.5, 1.0, 2.5, 30.25, 60.5),
               (-30.0, -2.0, 0.5, 1.0, 2.5, 30.0),
               (-30.5, -2.5, 0.5, 1.0, 2.5, 30.0, 100.5),
               (-1e5, -30.0, -1.0, -0.5, -1e-5, 0.0, 1e-5, 0.5, 0.9)),
    "inv_boxcox": (REAL, (-1e300, -2.5, -0.5, 0.0, 0.5, 1.0, 2.5, 1e300)),
    "inv_boxcox1p": (REAL, (-1e300, -2.5, -0.5, 0.0, 0.5, 1.0, 2.5, 1e300)),
    "iv": (ORDERS, ARGUMENTS),
    "ive": (ORDERS, ARGUMENTS),
    "jn": ((*WHOLE, -1.0, -2.0), ARGUMENTS),
    "jv": (ORDERS, ARGUMENTS),
    "kl_div": (FROM_ZERO, FROM_ZERO),
    "kn": (WHOLE, ARGUMENTS),
    "kv": (ORDERS, ARGUMENTS),
    "kve": (ORDERS, ARGUMENTS),
    "lpmv": ((-9.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 9.0),
             (0.0, 1.0, 2.0, -2.0, 7.0, 30.0, 0.5, 2.5, -2.5), (-0.9, -1e-5, 0.0, 0.3, 0.9, 1.0)),
    "modstruve": (ORDERS, (0.0, 1e-5, 0.3, 1.0, 7.5, 30.0, 300.0, NAN)),
    "nbdtri": (WHOLE, WHOLE[1:], SHARE),
    "pdtri": (WHOLE, SHARE[:-2]),
    "perm": (FROM_ZERO[:-2], (*WHOLE, 2.5)),
    "poch": ((-2.5, -1e-30, 1e-300, 1e-5, 0.5, 1.0, 2.5, 30.0, 1e5),
             (-30.0, -2.5, -1.0, -1e-5, 0.0, 1e-5, 0.3, 1.0, 7.5, 30.0)),
    "polygamma": ((0.0, 1.0, 2.0, 7.0, 30.0), (*POSITIVE, NAN)),
    "powm1": (POSITIVE, REAL[:-1]),
    "pseudo_huber": (POSITIVE[:-1], REAL),
    "stdtrit": (SHAPES[1:], SHARE),
    "struve": (ORDERS[:7], (0.0, 1e-5, 0.3, 1.0, 7.5, 30.0, 1e5, 1e8, NAN)),
    "voigt_profile": ((-1e10, -2.5, -1e-5, 0.0, 0.3, 30.0, 1e5, NAN), CARLSON[1:], CARLSON),
    "yn": (WHOLE, ARGUMENTS),
    "zeta": ((1.0, 1.5, 2.0, 7.0, 30.0, NAN), (*POSITIVE, NAN)),
}

INTEGERS = {"eval_hermite", "eval_hermitenorm", "expn", "kn", "polygamma", "yn"}
"""Of which SciPy takes the first argument as an integer."""

AROUND_ZERO = {"eval_gegenbauer", "eval_genlaguerre", "eval_jacobi", "eval_laguerre",
               "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi",
               "eval_sh_legendre", "hyp0f1", "hyp1f1", "jn", "jv", "lpmv", "yn", "powm1", "struve"}
"""Those that pass through 0, where a value is as good as its argument."""

RIGHT = {
    "beta": mpmath.beta, "binom": mpmath.binomial,
    "ellipeinc": lambda p, m: mpmath.ellipe(p, m) if m > -mpmath.inf else endless(p),
    "ellipkinc": lambda p, m: mpmath.ellipf(p, m) if m > -mpmath.inf else 0 * p,
    "elliprc": mpmath.elliprc, "elliprd": mpmath.elliprd, "elliprf": mpmath.elliprf,
    "elliprg": mpmath.elliprg, "elliprj": mpmath.elliprj,
    "eval_gegenbauer": lambda n, a, x: mpmath.gegenbauer(n, a, x, zeroprec=400),
    "eval_genlaguerre": mpmath.laguerre,
    "eval_jacobi": mpmath.jacobi, "eval_laguerre": lambda n, x: mpmath.laguerre(n, 0, x),
    "eval_legendre": mpmath.legendre,
    "eval_sh_chebyt": lambda n, x: mpmath.chebyt(n, 2 * x - 1),
    "eval_sh_chebyu": lambda n, x: mpmath.chebyu(n, 2 * x - 1),
    "eval_sh_jacobi": lambda n, p, q, x: mpmath.jacobi(
        n, p - q, q - 1, 2 * x - 1) / mpmath.binomial(2 * n + p - 1, n),
    "eval_sh_legendre": lambda n, x: mpmath.legendre(n, 2 * x - 1),
    "hyp0f1": mpmath.hyp0f1, "hyp1f1": mpmath.hyp1f1,
    "hyp2f1": lambda a, b, c, x: mpmath.hyp2f1(a, b, c, x, maxterms=10**5),
    "inv_boxcox": lambda y, k: mpmath.exp(mpmath.log1p(k * y) / k),
    "inv_boxcox1p": lambda y, k: mpmath.expm1(mpmath.log1p(k * y) / k),
    "iv": mpmath.besseli, "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-abs(x)),
    "jn": mpmath.besselj, "jv": mpmath.besselj, "kv": mpmath.besselk,
    "kve": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
    "kl_div": lambda p, q: p * mpmath.log(p / q) - p + q,
    "lpmv": lambda m, v, x: mpmath.legenp(v, m, x, type=2) if abs(x) < 1 else 0,
    "polygamma": mpmath.polygamma,
    "modstruve": mpmath.struvel, "poch": mpmath.rf, "struve": mpmath.struveh,
    "powm1": lambda x, y: x**y - 1,
    "pseudo_huber": lambda d, r: r * r / (1 + mpmath.sqrt(1 + (r / d)**2)),
    "stdtrit": lambda df, p: student_quantile(df, p), "fdtri": lambda m, n, p: f_quantile(m, n, p),
    "voigt_profile": lambda x, s, g: g / mpmath.pi / (x * x + g * g) if s < 1e-9 * mpmath.sqrt(
        x * x + g * g) else mpmath.nan,
    "yn": mpmath.bessely, "zeta": mpmath.zeta,
    "betaincinv": lambda a, b, p: share_quantile(a, b, p),
    "betainccinv": lambda a, b, p: 1 - share_quantile(b, a, p),
}


def endless(p):
    return mpmath.sign(p) * mpmath.inf if p else p


def log_share(a, b, p):
    """Of a quantile near 0 its logarithm by the leading term, I_x(a, b) = x^a / (a B(a, b))."""
    return (mpmath.log(p) + mpmath.log(a * mpmath.beta(a, b))) / a


def share_quantile(a, b, p):
    low, high = log_share(a, b, p), log_share(b, a, 1 - p)
    if low < -40:
        return mpmath.exp(low)
    return 1 - mpmath.exp(high) if high < -40 else mpmath.nan


def f_quantile(m, n, p):
    low, high = log_share(m / 2, n / 2, p), log_share(n / 2, m / 2, 1 - p)
    return n / m * (mpmath.exp(low) if low < -40 else mpmath.exp(-high) if high < -40
                    else mpmath.nan)


def student_quantile(df, p):
    """Far out, by the leading power of t."""
    tail = min(p, 1 - p)
    log = log_share(df / 2, mpmath.mpf(0.5), 2 * tail)
    size = mpmath.sqrt(df) * mpmath.exp(-log / 2) if log < -40 else mpmath.nan
    return -size if p < 0.5 else size
