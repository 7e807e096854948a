"""C text of the vector operations, one family a module; `prelude.py` is their door."""
