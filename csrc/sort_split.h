// A piece of a row split in two by one value: the first step of sorting a long row in parallel.
#pragma once

#include "rows.h"

namespace functrans {

template <typename T>  // float, double and the integers of 32 and 64 bits
i64 count_below(const T* in, i64 n, T splitter);

// Those below the splitter go to `low`, in order, which must have room for exactly them; all others
// to `high`. Other threads may write right behind both.
template <typename T>
void split_in_two(const T* in, i64 n, T splitter, T* low, i64 low_count, T* high);

}  // namespace functrans
