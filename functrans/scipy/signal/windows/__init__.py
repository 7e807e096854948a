"""Windows for filters and spectra, with the names of scipy.signal.windows."""

from functrans.core.errors import publish
from functrans.scipy.signal.windows.functions import (
    barthann,
    bartlett,
    blackman,
    blackmanharris,
    bohman,
    boxcar,
    chebwin,
    cosine,
    dpss,
    exponential,
    flattop,
    gaussian,
    general_cosine,
    general_gaussian,
    general_hamming,
    hamming,
    hann,
    kaiser,
    kaiser_bessel_derived,
    lanczos,
    nuttall,
    parzen,
    taylor,
    triang,
    tukey,
)
from functrans.scipy.signal.windows.named import get_window

__all__ = [
    "barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "chebwin", "cosine",
    "dpss", "exponential", "flattop", "gaussian", "general_cosine", "general_gaussian",
    "general_hamming", "get_window", "hamming", "hann", "kaiser", "kaiser_bessel_derived",
    "lanczos", "nuttall", "parzen", "taylor", "triang", "tukey",
]

publish(globals(), __all__)
