// What one instruction set offers to the library functions that work on rows and on small matrices.
#pragma once

#include "rows.h"

namespace functrans {

enum RowOp : i64 { kAdd, kMul, kMax, kMin, kLogAddExp, kSet };

// A running combination of one dtype; `carry` holds what came before in the dtype's bytes.
struct Scan {
  // out may be null: then only the last result is wanted, which is left in `carry`.
  void (*row)(const void* in, void* out, i64 n, void* carry);
  void (*columns)(const void* in, void* out, i64 n, i64 width, i64 begin, i64 end);
  void (*append)(void* carry, const void* later);
  char identity[8];
};

// Rows [begin, end) of updates, or those that `chosen` lists in these places, combined in this
// order into the rows index[r] of out. Rows whose target is not in [0, targets) are passed over.
struct UpdateRange {
  char* out;
  const char* updates;
  const void* index;
  bool wide_index;  // int64, else int32
  i64 width;        // of a row, in elements
  i64 targets;
  i64 begin, end;
  const std::int32_t* chosen;  // or null
};
using Update = void (*)(const UpdateRange& range);

inline i64 index_at(const void* index, bool wide, i64 r) {
  return wide ? static_cast<const std::int64_t*>(index)[r]
              : static_cast<const std::int32_t*>(index)[r];
}

constexpr i64 kSmallMatrix = 16;  // rows, and right-hand sides, of what is called small

struct TriangularKind {
  bool left, lower, transposed, unit;
};

struct RowKernels {
  Scan (*scan_of)(i64 op, i64 dtype, bool reverse);
  Update (*update_of)(i64 op, i64 dtype);
  // Up to lane_bytes / item size small matrices at once, of float and of double.
  i64 lane_bytes;
  void (*cholesky[2])(i64 n, i64 count, const void* a, void* out);
  void (*solve[2])(i64 n, i64 k, i64 count, const void* a, const void* b, void* out);
  void (*triangular_solve[2])(const TriangularKind& kind, i64 n, i64 k, i64 count, const void* a,
                              const void* b, void* out);
  // `count` of the k systems of one matrix, from the first on.
  void (*triangular_columns[2])(const TriangularKind& kind, i64 n, i64 k, i64 first, i64 count,
                                const void* a, const void* b, void* out);
  void (*det[2])(i64 n, i64 count, const void* a, void* out, void* log);
};

const RowKernels& row_kernels();  // of the machine that runs

// one file each; null where the compiler does not know the instructions
const RowKernels* row_kernels_avx512();
const RowKernels* row_kernels_avx2();

}  // namespace functrans
