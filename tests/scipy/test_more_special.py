"""Derivatives and zeros of Bessel functions, spherical ones, nodes and counts, beside SciPy's."""

import numpy as np
import pytest
import scipy.special as theirs

from functrans.scipy import special
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair

X = np.array([0.3, 1.7, 6.0, 15.2])
pair = Pair(special, theirs)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_derivatives_and_spherical_functions(n):
    for name in ("jvp", "ivp", "kvp"):
        for order in (0, 1, 3):
            pair(name, float(n), X, order, rtol=1e-9)
    for name in ("spherical_yn", "spherical_kn", "spherical_in"):
        pair(name, n, X, rtol=1e-9)
        pair(name, n, X, derivative=True, rtol=1e-9)
    check_grads(lambda x: special.spherical_kn(n, x), (X,), 2, modes=["fwd"])
    check_grads(lambda x: special.jvp(float(n), x), (X,), 1)


def test_zeros():
    for name in ("jn_zeros", "jnp_zeros", "yn_zeros", "ynp_zeros"):
        for n in (0, 2):
            pair(name, n, 6)
    pair("jn_zeros", 40, 30)


def test_nodes_and_counts():
    for name in ("roots_chebyc", "roots_chebys", "roots_sh_legendre", "roots_sh_chebyt",
                 "roots_sh_chebyu"):
        pair(name, 6)
        pair(name, 5, mu=True)
    pair("roots_sh_jacobi", 5, 3.0, 1.5, rtol=1e-8)
    pair("softplus", X)
    pair("sinc", X)
    for n in (1, 2, 7, 8):
        pair("diric", np.array([0, 0.1, 2, 7, 2 * np.pi, 4 * np.pi, -6.28, 1e-5]), n)
    pair("stirling2", np.array([3, 5, 10]), np.array([2, 3, 4]))
    pair("euler", 10)
    pair("factorialk", np.array([5, 9, 0]), 3, exact=False)
    check_grads(lambda x: special.diric(x, 4), (X,), 1)
