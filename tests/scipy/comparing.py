"""Comparing functions with those of SciPy of the same name, in float64."""

import numpy as np

import functrans as ft


def same(ours, theirs, rtol=1e-10, atol=1e-10, what=""):
    """Arrays, or tuples of arrays, that are equal to roundoff and have one shape."""
    ours = ours if isinstance(ours, tuple) else (ours,)
    theirs = theirs if isinstance(theirs, tuple) else (theirs,)
    assert len(ours) == len(theirs), what
    for u, v in zip(ours, theirs, strict=True):
        u, v = np.asarray(u), np.asarray(v)
        assert u.shape == v.shape, (what, u.shape, v.shape)
        np.testing.assert_allclose(u, v, rtol=rtol, atol=atol, err_msg=str(what))


class Pair:
    """Calls one name in both modules and compares the results."""

    def __init__(self, ours, theirs):
        self.ours, self.theirs = ours, theirs

    def __call__(self, name, *args, rtol=1e-10, atol=1e-10, **options):
        with ft.default_dtypes("float64"):
            found = getattr(self.ours, name)(*args, **options)
        same(found, getattr(self.theirs, name)(*args, **options), rtol, atol, (name, options))
