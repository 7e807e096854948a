"""Linear systems as objects, which are the tuples that the functions on systems take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from functrans import numpy as jnp
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.keypath import GetAttrKey
from functrans.core.source import user_source
from functrans.core.tree_registry import register_pytree_with_keys
from functrans.scipy.arguments import inexact
from functrans.scipy.products import matmul
from functrans.scipy.signal import simulations
from functrans.scipy.signal.forms import tf2zpk
from functrans.scipy.signal.responses import zpk2tf
from functrans.scipy.signal.systems import (
    abcd_normalize,
    cont2discrete,
    ss2tf,
    ss2zpk,
    tf2ss,
    zpk2ss,
)
from functrans.typing import Array, ArrayLike

__all__ = ["StateSpace", "TransferFunction", "ZerosPolesGain", "dlti", "lti"]


class _System(tuple):  # type: ignore[type-arg]
    """The parts of a system, with the step of time behind those of a discrete one.

    `system.to_tf()`, `system.to_zpk()` and `system.to_ss()` are its other forms; `system.step()`,
    `system.impulse()`, `system.output(u, t)`, `system.bode()` and `system.freqresp()` what it
    does; `system.to_discrete(dt)` is a continuous one in steps.
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[dict[bool, type[Any]]] = {}

    @property
    def parts(self) -> tuple[Any, ...]:
        """The arrays of the system."""
        return tuple(self[:len(self.names)])

    @property
    def dt(self) -> Any:
        """The step of time of a discrete system, None for a continuous one."""
        return self[-1] if len(self) > len(self.names) else None

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.parts))
        return f"{type(self).__name__.strip('_')}({inner}, dt={self.dt!r})"

    def _matrices(self) -> tuple[Array, Array, Array, Array]:
        parts = self.parts
        found: Any = parts if len(parts) == 4 else (tf2ss if len(parts) == 2 else zpk2ss)(*parts)
        return found  # type: ignore[no-any-return]

    def to_tf(self) -> Any:
        """The same system as numerator and denominator."""
        parts = self.parts
        num, den = parts if len(parts) == 2 else (zpk2tf if len(parts) == 3 else ss2tf)(*parts)
        return TransferFunction(num, den, dt=self.dt)

    def to_zpk(self) -> Any:
        """The same system as zeros, poles and gain, outside of `jit`."""
        parts = self.parts
        found = parts if len(parts) == 3 else (tf2zpk if len(parts) == 2 else ss2zpk)(*parts)
        return ZerosPolesGain(*found, dt=self.dt)

    def to_ss(self) -> Any:
        """The same system as matrices of its states."""
        return StateSpace(*self._matrices(), dt=self.dt)

    @property
    def poles(self) -> Array:
        """The poles."""
        parts = self.parts
        if len(parts) == 3:
            poles: Array = parts[1]
            return poles
        return jnp.linalg.eigvals(parts[0]) if len(parts) == 4 else jnp.roots(
            parts[1], strip_zeros=False)

    @property
    def zeros(self) -> Array:
        """The zeros, outside of `jit`."""
        zeros: Array = self.to_zpk()[0]
        return zeros

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return int(self._matrices()[1].shape[1])

    @property
    def outputs(self) -> int:
        """The number of outputs."""
        return int(self._matrices()[2].shape[0])


class lti(_System):
    """A continuous linear system: lti(num, den), lti(zeros, poles, gain) or lti(A, B, C, D).

    It is a tuple of its parts, and a tree: all functions on systems take it, and it goes through
    `jit`, `vmap` and derivatives. Raises ArgumentError for another number of parts.

    >>> import functrans as ft
    >>> system = ft.scipy.signal.lti([1.0], [1.0, 1.0])
    >>> round(float(system.step()[1][-1]), 3), system.poles.real.tolist()
    (0.999, [-1.0])
    """

    __slots__ = ()

    def __new__(cls, *system: Any) -> Any:
        """The system of two, three or four parts."""
        return _made("lti", system, None)

    def impulse(self, X0: ArrayLike | None = None, T: ArrayLike | None = None,
                N: int | None = None) -> tuple[Array, Array]:
        """Times and the output after an impulse; see `impulse`."""
        return simulations.impulse(self, X0, T, N)

    def step(self, X0: ArrayLike | None = None, T: ArrayLike | None = None,
             N: int | None = None) -> tuple[Array, Array]:
        """Times and the output for the input 1; see `step`."""
        return simulations.step(self, X0, T, N)

    def output(self, U: ArrayLike | None, T: ArrayLike, X0: ArrayLike | None = None
               ) -> tuple[Array, Array, Array]:
        """Times, the output and the states for the input U; see `lsim`."""
        return simulations.lsim(self, U, T, X0)

    def bode(self, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
        """Frequencies, magnitudes in dB and phases in degrees; see `bode`."""
        return simulations.bode(self, w, n)

    def freqresp(self, w: ArrayLike | None = None, n: int = 10000) -> tuple[Array, Array]:
        """Frequencies and the complex response; see `freqresp`."""
        return simulations.freqresp(self, w, n)

    def to_discrete(self, dt: ArrayLike, method: str = "zoh", alpha: float | None = None) -> Any:
        """The discrete system of step dt, in the same form; see `cont2discrete`."""
        *parts, _ = cont2discrete(self, dt, method, alpha)
        return _made("lti", parts, dt)


class dlti(_System):
    """A discrete linear system: dlti(num, den), dlti(zeros, poles, gain) or dlti(A, B, C, D).

    `dt` is its step of time, True where it is not known. See `lti`.

    >>> import functrans as ft
    >>> system = ft.scipy.signal.dlti([1.0], [1.0, -0.5], dt=0.1)
    >>> system.step(n=3)[1][0].reshape(-1).tolist()
    [0.0, 1.0, 1.5]
    """

    __slots__ = ()

    def __new__(cls, *system: Any, dt: Any = True) -> Any:
        """The system of two, three or four parts."""
        return _made("dlti", system, True if dt is None else dt)

    def _timed(self) -> tuple[Any, ...]:
        """The tuple with a step of time that is a number."""
        return (*self.parts, 1.0 if self.dt is True else self.dt)

    def impulse(self, x0: ArrayLike | None = None, t: ArrayLike | None = None,
                n: int | None = None) -> tuple[Any, ...]:
        """Times and outputs after an impulse; see `dimpulse`."""
        return simulations.dimpulse(self._timed(), x0, t, n)

    def step(self, x0: ArrayLike | None = None, t: ArrayLike | None = None,
             n: int | None = None) -> tuple[Any, ...]:
        """Times and outputs for the input 1; see `dstep`."""
        return simulations.dstep(self._timed(), x0, t, n)

    def output(self, u: ArrayLike, t: ArrayLike | None = None, x0: ArrayLike | None = None
               ) -> tuple[Array, ...]:
        """Times and the output for the input u; see `dlsim`."""
        return simulations.dlsim(self._timed(), u, t, x0)

    def bode(self, w: ArrayLike | None = None, n: int = 100) -> tuple[Array, Array, Array]:
        """Frequencies, magnitudes in dB and phases in degrees; see `dbode`."""
        return simulations.dbode(self._timed(), w, n)

    def freqresp(self, w: ArrayLike | None = None, n: int = 10000, whole: bool = False
                 ) -> tuple[Array, Array]:
        """Frequencies and the complex response; see `dfreqresp`."""
        return simulations.dfreqresp(self._timed(), w, n, whole)


def _made(name: str, system: Sequence[Any], dt: Any) -> Any:
    if len(system) == 1 and isinstance(system[0], _System):
        system = system[0].parts
    if len(system) not in (2, 3, 4):
        raise ArgumentError(f"functrans.scipy.signal.{name}: there are {len(system)} parts.",
                            where=user_source(),
                            fix=f"{name}(num, den), {name}(z, p, k) or {name}(A, B, C, D)")
    kind = (TransferFunction, ZerosPolesGain, StateSpace)[len(system) - 2]
    return kind(*system, dt=dt)


def _of(cls: type[Any], parts: Sequence[Any], dt: Any) -> Any:
    kind = cls.kinds[dt is not None]
    return tuple.__new__(kind, parts if dt is None else (*parts, dt))


class TransferFunction(_System):
    """The numerator and the denominator of a system, of falling powers; discrete with `dt`.

    A numerator may have a row for each output.

    >>> import functrans as ft
    >>> system = ft.scipy.signal.TransferFunction([2.0], [2.0, 4.0])
    >>> system.num.tolist(), system.den.tolist(), type(system.to_ss()).__name__
    ([1.0], [1.0, 2.0], 'ContinuousStateSpace')
    """

    __slots__ = ()
    names = ("num", "den")

    def __new__(cls, *system: Any, dt: Any = None) -> Any:
        """The system whose denominator begins with 1."""
        if len(system) == 1 and isinstance(system[0], _System):
            return system[0].to_tf()
        _count("TransferFunction", system, 2)
        num, den = inexact(*system)
        den = jnp.atleast_1d(den)
        return _of(TransferFunction, (jnp.atleast_1d(num) / den[0], den / den[0]), dt)

    @property
    def num(self) -> Array:
        """The numerator."""
        found: Array = self[0]
        return found

    @property
    def den(self) -> Array:
        """The denominator."""
        found: Array = self[1]
        return found


class ZerosPolesGain(_System):
    """The zeros, poles and gain of a system; discrete with `dt`.

    >>> import functrans as ft
    >>> ft.scipy.signal.ZerosPolesGain([], [-2.0], 3.0).to_tf().den.tolist()
    [1.0, 2.0]
    """

    __slots__ = ()
    names = ("zeros", "poles", "gain")

    def __new__(cls, *system: Any, dt: Any = None) -> Any:
        """The system of zeros, poles and a gain."""
        if len(system) == 1 and isinstance(system[0], _System):
            return system[0].to_zpk()
        _count("ZerosPolesGain", system, 3)
        z, p, k = (jnp.asarray(v) for v in system)
        return _of(ZerosPolesGain, (jnp.atleast_1d(z), jnp.atleast_1d(p), k), dt)

    @property
    def zeros(self) -> Array:
        """The zeros."""
        found: Array = self[0]
        return found

    @property
    def gain(self) -> Array:
        """The gain."""
        found: Array = self[2]
        return found


class StateSpace(_System):
    """The matrices A, B, C and D of the states of a system; discrete with `dt`.

    Systems of one kind add (side by side) and multiply (one after the other), also with numbers.

    >>> import functrans as ft
    >>> one = ft.scipy.signal.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> (one * one).A.tolist()
    [[-1.0, 1.0], [0.0, -1.0]]
    """

    __slots__ = ()
    names = ("A", "B", "C", "D")

    def __new__(cls, *system: Any, dt: Any = None) -> Any:
        """The system of matrices that fit each other."""
        if len(system) == 1 and isinstance(system[0], _System):
            return system[0].to_ss()
        _count("StateSpace", system, 4)
        return _of(StateSpace, abcd_normalize(*system), dt)

    @property
    def A(self) -> Array:
        """What a state becomes."""
        found: Array = self[0]
        return found

    @property
    def B(self) -> Array:
        """What inputs do to the state."""
        found: Array = self[1]
        return found

    @property
    def C(self) -> Array:
        """What is seen of the state."""
        found: Array = self[2]
        return found

    @property
    def D(self) -> Array:
        """What is seen of inputs at once."""
        found: Array = self[3]
        return found

    def _other(self, other: Any) -> Any:
        if isinstance(other, StateSpace):
            if other.dt is not self.dt and other.dt != self.dt:
                raise ArgumentError("functrans.scipy.signal.StateSpace: steps of time "
                                    f"{self.dt} and {other.dt}.", where=user_source(),
                                    why="systems of one step are joined.")
            return other
        gain = jnp.asarray(other, self.D.dtype)
        if gain.ndim > 2:
            raise ShapeError(f"functrans.scipy.signal.StateSpace: a gain of shape {gain.shape}.",
                             where=user_source(), why="it is a number or a matrix.")
        return gain

    def __mul__(self, other: Any) -> Any:
        it = self._other(other)
        if not isinstance(it, StateSpace):
            if it.ndim == 0:
                return _of(StateSpace, (self.A, self.B * it, self.C, self.D * it), self.dt)
            return _of(StateSpace, (self.A, matmul(self.B, it), self.C, matmul(self.D, it)),
                       self.dt)
        zero = jnp.zeros((it.A.shape[0], self.A.shape[0]), self.A.dtype)
        a = jnp.block([[self.A, matmul(self.B, it.C)], [zero, it.A]])
        b = jnp.concatenate([matmul(self.B, it.D), it.B])
        c = jnp.concatenate([self.C, matmul(self.D, it.C)], axis=1)
        return _of(StateSpace, (a, b, c, matmul(self.D, it.D)), self.dt)

    def __rmul__(self, other: Any) -> Any:
        it = self._other(other)
        if it.ndim == 0:
            return _of(StateSpace, (self.A, self.B, self.C * it, self.D * it), self.dt)
        return _of(StateSpace, (self.A, self.B, matmul(it, self.C), matmul(it, self.D)), self.dt)

    def __add__(self, other: Any) -> Any:
        it = self._other(other)
        if not isinstance(it, StateSpace):
            return _of(StateSpace, (self.A, self.B, self.C, self.D + it), self.dt)
        n, m = self.A.shape[0], it.A.shape[0]
        a = jnp.block([[self.A, jnp.zeros((n, m))], [jnp.zeros((m, n)), it.A]])
        return _of(StateSpace, (a.astype(self.A.dtype), jnp.concatenate([self.B, it.B]),
                                jnp.concatenate([self.C, it.C], axis=1), self.D + it.D), self.dt)

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __neg__(self) -> Any:
        return _of(StateSpace, (self.A, self.B, -self.C, -self.D), self.dt)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / self._other(other))


def _count(name: str, system: Sequence[Any], count: int) -> None:
    if len(system) != count:
        raise ArgumentError(f"functrans.scipy.signal.{name}: there are {len(system)} parts.",
                            where=user_source(), why=f"it has {count}, or is made of a system.")


class ContinuousTransferFunction(TransferFunction, lti):
    """A continuous `TransferFunction`."""

    __slots__ = ()


class DiscreteTransferFunction(TransferFunction, dlti):
    """A discrete `TransferFunction`."""

    __slots__ = ()


class ContinuousZerosPolesGain(ZerosPolesGain, lti):
    """A continuous `ZerosPolesGain`."""

    __slots__ = ()


class DiscreteZerosPolesGain(ZerosPolesGain, dlti):
    """A discrete `ZerosPolesGain`."""

    __slots__ = ()


class ContinuousStateSpace(StateSpace, lti):
    """A continuous `StateSpace`."""

    __slots__ = ()


class DiscreteStateSpace(StateSpace, dlti):
    """A discrete `StateSpace`."""

    __slots__ = ()


TransferFunction.kinds = {False: ContinuousTransferFunction, True: DiscreteTransferFunction}
ZerosPolesGain.kinds = {False: ContinuousZerosPolesGain, True: DiscreteZerosPolesGain}
StateSpace.kinds = {False: ContinuousStateSpace, True: DiscreteStateSpace}


def _register(kind: type[Any]) -> None:
    def flatten(system: Any) -> tuple[tuple[Any, ...], Any]:
        return tuple((GetAttrKey(n), v) for n, v in zip(system.names, system.parts)), system.dt

    def unflatten(dt: Any, parts: Any) -> Any:
        return tuple.__new__(kind, tuple(parts) if dt is None else (*parts, dt))

    register_pytree_with_keys(kind, flatten, unflatten)


for _kind in (TransferFunction, ZerosPolesGain, StateSpace):
    for _each in _kind.kinds.values():
        _register(_each)
