"""What runs write into docs/guide/jax_libraries.md, between marks."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write"]

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "jax_libraries.md"


def write(name: str, text: str) -> None:
    """Put a text between `<!-- the {name} begins -->` and `... ends -->`."""
    begin, end = f"<!-- the {name} begins -->", f"<!-- the {name} ends -->"
    page = PAGE.read_text()
    if begin not in page or end not in page:
        raise SystemExit(f"{PAGE.name} has no marks for the {name}")
    before, _, rest = page.partition(begin)
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")
