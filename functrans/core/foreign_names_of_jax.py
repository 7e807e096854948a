"""Names of jax and jax.lax that are not here, and what to write instead, as in `foreign_names`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["LAX", "MODULES", "TOP_LEVEL"]

TOP_LEVEL: Final[Mapping[str, str]] = MappingProxyType({
    "ad": "ft.jvp, ft.vjp",
    "api_util": "ft.tree_util",
    "lib": "ft.devices()",
    "ffi": "ft.pure_callback(fun, shape, x)"
        "  # a function of another library is called by the host",
    "memory": "ft.device_put(x, device)",
    "make_user_context": "ft.config.scope(...)  # what programs depend on is a setting",
})
"""Of jax itself."""

LAX: Final[Mapping[str, str]] = MappingProxyType({
    "device_put_p": "ft.device_put  # a place of arrays, not an operation of programs",
    "eq_to_p": "ft.lax.eq  # sorting has its total order inside",
    "le_to_p": "ft.lax.le  # sorting has its total order inside",
    "lt_to_p": "ft.lax.lt  # sorting has its total order inside",
    "select_and_gather_add_p": "ft.grad  # max pooling keeps the places of its maxima",
    "select_and_scatter_add_p": "ft.grad  # max pooling keeps the places of its maxima",
    "select_and_scatter_p": "ft.grad  # max pooling keeps the places of its maxima",
})
"""Of jax.lax."""

_JET: Final = "ft.experimental.jet.jet(fun, primals, series)  # rules are those of derivatives"
_SPARSE: Final = (
    "bcoo_dot_general", "bcoo_dot_general_sampled", "bcoo_extract", "bcoo_fromdense",
    "bcoo_sort_indices", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose",
    "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense", "bcsr_todense", "coo_fromdense",
    "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec",
    "csr_todense", "todense")

MODULES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({
    "functrans.custom_derivatives": {
        "remat_opt_p": "ft.checkpoint(fun)  # keeps forward rules, and recomputes what they keep",
    },
    "functrans.profiler": {
        "ProfileData": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "ProfileEvent": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "ProfilePlane": "json.loads(gzip.open(path).read())  # a trace is JSON",
        "register_subprocess": "ft.profiler.trace(log_dir)  # each process writes its own",
    },
    "functrans.export": {
        "DisabledSafetyCheck": "nothing  # a file holds no call of foreign code",
    },
    "functrans.extend.core": {
        "DebugInfo": "eqn.source  # the user's line of an equation",
        "CallPrimitive": "ft.jit(fun)  # a call of a program is one of the package's primitives",
    },
    "functrans.experimental.jet": dict.fromkeys((
        "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear", "defzero", "deriv_prop",
        "linear_prop", "zero_prop", "zero_series", "zero_term"), _JET),
    "functrans.experimental.sparse": {
        **{f"{name}_p": f"ft.experimental.sparse.{name}  # a composition, not a primitive"
           for name in _SPARSE},
        "bcoo_spdot_general_p": "ft.experimental.sparse.bcoo_dot_general"
            "  # takes two sparse arrays",
        "SparseTracer": "ft.experimental.sparse.sparsify(fun)  # its tracers are its own",
    },
})
"""Of modules that have nearly all names."""
