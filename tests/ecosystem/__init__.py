"""JAX's own libraries on functrans: `make ecosystem`."""
