"""Long functions as tables: steps that do the same with other memory share one C function.

The layers of a network, written as a Python loop, are such steps. A call of a kernel or a product
among others costs gcc 0.5 to 1.7 ms, an entry of a table 0.01.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from functrans.core.record import Record

__all__ = ["Module", "as_table"]

LEAST_STEPS = 48
"""Loops of fewer steps are written out: a step of a table takes 10 to 20 ns more."""
LEAST_ONCE = 8
"""So are functions of fewer steps that a program runs once."""

_PLACE = re.compile(r"\b([bwg])\[(\d+)\]|\(arena \+ (\d+)\)")
_BASES = {"b": 1, "w": 2, "g": 3}
# what a function of a step does not know: arguments as a whole, and variables of its function
_FOREIGN = re.compile(r"(?<![.\w])(?:arena|b|w|own|s\d+)\b")

# sizes, strides, and the numbers of calls of Python; what the text of a program tells its readers,
# and what the compiler must know, stays
_NUMBER = re.compile(r"(?<![\w.\[])(?<!_type = )(?<!return )(?:(?<=, )-)?\d+(?![\w.])")
_CONTROL = re.compile(r"\b(?:for|switch|memcpy)\b")
_KERNEL = re.compile(r"(?P<epilogue>(?<=\.epilogue = ))?\bk\d+"
                     r"(?P<finish>_finish)?(?:_lists|_listed)?\b")
_ARGUMENTS = re.compile(
    r"void \*([ae])\[\] = \{((?:[^{}]+, )?)\(void \*\)z(, \(void \*\)&first)?\};")
FINISH = "void (*)(void *)"

STEPS = """\
typedef struct {
  int (*run)(void *ctx, char **place, char **number, char *const *g, const i64 *z);
  i64 places, kernels, numbers;
} ft_kind;
static int ft_steps(void *ctx, char *const *b, char *const *w, char *const *g, char *arena,
                    const i64 *z, const ft_kind *kinds, const ft_range *kernels, const i64 *t,
                    i64 n, char **place) {
  char *const *const bases[] = {b, w, g};
  for (; n > 0; n--) {
    const ft_kind *kind = kinds + *t++;
    char **to = place;
    for (i64 k = 0; k < kind->places; k++, t++)
      *to++ = *t & 7 ? bases[(*t & 7) - 1][*t >> 3] : arena + (*t >> 3);
    *to = (char *)z, to += 2;
    char **const number = to;
    for (i64 k = 0; k < kind->kernels; k++)
      *to++ = (char *)kernels[*t++];
    for (i64 k = 0; k < kind->numbers; k++)
      *to++ = (char *)*t++;
    const int e = kind->run(ctx, place, number, g, z);
    if (e) return e;
  }
  return 0;
}
"""
"""The memory of a step, z, a place for what it adds, then its kernels and numbers: the arguments of
a kernel, which end with z, are there as an array."""


class Module(Protocol):
    """Where the functions of a program are collected."""

    bodies: list[str]
    shared_steps: dict[str, str]

    def declare(self, text: str) -> None: ...


class _Step(Record):
    """Statements without the memory, the kernels and some numbers that they are about; those."""

    text: str
    template: str
    places: tuple[int, ...]
    kernels: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()

    @property
    def is_shareable(self) -> bool:
        return _FOREIGN.search(self.template) is None

    @property
    def kind(self) -> tuple[str, int, int, int]:
        return self.template, len(self.places), len(self.kernels), len(self.numbers)


def as_table(name: str, steps: Sequence[str], module: Module, once: bool = False) -> list[str]:
    """The statements of the steps of a function, or calls of what runs a table of them.

    The function may be run `once` by a program, for all that is known.
    """
    if len(steps) < min(LEAST_STEPS, LEAST_ONCE if once else LEAST_STEPS):
        return list(steps)
    parsed = [_parsed(text) for text in steps]
    shared = [s for s in parsed if s.is_shareable]
    module.declare(STEPS)
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(s.kind for s in shared))}
    kernels = {k: number for number, k in enumerate(dict.fromkeys(
        k for s in shared for k in s.kernels))}
    lines, table = [], list[int]()
    for is_shareable, group in groupby(parsed, lambda s: s.is_shareable):
        run = list(group)
        if not is_shareable:
            lines += [s.text for s in run]
            continue
        lines.append(f"  {{ const int e = ft_steps(ctx, b, w, g, arena, z, {name}_kinds, "
                     f"{name}_kernels, {name}_table + {len(table)}, {len(run)}, place); "
                     "if (e) return e; }\n")
        for s in run:
            table += (kinds[s.kind], *s.places, *(kernels[k] for k in s.kernels), *s.numbers)
    entries = ", ".join(f"{{{_function(template, module)}, {places}, {count}, {numbers}}}"
                        for template, places, count, numbers in kinds)
    numbers = "\n".join(", ".join(map(str, table[k:k + 24])) + ","
                        for k in range(0, len(table), 24))
    functions = ", ".join(f"(ft_range){k}" for k in kernels) or "0"
    module.bodies.append(f"static const ft_kind {name}_kinds[] = {{{entries}}};\n"
                         f"static const ft_range {name}_kernels[] = {{{functions}}};\n"
                         f"static const i64 {name}_table[] = {{\n{numbers}\n}};\n")
    most = max(sum(s.kind[1:]) for s in parsed) + 2
    return [f"  char *place[{most}];\n", *lines]


def _parsed(text: str) -> _Step:
    places: list[int] = []
    last: list[int] = []  # of the arguments of a kernel
    numbers: list[int] = []
    kernels: list[str] = []

    def place(found: re.Match[str]) -> int:
        base, number, offset = found.groups()
        return 8 * int(offset) if base is None else 8 * int(number) + _BASES[base]

    def array(found: re.Match[str]) -> str:
        """Places alone are there already."""
        items = found[2].split(", ")[:-1]
        known = [_PLACE.fullmatch(item) for item in items]
        if last or not all(known):
            return found[0]
        last.extend(place(of) for of in known if of is not None)
        first = "BEFORE = (char *)&first; " if found[3] else ""
        return f"{first}void **{found[1]} = (void **)number - ARGUMENTS;"

    def named(found: re.Match[str]) -> str:
        places.append(place(found))
        return f"place[{len(places) - 1}]"

    def numbered(found: re.Match[str]) -> str:
        numbers.append(int(found[0]))
        return f"(i64)number[NUMBER{len(numbers) - 1}]"

    def kernel(found: re.Match[str]) -> str:
        kernels.append(found[0])
        kind = FINISH if found["finish"] else "ft_range"
        return f"(({'void *' if found['epilogue'] is not None else kind})" \
               f"number[{len(kernels) - 1}])"

    template = _PLACE.sub(named, _ARGUMENTS.sub(array, text))
    places += last
    if _CONTROL.search(template) is None:
        template = _NUMBER.sub(numbered, template)
    template = _KERNEL.sub(kernel, template)
    if "ARGUMENTS" in template:
        numbers.append(len(last) + 2)
        template = template.replace("ARGUMENTS", f"(i64)number[NUMBER{len(numbers) - 1}]") \
            .replace("BEFORE", "number[-1]")
    template = re.sub(r"NUMBER(\d+)", lambda of: str(int(of[1]) + len(kernels)), template)
    return _Step(text, template, tuple(places), tuple(kernels), tuple(numbers))


def _function(template: str, module: Module) -> str:
    """The name of the function of such steps."""
    name = module.shared_steps.get(template)
    if name is None:
        name = module.shared_steps[template] = f"step{len(module.shared_steps)}"
        module.bodies.append(
            f"static int {name}(void *ctx, char **place, char **number, char *const *g, "
            "const i64 *z) {\n  (void)ctx; (void)place; (void)number; (void)g; (void)z;\n"
            f"{template}  return 0;\n}}\n")
    return name
