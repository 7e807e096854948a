"""Lengths that fast Fourier transforms are fast for."""

from __future__ import annotations

from functrans.scipy.arguments import known_size

_PRIMES = (2, 3, 5, 7, 11)


def next_fast_len(target: int, real: bool = False) -> int:
    """The least length from `target` on whose prime factors are at most 11, or 5 for `real`.

    >>> import functrans as ft
    >>> ft.scipy.fft.next_fast_len(13), ft.scipy.fft.next_fast_len(13, real=True)
    (14, 15)
    """
    size = known_size("fft.next_fast_len", "target", target, 0)
    while size > 1 and not _is_smooth(size, _PRIMES[:3] if real else _PRIMES):
        size += 1
    return size


def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest length up to `target` whose prime factors are at most 11, or 5 for `real`.

    >>> import functrans as ft
    >>> ft.scipy.fft.prev_fast_len(13), ft.scipy.fft.prev_fast_len(11, real=True)
    (12, 10)
    """
    size = known_size("fft.prev_fast_len", "target", target)
    while not _is_smooth(size, _PRIMES[:3] if real else _PRIMES):
        size -= 1
    return size


def _is_smooth(size: int, primes: tuple[int, ...]) -> bool:
    for p in primes:
        while size % p == 0:
            size //= p
    return size == 1
