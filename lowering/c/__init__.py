"""jaxpr -> C: instruction sets, vector prelude, code generator, toolchain and cache."""
