"""From jaxprs to something that runs; `backend` is the protocol, `reference` the NumPy backend."""
