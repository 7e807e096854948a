"""Compiled programs on disk: fingerprints of jaxprs, manifests, and the cache of both backends."""
