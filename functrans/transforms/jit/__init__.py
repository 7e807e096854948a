"""`jit`: from a call of a function to a compiled program, and back.

`api` is what users call. `calls` follows a call that the runtime does not know: which trace serves
it (`sizes`, where sizes are symbolic), what the backend made of it (`executables`), what `jit` is
within another program (`primitive`), and why it was compiled again (`retrace`).
"""
