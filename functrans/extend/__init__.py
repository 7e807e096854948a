"""Operations that users define, and what a program is made of, under JAX's names.

`core` has jaxprs and `Primitive`, whose rules `functrans.interpreters` sets.
"""

from functrans.core.errors import explain_missing_names
from functrans.extend import core, linear_util

__all__ = ["core", "linear_util"]

explain_missing_names(globals())
