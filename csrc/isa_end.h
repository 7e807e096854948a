// The end of what isa_begin.h began.
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef FUNCTRANS_EXPANDED_PRAGMA
#undef FUNCTRANS_PRAGMA
#undef FUNCTRANS_ISA
