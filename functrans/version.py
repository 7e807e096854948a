"""The version of the distribution, stated here alone: the build reads this file as text."""

__all__ = ["__version__"]

__version__ = "0.1.0"
