"""Filters of equal ripples, and those of least delay with the same gain."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as jnp
from functrans.core.dtypes import default_float
from functrans.core.errors import ArgumentError, ShapeError
from functrans.core.source import user_source
from functrans.scipy.arguments import known_size, of_rank, one_of, real
from functrans.scipy.signal.prototypes import Values
from functrans.typing import Array, ArrayLike


def _barycentric(x: Values) -> Values:
    """Weights of interpolation at nodes, to a common factor."""
    off = x[:, None] - x
    np.fill_diagonal(off, 1)
    # by logarithms, as products of hundreds of differences underflow
    logs = -np.log(np.abs(off)).sum(1)
    return np.asarray(np.prod(np.sign(off), axis=1) * np.exp(logs - logs.max()))


def _interpolated(at: Values, x: Values, weights: Values, values: Values) -> Values:
    off = at[:, None] - x
    hit = off == 0
    ratio = weights / np.where(hit, 1, off)
    found = ratio @ values / ratio.sum(1)
    rows, columns = np.nonzero(hit)
    found[rows] = values[columns]
    return np.asarray(found)


def _extremes(error: Values, breaks: Values) -> Values:
    """Places of local extremes of the error: one of each run of one sign, the largest."""
    size = np.abs(error)
    left = np.concatenate([[True], (np.sign(error[1:]) != np.sign(error[:-1])) | breaks
                           | (size[1:] >= size[:-1])])
    right = np.concatenate([(np.sign(error[1:]) != np.sign(error[:-1])) | breaks
                            | (size[:-1] > size[1:]), [True]])
    found: list[int] = []
    for i in np.flatnonzero(left & right):
        if found and np.sign(error[i]) == np.sign(error[found[-1]]):
            if size[i] > size[found[-1]]:
                found[-1] = int(i)
        else:
            found.append(int(i))
    return np.array(found)


def _exchange(name: str, x: Values, wanted: Values, weight: Values, breaks: Values, count: int,
              maxiter: int) -> Callable[[Values], Values]:
    """The polynomial in x with `count` coefficients whose weighted error is least at most.

    Source: Parks and McClellan, IEEE Trans. Circuit Theory 19 (1972): Remez' exchange.
    """
    places = np.round(np.linspace(0, len(x) - 1, count + 1)).astype(int)
    for _ in range(maxiter):
        nodes = x[places]
        of_nodes = _barycentric(nodes)
        signs = (-1.0) ** np.arange(count + 1)
        level = of_nodes @ wanted[places] / (of_nodes @ (signs / weight[places]))
        values = wanted[places] - level * signs / weight[places]
        some = slice(None, -1)
        inner = _barycentric(nodes[some])
        error = weight * (wanted - _interpolated(x, nodes[some], inner, values[some]))
        error[places] = level * signs
        largest = np.abs(error).max()
        if largest <= abs(level) * (1 + 1e-9) + 1e-15:
            break
        found = _extremes(error, breaks)
        while len(found) > count + 1:
            ends = np.abs(error[found[[0, -1]]])
            if len(found) == count + 2:
                found = found[1:] if ends[0] < ends[1] else found[:-1]
            else:  # a pair of neighbours keeps the signs alternating
                pairs = np.maximum(np.abs(error[found[:-1]]), np.abs(error[found[1:]]))
                at = int(np.argmin(pairs))
                found = found[1:] if ends.min() < pairs[at] and ends[0] <= ends[1] else (
                    found[:-1] if ends.min() < pairs[at] else np.delete(found, [at, at + 1]))
        if len(found) < count + 1 or np.array_equal(found, places):
            break
        places = found
    else:
        raise ArgumentError(f"functrans.scipy.signal.{name}: no filter was found in {maxiter} "
                            "steps.", where=user_source(), fix="maxiter=100, or wider gaps "
                            "between bands")
    return lambda at: _interpolated(at, nodes[some], inner, values[some])


def remez(numtaps: int, bands: ArrayLike, desired: ArrayLike, *, weight: ArrayLike | None = None,
          type: str = "bandpass", maxiter: int = 25, grid_density: int = 16,
          fs: float | None = None) -> Array:
    """The filter of `numtaps` coefficients whose largest error in bands is least.

    `bands` are pairs of frequencies that grow from 0 to fs / 2 (fs is 1 by default), `desired` the
    gain of each band, `weight` that of its error. `type` is "bandpass", "differentiator" (the gain
    is `desired` times the frequency, and the error relative) or "hilbert"; both are antisymmetric.
    Raises ArgumentError where the search does not end. All is computed in float64.
    Source: McClellan, Parks and Rabiner, IEEE Trans. Audio Electroacoust. 21 (1973).

    >>> import functrans as ft
    >>> print(ft.scipy.signal.remez(5, [0.0, 0.1, 0.3, 0.5], [1.0, 0.0]).round(2))
    [0.06 0.3  0.38 0.3  0.06]
    """
    size = known_size("signal.remez", "numtaps", numtaps, 3)
    one_of("signal.remez", "type", type, ("bandpass", "differentiator", "hilbert"))
    edges = np.asarray(bands, float).reshape(-1, 2) / (1.0 if fs is None else float(fs))
    gains = np.asarray(desired, float).reshape(-1)
    weights = np.ones(len(edges)) if weight is None else np.asarray(weight, float).reshape(-1)
    if not len(edges) == len(gains) == len(weights) or (np.diff(edges.reshape(-1)) <= 0).any() \
            or edges[0, 0] < 0 or edges[-1, 1] > 0.5 or (weights <= 0).any():
        raise ArgumentError("functrans.scipy.signal.remez: bands, desired and weight do not fit.",
                            where=user_source(), why="bands grow from 0 to fs / 2, with a gain and "
                            "a positive weight for each; fs is 1 by default.",
                            fix="fs=sampling_rate")
    odd, antisymmetric = size % 2 == 1, type != "bandpass"
    count = size // 2 + (odd and not antisymmetric)
    # a factor of the gain that all filters of this symmetry have, which the grid keeps off 0
    factor: Callable[[Values], Any] = {
        (True, False): lambda f: 1 + 0 * f, (False, False): lambda f: np.cos(np.pi * f),
        (True, True): lambda f: np.sin(2 * np.pi * f), (False, True): lambda f: np.sin(np.pi * f),
    }[odd, antisymmetric]
    step = 0.5 / (grid_density * count)
    low = step if antisymmetric else 0.0
    high = 0.5 - step if odd == antisymmetric else 0.5
    parts = []
    for left, right in edges:
        left, right = max(left, low), min(right, high)
        parts.append(np.linspace(left, right, max(int(np.ceil((right - left) / step)) + 1, 2)))
    grid = np.concatenate(parts)
    which = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    if len(grid) <= count:
        raise ArgumentError(f"functrans.scipy.signal.remez: grid_density is {grid_density}.",
                            where=user_source(), why="the grid has fewer points than the filter.")
    wanted, price = gains[which], weights[which]
    if type == "differentiator":
        wanted = wanted * grid
        price = np.where(gains[which] < 1e-4, price, price / grid)
    shape = factor(grid)
    gain = _exchange("remez", np.cos(2 * np.pi * grid), wanted / shape, price * shape,
                     np.diff(which) > 0, count, maxiter)
    # coefficients of the cosines by their values at as many angles; then times the factor
    angles = np.arange(2 * size) / (2 * size)
    half = np.minimum(angles, 1 - angles)
    values = gain(np.cos(2 * np.pi * half)) * factor(half)
    if odd == antisymmetric:  # the amplitude is odd about half of the sampling rate
        values = values * np.where(angles > 0.5, -1, 1)
    delay = np.exp(-2j * np.pi * angles * (size - 1) / 2) * (1j if antisymmetric else 1)
    taps = np.fft.ifft(values * delay).real[:size]
    return jnp.asarray(taps).astype(default_float())


def minimum_phase(h: ArrayLike, method: str = "homomorphic", n_fft: int | None = None, *,
                  half: bool = True) -> Array:
    """The filter of least delay, with the root of the gain of a symmetric one, in half its length.

    Without `half` it has the gain itself, and all of the length. `method` is "homomorphic" or
    "hilbert" (for filters of equal ripples, with `half` alone); `n_fft` is the length of the
    transforms. Differentiated in h.
    Source: Smith, Introduction to Digital Filters (2007); Damera-Venkata and Evans (1999).

    >>> import functrans as ft
    >>> h = ft.scipy.signal.remez(21, [0.0, 0.2, 0.3, 0.5], [1.0, 0.0])
    >>> ft.scipy.signal.minimum_phase(h).shape
    (11,)
    """
    one_of("signal.minimum_phase", "method", method, ("homomorphic", "hilbert"))
    (taps,) = real("signal.minimum_phase", h)
    of_rank("signal.minimum_phase", "h", taps, 1)
    size = taps.shape[0]
    if size <= 2:
        raise ShapeError(f"functrans.scipy.signal.minimum_phase: h has {size} coefficients.",
                         where=user_source(), why="it has three at least.")
    if method == "hilbert" and not half:
        raise ArgumentError('functrans.scipy.signal.minimum_phase: method is "hilbert".',
                            where=user_source(), why="it takes the root of the gain.",
                            fix='half=True, or method="homomorphic"')
    length = 2 ** math.ceil(math.log2(2 * (size - 1) / 0.01)) if n_fft is None else known_size(
        "signal.minimum_phase", "n_fft", n_fft, size)
    middle, fold = size // 2, np.zeros(length)
    fold[0], fold[1:length // 2] = 1, 2
    if length % 2 or method == "hilbert":
        fold[length // 2] = 1  # the homomorphic one of SciPy leaves it out
    if method == "hilbert":
        turn = np.exp(2j * np.pi * np.arange(length) / length * middle)
        gain = jnp.real(jnp.fft.fft(taps, length) * jnp.asarray(turn))
        above, below = jnp.max(gain) - 1, -jnp.min(gain)
        scale = 4 / (jnp.sqrt(1 + above + below) + jnp.sqrt(1 - above + below)) ** 2
        logs = jnp.log(jnp.sqrt(jnp.maximum((gain + below) * scale, 0)) + 1e-10)
    else:
        gain = jnp.abs(jnp.fft.fft(taps, length))
        least = jnp.min(jnp.where(gain > 0, gain, jnp.inf))
        logs = jnp.log(gain + 1e-7 * least) * (0.5 if half else 1)
    cepstrum = jnp.real(jnp.fft.ifft(logs)) * jnp.asarray(fold).astype(taps.dtype)
    found = jnp.real(jnp.fft.ifft(jnp.exp(jnp.fft.fft(cepstrum))))
    return found[:middle + size % 2 if half else size].astype(taps.dtype)
