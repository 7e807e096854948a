"""Every law is exercised by a golden program, and stands in docs/internals/passes.md."""

from pathlib import Path

from functrans.lowering.passes import gathered_rows
from functrans.lowering.passes.pipeline import TABLES, simplify
from tests.lowering import (
    test_passes_algebra,
    test_passes_contractions,
    test_passes_gathered_rows,
    test_passes_loops,
    test_passes_movement,
    test_passes_recurrences,
    test_passes_systems,
)
from tests.lowering.test_passes import program_of

DOCS = Path(__file__).parents[2] / "docs" / "internals" / "passes.md"
RULES = [rule for table in TABLES for rule in table.rules]


def test_every_law_has_a_golden_program(monkeypatch):
    monkeypatch.setattr(gathered_rows, "LEAST_SAVED", 0)
    log = []
    for module in (test_passes_algebra, test_passes_contractions,
                   test_passes_gathered_rows, test_passes_loops, test_passes_movement,
                   test_passes_recurrences, test_passes_systems):
        for fun, args, _ in module.LAWS.values():
            simplify(program_of(fun, *args)[0], log)
    seen = {(change.table, change.law) for change in log}
    assert [rule.law for rule in RULES if (rule.table, rule.law) not in seen] == []


def test_every_law_is_documented():
    text = DOCS.read_text()
    assert [rule.law for rule in RULES if f"`{rule.law}`" not in text] == []
