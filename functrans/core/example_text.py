"""Examples of functions that are made from tables, as text beside the tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["parsed", "with_example"]


def parsed(text: str) -> Mapping[str, str]:
    """The examples of a text by name: blocks between empty lines, the name on the first line."""
    blocks = (block.partition("\n") for block in text.strip().split("\n\n"))
    return MappingProxyType({name: example for name, _, example in blocks})


def with_example(doc: str | None, example: str | None) -> str | None:
    """A docstring that ends with an example, unless it has one or there is none."""
    if doc is None or example is None or ">>>" in doc:
        return doc
    indented = example.replace("\n", "\n    ")
    return f"{doc.rstrip()}\n\n    {indented}\n    "
