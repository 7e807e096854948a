"""What a user can do about a value that is not computed where it is read, by the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["ADVICE", "advice_on", "advice_on_kept"]

NOTHING: Final = ""

ADVICE: Sequence[tuple[str, str]] = (
    ("cannot be had", "a form of the kernel failed and another is used: please report it with the "
                      "reason"),
    ("reduces the product before anything else",
     "nothing to gain where the sum is of a matrix that is needed anyway; else sum an operand "
     "first: (x @ w).sum(0) is x.sum(0) @ w"),
    ("the product is small",
     "products of more rows: vmap or a larger batch"),
    ("the product is too small for several threads", "products of more rows: vmap or a larger "
                                                     "batch"),
    ("another part of the kernel reads the product",
     "nothing is lost but one pass over the product"),
    ("more would be stored than the product", "nothing to gain: the product is less memory"),
    ("stores nothing but whether something holds", NOTHING),
    ("repeats the rows of the product", "broadcast after the elementwise operations, not before"),
    ("its elements go to computed places", "a scatter is a kernel of its own; where each place is "
                                           "written once and in order, a slice is not"),
    ("is read at another place than it is computed",
     "shift, flip or transpose the argument of the line instead of its result, which then need "
     "not be in memory"),
    ("is not read in order along the rows", "transpose once, before the line, so that both are "
                                            "read along the last axis; or gather later"),
    ("memory is not read in order", "transpose once, before the line, so that it is read along "
                                    "the last axis"),
    ("elements are read at other places than the product has them",
     "transpose an operand of the product instead of its result: (a @ b).T is b.T @ a.T"),
    ("is read down its columns", "transpose it once, before the line"),
    ("folds over the rows of the kernel", "nothing: a mean or norm over the leading axis is known "
                                          "only after the last row; over the last axis it fuses"),
    ("reduces over other rows", "reduce both over the same axis, or accept one more pass"),
    ("the rows are too long to stay in the cache",
     "reductions over shorter rows: two-level sums, or fewer columns at a time"),
    ("the kernel is full", "nothing to gain: the kernel has as much as registers hold"),
    ("the kernel would be too large", "nothing to gain: the kernel has as much as registers hold"),
    ("the elements are not those of the kernel",
     "nothing where the shapes have to differ; else compute on one shape and slice or broadcast "
     "at the end"),
    ("it reduces over rows", "nothing: rows of a block are not all rows"),
    ("not split in the same blocks", NOTHING),
    ("is read from other blocks too", NOTHING),
    ("needed as a whole", NOTHING),
    ("a block would have few rows", "a larger batch"),
    ("the product of a block is small", "a larger batch"),
    ("sizes are known only when it runs", "call it with static sizes where these products matter"),
    (r"us there and .* apart", "nothing: apart is faster, by measurement"),
    (r"its tiles have .* columns, of which", "nothing: apart is faster; more features would fill "
                                             "the tiles"),
    ("kept for later: computed again it would be a step of its own",
     "functrans.checkpoint around the function, where its memory matters"),
    ("is kept for later: keeping it costs", "functrans.checkpoint, or memory_limit of jit, where "
                                            "its memory matters"),
    ("is computed again later", NOTHING),
)
"""Patterns and what to do, the first that is found."""


def advice_on(why: str) -> str:
    """What helps; nothing where nothing does, or where the reason is not known."""
    return next((text for pattern, text in ADVICE if re.search(pattern, why)), NOTHING)


def advice_on_kept(readers: int, is_operand: bool, is_result: bool) -> str:
    """What helps where a value is in memory for so many readers, one of them a call perhaps."""
    if is_operand:
        return "nothing: a product, or another call, reads its operands from memory"
    if readers > 1:
        return f"nothing to gain in time: it is computed once for {readers} steps; in memory, " \
               "functrans.checkpoint around the function computes it again"
    if is_result:
        return "elementwise operations on all of the product, right after it, are its epilogue; " \
               "sums, gathers and transposes of it are not"
    return "write the operations between both over one shape and axis, so that one kernel has them"
