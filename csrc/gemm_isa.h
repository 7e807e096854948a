// What one instruction set offers to the driver of matrix products (gemm.cpp).
#pragma once

#include "gemm.h"

namespace functrans {

// c[m, n] = alpha * sums (+ c), converted to the type of c.
using Finish = void (*)(i64 m, i64 n, const void* sums, i64 sums_row, double alpha, bool accumulate,
                        void* c, i64 c_row, i64 c_col);

// How much of a packed product is worked on at a time, and what was measured behind the numbers
// that all vector kernels share: GFLOP/s of one core at 1024^3 (Zen 5, 48 KiB of first and 1 MiB
// of second level cache; its multiply-adds alone run at 247). gemm_packed.cpp fits them to the
// caches that a processor has.
struct Blocking {
  i64 depth_bytes = 2304;  // of a row of a packed panel; 1536: 190, 2304: 214, 3072: 212
  i64 tile_rows = 144;     // of a task; with rows of 1024 bytes 96: 172, 144: 185, 288: 179
  i64 tile_bytes = 2048;   // of a row of sums of a task; 1024: 185, 2048: 208
  i64 least_panels = 4;    // of a task that is made smaller because there are too few
  // Threads from which on each task packs what it reads, though others read the same: what other
  // cores have packed comes from their caches. On 16 cores of a Xeon 1024^3 went from 1280 to 1620,
  // 2048^3 from 1600 to 1950; fewer were not measured.
  i64 own_threads = 16;
  i64 own_tasks = 4;   // of such tasks for each thread, ...
  i64 own_aspect = 1;  // ... and how many rows they have for each column
  i64 second_cache = 1 << 20;  // bytes of the one that the sizes are for; 0: of any, as they are
  // A panel of a is to stay in the first cache, and rows of a task grow with the second; otherwise
  // its depth does.
  bool in_first = true;
};

constexpr i64 kRowsTile = 16384;  // with four rows of b it stays in the first-level cache

// What a kernel asks for while it works, because the task reads it next: rows of so many bytes.
struct Ahead {
  const char* start;
  i64 stride, rows, bytes;
};

// c[m, n] (+)= a * b with a anywhere and b in rows of adjacent numbers.
using InPlace = void (*)(i64 m, i64 n, i64 k, const void* a, i64 a_row, i64 a_col, const void* b,
                        i64 b_row, void* c, i64 c_row, bool accumulate);

// The kernels of one kind of sum. An element is what one multiply-add takes: a number, a pair of
// bfloat16 along k (k_step 2), or what a tile register has along k. Packed panels hold `mr` rows of
// a (the last one only as many as are left) or `nr` columns of b (the last one padded by zeros), k
// after k.
struct Kernels {
  int mr, nr, k_step, element_size, sum_size;
  // c[m, n] (+)= a * b for packed a and b; k counts elements.
  void (*block)(i64 m, i64 n, i64 k, const void* a, const void* b, void* c, i64 c_row,
                bool accumulate);
  // The same with a anywhere and b in rows of adjacent elements; null if there is none.
  InPlace direct;
  // y[n] (+)= x[k] * b[k, n] with b in rows of adjacent elements; n elements are kRowsTile bytes.
  void (*vector_rows)(i64 n, i64 k, const void* x, i64 x_step, const void* b, i64 b_row, void* y,
                      bool accumulate);
  // y[n] (+)= b[n, k] * x[k] with b and x in rows of adjacent elements.
  void (*vector_dots)(i64 n, i64 k, const void* x, const void* b, i64 b_row, void* y, i64 y_step,
                      bool accumulate);
  Finish finish[12];  // by GemmType of c; null where sums do not become that
  Blocking blocks = {};
  // `block`, with a where it is, as rows of whole elements along k that are a_row bytes apart (0: a
  // is packed); null if there is none.
  void (*rows_block)(i64 m, i64 n, i64 k, const void* a, i64 a_row, const void* b, void* c,
                     i64 c_row, bool accumulate, const Ahead& ahead) = nullptr;
};

// Packs `count` rows of length k into panels of `width`; strides in elements of the source.
using Pack = void (*)(const void* source, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                      void* packed);

// c[m, n] = a * b, where rows of a and columns of b have adjacent numbers along k; for few rows.
using Dots = void (*)(i64 m, i64 n, i64 k, const void* a, i64 a_row, const void* b, i64 b_col,
                      void* c, i64 c_row);

struct Isa {
  const char* name;
  // By GemmType; complex types have none.
  const Kernels* kernels[12];
  Pack pack[12];
  Dots dots[12];         // null where packing is as fast
  InPlace widening[12];  // `direct` with b as it is stored, where that is not what sums are made of
};

// Dot products of groups of numbers along k, in the place of the kernels above for larger products:
// pairs of bfloat16, fours of int8, or what tile registers take of both.
struct GroupKernels {
  Kernels kernels;
  Pack pack;
  i64 least_work;  // multiply-adds from which on they are worth packing
  Dots dots = nullptr;
};

// Null where the compiler cannot make them. They ask nothing of the processor.
const Isa* gemm_avx512();
const GroupKernels* gemm_avx512_bf16();
const GroupKernels* gemm_avx512_vnni(int in_type);
const GroupKernels* gemm_amx(int in_type);
const Isa* gemm_avx2();
const Isa* gemm_portable();

// Whether this process may use AMX: the first call asks the kernel.
bool amx_is_permitted();

}  // namespace functrans
