"""Programs of several devices: a jaxpr of whole arrays becomes one of parts, with collectives."""
