"""JAX's own libraries on functrans: while it is installed, functrans answers for `jax`.

```
import functrans.as_jax
functrans.as_jax.install()
import optax  # unmodified
```

`python -m functrans.as_jax script.py`, or `-m module`, runs a program with it installed; tests run
by `pytest -p functrans.as_jax.pytest_plugin`. Which name of JAX is which of functrans is a table,
one file a region in `functrans/as_jax/regions`. What is not there is an error that names it and the
library that asked. docs/guide/jax_libraries.md says which libraries run.
"""

from functrans.as_jax.errors import AsJaxError, MissingInJax, MissingJaxModule, MissingJaxName
from functrans.as_jax.installation import Installation, install, is_installed, uninstall

__all__ = ["AsJaxError", "Installation", "MissingInJax", "MissingJaxModule", "MissingJaxName",
           "install", "is_installed", "uninstall"]
