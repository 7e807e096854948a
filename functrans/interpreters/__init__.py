"""The rules of operations that users define, under JAX's names: by module.

`functrans.extend.core.Primitive` makes such an operation.
"""

from functrans.core.errors import explain_missing_names
from functrans.interpreters import ad, batching, mlir, partial_eval, xla

__all__ = ["ad", "batching", "mlir", "partial_eval", "xla"]

explain_missing_names(globals())
