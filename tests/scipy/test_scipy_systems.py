"""Systems, prototypes, partial fractions and filters of equal ripples beside scipy.signal."""

import warnings

import numpy as np
import pytest
import scipy.signal

import functrans as ft
from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.scipy import signal
from functrans.test_util import check_grads
from tests.scipy.comparing import Pair, same

both = Pair(signal, scipy.signal)
rng = np.random.default_rng(0)
A = rng.standard_normal((3, 3)) - 2 * np.eye(3)
B, C, D = rng.standard_normal((3, 2)), rng.standard_normal((2, 3)), rng.standard_normal((2, 2))
ONE = (A, B[:, :1], C[:1], D[:1, :1])
TRANSFER = [1.0, 3.0, 2.0], [2.0, 3.0, 7.0, 4.0]
ZEROS = np.array([-1.0, -2.0]), np.array([-3.0, -1 + 2j, -1 - 2j]), 2.0
SYSTEMS = {"tf": TRANSFER, "zpk": ZEROS, "ss": ONE, "order 0": ([2.0], [4.0])}


def close(found, known, tolerance=1e-8):
    same(tuple(found), tuple(known), tolerance, tolerance)


def sets(found, known):
    """Roots in any order."""
    for u, v in zip(found[:2], known[:2], strict=True):
        same(np.sort_complex(np.asarray(u)), np.sort_complex(np.atleast_1d(v) + 0j), 1e-7, 1e-7)
    same(found[2], known[2], 1e-8)


def test_forms_of_systems():
    for num, den in (TRANSFER, ([1.0, 2, 3], [1.0, 2, 3]), ([5.0], [1.0, 0, 4]), ([2.0], [4.0]),
                     ([[1.0, 2], [3, 4]], [2.0, 3, 4])):
        both("tf2ss", num, den)
    both("zpk2ss", *ZEROS)
    for i in (0, 1):
        both("ss2tf", A, B, C, D, i, rtol=1e-9, atol=1e-9)
    with ft.default_dtypes("float64"):
        sets(signal.ss2zpk(*ONE), scipy.signal.ss2zpk(*ONE))
    check_grads(lambda *m: signal.ss2tf(*m), (A, B, C, D), 1)
    check_grads(lambda n, d: signal.tf2ss(n, d), (TRANSFER[0], TRANSFER[1]), 1)
    defective = np.eye(3, k=1)
    assert np.isfinite(ft.jacfwd(lambda a: signal.ss2tf(a, B, C, D)[1])(defective)).all()
    with pytest.raises(ShapeError, match="differentiate its input"):
        signal.tf2ss([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"\(n, n\)"):
        signal.ss2tf(A, B[:2], C, D)


@pytest.mark.parametrize("method", ["zoh", "foh", "impulse", "bilinear", "euler", "backward_diff",
                                    "gbt"])
def test_discrete_systems(method):
    alpha = 0.3 if method == "gbt" else None
    for system in ((A, B, C, 0 * D), TRANSFER, ZEROS):
        with ft.default_dtypes("float64"):
            found = signal.cont2discrete(system, 0.2, method, alpha)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a numerator that begins with 0
            known = scipy.signal.cont2discrete(system, 0.2, method, alpha)
        if len(system) == 3:
            sets(found, known)
        else:
            close(found[:-1], known[:-1])
        assert found[-1] == 0.2
    check_grads(lambda a, dt: signal.cont2discrete((a, B, C, D), dt, method, alpha)[:4],
                (A, np.array(0.2)), 1)


@pytest.mark.parametrize("name", SYSTEMS)
def test_responses_in_time(name):
    system = SYSTEMS[name]
    times, start = np.linspace(0.3, 3, 12), None if name == "order 0" else np.array([1.0, 2, 3])
    u = np.sin(times)
    if name != "ss":
        system = tuple(np.asarray(v, float) for v in system) if name != "zpk" else system
    for interp in (True, False):
        close(signal.lsim(system, u, times, start, interp),
              scipy.signal.lsim(system, u, times, start, interp))
    for which in ("step", "impulse"):
        mine, known = getattr(signal, which), getattr(scipy.signal, which)
        close(mine(system, T=times - 0.3), known(system, T=times - 0.3))
        if name != "order 0":
            theirs = start if which == "step" else start[:, None]
            with ft.default_dtypes("float64"):
                close(mine(system, start), known(system, theirs), 1e-7)
    if name != "order 0":
        for w in (None, np.array([0.1, 2.0])):
            with ft.default_dtypes("float64"):
                close(signal.bode(system, w), scipy.signal.bode(system, w))


def test_systems_of_many_inputs():
    times, u = np.linspace(0, 2, 9), rng.standard_normal((9, 2))
    close(signal.lsim((A, B, C, D), u, times), scipy.signal.lsim((A, B, C, D), u, times))
    close(signal.lsim((A, B, C, D), None, times, np.ones(3)),
          scipy.signal.lsim((A, B, C, D), None, times, np.ones(3)))

    def last(a, u):
        return signal.lsim((a, B, C, D), u, times)[1][-1]

    check_grads(last, (A, u), 1)
    same(ft.jit(ft.vmap(last, (0, None)))(np.stack([A, 2 * A]), u),
         np.stack([last(A, u), last(2 * A, u)]), 1e-9)
    with pytest.raises(ShapeError, match="9 times and 2 inputs"):
        signal.lsim((A, B, C, D), u[:, :1], times)
    with pytest.raises(ArgumentError, match="the system is a tuple of 5"):
        signal.lsim((A, B, C, D, 1.0), u, times)


def test_discrete_responses():
    stable, u = 0.3 * A, rng.standard_normal((7, 2))
    for system, inputs in (((stable, B, C, D, 0.5), u), ((*TRANSFER, 0.5), u[:, 0]),
                           ((*ZEROS, 0.5), u[:, 0])):
        for t in (None, np.linspace(0, 5, 7)):
            with ft.default_dtypes("float64"):
                close(signal.dlsim(system, inputs, t), scipy.signal.dlsim(system, inputs, t))
        for name in ("dstep", "dimpulse"):
            with ft.default_dtypes("float64"):
                found, known = (getattr(m, name)(system, n=9) for m in (signal, scipy.signal))
            close((found[0], *found[1]), (known[0], *known[1]))
    close(signal.dlsim((stable, B, C, D, 0.5), u, None, np.ones(3)),
          scipy.signal.dlsim((stable, B, C, D, 0.5), u, None, np.ones(3)))
    discrete = [1.0, 0.3], [1.0, -0.5, 0.2], 0.1
    with ft.default_dtypes("float64"):
        close(signal.dbode(discrete), scipy.signal.dbode(discrete))
        close(signal.dfreqresp(discrete, whole=True, n=6),
              scipy.signal.dfreqresp(discrete, whole=True, n=6))
        both("freqs_zpk", *ZEROS)
        both("findfreqs", *TRANSFER, 9)
    both("freqs_zpk", *ZEROS, np.array([0.1, 2.0]))


def test_prototypes_and_bands():
    for n in (1, 2, 5):
        for name, args in (("buttap", ()), ("cheb1ap", (1.0,)), ("cheb2ap", (40.0,)),
                           ("ellipap", (1.0, 40.0)), ("besselap", ())):
            with ft.default_dtypes("float64"):
                sets(getattr(signal, name)(n, *args), getattr(scipy.signal, name)(n, *args))
    for name, args in (("lp2lp", (3.0,)), ("lp2hp", (3.0,)), ("lp2bp", (3.0, 0.7)),
                       ("lp2bs", (3.0, 0.7))):
        for num, den in (TRANSFER, ([1.0], [1.0, 2.0, 3.0]), ([2.0, 1, 5, 1], [1.0, 2, 3, 4])):
            both(name, num, den, *args)
        with ft.default_dtypes("float64"):
            sets(getattr(signal, f"{name}_zpk")(*ZEROS, *args),
                 getattr(scipy.signal, f"{name}_zpk")(*ZEROS, *args))
        check_grads(lambda b, a, w, name=name: getattr(signal, name)(b, a, w),
                    (TRANSFER[0], TRANSFER[1], np.array(3.0)), 1)
    with ft.default_dtypes("float64"):
        sets(signal.bilinear_zpk(*ZEROS, 10), scipy.signal.bilinear_zpk(*ZEROS, 10))
    with pytest.raises(ArgumentError, match="a pole for each zero"):
        signal.lp2lp_zpk([1.0, 2.0], [1.0], 1.0)


def test_numbers_of_python_have_all_digits():
    a, b = np.array([1.0, 0.7, 2.0]), np.array([1.0])
    close(signal.lp2bp(b, a, 0.7, 0.3), scipy.signal.lp2bp(b, a, 0.7, 0.3), 1e-14)
    close(signal.cont2discrete((A, B, C, D), 0.1)[:4],
          scipy.signal.cont2discrete((A, B, C, D), 0.1)[:4], 1e-13)
    same(signal.step(ONE, T=np.linspace(0, 1, 5))[1],
         scipy.signal.step(ONE, T=np.linspace(0, 1, 5))[1], 1e-12)


def test_designs():
    for wp, ws in ((0.2, 0.3), (0.3, 0.2), ([0.2, 0.5], [0.1, 0.6]), ([0.1, 0.6], [0.2, 0.5])):
        for kind in ("ellip", "butter", "cheby1", "cheby2"):
            known = scipy.signal.iirdesign(wp, ws, 1, 40, ftype=kind)
            with ft.default_dtypes("float64"):
                found = signal.iirdesign(wp, ws, 1, 40, ftype=kind)
            # the edges of stopped bands come from a search
            close(found, known, 1e-2 if np.size(wp) == 2 and wp[0] < ws[0] else 1e-6)
    for kind in ("notch", "peak"):
        for zero in (False, True):
            both("iircomb", 25.0, 10.0, kind, 200.0, pass_zero=zero)
    with pytest.raises(ArgumentError, match="multiple"):
        signal.iircomb(30.0, 10.0, fs=200.0)
    b, a = [1.0, 2, 3], [2.0, 1, 4, 5]
    for y, x in (([1.0, 2], None), ([1.0, 2, 3, 4], [5.0]), ([], [1.0, 2, 3])):
        both("lfiltic", b, a, np.array(y), None if x is None else np.array(x))


FRACTIONS = [([1.0, 3], [1.0, 3, 2]), ([5.0, 3, -2, 7], [-4.0, 0, 8, 3]), ([1.0], [1.0, -2, 1]),
             ([1.0, 2, 3, 4, 5], [1.0, 2, 3]), ([1.0, 0, 1], np.poly([2.0, 2, 2, -1])),
             ([3.0], [2.0, 0, 8])]


@pytest.mark.parametrize("case", range(len(FRACTIONS)))
def test_partial_fractions(case):
    b, a = (np.asarray(v) for v in FRACTIONS[case])
    with ft.default_dtypes("float64"):
        for name, back in (("residue", "invres"), ("residuez", "invresz")):
            found, known = getattr(signal, name)(b, a), getattr(scipy.signal, name)(b, a)
            # conjugated poles are as large as each other, in any order
            order = np.lexsort((np.round(np.asarray(found[1]).imag, 6), np.abs(found[1]).round(6)))
            theirs = np.lexsort((known[1].imag.round(6), np.abs(known[1]).round(6)))
            if len(set(np.round(known[1], 3))) == len(known[1]):
                close((np.asarray(found[0])[order], np.asarray(found[1])[order]),
                      (known[0][theirs], known[1][theirs]), 1e-6)
            else:
                close(found[:2], known[:2], 1e-4)
            same(found[2], known[2], 1e-6, 1e-6)
            again = getattr(signal, back)(*found)
            scale = np.asarray(again[1]).reshape(-1)[0].real / a[0]
            np.testing.assert_allclose(np.asarray(again[1]), a * scale, atol=1e-5)
            top = np.trim_zeros(np.round(np.asarray(again[0]).real, 5), "f" if back == "invres"
                                else "b")
            np.testing.assert_allclose(top, b * scale, atol=1e-4)
    same(signal.unique_roots([1.0, 1.0002, 3.0], rtype="max")[0], jnp.array([1.0002, 3.0]))
    with pytest.raises(ArgumentError, match="a coefficient is traced"):
        ft.jit(lambda b: signal.residue(b, a))(b)


REMEZ = {"low": (31, [0, 0.1, 0.2, 0.5], [1, 0], {}),
         "even": (30, [0, 0.1, 0.2, 0.5], [1, 0], {}),
         "bands": (73, [0, 0.05, 0.1, 0.2, 0.25, 0.5], [0, 1, 0], {"weight": [10, 1, 5]}),
         "rate": (101, [0, 800, 1000, 2000, 2200, 4000], [1, 0, 1], {"fs": 8000}),
         "long": (301, [0, 0.1, 0.12, 0.5], [1, 0], {}),
         "hilbert": (21, [0.05, 0.45], [1], {"type": "hilbert"}),
         "even hilbert": (22, [0.05, 0.5], [1], {"type": "hilbert"}),
         "slope": (31, [0.02, 0.4], [1], {"type": "differentiator"}),
         "even slope": (20, [0, 0.5], [1], {"type": "differentiator"})}


@pytest.mark.parametrize("name", REMEZ)
def test_remez(name):
    size, bands, desired, options = REMEZ[name]
    with ft.default_dtypes("float64"):
        found = np.asarray(signal.remez(size, bands, desired, **options))
    known = scipy.signal.remez(size, bands, desired, **{"fs": 1, **options})
    np.testing.assert_allclose(found, known, atol=1e-4)  # on other grids
    if not options.get("type"):
        worst = []
        fs, weights = options.get("fs", 1), options.get("weight", [1] * len(desired))
        for taps in (found, known):
            w, h = scipy.signal.freqz(taps, worN=8000, fs=fs)
            worst.append(max(weight * np.abs(np.abs(h[(w >= low) & (w <= high)]) - gain).max()
                             for low, high, gain, weight in zip(
                                 bands[::2], bands[1::2], desired, weights, strict=True)))
        assert worst[0] < worst[1] * 1.005


def test_what_remez_refuses():
    with pytest.raises(ArgumentError, match="do not fit"):
        signal.remez(31, [0, 0.2, 0.1, 0.5], [1, 0])
    with pytest.raises(ArgumentError, match="maxiter"):
        signal.remez(301, [0, 0.1, 0.11, 0.5], [1, 0], maxiter=2)


@pytest.mark.parametrize("method", ["homomorphic", "hilbert"])
def test_minimum_phase(method):
    # of stopped bands that touch 0 the logarithm of what is rounded is taken
    off = 1e-6 if method == "homomorphic" else 1e-3
    for size in (31, 41):
        h = scipy.signal.remez(size, [0, 0.2, 0.3, 0.5], [1, 0], fs=1)
        both("minimum_phase", h, method, rtol=off, atol=off)
        if method == "homomorphic":
            both("minimum_phase", h, method, 901, half=False, rtol=1e-6, atol=1e-6)
    taps = scipy.signal.firwin(11, 0.4)
    taps[5] += 1  # a gain above 0
    if method == "homomorphic":
        check_grads(lambda h: signal.minimum_phase(h, method, 512), (taps,), 1)
    with pytest.raises(ShapeError, match="three"):
        signal.minimum_phase([1.0, 2.0], method)
