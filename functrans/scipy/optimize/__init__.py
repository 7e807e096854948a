"""Minima, roots and fits, differentiated as solutions, with the names of scipy.optimize."""

from functrans.core.errors import publish
from functrans.scipy.optimize.assignment import linear_sum_assignment
from functrans.scipy.optimize.constraints import Bounds, LinearConstraint, NonlinearConstraint
from functrans.scipy.optimize.differences import (
    approx_fprime,
    check_grad,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
)
from functrans.scipy.optimize.global_minima import (
    basinhopping,
    differential_evolution,
    dual_annealing,
)
from functrans.scipy.optimize.integer import MilpResults, milp
from functrans.scipy.optimize.least_squares import curve_fit, least_squares
from functrans.scipy.optimize.linear import linprog, nnls
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.optimize.monotone import IsotonicResults, isotonic_regression
from functrans.scipy.optimize.results import (
    LeastSquaresResults,
    LinprogResults,
    OptimizeResults,
    RootResults,
    ScalarResults,
    ScalarRootResults,
)
from functrans.scipy.optimize.roots import fixed_point, root
from functrans.scipy.optimize.scalar_minima import minimize_scalar
from functrans.scipy.optimize.scalar_roots import bisect, brentq, newton, ridder, root_scalar
from functrans.scipy.optimize.short import (
    brent,
    brute,
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_cobyla,
    fmin_l_bfgs_b,
    fmin_ncg,
    fmin_powell,
    fmin_slsqp,
    fmin_tnc,
    fminbound,
    fsolve,
    golden,
    leastsq,
    lsq_linear,
)

__all__ = [
    "Bounds", "IsotonicResults", "LeastSquaresResults", "LinearConstraint", "LinprogResults",
    "MilpResults", "NonlinearConstraint", "OptimizeResults", "RootResults", "ScalarResults",
    "ScalarRootResults", "approx_fprime", "basinhopping", "bisect", "brent", "brentq", "brute",
    "check_grad", "curve_fit", "differential_evolution", "dual_annealing", "fixed_point", "fmin",
    "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell", "fmin_slsqp",
    "fmin_tnc", "fminbound", "fsolve", "golden", "isotonic_regression", "least_squares", "leastsq",
    "linear_sum_assignment", "linprog", "lsq_linear", "milp", "minimize", "minimize_scalar",
    "newton", "nnls", "ridder", "root", "root_scalar", "rosen", "rosen_der", "rosen_hess",
    "rosen_hess_prod",
]

publish(globals(), __all__)
