"""Minima, roots and fits, differentiated as solutions, with the names of scipy.optimize."""

from functrans.core.errors import publish
from functrans.scipy.optimize.least_squares import curve_fit, least_squares
from functrans.scipy.optimize.linear import linprog, nnls
from functrans.scipy.optimize.minimizing import minimize
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

__all__ = [
    "LeastSquaresResults", "LinprogResults", "OptimizeResults", "RootResults", "ScalarResults",
    "ScalarRootResults", "bisect", "brentq", "curve_fit", "fixed_point", "least_squares",
    "linprog", "minimize", "minimize_scalar", "newton", "nnls", "ridder", "root", "root_scalar",
]

publish(globals(), __all__)
