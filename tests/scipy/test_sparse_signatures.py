"""Names and parameters of scipy.sparse, scipy.sparse.linalg and scipy.sparse.csgraph."""

import importlib
import inspect

import pytest
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

# those whose parameters are JAX's, with SciPy's beside them
OF_JAX = {"bicgstab", "cg", "gmres"}
SPACES = ("sparse", "sparse.linalg", "sparse.csgraph")


def parameters(function):
    return [(p.name, p.kind) for p in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize("space", SPACES)
def test_names_and_parameters_are_those_of_scipy(space):
    ours, theirs = (importlib.import_module(f"{root}.{space}")
                    for root in ("functrans.scipy", "scipy"))
    public = {n for n in theirs.__all__ if not inspect.ismodule(getattr(theirs, n))}
    missing = public - set(ours.__all__) - {"test"}
    # names that SciPy keeps for modules it no longer has in public
    assert not missing, sorted(missing)
    for name in ours.__all__:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if inspect.ismodule(mine) or isinstance(mine, type) or name in OF_JAX:
            continue
        assert parameters(mine) == parameters(other), name
        for p, q in zip(inspect.signature(mine).parameters.values(),
                        inspect.signature(other).parameters.values(), strict=True):
            assert p.default is q.default or repr(p.default) == repr(q.default) or \
                type(q.default) is object, (name, p.name)


@pytest.mark.parametrize("name", ["csr_array", "csc_array", "coo_array", "dia_array", "bsr_array",
                                  "csr_matrix", "lil_array", "dok_array"])
def test_methods_are_those_of_scipy(name):
    ours = importlib.import_module("functrans.scipy.sparse")
    held = getattr(ours, name)((2, 2))
    absent = {n for n in dir(getattr(scipy.sparse, name)((2, 2)))
              if not n.startswith("_") and not hasattr(held, n)}
    # what changes a dictionary as such, or an array or its printing in place
    assert absent <= {"update", "fromkeys", "popitem", "getrowview", "set_shape", "getmaxprint",
                      "maxprint"}, absent
