// Kernels of matrix products for AVX-512 with dot products of int8 and uint8.
#include "gemm_isa.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FUNCTRANS_ISA "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,bmi2"
#include "isa_begin.h"

namespace functrans {
namespace {

#define FUNCTRANS_AVX512
constexpr int kVectorBytes = 64;

#include "gemm_micro.h"
#include "gemm_pack.h"
#include "gemm_groups.h"
#include "gemm_few.h"

// The instruction multiplies unsigned numbers by signed ones. Numbers of a are packed with their
// highest bit flipped, which shifts them by 128 and makes them of the other kind; sums begin at
// what takes that away again, -128 times the sums of the columns of b.
template <bool Signed>
struct Fours {
  using Element = int;
  using Sum = int;
  using ElementVector = Vector<int>::type;
  using SumVector = Vector<int>::type;
  static constexpr int k_step = 4;
  static constexpr bool shifted = true;
  using Stored = int;
  static inline __attribute__((always_inline)) ElementVector load_b(const int* p) {
    return load(p);
  }
  static inline __attribute__((always_inline)) SumVector add(ElementVector x, ElementVector y,
                                                             SumVector sum) {
    const __m512i a = (__m512i)x, b = (__m512i)y;
    return (SumVector)_mm512_dpbusd_epi32((__m512i)sum, Signed ? a : b, Signed ? b : a);
  }
};

constexpr int kFlipped = static_cast<int>(0x80808080u);

template <bool Signed>
void block_of_fours(i64 m, i64 n, i64 k, const void* a_packed, const void* b_packed, void* c_start,
                    i64 c_row, bool accumulate) {
  constexpr int MR = 12, NV = 2, L = Vector<int>::lanes, NR = NV * L;
  constexpr i64 most = 512;  // columns at a time
  for (i64 j0 = 0; j0 < n; j0 += most) {
    const i64 columns = n - j0 < most ? n - j0 : most;
    const int* b = static_cast<const int*>(b_packed) + j0 * k;
    alignas(64) int starts[most];
    const Vector<int>::type flipped = kFlipped - Vector<int>::type{};
    for (i64 j = 0; j < columns; j += NR) {
      Vector<int>::type sums[NV] = {};
      for (i64 p = 0; p < k; ++p) {
        for (int v = 0; v < NV; ++v) {
          sums[v] = Fours<Signed>::add(flipped, load(b + j * k + p * NR + v * L), sums[v]);
        }
      }
      for (int v = 0; v < NV; ++v) store(starts + j + v * L, -sums[v]);
    }
    block_from<Fours<Signed>, MR, NV>(m, columns, k, a_packed, b, static_cast<int*>(c_start) + j0,
                                      c_row, accumulate, starts);
  }
}

void pack_fours(const void* source, i64 row, i64 step, i64 count, i64 k, int width, bool pad,
                void* packed) {
  pack_groups<unsigned char>(source, row, step, count, k, width, pad, packed);
  if (pad) return;  // an operand of b
  int* groups = static_cast<int*>(packed);
  for (i64 i = 0, end = (k + 3) / 4 * count; i < end; ++i) groups[i] ^= kFlipped;
}

// Here the numbers of columns are flipped, once for all rows.
template <bool Signed>
struct FourDots {
  using Number = unsigned char;
  using Sum = int;
  using Data = __m512i;
  using SumVector = Vector<int>::type;
  static constexpr int kNumbers = 64;
  static constexpr bool kShift = true;
  static inline __attribute__((always_inline)) Data few(const Number* p, int count) {
    if (count == kNumbers) return _mm512_loadu_si512(p);
    return _mm512_maskz_loadu_epi8((1ull << count) - 1, p);
  }
  static inline __attribute__((always_inline)) Data many(const Number* p, int count) {
    return _mm512_xor_si512(few(p, count), _mm512_set1_epi32(kFlipped));
  }
  static inline __attribute__((always_inline)) SumVector add(Data x, Data y, SumVector sum) {
    return (SumVector)_mm512_dpbusd_epi32((__m512i)sum, Signed ? y : x, Signed ? x : y);
  }
  // x times 128, or times -128 where columns were unsigned.
  static inline __attribute__((always_inline)) SumVector add_shift(Data x, SumVector sum) {
    return add(x, _mm512_set1_epi32(kFlipped), sum);
  }
};

template <bool Signed>
constexpr GroupKernels fours() {
  return {{12, 32, 4, 4, 4, block_of_fours<Signed>, nullptr, nullptr, nullptr,
           {nullptr, nullptr, nullptr, nullptr, finish<u32, unsigned char>, finish<u32, u16>,
            finish<u32, u32>, finish<u32, u64>, finish<u32, unsigned char>, finish<u32, u16>,
            finish<u32, u32>, finish<u32, u64>}},
          pack_fours,
          1 << 16,  // 64 of 48^3: 134 as sums of int32, and 196 so; of 32^3 136 and 115
          dots_of_few<FourDots<Signed>>};
}

constexpr GroupKernels kSigned = fours<true>(), kUnsigned = fours<false>();

}  // namespace

const GroupKernels* gemm_avx512_vnni(int in_type) {
  return in_type == kI8 ? &kSigned : in_type == kU8 ? &kUnsigned : nullptr;
}

}  // namespace functrans

#include "isa_end.h"
#else
const functrans::GroupKernels* functrans::gemm_avx512_vnni(int) { return nullptr; }
#endif
