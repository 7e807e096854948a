"""Pictures of arrays: characters for a terminal, a PNG for a notebook."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any, Final

import numpy as np

from functrans.core import dtypes

__all__ = ["ArrayPicture", "picture_of"]

RAMP: Final = " .:-=+*#%@"
"""From the least number to the largest; NaN is `?`."""
COLUMNS: Final = 72
ROWS: Final = 24
MOST_PIXELS: Final = 512
"""Along an axis of a picture in a notebook: larger arrays are sampled."""


class ArrayPicture:
    """An array as a picture: `str` for a terminal, and HTML."""

    def __init__(self, head: str, matrix: np.ndarray[Any, Any]) -> None:
        self.head = head
        self.matrix = matrix

    def __str__(self) -> str:
        m = _sampled(self.matrix, ROWS, COLUMNS)
        scaled, is_nan = _scaled(m)
        places = np.minimum((scaled * len(RAMP)).astype(int), len(RAMP) - 1)
        lines = ["".join("?" if n else RAMP[p] for p, n in zip(row, nans, strict=True)).rstrip()
                 for row, nans in zip(places, is_nan, strict=True)]
        return "\n".join([self.head, *lines])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        m = _sampled(self.matrix, MOST_PIXELS, MOST_PIXELS)
        data = base64.b64encode(_png(m)).decode()
        width = max(min(8 * m.shape[1], 480), 120)
        return (f'<div><code>{escape(self.head)}</code><br><img alt="{escape(self.head, True)}" '
                f'src="data:image/png;base64,{data}" '
                f'style="width:{width}px;image-rendering:pixelated"></div>')


def picture_of(x: Any, name: str) -> ArrayPicture:
    """The picture of an array, with its type and range in words."""
    values = np.asarray(x)
    kind = f"{dtypes.short_name(values.dtype)}[{','.join(map(str, values.shape))}]"
    numbers = np.abs(values) if np.iscomplexobj(values) else values
    numbers = numbers.astype(np.float64)
    known = numbers[np.isfinite(numbers)]
    told = "no finite numbers" if not known.size else (
        f"{known.min():.4g} to {known.max():.4g}, mean {known.mean():.4g}")
    wrong = numbers.size - known.size
    told += f", {wrong} not finite" if wrong else ""
    while numbers.ndim > 2:
        numbers = numbers[0] if len(numbers) else numbers.reshape(0, 0)
    return ArrayPicture(f"{name or 'array'}: {kind}, {told}", np.atleast_2d(numbers))


def _sampled(m: np.ndarray[Any, Any], rows: int, columns: int) -> np.ndarray[Any, Any]:
    """At most so many rows and columns, evenly spaced."""
    for axis, most in ((0, rows), (1, columns)):
        if m.shape[axis] > most:
            at = np.linspace(0, m.shape[axis] - 1, most).round().astype(int)
            m = m.take(at, axis)
    return m


def _scaled(m: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers from 0 to 1, infinities at the ends, and where NaN is."""
    is_nan = np.isnan(m)
    known = m[np.isfinite(m)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
    span = high - low if high > low else 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (np.where(is_nan, low, m) - low) / span
    return np.clip(np.nan_to_num(scaled, posinf=1.0, neginf=0.0), 0, 1), is_nan


def _png(m: np.ndarray[Any, Any]) -> bytes:
    """Dark blue to yellow by way of green; NaN is red."""
    scaled, is_nan = _scaled(m)
    stops = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]])
    at = np.linspace(0, 1, len(stops))
    colours = np.stack([np.interp(scaled, at, stops[:, c]) for c in range(3)], -1)
    colours[is_nan] = [220, 20, 20]
    pixels = colours.round().astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", m.shape[1], m.shape[0], 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))
