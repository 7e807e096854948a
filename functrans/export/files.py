"""What a file says: its parts written, and read with every check that they fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functrans.core.bounds import OPERATORS, Bound
from functrans.core.guards import Guard
from functrans.core.jaxpr import Jaxpr
from functrans.core.tree import PyTreeDef
from functrans.export.constants import ArrayReader
from functrans.export.container import pack, unpack
from functrans.export.kernels import TargetProgram, kernels_plain, read_kernels
from functrans.export.kinds import text_from
from functrans.export.plain import damaged, from_bytes, to_bytes
from functrans.export.programs import ProgramReader, ProgramWriter
from functrans.export.sizes import SizeReader
from functrans.export.trees import read_tree, tree_plain

__all__ = ["Contents", "read", "written"]


@dataclass(frozen=True, eq=False)
class Contents:
    """The parts of an exported program, as a file has them."""

    fun_name: str
    jaxpr: Jaxpr
    consts: tuple[Any, ...]
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    sizes: Mapping[str, Bound]
    constraints: Sequence[Guard]
    vjp_order: int
    programs: Mapping[str, Sequence[TargetProgram]]


def written(jaxpr: Jaxpr, consts: Sequence[Any], trees: tuple[PyTreeDef, PyTreeDef], name: str,
            guards: Sequence[Guard], vjp_order: int,
            compile_: Callable[[Jaxpr], Mapping[str, Sequence[TargetProgram]]] = lambda _: {}
            ) -> bytes:
    """The bytes of a program; `compile_` makes its kernels from what they are read as."""
    writer = ProgramWriter(jaxpr.decided_names)
    main = writer.jaxpr(jaxpr, vjp_order)
    arrays = [writer.array(c) for c in consts]
    plain_trees = [tree_plain(tree, what) for tree, what in zip(
        trees, ("the arguments", "the results"), strict=True)]
    plain_guards = [[g.op, writer.size(g.left), writer.size(g.right)] for g in guards]
    head = [name if name.isprintable() else "fn", vjp_order, main, arrays, plain_trees,
            plain_guards]

    def packed(kernels: list[Any]) -> bytes:
        program = [head, writer.sizes.names, writer.sizes.table, writer.arrays.table,
                   writer.jaxprs]
        return pack({b"PROG": to_bytes(program), b"DATA": writer.arrays.data,
                     b"KERN": to_bytes(kernels)})

    data = packed([])
    targets = compile_(read(data).jaxpr)
    return packed(kernels_plain(targets, writer.array)) if targets else data


def read(data: bytes) -> Contents:
    """The parts of a program in some bytes; raises ExportError where they are none."""
    sections = unpack(data)
    program = from_bytes(sections[b"PROG"])
    if not isinstance(program, list) or len(program) != 5:
        raise damaged("its program has not five parts")
    head, names, table, arrays, jaxprs = program
    if not isinstance(head, list) or len(head) != 6:
        raise damaged("its head has not six parts")
    name, vjp_order, main, numbers, trees, guards = head
    if type(vjp_order) is not int or not isinstance(numbers, list) \
            or not isinstance(trees, list) or len(trees) != 2 or not isinstance(guards, list):
        raise damaged("its head is not whole")
    sizes = SizeReader(names, table)
    values = ArrayReader(arrays, sections[b"DATA"])
    jaxpr = ProgramReader(sizes, values, jaxprs).jaxpr(main)
    consts = tuple([values[n] for n in numbers])
    in_tree, out_tree = map(read_tree, trees)
    if len(consts) + in_tree.num_leaves != len(jaxpr.invars) \
            or out_tree.num_leaves != len(jaxpr.outvars):
        raise damaged("its structures do not fit its program")
    for const, aval in zip(consts, jaxpr.in_avals):
        if not const.aval.matches(aval):
            raise damaged(f"a constant is {const.aval}, and its program takes {aval}")
    return Contents(text_from(name), jaxpr, consts, in_tree, out_tree, sizes.bounds,
                    tuple([_guard(g, sizes) for g in guards]), vjp_order,
                    read_kernels(sections[b"KERN"], jaxpr, values.__getitem__))


def _guard(plain: Any, sizes: SizeReader) -> Guard:
    if not isinstance(plain, list) or len(plain) != 3 or not isinstance(plain[0], str) \
            or plain[0] not in OPERATORS:
        raise damaged("a constraint is no relation of two sizes")
    return Guard(plain[0], sizes.size(plain[1]), sizes.size(plain[2]))
