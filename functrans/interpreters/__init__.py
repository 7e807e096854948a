"""The rules of operations that users define, under JAX's names: `ad`, `batching`, `mlir`, `xla`.

`functrans.extend.core.Primitive` makes such an operation.
"""

from functrans.core.errors import explain_missing_names
from functrans.interpreters import ad, batching, mlir, xla

__all__ = ["ad", "batching", "mlir", "xla"]

explain_missing_names(globals())
