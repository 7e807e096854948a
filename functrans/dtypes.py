"""What dtypes are, promotion, and their limits, as in jax.dtypes.

Random keys have a dtype of their own, below `prng_key`, which is below `extended`:

>>> import functrans as ft
>>> issubdtype(ft.random.key(0).dtype, prng_key), issubdtype("float32", prng_key)
(True, False)
"""

from functrans.core.dtype_queries import canonicalize_dtype, issubdtype, itemsize_bits
from functrans.core.dtypes import (
    bfloat16,
    complex32,
    extended,
    finfo,
    float0,
    iinfo,
    prng_key,
    promote_types,
    result_type,
    scalar_type_of,
)
from functrans.core.errors import PromotionError as TypePromotionError
from functrans.core.errors import publish

__all__ = ["TypePromotionError", "bfloat16", "canonicalize_dtype", "complex32", "extended", "finfo",
           "float0", "iinfo", "issubdtype", "itemsize_bits", "prng_key", "promote_types",
           "result_type", "scalar_type_of"]

publish(globals(), ["canonicalize_dtype", "finfo", "iinfo", "issubdtype", "itemsize_bits",
                    "promote_types", "result_type", "scalar_type_of"])
