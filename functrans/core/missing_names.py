"""Errors for names and arguments that do not exist, with the ones that the user may have meant."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from functrans.core.foreign_names import FUNCTIONS, KEYWORDS, MODULE_NAMES

__all__ = ["PUBLIC_MODULES", "argument_fix", "module_fix"]

PUBLIC_MODULES: Final = (
    "functrans", "functrans.numpy", "functrans.lax", "functrans.nn", "functrans.random",
    "functrans.numpy.linalg", "functrans.numpy.fft", "functrans.lax.linalg", "functrans.tree",
    "functrans.tree_util", "functrans.nn.initializers", "functrans.scipy.special",
    "functrans.scipy.linalg", "functrans.scipy.stats", "functrans.per_sample", "functrans.config",
    "functrans.debug", "functrans.export", "functrans.checkpoint_policies", "functrans.dlpack",
    "functrans.dtypes", "functrans.errors", "functrans.test_util",
    "functrans.stages", "functrans.profiler", "functrans.ad_checkpoint",
    "functrans.custom_derivatives", "functrans.extend.core", "functrans.interpreters.ad",
    "functrans.interpreters.batching", "functrans.interpreters.mlir")
"""In the order in which a name is looked up."""

_PEERS: Final = {"functrans.numpy": np, "functrans.numpy.linalg": np.linalg,
                 "functrans.numpy.fft": np.fft}
_NEAR: Final = 0.75  # the ratio of difflib from which two names are taken for a slip


def module_fix(module: str, name: str) -> str:
    """What to write instead of `name`, which a public module does not have; "" if not known."""
    known = MODULE_NAMES.get(module, {}).get(name) or FUNCTIONS.get(name)
    if known is not None:
        return known
    for other in PUBLIC_MODULES:
        if other != module and name in _public_names(other):
            return f"{other}.{name}"
    near = _nearest(name, _public_names(module))
    peer = _PEERS.get(module)
    if peer is not None and hasattr(peer, name):
        return f"{peer.__name__}.{name} takes arrays whose values are known; for traced ones " \
            f"compose it of functions in {module}"
    if near is not None:
        return f"{module}.{near}"
    everywhere = {n: f"{other}.{n}" for other in reversed(PUBLIC_MODULES)
                  for n in _public_names(other)}
    near = _nearest(name, [*everywhere, *FUNCTIONS])
    if near is None:
        return ""
    return everywhere[near] if near in everywhere else FUNCTIONS[near]


def argument_fix(fun: Callable[..., Any], message: str) -> str:
    """How to call a function that Python says was called with the wrong arguments."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return ""
    name = getattr(fun, "__name__", "the function")
    usage = f"{name}{_short(signature)}"
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", message)
    if unexpected is None:
        return usage
    wrong = unexpected[1]
    known = [p.name for p in signature.parameters.values()
             if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    meant = next((k for k in KEYWORDS.get(wrong, ()) if k in known), None) \
        or _nearest(wrong, known)
    return f"{name}(..., {meant}=...): {usage}" if meant is not None else usage


def _short(signature: inspect.Signature) -> str:
    """A signature without annotations."""
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _public_names(module: str) -> Sequence[str]:
    found: Any = sys.modules["functrans"]
    for part in module.split(".")[1:]:
        found = getattr(found, part, None)
    names: Sequence[str] = getattr(found, "__all__", ())
    return names


def _nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a slip of the keyboard may have made of this one."""
    names = [n for n in known if not n.startswith("_")]
    lower = {n.lower(): n for n in reversed(names)}
    if name.lower() in lower:
        return lower[name.lower()]
    flat = {n.lower().replace("_", ""): n for n in reversed(names)}
    if (plain := name.lower().replace("_", "")) in flat:
        return flat[plain]
    found = difflib.get_close_matches(name, names, 1, _NEAR)
    return found[0] if found else None
