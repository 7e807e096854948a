"""What `vjp(f, *primals)[1].with_refs(...)` takes and returns, by the names of `jax.ad`.

>>> import functrans as ft
>>> _, pull = ft.vjp(lambda x, y, z: x * y * z, 2.0, 3.0, 5.0)
>>> gx = ft.new_ref(0.0)
>>> pull.with_refs(gx, GradValue(), DontWant())(1.0)
(GradRef(), Array(10., dtype=float32), DidntWant())
>>> gx[...].item()
15.0
"""

from functrans.core.errors import publish
from functrans.transforms.reverse import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

publish(globals(), __all__)
