"""Laws of the tables keyed by primitives: keys exist, and no primitive is forgotten."""

import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import functrans.export
import functrans.lowering
import functrans.transforms
from functrans.core.avals import get_aval
from functrans.core.primitive import Linear, Primitive
from functrans.core.table import Table, merged
from functrans.lowering.loops.tensor import DTYPES, FLOAT8, ITEM_SIZES
from functrans.lowering.rules import graph
from functrans.lowering.rules.elementwise import ELEMENTWISE
from functrans.primitives.arithmetic import add_p, neg_p, sub_p
from functrans.primitives.compare import select_n_p
from functrans.primitives.control_flow.cond import cond_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import Elementwise
from functrans.primitives.masked import masked_mul_p
from functrans.primitives.reduce import reduce_or_p
from functrans.transforms.masking import MASKING, SELECTIONS, Masking, masking_of
from tests.laws.primitives import all_primitives

PRIMITIVES = all_primitives()


def modules():
    for package in (functrans.lowering, functrans.transforms, functrans.export):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


MODULES = list(modules())
TABLES = {f"{module.__name__.removeprefix('functrans.')}.{name}": table
          for module in MODULES for name, table in vars(module).items() if isinstance(table, Table)}


@pytest.mark.parametrize("name", TABLES)
def test_keys_are_primitives_that_exist(name):
    """The one object of its class that programs have, not another that prints like it."""
    own = {p for module in MODULES for p in vars(module).values() if isinstance(p, Primitive)}
    known = {*PRIMITIVES, *own}
    table = TABLES[name]
    assert table
    assert [p for p in (*table, *(table.without or ())) if p not in known
            and type(p).__module__.startswith("functrans.")] == []  # others are registered


@pytest.mark.parametrize("name", TABLES)
def test_every_primitive_has_an_entry_or_a_reason(name):
    table = TABLES[name]
    assert table.missing(PRIMITIVES) == []
    assert table.otherwise or all(table.without.values())


BY_NAME = re.compile(r"primitive\.name\s*(==|!=|in\b|not in\b)|\[[\w.]*primitive\.name\]"
                     r"|\.get\([\w.]*primitive\.name")


def test_no_decision_by_the_name_of_a_primitive():
    """What asks for a string outlives the primitive of that name without a word."""
    found = {f"{module.__name__}: {line.strip()}" for module in MODULES
             for line in Path(module.__file__).read_text().splitlines() if BY_NAME.search(line)}
    assert found == set()
    for line in ('if eqn.primitive.name == "add":', "RULES[eqn.primitive.name](eqn)",
                 "if e.primitive.name not in FREE:", "RULES.get(primitive.name)"):
        assert BY_NAME.search(line)


def test_sizes_of_dtypes_stand_in_one_table():
    sizes = {f"{module.__name__}.{name}" for module in MODULES
             for name, value in vars(module).items() if isinstance(value, dict)
             and value is not ITEM_SIZES and len(value) > 2 and ITEM_SIZES.items() >= value.items()}
    assert sizes == set()
    assert {short: np.dtype(name).itemsize for name, short in DTYPES.items()
            if name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "key<fry>",
                            "key<philox>")} \
        == {d: n for d, n in ITEM_SIZES.items() if d not in (*FLOAT8, "bf16")}


def test_both_backends_know_where_each_elementwise_primitive_runs():
    """A primitive that is elementwise runs in kernels, or is named among those that do not."""
    elementwise = {p for p in PRIMITIVES if isinstance(p, Elementwise)}
    on_host = {p for p in elementwise if p not in graph.RULES}
    assert on_host - {p for p in on_host if p in ELEMENTWISE.without} == set()


def test_a_table_is_checked():
    with pytest.raises(TypeError, match="has the key 'add'"):
        Table({"add": 1}, otherwise="nothing")
    with pytest.raises(TypeError, match="what holds otherwise"):
        Table({add_p: 1})
    with pytest.raises(TypeError, match="entries for what it is without: add"):
        Table({add_p: 1}, without={add_p: "for a reason"})
    with pytest.raises(TypeError, match="two tables have entries for add"):
        merged({add_p: 1}, {add_p: 2})
    with pytest.raises(TypeError):
        Table({add_p: 1}, otherwise="nothing")[sub_p] = 2


def test_every_linear_primitive_says_what_it_does_to_masked_cotangents():
    assert {masking_of(p) for p in PRIMITIVES if p.transpose is not None} == {*Masking}
    assert masking_of(neg_p) is Masking.KEPT and masking_of(cond_p) is Masking.LOST
    assert Table({add_p: 1}, of=MASKING.of, without={}).missing([dot_general_p, sub_p, cond_p]) \
        == [dot_general_p]


@pytest.mark.parametrize("primitive", sorted(SELECTIONS, key=lambda p: p.name),
                         ids=lambda p: p.name)
def test_transposes_of_selections_give_zeros_where_nothing_is_selected(primitive):
    """Also where the other operand is infinite."""
    infinite = np.full(4, np.inf, np.float32)
    if primitive is select_n_p:
        cases = (np.zeros(4, bool), Linear(get_aval(infinite)), Linear(get_aval(infinite)))
        cotangent = primitive.transpose(infinite, *cases)[2]
    else:
        cotangent = primitive.transpose(np.zeros(4, np.float32), Linear(get_aval(infinite)),
                                        infinite if primitive is masked_mul_p
                                        else np.zeros(4, np.float32))[0]
    np.testing.assert_array_equal(cotangent, np.zeros(4, np.float32))


def test_a_forgotten_primitive_is_found():
    table = Table({add_p: 1}, of=Elementwise, without={})
    assert sub_p in table.missing(PRIMITIVES)
    assert reduce_or_p not in table.missing(PRIMITIVES)
    assert Table({add_p: 1}, without={}, beside={sub_p: 1}).missing([add_p, sub_p]) == []
