"""From a function of Triton to machine code: compiled in workers, kept on disk, timed."""
