// Gathering of the patches of a convolution as a matrix.
#pragma once

#include "gemm.h"

#include <vector>

namespace functrans {

// One axis of the rows or columns of a matrix of patches. Moving along it by one moves by `stride`
// elements and, on a spatial axis, by `step` places along spatial axis `space` of the image.
struct PatchAxis {
  i64 size;
  i64 stride;
  int space;  // -1: not spatial
  i64 step;
};

// A matrix whose element at (row, column) is that of an image at a place which is a sum of a part
// for the row and one for the column, or zero where the place is outside.
struct Patches {
  const char* image;
  i64 item;                        // bytes of an element
  int rank;
  i64 start[3];                    // place of the first row and column
  i64 extent[3];                   // of the image
  std::vector<PatchAxis> rows, columns;  // slowest first
  i64 offset;                      // of the first row and column in elements, inside or not

  bool columns_adjacent() const;   // whether runs along columns are the longer ones
  // Rows r0:r1 and columns c0:c1, adjacent along columns or, else, along rows.
  void gather(i64 r0, i64 r1, i64 c0, i64 c1, bool along_columns, char* to) const;
};

// The one stride of all axes together (slowest first), or false if there is none.
bool common_stride(const std::vector<PatchAxis>& axes, i64* stride);

}  // namespace functrans
