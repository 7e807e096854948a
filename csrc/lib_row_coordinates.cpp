// Library function: the index vectors of elements of compressed rows.
#include "compressed_rows.h"
#include "library.h"

#include <cstring>
#include <type_traits>

namespace functrans {
namespace {

// Vectors of index vectors, that are written behind a row, too, where the next one begins: no loop ends
// unforeseen but those of rows that are longer.
template <typename I>
FUNCTRANS_INLINE void put_row(const I* columns, i64 begin, i64 end, i64 nse, I row, I* out) {
  i64 e = begin;
  if constexpr (sizeof(I) == 4) {
    typedef std::uint32_t Narrow __attribute__((vector_size(32)));
    typedef std::uint64_t Wide __attribute__((vector_size(64)));
    const Wide low = static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) - Wide{};
    for (; e < end && e + 8 <= nse; e += 8) {
      Narrow read;
      std::memcpy(&read, columns + e, sizeof(read));
      const Wide pairs = __builtin_convertvector(read, Wide) << 32 | low;
      std::memcpy(out + 2 * e, &pairs, sizeof(pairs));
    }
  }
  for (; e < end; ++e) {
    out[2 * e] = row;
    out[2 * e + 1] = columns[e];
  }
}

// Rows [first, last), where row -1 is of what stands before the first pointer, and the one behind the
// last of what stands behind it.
template <typename I>
FUNCTRANS_INLINE void put_rows(const Rows<float, I>& a, i64 first, i64 last, I* out) {
  for (i64 row = first; row < last; ++row) {
    const i64 begin = row < 0 ? 0 : a.start(row);
    const i64 end = row == a.rows ? a.nse : a.start(row + 1);
    put_row<I>(a.indices, begin, end, a.nse, static_cast<I>(row), out);
  }
}

FUNCTRANS_WIDEST void put_some_rows(const Rows<float, std::int32_t>& a, i64 first, i64 last,
                                    std::int32_t* out) {
  put_rows(a, first, last, out);
}

FUNCTRANS_WIDEST void put_some_rows(const Rows<float, i64>& a, i64 first, i64 last, i64* out) {
  put_rows(a, first, last, out);
}

template <typename I>
int put_matrices(i64 lanes, i64 rows, i64 parts, const i64* counts, const void* const* inputs,
                 I* out) {
  for (i64 lane = 0; lane < lanes; ++lane) {
    for (i64 part = 0; part < parts; ++part) {
      const i64 nse = counts[part];
      const Rows<float, I> a{rows, 0, nse, nullptr,
                             static_cast<const I*>(inputs[2 * part]) + lane * nse,
                             static_cast<const I*>(inputs[2 * part + 1]) + lane * (rows + 1)};
      const int status = in_order(a, [&](const Rows<float, I>& a) {
        // a thread's last row may be written behind, which is where another's begins
        if (thread_count() == 1 || nse < 2 * kGrain || rows == 0) {
          put_some_rows(a, -1, rows + 1, out);
          return 0;
        }
        over_rows(a, 1, [&](i64 first, i64 last) {
          if (first == last) return;
          const i64 begin = first == 0 ? -1 : first, end = last == rows ? rows + 1 : last;
          if (end == rows + 1) {
            put_some_rows(a, begin, end, out);
            return;
          }
          Rows<float, I> own = a;
          own.nse = a.start(end);
          put_some_rows(own, begin, end, out);
        });
        return 0;
      });
      if (status != 0) return status;
      out += 2 * nse;
    }
  }
  return 0;
}

int row_coordinates(i64 wide, i64 lanes, i64 rows, i64 parts, const i64* counts,
                    const void* const* inputs, void* out) {
  return wide ? put_matrices(lanes, rows, parts, counts, inputs, static_cast<i64*>(out))
              : put_matrices(lanes, rows, parts, counts, inputs, static_cast<std::int32_t*>(out));
}

}  // namespace

void register_row_coordinates_library() {
  register_library("row_coordinates", reinterpret_cast<void*>(&row_coordinates));
}

}  // namespace functrans
