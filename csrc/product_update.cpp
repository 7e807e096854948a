#include "product_update.h"

#include "gemm.h"

namespace functrans {

bool subtract_product(bool complex, int real_size, std::int64_t m, std::int64_t n, std::int64_t k,
                      const MatrixView& a, const MatrixView& b, void* c, std::int64_t c_row) {
  if (m == 0 || n == 0 || k == 0) return true;
  ft_gemm g{};
  g.batch0 = g.batch1 = 1;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.a_row = a.row, g.a_col = a.column;
  g.b = b.data, g.b_row = b.row, g.b_col = b.column;
  g.c = c, g.c_row = c_row, g.c_col = 1;
  g.in_type = g.out_type = complex ? (real_size == 4 ? kC64 : kC128) : (real_size == 4 ? kF32 : kF64);
  g.alpha = -1;
  g.accumulate = 1;
  return ft_gemm_run(&g) == 0;
}

}  // namespace functrans
