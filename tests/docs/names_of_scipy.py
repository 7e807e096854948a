"""docs/reference/names_of_scipy.md, written anew: `python -m tests.docs.names_of_scipy`."""

from tests.docs.names_pages import NamesPage

MODULES = {
    "scipy.constants": "Numbers of Python: `scipy.constants` has them, and arrays take them.",
    "scipy.io": "Files: `jnp.asarray(scipy.io.loadmat(file)[name])`, `scipy.io.savemat(file, "
                "dict(x=np.asarray(x)))`.",
    "scipy.datasets": "Files: `jnp.asarray(scipy.datasets.face())`.",
    "scipy.odr": "Deprecated by SciPy: `optimize.least_squares` takes the distances in both "
                 "variables, and derivatives come by themselves.",
    "scipy.fftpack": "SciPy's legacy module: `scipy.fft`, and `scipy.signal.hilbert`.",
    "scipy.linalg.blas": "Routines that write into memory: `jnp.dot`, `jnp.einsum`.",
    "scipy.linalg.lapack": "Routines that write into memory: `scipy.linalg`, `lax.linalg`.",
    "scipy.stats.mstats": "Statistics of masked arrays: `stats` with `nan_policy=\"omit\"`, and "
                          "NaN for what a mask hides.",
}
"""Modules that are not here as a whole, and what there is for them."""

PAGE = NamesPage("names_of_scipy", "scipy", "functrans.scipy", """\
# Names of SciPy

For those who look for a name of SciPy.

Every public name of SciPy {version}, by module, and what there is in its place where functrans does
not have it. Code is what to write instead. What functions do differently is in [Functions of
SciPy](scipy_functions.md). This page is written by `python -m tests.docs.names_of_scipy`, and a
test fails where it is not what the package has.

| module of SciPy | names | in functrans |
|---|---|---|
""", MODULES)

if __name__ == "__main__":
    PAGE.path.write_text(PAGE.text())
