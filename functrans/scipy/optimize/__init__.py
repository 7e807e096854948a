"""Minima, roots and fits, differentiated as solutions, with the names of scipy.optimize."""

from functrans.core.errors import publish
from functrans.scipy.named_result import OptimizeResult
from functrans.scipy.optimize import elementwise
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
from functrans.scipy.optimize.homology import shgo
from functrans.scipy.optimize.integer import MilpResults, milp
from functrans.scipy.optimize.jacobians import BroydenFirst, InverseJacobian, KrylovJacobian
from functrans.scipy.optimize.least_squares import curve_fit, least_squares
from functrans.scipy.optimize.linear import linprog, nnls
from functrans.scipy.optimize.minimizing import minimize
from functrans.scipy.optimize.monotone import IsotonicResults, isotonic_regression
from functrans.scipy.optimize.named_results import (
    OptimizeWarning,
    linprog_verbose_callback,
    show_options,
)
from functrans.scipy.optimize.nonlinear import (
    NoConvergence,
    anderson,
    broyden1,
    broyden2,
    diagbroyden,
    excitingmixing,
    linearmixing,
    newton_krylov,
)
from functrans.scipy.optimize.quadratic_assignment import quadratic_assignment
from functrans.scipy.optimize.quasi_newton import (
    BFGS,
    SR1,
    HessianUpdateStrategy,
    LbfgsInvHessProduct,
)
from functrans.scipy.optimize.rectangles import direct
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
from functrans.scipy.optimize.scalar_roots import (
    bisect,
    brenth,
    brentq,
    newton,
    ridder,
    root_scalar,
    toms748,
)
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
from functrans.scipy.optimize.toms748 import bracket

__all__ = [
    "BFGS", "SR1", "Bounds", "BroydenFirst", "HessianUpdateStrategy", "InverseJacobian",
    "IsotonicResults", "KrylovJacobian", "LbfgsInvHessProduct", "LeastSquaresResults",
    "LinearConstraint", "LinprogResults", "MilpResults", "NoConvergence", "NonlinearConstraint",
    "OptimizeResult", "OptimizeResults", "OptimizeWarning", "RootResults", "ScalarResults",
    "ScalarRootResults", "anderson", "approx_fprime", "basinhopping", "bisect", "bracket", "brent",
    "brenth", "brentq", "broyden1", "broyden2", "brute", "check_grad", "curve_fit", "diagbroyden",
    "differential_evolution", "direct", "dual_annealing", "elementwise", "excitingmixing",
    "fixed_point", "fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg",
    "fmin_powell", "fmin_slsqp", "fmin_tnc", "fminbound", "fsolve", "golden", "isotonic_regression",
    "least_squares", "leastsq", "linear_sum_assignment", "linearmixing", "linprog",
    "linprog_verbose_callback", "lsq_linear", "milp", "minimize", "minimize_scalar", "newton",
    "newton_krylov", "nnls", "quadratic_assignment", "ridder", "root", "root_scalar", "rosen",
    "rosen_der", "rosen_hess", "rosen_hess_prod", "shgo", "show_options", "toms748",
]

publish(globals(), __all__)
