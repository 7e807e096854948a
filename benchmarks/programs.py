"""functrans beside JAX on whole research programs: first calls, steady times and results.

    python benchmarks/programs.py [--gpu] [--size tiny|small|large] [--only WORD] [--budget SECONDS]
                                  [--no-peers] [--peer-python PATH] [--out FILE] [--quick]
                                  [--list] [--show FILE] [--profiles FOLDER] [--folder PATH]

The programs are in benchmarks/programs/, a file each, one source for both libraries. Each library
works in a process of its own (program_worker.py), so that neither threads nor memory of one are in
the way of the other; rounds of calls alternate between the two. The first call traces, compiles and
runs; no earlier run left compiled code. Results are compared in norm.

A program that functrans cannot run in its time, that ends the process or gives another result is a
FAIL. When the budget is used up, the programs that are left are not run, and the table says so. The
file, benchmarks/results/programs-<device>.json, is written after each row; --quick and --no-peers
write none, unless they get one. It keeps the rows of programs that were not asked for, so that runs
with other words after --only fill it; --show prints such a file. --folder takes the programs of
another folder, which has such an __init__.py, and writes no file unless --out says where. The exit
status is 1 if a program failed, takes more than 1.05 of JAX's time, or was not run.
"""

from __future__ import annotations

import sys

import program_table
import programs

if __name__ == "__main__":
    suite = program_table.Suite(programs.FOLDER, (__doc__ or "").splitlines()[0])
    sys.exit(program_table.run(suite))
