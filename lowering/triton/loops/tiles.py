"""Bodies whose carry stays in registers: one tile of elements, each from itself and no other.

Where a kernel reads each value of the carry at the places where it leaves the next, the function
of the phase takes tiles and gives tiles, and nothing of the carry goes through memory.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import field

from functrans.core.record import Record
from functrans.lowering.triton.loops.phases import Source
from functrans.lowering.triton.steps.spec import Launch, Pointer

__all__ = ["TileBody", "places_of", "tile_of"]

INDICES = frozenset({"o", "i"})


class TileBody(Record, frozen=False, eq=False):
    """A kernel over one tile, without loops: what it reads and stores, by argument, as indices."""

    launch: Launch
    tree: ast.FunctionDef
    head: str  # computes the indices, `inside` and `zero`
    reads: dict[str, set[str]] = field(default_factory=dict)
    stores: dict[str, list[str]] = field(default_factory=dict)

    def named(self, kind: str, numbers: Mapping[int, int]) -> dict[str, int]:
        """The arguments that are inputs or outputs, by name the numbers of their values."""
        return {f"p{k}": numbers[x.index] for k, x in enumerate(self.launch.arguments)
                if isinstance(x, Pointer) and x.kind == kind and x.index in numbers}

    def begin(self, place: str) -> str:
        """The function that reads a tile."""
        return self._on_memory(f"return tl.load(p + {place} + zero, mask=inside, other=0)", "p")

    def end(self, place: str) -> str:
        """The function that writes one."""
        return self._on_memory(f"tl.store(p + {place} + zero, x, mask=inside)", "p", "x")

    def _on_memory(self, line: str, *arguments: str) -> str:
        body = "\n".join(f"    {x}" for x in (*self.head.splitlines(), line))
        return f"@triton.jit\ndef NAME({', '.join(['program', *arguments])}):\n{body}"

    def phase(self, loaded: Mapping[str, int], left: Mapping[str, int]) -> str:
        """The function of the phase, which takes tiles and gives tiles.

        Those that are `loaded` it would have read from memory, those that are `left` stored there.
        """
        tree = _OnTiles(loaded).visit(copy.deepcopy(self.tree))
        body: list[ast.stmt] = []
        for statement in tree.body:
            stored = _stored(statement)
            if stored is None or stored[0] not in left:
                body.append(statement)
                continue
            name, _, value = stored
            body += ast.parse(f"next{left[name]} = tl.where(inside, {value}, 0)"
                              f".to({name}.dtype.element_ty)").body
        body += ast.parse(f"return {', '.join(f'next{k}' for k in sorted(left.values()))}").body
        tree.body, tree.name = body, "NAME"
        tree.args.args = [ast.arg("program"), *tree.args.args,
                          *[ast.arg(f"c{k}") for k in sorted(set(loaded.values()))]]
        return ast.unparse(ast.fix_missing_locations(tree))


def tile_of(launch: Launch, source: Source) -> TileBody | None:
    """The kernel of a launch as a function of tiles; None of one that is something else."""
    if launch.module or launch.grid != (1, 1, 1):
        return None
    (tree,) = [node for node in ast.parse(source(launch)).body if isinstance(node, ast.FunctionDef)]
    lines = [ast.unparse(s) for s in tree.body]
    zeros = [k for k, line in enumerate(lines) if line.startswith("zero = ")]
    if not zeros or lines[0] != "pid = tl.program_id(0)" or any(
            isinstance(s, (ast.For, ast.While, ast.If)) for s in tree.body) \
            or any("tl.atomic" in line or "tl.num_programs" in line for line in lines):
        return None
    tree.body[0] = ast.parse("pid = program").body[0]
    head = "\n".join(map(ast.unparse, tree.body[:zeros[0] + 1]))
    found = TileBody(launch, tree, head)
    arguments = {a.arg for a in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.load":
            name, index = _split(node.args[0])
            if name not in arguments:
                return None  # an address that has a name, of neighbours say
            found.reads.setdefault(name, set()).add(index)
    for statement in tree.body:
        if (stored := _stored(statement)) is not None:
            found.stores.setdefault(stored[0], []).append(stored[1])
    return None if "" in found.reads or "" in found.stores else found


def places_of(tile: TileBody, loaded: Mapping[str, int], left: Mapping[str, int]
              ) -> dict[int, str] | None:
    """The index of each value of the carry, by number; None if one is not in one tile's places."""
    found: dict[int, set[str]] = {}
    for name, k in left.items():
        if len(tile.stores.get(name, ())) != 1:
            return None
        found.setdefault(k, set()).update(tile.stores[name])
    for name, k in loaded.items():
        found.setdefault(k, set()).update(tile.reads.get(name, ()))
    if any(len(places) != 1 or not _names(*places) <= INDICES for places in found.values()):
        return None
    return {k: next(iter(places)) for k, places in found.items()}


def _stored(statement: ast.stmt) -> tuple[str, str, str] | None:
    """The argument, the index and the value of a store."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call) \
            or ast.unparse(statement.value.func) != "tl.store":
        return None
    where, value = statement.value.args[:2]
    return (*_split(where), ast.unparse(value))


def _split(where: ast.expr) -> tuple[str, str]:
    """A pointer's argument and the index behind it."""
    text = ast.unparse(where).removesuffix(" + zero")
    name, _, index = text.partition(" + ")
    return (name, index) if name.isidentifier() and index else ("", text)


def _names(*texts: str) -> set[str]:
    return {n.id for text in texts for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


class _OnTiles(ast.NodeTransformer):
    """Reads of the carry as tiles."""

    def __init__(self, loaded: Mapping[str, int]) -> None:
        self.loaded = loaded

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.func) == "tl.load":
            name, _ = _split(node.args[0])
            if name in self.loaded:
                return ast.Name(f"c{self.loaded[name]}", ast.Load())
        return node
