// Products that larger algorithms are made of.
#pragma once

#include <cstdint>

namespace functrans {

struct MatrixView {  // strides count elements
  const void* data;
  std::int64_t row, column;
};

// c -= a b with a of m x k, b of k x n and c row-major with rows `c_row` apart; `complex` numbers have
// two parts of `real_size` bytes. False when memory ran out.
bool subtract_product(bool complex, int real_size, std::int64_t m, std::int64_t n, std::int64_t k,
                      const MatrixView& a, const MatrixView& b, void* c, std::int64_t c_row);

}  // namespace functrans
