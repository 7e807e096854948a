"""Operations outside of `jit` on arrays on GPUs: programs of one operation each.

They are kept for the types of the operands. Machine code is not made for each: sizes are arguments
of the kernels, and so are Python scalars, the numbers that arrays are filled with and where slices
begin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from functrans import _runtime
from functrans._runtime import ArrayBase, wrap
from functrans.core import config
from functrans.core.avals import operand_avals
from functrans.core.cuda import gpu_of
from functrans.core.dtypes import float0
from functrans.core.eager import HOST, set_gpu_evaluator
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.primitive import Primitive
from functrans.core.staging import stage
from functrans.core.trace import Tracer, leaked
from functrans.primitives.base import full_p
from functrans.primitives.broadcast import broadcast_in_dim_p
from functrans.primitives.dynamic_slice import dynamic_slice_p
from functrans.primitives.shape import reshape_p, slice_p
from functrans.transforms import meshes
from functrans.transforms.jit.executables import executable_of, is_on_gpu, operation_on_gpu

__all__ = ["evaluate_on_gpu", "evaluate_together", "install"]

KEPT: Final = 4096
"""Programs of one operation that are kept: those that were used last."""
SCALARS: Final = (bool, int, float, complex)

Params = Mapping[str, Any]


@dataclass(slots=True)
class Operation:
    """What runs a primitive on operands of some types, and which results are weak."""

    run: Callable[[Sequence[Any]], Sequence[Any]]
    weak: list[bool]
    multiple: bool

    def __call__(self, operands: Sequence[Any]) -> Any:
        outs = self.run(operands)
        if any(self.weak):
            outs = [_runtime.with_weak_type(o, w) for o, w in zip(outs, self.weak, strict=True)]
        return outs if self.multiple else outs[0]


_operations: dict[Any, Operation] = {}


def evaluate_on_gpu(primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Apply a primitive on the GPU of its operands; what makes arrays, on the default one.

    Raises ArgumentError for operands on several GPUs.
    """
    if primitive.compiles:
        return primitive.evaluate_eagerly(args, params)
    if primitive is full_p or primitive is slice_p:
        primitive, args, params = _with_operands(primitive, args, params)
    if primitive is reshape_p:
        view = _runtime.reshape_view(args[0], params["new_sizes"])
        if view is not NotImplemented:
            return view
    return _run(primitive, args, params, lambda gpu: _operation(primitive, args, params, gpu))


def evaluate_together(fun: Callable[..., Any], name: str, *args: Any) -> Any:
    """A function of arrays on GPUs with one result as one program, kept by its name."""
    return _run(name, args, {}, lambda gpu: _function(fun, name, args, gpu))


def _run(name: Any, args: Sequence[Any], params: Params, make: Callable[[int], Operation]) -> Any:
    """Run what is kept by a name and the types of the operands, or is made now."""
    settings = config.current()
    key: list[Any] = [name, settings.matmul_precision, settings.deterministic,
                      settings.host_steps == "error"]
    place = 0
    for x in args:
        if isinstance(x, ArrayBase):
            key += (x.shape, x.dtype, x.weak_type)
            if x._place not in HOST:
                if place not in (0, x._place):
                    gpu_of(args)  # raises
                place = x._place
        elif type(x) in SCALARS:
            key.append(type(x))
        elif isinstance(x, Tracer):
            raise leaked(x, str(name))
        else:
            key += (x.shape, x.dtype)
    gpu = place - 1 if place else gpu_of(())
    assert gpu is not None
    key += (gpu, *params.items())
    found = _operations.get(at := tuple(key))
    if found is None:
        if len(_operations) >= KEPT:
            _operations.pop(next(iter(_operations)), None)
        found = _operations[at] = make(gpu)
    return found([x if isinstance(x, ArrayBase) or (type(x) not in SCALARS and x.shape) else
                  _number(x, _dtype_beside(x, args), gpu) for x in args])


def _dtype_beside(x: Any, args: Sequence[Any]) -> np.dtype[Any]:
    """The dtype of a number: its own, or of a Python scalar that of the operands beside it."""
    if type(x) not in SCALARS:
        dtype: np.dtype[Any] = x.dtype
        return dtype
    return next(a.dtype for a in reversed(args) if type(a) not in SCALARS)


def _number(x: Any, dtype: np.dtype[Any], gpu: int) -> Any:
    return _on_gpu(np.asarray(x, dtype).tobytes(), dtype, gpu)


@lru_cache(maxsize=1024)
def _on_gpu(data: bytes, dtype: np.dtype[Any], gpu: int) -> Any:
    """A number in the memory of a GPU: the same ones come again and again."""
    return _runtime.place_array(wrap(np.frombuffer(data, dtype).reshape(()).copy()), gpu + 1)


def _with_operands(primitive: Primitive, args: Sequence[Any],
                   params: Params) -> tuple[Primitive, Sequence[Any], Params]:
    """An operation that has as operands what another one has as parameters, where there is one."""
    if primitive is full_p:
        value = np.asarray(params["value"]).astype(params["dtype"])
        return broadcast_in_dim_p, (value,), {"shape": params["shape"],
                                              "broadcast_dimensions": ()}
    starts = params["start_indices"]
    if any(s != 1 for s in params["strides"]) or max(starts, default=0) >= 2**31:
        return primitive, args, params
    sizes = tuple([b - a for a, b in zip(starts, params["limit_indices"], strict=True)])
    return dynamic_slice_p, (*args, *map(np.int32, starts)), {"slice_sizes": sizes}


def _operation(primitive: Primitive, args: Sequence[Any], params: Params, gpu: int) -> Operation:
    avals = operand_avals(args, primitive.name)
    result = primitive.type(*avals, **params)
    outs = list(result) if primitive.multiple_results else [result]
    invars, outvars = tuple(map(Var, avals)), tuple(map(Var, outs))
    jaxpr = Jaxpr((), invars, (Equation(primitive, invars, outvars, dict(params)),), outvars,
                  name=primitive.name)
    run: Any = None
    if all(a.dtype != float0 for a in (*avals, *outs)):
        # loops and branches are compiled for their sizes, as under jit
        compile_ = partial(executable_of, values=args) if primitive.higher_order else \
            partial(operation_on_gpu, gpu=gpu)
        run = compile_(jaxpr).run
    if not is_on_gpu(run):
        run = partial(_on_host, primitive, params, gpu)
    return Operation(run, [a.weak_type for a in outs], primitive.multiple_results)


def _function(fun: Callable[..., Any], name: str, args: Sequence[Any], gpu: int) -> Operation:
    closed = stage(lambda *xs: [fun(*xs)], operand_avals(args, name), name=name)
    run: Any = operation_on_gpu(closed.jaxpr.hoist_consts(), gpu).run
    consts = list(closed.consts)
    return Operation(lambda operands: run([*consts, *operands]),
                     [a.weak_type for a in closed.jaxpr.out_avals], multiple=False)


def _on_host(primitive: Primitive, params: Params, gpu: int, operands: Sequence[Any]) -> list[Any]:
    """Evaluate on copies on the host, and put the results where the operands are."""
    arrays = [x._np if isinstance(x, ArrayBase) else np.asarray(x) for x in operands]
    out = primitive.run(*arrays, **params)
    return [_runtime.place_array(wrap(np.asarray(o)), gpu + 1)
            for o in (out if primitive.multiple_results else [out])]


def install() -> None:
    """Have operations on arrays on GPUs evaluated there, those on arrays in shards on a mesh."""
    set_gpu_evaluator(evaluate_on_gpu)
    meshes.install(executable_of)
