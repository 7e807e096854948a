"""The dtypes of random keys: one for each generator, which a key thus says itself."""

from typing import Any, Final

import numpy as np

from functrans._runtime import key_dtype, philox_dtype

__all__ = ["KEY_DTYPES", "extended", "key_dtype", "philox_dtype", "prng_key"]

KEY_DTYPES: Final[frozenset[np.dtype[Any]]] = frozenset((key_dtype, philox_dtype))
"""All of them: `key<fry>` of threefry and `key<philox>` of philox."""


class extended(np.generic):
    """Above all dtypes whose elements are no numbers, in `issubdtype`; named as in JAX.

    >>> jnp.issubdtype(ft.random.key(0).dtype, ft.dtypes.extended)
    True
    """


class prng_key(extended):
    """Above the dtypes of random keys, in `issubdtype`; named as in JAX.

    >>> jnp.issubdtype(ft.random.key(0).dtype, ft.dtypes.prng_key)
    True
    >>> jnp.issubdtype(jnp.int32, ft.dtypes.prng_key)
    False
    """
