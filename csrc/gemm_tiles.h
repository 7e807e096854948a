// Matrix products of tile registers, as AMX has them: eight tiles of up to 16 rows of 64 bytes.
// Compiled below gemm_micro.h, gemm_pack.h and gemm_groups.h. What is done with a tile is a
// parameter, so that the same code runs on a processor without them, in tests.
//
//   Tiles::Number, Tiles::Sum      what is multiplied (u16 for bfloat16), and what a sum is
//   Tiles::begin(shape), end()     gives the tiles their shapes and sets them to zero; frees them
//   Tiles::zero<t>(), load<t>(from, stride), store<t>(to, stride)      strides in bytes
//   Tiles::stream<t>(from, stride) loads what is not read again soon
//   Tiles::multiply<c, a, b>()     c += a * b; a has groups along k in its rows, b in its columns
//
// An element of a packed panel is 64 bytes along k: 32 bfloat16 or 64 int8. A panel of a is element
// after element the 64 bytes of each of its rows; one of b has rows of 32 groups instead.

// Of a task, rows of a and packed columns of b take an eighth of the second cache (of 2 MiB) each.
// benchmarks/gemm_blocks.py on 16 cores of a Xeon, GFLOP/s at 1024^3 and 4096 x 64 x 4096: 5500 and
// 5400; blocks of 512 bytes and 512 rows and columns, with a packed as well, had 4000 and 3300.
constexpr Blocking kTileBlocks = {2048, 128, 512, 4, 4, 1, 4, 2 << 20, false};
constexpr int kPanelsOfB = 4;  // that are packed together
constexpr int kTileRow = 64, kTileSide = 16, kPanel = 2 * kTileSide;

// What the instruction reads that gives tiles their shapes.
struct alignas(64) TileShapes {
  unsigned char palette = 1, start_row = 0, reserved[14] = {};
  u16 row_bytes[16] = {};
  unsigned char rows[16] = {};
};

// Sums are the tiles 0 to 3, row by row; 4 and 5 are of a, 6 and 7 of b.
inline TileShapes shapes_for(int rows) {
  TileShapes shapes;
  const int upper = rows < kTileSide ? rows : kTileSide;
  const int lower = rows > kTileSide ? rows - kTileSide : kTileSide;
  for (int t = 0; t < 8; ++t) {
    shapes.row_bytes[t] = kTileRow;
    const bool is_lower = t == 2 || t == 3 || t == 5;
    shapes.rows[t] = static_cast<unsigned char>(t >= 6 ? kTileSide : is_lower ? lower : upper);
  }
  return shapes;
}

// Where the tiles of an operand of a begin: rows `row` bytes apart, elements along k `step`.
struct TileRows {
  const char* start;
  i64 row, step;
};

// c[rows, columns] (+)= a * b with one or two tiles of rows, and of columns.
template <typename Tiles, bool Lower, bool Right>
inline __attribute__((always_inline)) void tile_product(i64 k, TileRows rows, const char* b,
                                                        char* c, i64 c_bytes, bool accumulate) {
  char* below = c + kTileSide * c_bytes;
  if (accumulate) {
    Tiles::template load<0>(c, c_bytes);
    if constexpr (Right) Tiles::template load<1>(c + kTileRow, c_bytes);
    if constexpr (Lower) Tiles::template load<2>(below, c_bytes);
    if constexpr (Lower && Right) Tiles::template load<3>(below + kTileRow, c_bytes);
  } else {
    Tiles::template zero<0>();
    if constexpr (Right) Tiles::template zero<1>();
    if constexpr (Lower) Tiles::template zero<2>();
    if constexpr (Lower && Right) Tiles::template zero<3>();
  }
  const char* a = rows.start;
  for (i64 p = 0; p < k; ++p, a += rows.step, b += kTileSide * 2 * kTileRow) {
    Tiles::template stream<6>(b, 2 * kTileRow);
    Tiles::template load<4>(a, rows.row);
    Tiles::template multiply<0, 4, 6>();
    if constexpr (Right) {
      Tiles::template stream<7>(b + kTileRow, 2 * kTileRow);
      Tiles::template multiply<1, 4, 7>();
    }
    if constexpr (Lower) {
      Tiles::template load<5>(a + kTileSide * rows.row, rows.row);
      Tiles::template multiply<2, 5, 6>();
    }
    if constexpr (Lower && Right) Tiles::template multiply<3, 5, 7>();
  }
  Tiles::template store<0>(c, c_bytes);
  if constexpr (Right) Tiles::template store<1>(c + kTileRow, c_bytes);
  if constexpr (Lower) Tiles::template store<2>(below, c_bytes);
  if constexpr (Lower && Right) Tiles::template store<3>(below + kTileRow, c_bytes);
}

// c[rows, columns] of one panel of a and one of b.
template <typename Tiles>
inline void panel_product(i64 rows, i64 columns, i64 k, TileRows a, const char* b,
                          typename Tiles::Sum* c, i64 c_row, bool accumulate) {
  using Sum = typename Tiles::Sum;
  if (columns != kPanel && columns != kTileSide) {  // whole tiles of memory of our own
    alignas(64) Sum edge[kPanel * kPanel];
    const i64 whole = columns > kTileSide ? kPanel : kTileSide;
    if (accumulate) {
      for (i64 r = 0; r < rows; ++r) {
        for (i64 q = 0; q < whole; ++q) {
          edge[r * whole + q] = q < columns ? c[r * c_row + q] : Sum{};
        }
      }
    }
    panel_product<Tiles>(rows, whole, k, a, b, edge, whole, accumulate);
    for (i64 r = 0; r < rows; ++r) {
      for (i64 q = 0; q < columns; ++q) c[r * c_row + q] = edge[r * whole + q];
    }
    return;
  }
  char* to = reinterpret_cast<char*>(c);
  const i64 c_bytes = c_row * static_cast<i64>(sizeof(Sum));
  if (rows > kTileSide && columns == kPanel) {
    tile_product<Tiles, true, true>(k, a, b, to, c_bytes, accumulate);
  } else if (rows > kTileSide) {
    tile_product<Tiles, true, false>(k, a, b, to, c_bytes, accumulate);
  } else if (columns == kPanel) {
    tile_product<Tiles, false, true>(k, a, b, to, c_bytes, accumulate);
  } else {
    tile_product<Tiles, false, false>(k, a, b, to, c_bytes, accumulate);
  }
}

// Asks for the part `part` of `parts` of what is to come into the second cache.
inline void fetch_ahead(const Ahead& ahead, i64 part, i64 parts) {
  const i64 lines = (ahead.bytes + kTileRow - 1) / kTileRow, all = lines * ahead.rows;
  for (i64 i = all * part / parts, end = all * (part + 1) / parts; i < end; ++i) {
    __builtin_prefetch(ahead.start + i / lines * ahead.stride + i % lines * kTileRow, 0, 2);
  }
}

// A panel of a stays in the first cache while those of b come from the second. The tiles are freed
// at the end: a thread without them costs the kernel no more to switch to.
template <typename Tiles>
void tile_rows_block(i64 m, i64 n, i64 k, const void* a_start, i64 a_row, const void* b_packed,
                     void* c_start, i64 c_row, bool accumulate, const Ahead& ahead) {
  const i64 parts = (m + kPanel - 1) / kPanel * ((n + kPanel - 1) / kPanel);
  i64 shaped = 0, part = 0;
  for (i64 i = 0; i < m; i += kPanel) {
    const i64 rows = m - i < kPanel ? m - i : kPanel;
    if (rows != shaped) Tiles::begin(shapes_for(static_cast<int>(rows)));
    shaped = rows;
    const char* start = static_cast<const char*>(a_start);
    const TileRows a = a_row == 0 ? TileRows{start + i * k * kTileRow, kTileRow, rows * kTileRow}
                                  : TileRows{start + i * a_row, a_row, kTileRow};
    // the next panel: below this one, or where the next block along k begins
    const bool last = i + kPanel >= m;
    const Ahead next{last ? start + k * kTileRow : start + (i + kPanel) * a_row, a_row, kPanel,
                     k * kTileRow};
    const bool fetches = a_row != 0 && (!last || ahead.rows > 0);
    for (i64 j = 0; j < n; j += kPanel) {
      const i64 columns = n - j < kPanel ? n - j : kPanel;
      const char* b = static_cast<const char*>(b_packed) + j * k * kTileRow;
      typename Tiles::Sum* c = static_cast<typename Tiles::Sum*>(c_start) + i * c_row + j;
      if (fetches) fetch_ahead(next, j / kPanel, (n + kPanel - 1) / kPanel);
      if (ahead.rows > 0) fetch_ahead(ahead, part++, parts);
      panel_product<Tiles>(rows, columns, k, a, b, c, c_row, accumulate);
    }
  }
  if (shaped != 0) Tiles::end();
}

template <typename Tiles>
void tile_block(i64 m, i64 n, i64 k, const void* a_packed, const void* b_packed, void* c_start,
                i64 c_row, bool accumulate) {
  tile_rows_block<Tiles>(m, n, k, a_packed, 0, b_packed, c_start, c_row, accumulate, Ahead{});
}

// A panel of b, whose last element is filled up with zeros.
template <typename T>
void pack_tile_columns(const T* source, i64 row, i64 step, i64 columns, i64 k, int* packed) {
  constexpr i64 in_row = kTileRow / sizeof(T);
  const i64 groups = (k + kGroup<T> - 1) / kGroup<T>;
  const i64 filled = (k + in_row - 1) / in_row * kTileSide;
  pack_group_panel(source, row, step, columns, k, kPanel, packed);
  for (i64 p = groups * kPanel; p < filled * kPanel; ++p) packed[p] = 0;
}

// Some panels of b with adjacent columns: what is read of a row is whole cache lines, which would
// not stay in the cache where rows lie far apart.
template <typename T>
void pack_wide_columns(const T* source, i64 step, i64 k, i64 panel, int* packed) {
  constexpr int G = kGroup<T>;
  i64 p = 0;
  for (; p + G <= k; p += G, source += G * step, packed += kPanel) {
    for (int q = 0; q < kPanelsOfB; ++q) {
      join_rows<T, kPanel>(source + q * kPanel, step, packed + q * panel);
    }
  }
  const i64 filled = panel / kPanel;
  for (i64 group = p / G; group < filled; ++group, packed += kPanel) {
    const int taken = group == p / G ? static_cast<int>(k - p) : 0;
    for (int q = 0; q < kPanelsOfB; ++q) {
      join_some(source + q * kPanel, step, taken, kPanel, packed + q * panel);
    }
  }
}

// A panel of a, whose last element is filled up with zeros.
template <typename T>
void pack_tile_rows(const T* source, i64 row, i64 step, i64 rows, i64 k, T* packed) {
  constexpr i64 in_row = kTileRow / sizeof(T);
  if (step == 1) {
    for (i64 r = 0; r < rows; ++r) {
      const T* from = source + r * row;
      T* to = packed + r * in_row;
      i64 p = 0;
      for (; p + in_row <= k; p += in_row, to += rows * in_row) store(to, load(from + p));
      if (p < k) {
        store(to, typename Vector<T>::type{});
        __builtin_memcpy(to, from + p, (k - p) * sizeof(T));
      }
    }
    return;
  }
  if (row == 1) {  // groups of 16 rows, turned
    constexpr int G = kGroup<T>;
    for (i64 p = 0; p < k; p += in_row, packed += rows * in_row) {
      for (i64 r0 = 0; r0 < rows; r0 += kTileSide) {
        const i64 count = rows - r0 < kTileSide ? rows - r0 : kTileSide;
        typename Vector<int>::type turned[kTileSide] = {};
        const T* from = source + p * step + r0;
        if (k - p >= in_row && count == kTileSide) {
#pragma GCC unroll 16
          for (int q = 0; q < kTileSide; ++q) turned[q] = joined<T>(from + q * G * step, step);
        } else {
          for (int q = 0; q < kTileSide && p + q * G < k; ++q) {
            const i64 left = k - p - q * G;
            alignas(64) int some[kTileSide] = {};
            const int taken = left < G ? static_cast<int>(left) : G;
            join_some(from + q * G * step, step, taken, count, some);
            turned[q] = load(some);
          }
        }
        transpose_block<int>(turned);
        int* to = reinterpret_cast<int*>(packed) + r0 * kTileSide;
        for (int r = 0; r < count; ++r) store(to + r * kTileSide, turned[r]);
      }
    }
    return;
  }
  for (i64 p = 0; p < k; p += in_row, packed += rows * in_row) {
    for (i64 r = 0; r < rows; ++r) {
      for (i64 q = 0; q < in_row; ++q) {
        packed[r * in_row + q] = p + q < k ? source[r * row + (p + q) * step] : T{};
      }
    }
  }
}

// The operand that is padded is b.
template <typename T>
void pack_tiles(const void* source_start, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                void* packed_start) {
  const T* source = static_cast<const T*>(source_start);
  const i64 elements = (k * static_cast<i64>(sizeof(T)) + kTileRow - 1) / kTileRow;
  i64 i = 0;
  if (pad && row == 1) {
    for (; i + kPanelsOfB * kPanel <= count; i += kPanelsOfB * kPanel) {
      char* packed = static_cast<char*>(packed_start) + i * elements * kTileRow;
      pack_wide_columns(source + i, step, k, elements * kTileSide * kPanel,
                        reinterpret_cast<int*>(packed));
    }
  }
  for (; i < count; i += width) {
    const i64 rows = count - i < width ? count - i : width;
    char* packed = static_cast<char*>(packed_start) + i * elements * kTileRow;
    if (pad) {
      pack_tile_columns(source + i * row, row, step, rows, k, reinterpret_cast<int*>(packed));
    } else {
      pack_tile_rows(source + i * row, row, step, rows, k, reinterpret_cast<T*>(packed));
    }
  }
}

template <typename Tiles>
constexpr GroupKernels tile_kernels() {
  using Number = typename Tiles::Number;
  GroupKernels made{{kPanel, kPanel, kTileRow / static_cast<int>(sizeof(Number)), kTileRow, 4,
                     tile_block<Tiles>, nullptr, nullptr, nullptr, {}, kTileBlocks,
                     tile_rows_block<Tiles>},
                    pack_tiles<Number>,
                    1 << 16};
  if constexpr (sizeof(Number) == 2) {
    made.kernels.finish[kF32] = finish<float, float>;
    made.kernels.finish[kF64] = finish<float, double>;
    made.kernels.finish[kBf16] = finish_bf16;
    made.kernels.finish[kF16] = finish<float, F16>;
  } else {  // signed numbers wrap as unsigned ones do
    made.kernels.finish[kI8] = made.kernels.finish[kU8] = finish<u32, unsigned char>;
    made.kernels.finish[kI16] = made.kernels.finish[kU16] = finish<u32, u16>;
    made.kernels.finish[kI32] = made.kernels.finish[kU32] = finish<u32, u32>;
    made.kernels.finish[kI64] = made.kernels.finish[kU64] = finish<u32, u64>;
  }
  return made;
}
