// Library function: running sums, products, extrema and log-sums of exponentials.
#include "library.h"
#include "row_isa.h"

#include <algorithm>
#include <cstring>

namespace functrans {
namespace {

constexpr i64 kChunk = 1 << 16;       // elements of a long row that one thread takes at a time
constexpr i64 kBlock = 32 * kChunk;   // a part of a long row that stays in the last cache
constexpr i64 kLongRow = 2 * kChunk;  // from here a row is cut, with any number of threads
constexpr i64 kPieceElements = 8192;
constexpr i64 kColumnBytes = 4096;

// A long row in two passes over each block: the totals of its chunks, then the chunks themselves.
void cumulate_long(const Scan& scan, i64 size, bool reverse, const char* in, char* out, i64 n) {
  struct Carry { char bytes[8]; } carry;
  std::memcpy(&carry, scan.identity, sizeof carry);
  for (i64 start = 0; start < n; start += kBlock) {
    const i64 stop = std::min(n, start + kBlock);
    const i64 chunks = (stop - start + kChunk - 1) / kChunk;
    Carry carries[kBlock / kChunk];
    const auto part = [&](i64 c, char* to) {
      const i64 begin = start + c * kChunk, end = std::min(stop, begin + kChunk);
      const i64 offset = size * (reverse ? n - end : begin);
      scan.row(in + offset, to == nullptr ? nullptr : to + offset, end - begin, &carries[c]);
    };
    parallel_pieces(chunks, 1, [&](i64 first, i64 last) {
      for (i64 c = first; c < last; ++c) {
        std::memcpy(&carries[c], scan.identity, sizeof carry);
        part(c, nullptr);
      }
    });
    for (i64 c = 0; c < chunks; ++c) {
      const Carry before = carry;
      scan.append(&carry, &carries[c]);
      carries[c] = before;
    }
    parallel_pieces(chunks, 1, [&](i64 first, i64 last) {
      for (i64 c = first; c < last; ++c) part(c, out);
    });
  }
}

int cumulate_rows(i64 op, i64 dtype, i64 reverse, i64 outer, i64 n, i64 inner, const void* in,
                  void* out) {
  if (outer == 0 || n == 0 || inner == 0) return 0;
  const Scan scan = row_kernels().scan_of(op, dtype, reverse != 0);
  const i64 size = item_size(dtype), row_bytes = n * inner * size;
  const auto* x = static_cast<const char*>(in);
  auto* y = static_cast<char*>(out);
  if (inner > 1) {
    const i64 block = kColumnBytes / size, blocks = (inner + block - 1) / block;
    const i64 grain = std::max<i64>(1, kPieceElements / (n * std::min(inner, block)));
    parallel_pieces(outer * blocks, grain, [&](i64 first, i64 last) {
      for (i64 p = first; p < last; ++p) {
        const i64 at = p / blocks * row_bytes, begin = p % blocks * block;
        scan.columns(x + at, y + at, n, inner, begin, std::min(inner, begin + block));
      }
    });
    return 0;
  }
  if (n >= kLongRow && outer < 8) {
    for (i64 row = 0; row < outer; ++row) {
      cumulate_long(scan, size, reverse != 0, x + row * row_bytes, y + row * row_bytes, n);
    }
    return 0;
  }
  parallel_pieces(outer, std::max<i64>(1, kPieceElements / n), [&](i64 first, i64 last) {
    for (i64 row = first; row < last; ++row) {
      char carry[8];
      std::memcpy(carry, scan.identity, sizeof carry);
      scan.row(x + row * row_bytes, y + row * row_bytes, n, carry);
    }
  });
  return 0;
}

}  // namespace

void register_cumulate_library() {
  register_library("cumulate_rows", reinterpret_cast<void*>(&cumulate_rows));
}

}  // namespace functrans
