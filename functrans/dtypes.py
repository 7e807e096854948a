"""What dtypes are, promotion, and their limits, as in jax.dtypes.

Random keys have a dtype of their own, below `prng_key`, which is below `extended`:

>>> import functrans as ft
>>> issubdtype(ft.random.key(0).dtype, prng_key), issubdtype("float32", prng_key)
(True, False)
"""

from functrans.core.dtypes import (
    bfloat16,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    promote_types,
    result_type,
)
from functrans.core.errors import publish

__all__ = ["bfloat16", "extended", "finfo", "float0", "iinfo", "issubdtype", "prng_key",
           "promote_types", "result_type"]

publish(globals(), ["finfo", "iinfo", "issubdtype", "promote_types", "result_type"])
