// The product that a program asks for; csrc/gemm.h of functrans says what the fields mean.
#include "gemm.h"

#if defined(__AVX512F__)
#define FT_VECTOR 64
#elif defined(__AVX__)
#define FT_VECTOR 32
#else
#define FT_VECTOR 16
#endif
// Rows of a tile in registers; rows and columns of a task, and the depth that is packed at once.
enum { FT_MR = 6, FT_ROWS = 96, FT_COLUMNS = 256, FT_DEPTH = 256 };
