"""Exceptions and warnings with the names of scipy.linalg."""

from __future__ import annotations

import numpy as np

LinAlgError = np.linalg.LinAlgError


class LinAlgWarning(RuntimeWarning):
    """What SciPy warns of with; a category for `warnings.filterwarnings`.

    >>> issubclass(ft.scipy.linalg.LinAlgWarning, RuntimeWarning)
    True
    """
