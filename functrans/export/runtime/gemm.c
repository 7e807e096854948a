// The product that a program asks for; csrc/gemm.h of functrans says what the fields mean.
typedef struct {
  i64 batch0, batch1, m, n, k;
  const void *a; i64 a_batch0, a_batch1, a_row, a_col;
  const void *b; i64 b_batch0, b_batch1, b_row, b_col;
  void *c; i64 c_batch0, c_batch1, c_row, c_col;
  int in_type, out_type;
  double alpha;
  int accumulate, a_fill_columns, b_fill_columns;
  void *a_fill, *b_fill, *fill_arg;
  void (*epilogue)(void *arg, i64 batch, i64 i0, i64 i1, i64 j0, i64 j1, const void *tile, i64 row);
  void *epilogue_arg;
} ft_gemm;

#if defined(__AVX512F__)
#define FT_VECTOR 64
#elif defined(__AVX__)
#define FT_VECTOR 32
#else
#define FT_VECTOR 16
#endif
// Rows of a tile in registers; rows and columns of a task, and the depth that is packed at once.
enum { FT_MR = 6, FT_ROWS = 96, FT_COLUMNS = 256, FT_DEPTH = 256 };
