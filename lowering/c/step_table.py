"""Long functions as tables: steps that do the same with other memory share one C function.

The layers of a network, written as a Python loop, are such steps. A call of a kernel or a product
among others costs gcc 0.5 to 1.7 ms, an entry of a table 0.01.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

__all__ = ["Module", "as_table"]

LEAST_STEPS = 48
"""Functions of fewer steps are written out."""

_PLACE = re.compile(r"\b([bwg])\[(\d+)\]|\(arena \+ (\d+)\)")
_BASES = {"b": 1, "w": 2, "g": 3}
# what a function of a step does not know: arguments as a whole, and variables of its function
_FOREIGN = re.compile(r"(?<![.\w])(?:arena|b|w|own|s\d+)\b")

# sizes, strides, and the numbers of calls of Python; what the text of a program tells its readers,
# and what the compiler must know, stays
_NUMBER = re.compile(r"(?<![\w.\[])(?<!_type = )(?<!return )\d+(?![\w.])")
_CONTROL = re.compile(r"\b(?:for|switch|memcpy)\b")
_ARGUMENTS = re.compile(r"void \*a\[\] = \{((?:place\[\d+\], )+)\(void \*\)z\};")

STEPS = """\
typedef struct {
  int (*run)(void *ctx, char **place, char *const *g, const i64 *z);
  i64 places, count;
} ft_kind;
static int ft_steps(void *ctx, char *const *b, char *const *w, char *const *g, char *arena,
                    const i64 *z, const ft_kind *kinds, const i64 *t, i64 n, char **place) {
  char *const *const bases[] = {b, w, g};
  for (; n > 0; n--) {
    const ft_kind *kind = kinds + *t++;
    i64 k = 0;
    for (; k < kind->places; k++, t++)
      place[k] = *t & 7 ? bases[(*t & 7) - 1][*t >> 3] : arena + (*t >> 3);
    for (; k < kind->count; k++, t++)
      place[k] = (char *)*t;
    const int e = kind->run(ctx, place, g, z);
    if (e) return e;
  }
  return 0;
}
"""


class Module(Protocol):
    """Where the functions of a program are collected."""

    bodies: list[str]
    shared_steps: dict[str, str]

    def declare(self, text: str) -> None: ...


@dataclass(frozen=True)
class _Step:
    """Statements without the places that they access and some numbers; those."""

    text: str
    template: str
    places: tuple[int, ...]
    numbers: tuple[int, ...] = ()

    @property
    def is_shareable(self) -> bool:
        return _FOREIGN.search(self.template) is None


def as_table(name: str, steps: Sequence[str], module: Module) -> list[str]:
    """The statements of the steps of a function, or calls of what runs a table of them."""
    if len(steps) < LEAST_STEPS:
        return list(steps)
    parsed = [_parsed(text) for text in steps]
    shared = dict.fromkeys(s.template for s in parsed if s.is_shareable)
    module.declare(STEPS)
    kinds = {template: (number, _function(template, module))
             for number, template in enumerate(shared)}
    lines, table = [], list[int]()
    for is_shareable, group in groupby(parsed, lambda s: s.is_shareable):
        run = list(group)
        if not is_shareable:
            lines += [s.text for s in run]
            continue
        lines.append(f"  {{ const int e = ft_steps(ctx, b, w, g, arena, z, {name}_kinds, "
                     f"{name}_table + {len(table)}, {len(run)}, place); if (e) return e; }}\n")
        for s in run:
            table += (kinds[s.template][0], *s.places, *s.numbers)
    counts = {s.template: (len(s.places), len(s.places) + len(s.numbers)) for s in parsed}
    entries = ", ".join(f"{{{function}, {counts[template][0]}, {counts[template][1]}}}"
                        for template, (_, function) in kinds.items())
    numbers = "\n".join(", ".join(map(str, table[k:k + 24])) + ","
                        for k in range(0, len(table), 24))
    module.bodies.append(f"static const ft_kind {name}_kinds[] = {{{entries}}};\n"
                         f"static const i64 {name}_table[] = {{\n{numbers}\n}};\n")
    most = max(len(s.places) + len(s.numbers) for s in parsed) + 1
    return [f"  char *place[{most}];\n", *lines]


def _parsed(text: str) -> _Step:
    places: list[int] = []

    def named(found: re.Match[str]) -> str:
        base, number, offset = found.groups()
        places.append(8 * int(offset) if base is None else 8 * int(number) + _BASES[base])
        return f"place[{len(places) - 1}]"

    template = _PLACE.sub(named, text)
    if _CONTROL.search(template):
        return _Step(text, template, tuple(places))
    numbers = [0]  # the first is where the arguments of a kernel end

    def numbered(found: re.Match[str]) -> str:
        numbers.append(int(found[0]))
        return f"(i64)place[{len(places) + len(numbers) - 1}]"

    template = _NUMBER.sub(numbered, template)
    return _Step(text, template, tuple(places), tuple(numbers))


def _function(template: str, module: Module) -> str:
    """The name of the function of such steps."""
    name = module.shared_steps.get(template)
    if name is None:
        name = module.shared_steps[template] = f"step{len(module.shared_steps)}"
        text = _ARGUMENTS.sub(_as_array, template)
        module.bodies.append(
            f"static int {name}(void *ctx, char **place, char *const *g, const i64 *z) {{\n"
            f"  (void)ctx; (void)place; (void)g; (void)z;\n{text}  return 0;\n}}\n")
    return name


def _as_array(found: re.Match[str]) -> str:
    """The arguments of a kernel, if they are all places in order, as the places are: an array."""
    count = found[1].count("place")
    if found[1] != "".join(f"place[{k}], " for k in range(count)):
        return found[0]
    return f"void **a = (void **)place; a[{count}] = (void *)z;"
