"""NumPy code that writes into its arrays, as pure functions; imported when first used.

`api.py` is the function for users. `arrays.py` is the array that can be written into: a cell with
the value of now, and lenses (`lenses.py`) through which a view reads and writes it. `rebinding.py`
lets a function find the namespace of `namespace.py` where it says `np`.
"""

from __future__ import annotations

from functrans.mutable.api import numpy_code

__all__ = ["numpy_code"]
