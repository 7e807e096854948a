"""Passes from jaxpr to jaxpr that run before lowering: `pipeline.simplify` runs all of them."""
