"""Resampling of images and of arrays of any rank, with the names of jax.image."""

from functrans.core.errors import publish
from functrans.image.methods import ResizeMethod
from functrans.image.resampling import resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

publish(globals(), __all__)
