"""Parameters of public functions: their names, order, kinds and defaults are those of JAX.

`data/jax_signatures.json` holds the signatures of jax 0.10.2, of each function a list of
[name, kind, default]: kinds are "/" (positional only), "" (positional or keyword), "k" (keyword
only), "*" and "**"; a default that is no plain value is "...".
"""

import importlib
import inspect
import json
from pathlib import Path

import pytest

import functrans as ft

GOLDEN = json.loads((Path(__file__).parent / "data" / "jax_signatures.json").read_text())

# Parameters that functrans does not have anywhere, and why.
ABSENT = {
    "out_sharding": "arrays are on one device",
    "sharding": "arrays are on one device",
    "in_shardings": "arrays are on one device",
    "out_shardings": "arrays are on one device",
    "spmd_axis_name": "arrays are on one device",
    "partitioned": "arrays are on one device",
    "token": "effects are ordered without tokens",
    "accuracy": "there is one accuracy: within 2 ULP",
}
# Parameters of single functions that differ on purpose: those of JAX that are absent or have
# another default, by "function: parameter".
DIFFERENT = {
    "jit: device": "default_device and the places of arguments decide",
    "jit: backend": "default_device and the places of arguments decide",
    "jit: compiler_options": "options of XLA",
    "checkpoint: concrete": "jax refuses it",
    "remat: concrete": "jax refuses it",
    "make_jaxpr: return_shape": "keyword-only, as a flag is",
    "vmap: sum_match": "experimental",
    "debug.callback: callback": "the function is always given",
    "debug.log: fmt": "the format is always given",
    "debug.print: fmt": "the format is always given",
    "dlpack.from_dlpack: external_array": "positional only, as in NumPy",
    "dlpack.from_dlpack: device": "keyword only, as in NumPy",
    "dlpack.from_dlpack: copy": "keyword only, as in NumPy",
    "make_array_from_callback: data_callback": "the sharding before it is a device",
    "make_array_from_callback: dtype": "the sharding before it is a device",
    "make_array_from_process_local_data: local_data": "the sharding before it is a device",
    "make_array_from_process_local_data: global_shape": "the sharding before it is a device",
    "make_array_from_single_device_arrays: arrays": "the sharding before it is a device",
    "numpy.iinfo: int_type": "named as in finfo",
    "lax.all_gather: to": "of shard_map",
    "lax.convert_element_type: weak_type": "the package asks for weak types",
    "nn.standardize: algorithm": "the stable one is the default: a variance is never negative",
    "numpy.concat: axis": "positional too, as in NumPy",
    "numpy.concat: dtype": "as in NumPy",
    "random.key: dtype": "named by impl=",
    "vjp: reduce_axes": "jax removed what it did, and libraries pass it to grad alone",
    "linear_transpose: reduce_axes": "the same",
    "scipy.special.log_ndtr: series_order": "the order is chosen for full accuracy",
    "scipy.stats.bernoulli.cdf: loc": "as in SciPy",
    "scipy.stats.multivariate_normal.logpdf: allow_singular": "jax refuses every value of it",
}
# the distributions of JAX without a place and a scale have them here, as those of SciPy
DIFFERENT |= {f"scipy.stats.{name}: {parameter}": "as in SciPy"
              for name in ("gennorm.cdf", "gennorm.logpdf", "gennorm.pdf", "vonmises.logpdf",
                           "vonmises.pdf", "wrapcauchy.logpdf", "wrapcauchy.pdf")
              for parameter in ("loc", "scale")} | {"scipy.stats.bernoulli.ppf: loc": "as in SciPy"}


def find(name):
    """The function of a dotted name, None where functrans does not have it."""
    space, _, last = name.rpartition(".")
    try:
        module = importlib.import_module(f"functrans.{space}") if space else ft
    except ImportError:
        return None
    return getattr(module, last, None)


def plain(text):
    return text if text in ("...", "<required>") else text.split(": ")[-1].rstrip(">")


def compare(name, theirs, ours):
    """What differs, as `parameter: how`."""
    kinds = inspect.Parameter
    mine = {p.name: p for p in ours}
    positional = [p for p in ours if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    theirs = [p for p in theirs if p[0] not in ABSENT and not p[0].startswith("_")]
    takes_any = {p[1] for p in theirs} & {"*", "**"}
    places = [p for p in theirs if p[1] in ("", "/")]
    for i, (parameter, kind, *default) in enumerate(places):
        if i >= len(positional):
            yield parameter, "is missing, or is keyword-only"
        elif kind == "" and (positional[i].name != parameter or
                             positional[i].kind is kinds.POSITIONAL_ONLY):
            yield parameter, f"is {positional[i]} here"
        else:
            yield from compare_default(parameter, default, positional[i])
    if not takes_any and len(positional) > len(places):
        for extra in positional[len(places):]:
            if extra.name.startswith("_"):
                continue
            if not any(extra.name == p[0] for p in theirs):
                yield extra.name, "is not keyword-only, and JAX does not have it"
    for parameter, kind, *default in theirs:
        if kind == "k":
            if parameter not in mine or mine[parameter].kind is kinds.POSITIONAL_ONLY:
                yield parameter, "is missing"
            else:
                if mine[parameter] in positional and not takes_any:
                    yield parameter, "is not keyword-only"
                yield from compare_default(parameter, default, mine[parameter])


def compare_default(parameter, default, ours):
    if not default:
        return
    if ours.default is inspect.Parameter.empty:
        yield parameter, "has no default"
    elif default[0] != "..." and plain(default[0]) != plain(repr(ours.default)):
        yield parameter, f"has the default {ours.default!r}, and {default[0]} in JAX"


def differences(name):
    function = find(name)
    if function is None:
        return []
    ours = list(inspect.signature(function).parameters.values())
    if {p.kind for p in ours} == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return [("*args, **kwargs", "hide the parameters")]
    return [d for d in compare(name, GOLDEN[name], ours) if f"{name}: {d[0]}" not in DIFFERENT]


@pytest.mark.parametrize("name", GOLDEN)
def test_signature(name):
    found = differences(name)
    assert not found, "\n".join(f"{name}: {parameter} {how}" for parameter, how in found)


def test_every_public_function_has_a_signature():
    """Names that jax has too are in the file: it was written for all of these."""
    known = [name for name in GOLDEN if find(name) is not None]
    assert len(known) > 780 and len(known) == len(GOLDEN)


def test_exceptions_are_differences():
    """An exception that is none any more is dropped from the list."""
    for entry in DIFFERENT:
        name, _, parameter = entry.partition(": ")
        ours = list(inspect.signature(find(name)).parameters.values())
        assert parameter in {p for p, _ in compare(name, GOLDEN[name], ours)}, entry


