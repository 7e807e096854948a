// Compiles what follows for the instruction set FUNCTRANS_ISA, up to isa_end.h. No header of the
// standard library may come between: its inline functions would be compiled for it, too, and the
// linker might choose them for everyone.
#define FUNCTRANS_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define FUNCTRANS_EXPANDED_PRAGMA(...) FUNCTRANS_PRAGMA(__VA_ARGS__)
#ifdef __clang__
FUNCTRANS_EXPANDED_PRAGMA(clang attribute push(__attribute__((target(FUNCTRANS_ISA))),
                                               apply_to = function))
#else
_Pragma("GCC push_options")
FUNCTRANS_EXPANDED_PRAGMA(GCC target(FUNCTRANS_ISA))
#endif
