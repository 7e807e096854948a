"""Derivatives by differences, with the names of scipy.differentiate.

The exact ones of what is traced are those of `ft.grad`, `ft.jacobian` and `ft.hessian`.
"""

from functrans.core.errors import publish
from functrans.scipy.differentiate.differences import derivative, hessian, jacobian

__all__ = ["derivative", "hessian", "jacobian"]

publish(globals(), __all__)
