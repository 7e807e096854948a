"""Linear systems as objects, beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as theirs

import functrans as ft
from functrans.core.errors import ArgumentError
from functrans.scipy import signal
from functrans.test_util import check_grads
from tests.scipy.comparing import same

PARTS = {"tf": ([1.0, 3.0], [2.0, 2.0, 5.0]), "zpk": ([-3.0], [-1.0 + 2j, -1 - 2j], 0.7),
         "ss": ([[-2.0, -5.0], [1.0, 0.0]], [[1.0], [0.5]], [[1.0, 3.0]], [[0.2]])}
T = np.linspace(0, 3, 20)
W = np.array([0.1, 1.0, 4.0])


@pytest.fixture(autouse=True)
def in_float64():
    with ft.default_dtypes("float64"):
        yield


def parts_of(system):
    names = {"TransferFunction": ("num", "den"), "ZerosPolesGain": ("zeros", "poles", "gain"),
             "StateSpace": ("A", "B", "C", "D")}
    kind = next(n for k, n in names.items() if k in type(system).__name__)
    return tuple(np.asarray(getattr(system, n)) for n in kind)


@pytest.mark.parametrize("form", PARTS)
def test_continuous_systems(form):
    ours, golden = signal.lti(*PARTS[form]), theirs.lti(*PARTS[form])
    assert isinstance(ours, signal.lti) and ours.dt is None
    same(ours.step(T=T), golden.step(T=T), 1e-8, 1e-8)
    same(ours.impulse(T=T), golden.impulse(T=T), 1e-8, 1e-8)
    for got, want in zip(ours.output(np.sin(T), T), golden.output(np.sin(T), T), strict=True):
        same(got, want, 1e-8, 1e-8) if np.shape(want) == T.shape else None
    same(ours.bode(W), golden.bode(W), 1e-8, 1e-8)
    same(ours.freqresp(W), golden.freqresp(W), 1e-8, 1e-8)
    same(np.sort_complex(ours.poles), np.sort_complex(golden.poles), 1e-8, 1e-8)
    same(np.sort_complex(ours.zeros), np.sort_complex(golden.zeros), 1e-8, 1e-8)
    for got, want in zip(parts_of(ours.to_tf()), parts_of(golden.to_tf()), strict=True):
        same(got.ravel(), want.ravel(), 1e-8, 1e-8)
    same(ours.to_ss().freqresp(W)[1], golden.freqresp(W)[1], 1e-8, 1e-8)
    found = ours.to_discrete(0.1)
    want = theirs.StateSpace(golden).to_discrete(0.1)  # SciPy warns of its own zeros
    assert isinstance(found, signal.dlti) and found.dt == want.dt
    expected = [(want.C @ np.linalg.solve(np.exp(1j * w) * np.eye(2) - want.A, want.B)
                 + want.D).item() for w in W / 10]
    same(found.freqresp(W / 10)[1], np.array(expected), 1e-7, 1e-7)


@pytest.mark.parametrize("form", PARTS)
def test_discrete_systems(form):
    parts = PARTS[form] if form == "tf" else signal.lti(*PARTS[form]).to_discrete(0.1).parts
    parts = tuple(map(np.asarray, parts))
    ours, golden = signal.dlti(*parts, dt=0.1), theirs.dlti(*parts, dt=0.1)
    for got, want in ((ours.step(n=8), golden.step(n=8)), (ours.impulse(n=8), golden.impulse(n=8))):
        same(got[0], want[0])
        same(got[1][0], want[1][0], 1e-7, 1e-7)
    same(ours.output(np.sin(T))[1], golden.output(np.sin(T), None)[1], 1e-7, 1e-7)
    same(ours.bode(W), golden.bode(W), 1e-7, 1e-7)
    assert signal.dlti(*parts).dt is True and signal.dlti(*parts).step(n=3)[1][0].shape[0] == 3


def test_state_spaces_add_and_multiply():
    one, two = signal.StateSpace(*PARTS["ss"]), signal.StateSpace(*PARTS["ss"]) * 0.5
    a, b = theirs.StateSpace(*PARTS["ss"]), theirs.StateSpace(*PARTS["ss"]) * 0.5
    for got, want in ((one + two, a + b), (one - two, a - b), (one * two, a * b), (-one, -a),
                      (2.0 * one, 2.0 * a), (one + 1.5, a + 1.5), (one / 4, a / 4)):
        for x, y in zip(parts_of(got), parts_of(want), strict=True):
            same(x, y)
    assert (one.inputs, one.outputs) == (1, 1)


def test_they_are_trees():
    system = signal.TransferFunction([1.0, 3.0], [1.0, 2.0, 5.0])
    assert "ContinuousTransferFunction" in repr(system)
    last = ft.jit(lambda s: s.step(T=T)[1][-1])
    slope = ft.grad(last)(system)
    assert isinstance(slope, signal.TransferFunction) and slope.den.shape == (3,)
    check_grads(lambda den: signal.lti(np.array([1.0, 3.0]), den).step(T=T)[1],
                (np.array([1.0, 2.0, 5.0]),), 1, modes=["fwd"])
    discrete = ft.tree.map(lambda x: 2 * x, signal.dlti([1.0], [1.0, -0.5], dt=0.1))
    assert discrete.dt == 0.1 and discrete.num.tolist() == [2.0]
    assert isinstance(signal.StateSpace(system), signal.StateSpace)
    assert len(signal.cont2discrete(system, 0.1)) == 3


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="5 parts"):
        signal.lti(1, 2, 3, 4, 5)
    with pytest.raises(ArgumentError, match="it has 2"):
        signal.TransferFunction([1.0])
    one = signal.StateSpace(*PARTS["ss"])
    with pytest.raises(ArgumentError, match="step"):
        one + one.to_discrete(0.1)
