"""The dtypes of random keys: one for each generator, which a key thus says itself."""

from typing import Any, Final

import numpy as np

from functrans._runtime import key_dtype, philox_dtype

__all__ = ["KEY_DTYPES", "key_dtype", "philox_dtype"]

KEY_DTYPES: Final[frozenset[np.dtype[Any]]] = frozenset((key_dtype, philox_dtype))
"""All of them: `key<fry>` of threefry and `key<philox>` of philox."""
