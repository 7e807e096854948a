"""The stages of a compilation, under JAX's names: `jit(f).trace(x).lower().compile()`.

`Wrapped` is what `jit` returns, `Traced` the program, `Lowered` the program for a backend,
`Compiled` what runs.

>>> import functrans as ft
>>> f = ft.jit(lambda x: ft.numpy.sin(x) + 1)
>>> isinstance(f, Wrapped), f(0.0).item(), f.cache_size()
(True, 1.0, 1)
>>> compiled = f.trace(ft.ShapeDtypeStruct((2,), "float32")).lower().compile()
>>> compiled(ft.numpy.zeros(2)).tolist(), compiled.args_info[0][0].shape
([1.0, 1.0], (2,))
"""

from functrans._runtime import JitFunction as Wrapped
from functrans.core.errors import explain_missing_names
from functrans.transforms.jit.stages import (
    ArgInfo,
    Compiled,
    CompilerOptions,
    Lowered,
    MemoryAnalysis,
    Traced,
)

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "MemoryAnalysis", "Traced",
           "Wrapped"]

explain_missing_names(globals())
