"""Fourier, cosine and sine transforms, with the names of scipy.fft."""

from functrans.core.errors import publish
from functrans.numpy.fft import fftfreq, fftshift, ifftshift, rfftfreq
from functrans.scipy.fft.fourier import (
    fft,
    fft2,
    fftn,
    hfft,
    hfft2,
    hfftn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    ihfft2,
    ihfftn,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from functrans.scipy.fft.hankel import fht, fhtoffset, ifht
from functrans.scipy.fft.lengths import next_fast_len, prev_fast_len
from functrans.scipy.fft.trigonometric import (
    dct,
    dctn,
    dst,
    dstn,
    idct,
    idctn,
    idst,
    idstn,
)
from functrans.scipy.fft.workers import (
    get_workers,
    register_backend,
    set_backend,
    set_global_backend,
    set_workers,
    skip_backend,
)

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "fht",
    "fhtoffset", "get_workers", "hfft", "hfft2", "hfftn", "idct", "idctn", "idst", "idstn",
    "ifft", "ifft2", "ifftn", "ifftshift", "ifht", "ihfft", "ihfft2", "ihfftn", "irfft",
    "irfft2", "irfftn", "next_fast_len", "prev_fast_len", "register_backend", "rfft", "rfft2",
    "rfftfreq", "rfftn", "set_backend", "set_global_backend", "set_workers", "skip_backend",
]

publish(globals(), __all__)
