"""jax.experimental.sparse.ad: derivatives of functions of sparse arrays."""

from functrans.core.errors import explain_missing_names
from functrans.sparse import grad, jacfwd, jacobian, jacrev, value_and_grad

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]

explain_missing_names(globals())
