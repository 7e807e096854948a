"""functrans beside JAX on programs of complex numbers: first calls, steady times and results.

    python benchmarks/complex_numbers.py [--gpu] [--size tiny|small|large] [--only WORD]
                                         [--budget SECONDS] [--no-peers] [--peer-python PATH]
                                         [--out FILE] [--quick] [--list] [--show FILE]

The programs are in benchmarks/complex_programs/: circuits of qubits by `tensordot`, by `einsum` and
by indexing (10 qubits, `large` 20), waves by split steps, state spaces, fractals, chains of
exponentials. Processes, rounds, options and files are those of programs.py; the file is
benchmarks/results/complex_programs-<device>.json.
"""

from __future__ import annotations

import sys

import complex_programs
import program_table

if __name__ == "__main__":
    suite = program_table.Suite(complex_programs.FOLDER, (__doc__ or "").splitlines()[0])
    sys.exit(program_table.run(suite))
