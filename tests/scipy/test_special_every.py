"""Every public special function has a grid: here those that take sizes or branches, or have many
results, beside SciPy or mpmath."""

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest
import scipy.special as theirs

import functrans as ft
from functrans.scipy import special
from tests.scipy.special_table import GRIDS as TABLE
from tests.scipy.test_special_extremes import NAMES
from tests.scipy.test_special_grids import GRIDS

X = np.array([-1e10, -30.0, -2.5, -1e-5, -1e-300, 0.0, 1e-300, 1e-5, 0.3, 1.0, 2.0, 7.5, 30.0,
              700.0, 1e10, np.inf, -np.inf, np.nan])
ABOVE = np.array([1e-5, 0.3, 1.0, 7.5, 30.0])
ORDERS = np.array([0.0, 0.5, 1.0, 2.5, 7.0])[:, None]
WHOLE = np.array([0.0, 1.0, 2.0, 7.0])[:, None]
SMALL = np.arange(12.0)
GAUSS = {"legendre": (), "chebyt": (), "chebyu": (), "chebyc": (), "chebys": (), "hermite": (),
         "hermitenorm": (), "laguerre": (), "sh_legendre": (), "sh_chebyt": (), "sh_chebyu": (),
         "jacobi": (-0.9, 30.0), "sh_jacobi": (30.0, 0.5), "gegenbauer": (2.5,),
         "genlaguerre": (-0.9,)}
Z = np.array([complex(a, b) for a in (-1e5, -2.5, -1e-5, 0.0, 0.3, 30.0)
              for b in (-2.0, 0.0, 1e-10, 0.5, 30.0, 1e5)])


def same(name, *args):
    with np.errstate(all="ignore"):
        return getattr(special, name)(*args), getattr(theirs, name)(*args)


def harmonics():
    n, m, theta, phi = (v.ravel() for v in np.meshgrid(
        [0, 1, 2, 7, 30], [-30, -7, -1, 0, 1, 31], [0.0, 1e-5, 1.0, np.pi / 2, 3.0], [-2.0, 0.3]))
    return special.sph_harm_y(n, m, theta, phi), theirs.sph_harm_y(n, m, theta, phi)


def jacobian():
    u, m = (v.ravel() for v in np.meshgrid([-30.0, -1.0, 0.0, 1e-300, 1e-5, 0.3, 7.5, np.nan],
                                           [0.0, 1e-300, 1e-5, 0.5, 1 - 1e-6, 1.0, np.nan]))
    return special.ellipj(u, m), theirs.ellipj(u, m)


def lambert(k):
    z = np.concatenate([X[~np.isinf(X)], [-1 / np.e + 1e-9, -0.3, -1e-100]])
    # of 1e-9 above the branch point SciPy has another number
    right = [complex(mpmath.lambertw(v, k)) if np.isfinite(v) and v else v if k == 0 else
             -np.inf if v == 0 else np.nan for v in z]
    return special.lambertw(z, k), [v.real if v.imag == 0 else np.nan for v in map(complex, right)]


def counted(n):
    a = np.array([n / 2 - 0.4, n / 2, 30.0, 1e5, 1e10])
    return special.multigammaln(a, n), theirs.multigammaln(a, n)


NODES = {"p": (), "t": (), "u": (), "c": (), "s": (), "j": (0.5, 2.0), "l": (), "la": (0.5,),
         "h": (), "he": (), "cg": (2.5,), "ps": (), "ts": (), "us": (), "js": (2.5, 2.0)}
# order, degree, parameter of spheroids, and places: nearer to the focus SciPy keeps 8 digits
RADIAL = (1, 3, 2.0, np.array([2.0, 3.0, 5.0]))
MATHIEU = (2, 3.0, np.array([0.3, 1.0, 2.5]))


def by_characteristic(name, *args):
    """A function of a spheroid that is given what `cv` gives of its first arguments."""
    cv = theirs.pro_cv(*args[:3]) if name[0] == "p" else theirs.obl_cv(*args[:3])
    return same(name, *args[:3], cv, *args[3:])


CASES = {
    **{f"{name}_roots": lambda name=name: same(f"{name}_roots", 5, *NODES[name])
       for name in NODES},
    **{f"{name}_zeros": lambda name=name: same(f"{name}_zeros", 5)
       for name in ("bei", "beip", "ber", "berp", "kei", "keip", "ker", "kerp", "fresnelc",
                    "fresnels")},
    **{name: lambda name=name: same(name, *MATHIEU)
       for name in ("mathieu_modcem1", "mathieu_modcem2", "mathieu_modsem1")},
    **{name: lambda name=name: same(name, *RADIAL)
       for name in ("obl_rad1", "obl_rad2", "pro_rad1", "pro_rad2")},
    **{name: lambda name=name: by_characteristic(name, *RADIAL)
       for name in ("obl_rad1_cv", "obl_rad2_cv", "pro_rad1_cv", "pro_rad2_cv")},
    "obl_ang1": lambda: same("obl_ang1", 1, 3, 2.0, np.array([-0.9, 0.3])),
    **{name: lambda name=name: by_characteristic(name, 1, 3, 2.0, np.array([-0.9, 0.3]))
       for name in ("obl_ang1_cv", "pro_ang1_cv")},
    "obl_cv": lambda: same("obl_cv", 1, 3, np.array([0.5, 2.0, 7.0])),
    "obl_cv_seq": lambda: same("obl_cv_seq", 1, 5, 2.0),
    "sph_legendre_p": lambda: same("sph_legendre_p", np.arange(6)[:, None], 2,
                                   np.array([0.0, 0.3, 2.0])),
    "bernoulli": lambda: same("bernoulli", 60), "euler": lambda: same("euler", 40),
    "bessel_jn": lambda: (special.bessel_jn(ABOVE, v=5), theirs.jv(np.arange(6)[:, None], ABOVE)),
    "diric": lambda: (special.diric(X[1:-4], 8), theirs.diric(X[1:-4], 8)),
    "ellipj": jacobian,
    "factorial": lambda: same("factorial", np.array([0.0, 0.5, 1.0, 2.5, 30.0, 170.0, 171.0])),
    "factorial2": lambda: (special.factorial2(SMALL), theirs.factorial2(SMALL.astype(int))),
    "factorialk": lambda: (special.factorialk(SMALL, 3),
                           theirs.factorialk(SMALL.astype(int), 3, exact=False)),
    **{name: lambda name=name: same(name, ORDERS, ABOVE) for name in ("ivp", "jvp", "kvp")},
    **{name: lambda name=name: same(name, 7, 9)
       for name in ("jn_zeros", "jnp_zeros", "yn_zeros", "ynp_zeros")},
    **{name: lambda name=name: (getattr(special, name)(WHOLE, ABOVE[1:]),
                                getattr(theirs, name)(WHOLE.astype(int), ABOVE[1:]))
       for name in ("spherical_in", "spherical_jn", "spherical_kn", "spherical_yn")},
    "lambertw": lambda: tuple(np.concatenate([np.asarray(v) for v in vs])
                              for vs in zip(lambert(0), lambert(-1), strict=True)),
    **{name: lambda name=name: same(name, np.array([-1e300, -700.0, 0.0, 1e-300, 700.0]))
       for name in ("log_softmax", "logsumexp", "softmax")},
    "multigammaln": lambda: tuple(np.stack([np.asarray(v) for v in vs])
                                  for vs in zip(*map(counted, (1, 2, 7)), strict=True)),
    "sinc": lambda: same("sinc", X[2:-3]),
    "softplus": lambda: same("softplus", X),
    "sph_harm_y": harmonics,
    "stirling2": lambda: same("stirling2", SMALL.astype(int)[:, None], SMALL.astype(int)),
    "wofz": lambda: same("wofz", Z),
}
ROUNDED = {"diric": 1e-11, "sinc": 1e-14, "sph_harm_y": 1e-13, "ellipj": 1e-12, "wofz": 1e-300,
           "multigammaln": 1e-12}


@pytest.mark.parametrize("name", CASES)
def test_grids_of_other_arguments(name):
    with ft.default_dtypes("float64", "int64"):
        ours, right = CASES[name]()
    for u, v in zip(ours if isinstance(ours, tuple) else (ours,),
                    right if isinstance(right, tuple) else (right,), strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=ROUNDED.get(name, 1e-12), err_msg=name)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", GAUSS)
def test_nodes_and_weights(name):
    """Of few and of many nodes: those of SciPy, and the integrals of all powers they are exact for
    are those of SciPy's rule of more nodes."""
    args = [np.float64(a) for a in GAUSS[name]]
    for n in (1, 2, 5, 40):
        with ft.default_dtypes("float64", "int64"):
            x, w, mass = getattr(special, f"roots_{name}")(n, *args, mu=True)
        right = getattr(theirs, f"roots_{name}")(n, *args, mu=True)
        np.testing.assert_allclose(x, right[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(w, right[1], rtol=1e-7, atol=1e-13 * right[2])
        np.testing.assert_allclose(mass, right[2], rtol=1e-11)


@pytest.mark.parametrize("args", [
    (30.0, 30.0, -2.5, -1.0), (30.0, 30.0, 0.5, -0.5), (-40.3, 100.0, 30.0, 0.3),
    (0.5, 0.5, 100.5, 0.95), (-2.5, -2.5, -30.5, 0.3), (100.0, 100.0, 1.0, -0.1)])
def test_terms_of_2f1_that_cancel(args):
    with mpmath.workdps(60):
        right = float(mpmath.hyp2f1(*map(mpmath.mpf, args)))
    assert float(special.hyp2f1(*map(np.float64, args))) == pytest.approx(right, rel=1e-9)


def test_least_numbers_of_gamma_shares():
    """Half of 5e-324 is 0, and its power is not."""
    x, df = np.float64(5e-324), np.float64(1e-5)
    right = float(mpmath.exp(5e-6 * mpmath.log(mpmath.mpf(5e-324) / 2)) / mpmath.gamma(1 + 5e-6))
    for value in (special.chdtr(df, x), ft.scipy.stats.chi2.cdf(x, df),
                  1.0 - special.chdtrc(df, x), special.gammainc(0.5 * df, x) * 2.0**-5e-6):
        assert float(value) == pytest.approx(right, rel=1e-6)


def test_every_public_function_has_a_grid():
    """A name has a row in a table, or a test file of its family calls it by name."""
    tables = {*TABLE, *GRIDS, *NAMES, *CASES, *(f"roots_{name}" for name in GAUSS)}
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py")
                   if path != Path(__file__))
    kinds = (special.SpecialFunctionError, special.SpecialFunctionWarning)
    missing = [name for name in special.__all__ if name not in tables
               and getattr(special, name) not in kinds
               and not re.search(rf"special\.{name}\(|\"{name}\"", text)]
    assert not missing, f"add a row for {missing} to tests/scipy/special_table.py"
