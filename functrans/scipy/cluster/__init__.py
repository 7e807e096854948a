"""Clusters of observations, with the names of scipy.cluster."""

from functrans.core.errors import explain_missing_names
from functrans.scipy.cluster import hierarchy, vq

__all__ = ["hierarchy", "vq"]

explain_missing_names(globals())
