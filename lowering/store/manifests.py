"""Descriptions of compiled programs on disk: what spares a known jaxpr its lowering.

A manifest is a Python literal beside the shared object that it describes, sealed by its hash like
the object (their parser is there already; `json` takes 2 ms to import). It is read against a
schema: whatever is not as expected is a miss, and the program is made anew.
"""

from __future__ import annotations

import ast
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from functrans.lowering.store.cache import FORMAT, Cache

__all__ = ["PARSING", "Schema", "literal", "lookup", "matches", "store"]

Schema: TypeAlias = Any
"""A type (exactly: a bool is no int); None; [schema] for lists; {name: schema} for objects with
just these names; (schema, schema, ...) for alternatives."""

PARSING: Final = Lock()
"""Held while Python makes a syntax tree of objects: before 3.11.5 threads that do so disturb each
other (SystemError, "recursion depth mismatch": CPython, gh-106905)."""

ENTRY: Final[Schema] = {"format": str, "object": str, "program": dict}


def literal(data: bytes) -> Any:
    """The value of a Python literal. Raises ValueError, TypeError, SyntaxError, MemoryError or
    RecursionError for something else."""
    with PARSING:
        return ast.literal_eval(data.decode())


def store(cache: Cache, key: str, manifest: dict[str, Any], shared: Path) -> None:
    """Keep the manifest of the program in `shared`, which came from `load_or_compile`.

    `key` is a fingerprint (`cache.digest`) of the jaxpr and of all that its lowering depends on.
    """
    entry = {"format": FORMAT, "object": shared.stem, "program": manifest}
    cache.keep(f"{key}.manifest", repr(entry).encode())


def lookup(cache: Cache, key: str, schema: Schema) -> tuple[dict[str, Any], Path] | None:
    """The manifest of a key and its shared object; None unless both are there, whole and ours.

    0.1 ms, without a look at the compiler: a machine without one runs what another run compiled.
    """
    data = cache.read(f"{key}.manifest")
    if data is None:
        return None
    try:
        entry = literal(data)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if not matches(entry, ENTRY) or entry["format"] != FORMAT:
        return None
    program: dict[str, Any] = entry["program"]
    if not matches(program, schema) or not entry["object"].isalnum():
        return None
    shared = cache.find(entry["object"])
    return None if shared is None else (program, shared)


def matches(value: object, schema: Schema) -> bool:
    """Whether a literal is as a schema says.

    >>> matches({"shape": [2, None]}, {"shape": [(int, None)]})
    True
    >>> matches({"shape": [2, True]}, {"shape": [(int, None)]})
    False
    """
    if isinstance(schema, tuple):
        return any(matches(value, s) for s in schema)
    if isinstance(schema, list):
        return type(value) is list and all(matches(v, schema[0]) for v in value)
    if isinstance(schema, dict):
        return (isinstance(value, dict) and value.keys() == schema.keys()
                and all(matches(value[name], s) for name, s in schema.items()))
    return value is None if schema is None else type(value) is schema
