"""functrans beside C++ and CUDA written by hand, on small programs over lanes.

    python benchmarks/lanes.py [--gpu] [--size tiny|small|large] [--only WORD] [--budget SECONDS]
                               [--no-peers] [--peer-python PATH] [--out FILE] [--quick]
                               [--list] [--show FILE] [--profiles FOLDER]

The programs are in benchmarks/lanes/, a file each: a source for functrans and JAX, which is `vmap`
of a loop, and the lane as a programmer writes it who knows the machine (`lanes/__init__.py` says
how). By hand is CUDA on a GPU, a lane a thread, compiled by NVRTC and launched by CuPy, which has
to be there; on a CPU it is C++ with vectors of lanes, `g++ -O3 -march=native` and OpenMP, whose
threads OMP_NUM_THREADS says, to functrans, too. By hand it writes to the same arrays each time.

Columns: the time of a call by hand and of functrans, their ratio, JAX's time, the first calls (by
hand: the compiler and a call), and the largest difference of a result in norm. Processes, rounds,
options and files are those of programs.py; the file is benchmarks/results/lanes-<device>.json.

The exit status is 1 if a program fails, takes more than twice the time by hand or was not run, or
if the geometric mean of the ratios is above 1.2 on a CPU, 1.3 on a GPU.
"""

from __future__ import annotations

import sys

import lane_rows
import lanes
import program_table

SUITE = program_table.Suite(
    lanes.FOLDER,
    (__doc__ or "").splitlines()[0],
    lane_rows.kind,
    lane_rows.print_header,
    lane_rows.print_row,
    lane_rows.print_summary,
    lane_rows.passes,
)

if __name__ == "__main__":
    sys.exit(program_table.run(SUITE))
