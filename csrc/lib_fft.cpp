// Library function: discrete Fourier transforms, by the C loops of NumPy's pocketfft.
#include "common.h"
#include "library.h"
#include "rows.h"

#include <algorithm>

namespace functrans {
namespace {

constexpr i64 kPiecePoints = 4096;
constexpr int kUnsupported = 3;
constexpr i64 kMaxRank = 32;

enum Kind : i64 { kForward, kInverse, kRealForward, kRealInverse };
enum Loop { kFft, kIfft, kRfftEven, kRfftOdd, kIrfft, kLoops };
constexpr const char* kNames[kLoops] = {"fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft"};

struct GufuncLoop {
  PyUFuncGenericFunction function = nullptr;
  void* data = nullptr;
};
GufuncLoop loops[kLoops][2];  // float, double

// Lines of `n` points (`m` of them after the transform) of [outer, n, inner] arrays.
struct Lines {
  i64 outer, inner, in_points, out_points, in_item, out_item;
};

template <typename T>
void transform(Loop kind, const Lines& lines, T factor, const char* in, char* out) {
  const GufuncLoop& loop = loops[kind][sizeof(T) == 8];
  const i64 in_row = lines.inner * lines.in_item, out_row = lines.inner * lines.out_item;
  const i64 points = std::max(lines.in_points, lines.out_points);
  const auto run = [&](i64 begin, i64 end) {
    while (begin < end) {  // lines of one outer index stand next to one another
      const bool plain = lines.inner == 1;
      const i64 block = plain ? 0 : begin / lines.inner;
      const i64 first = plain ? begin : begin % lines.inner;
      const i64 count = plain ? end - begin : std::min(end - begin, lines.inner - first);
      const i64 in_step = plain ? lines.in_points * lines.in_item : lines.in_item;
      const i64 out_step = plain ? lines.out_points * lines.out_item : lines.out_item;
      char* pointers[3] = {
          const_cast<char*>(in) + block * lines.in_points * in_row + first * in_step,
          reinterpret_cast<char*>(&factor),
          out + block * lines.out_points * out_row + first * out_step};
      npy_intp dimensions[3] = {static_cast<npy_intp>(count),
                                static_cast<npy_intp>(lines.in_points),
                                static_cast<npy_intp>(lines.out_points)};
      npy_intp steps[5] = {static_cast<npy_intp>(in_step), 0, static_cast<npy_intp>(out_step),
                           static_cast<npy_intp>(in_row), static_cast<npy_intp>(out_row)};
      loop.function(pointers, dimensions, steps, loop.data);
      begin += count;
    }
  };
  parallel_pieces(lines.outer * lines.inner, std::max<i64>(1, kPiecePoints / points), run);
}

// The transform over all axes, in the order in which NumPy takes them.
template <typename T>
int transform_axes(i64 kind, i64 rank, const i64* lengths, i64 batch, const char* in, char* out) {
  constexpr i64 real = sizeof(T), complex = 2 * sizeof(T);
  const bool inverse = kind == kInverse || kind == kRealInverse;
  const i64 n = lengths[rank - 1], half = n / 2 + 1;
  const i64 last = kind == kForward || kind == kInverse ? n : half;  // of the complex array
  i64 others = 1;
  for (i64 axis = 0; axis < rank - 1; ++axis) others *= lengths[axis];
  const auto along = [&](i64 axis, const char* from, char* to) {  // complex to complex
    i64 outer = batch, inner = last;
    for (i64 d = 0; d < axis; ++d) outer *= lengths[d];
    for (i64 d = axis + 1; d < rank - 1; ++d) inner *= lengths[d];
    const i64 points = axis == rank - 1 ? last : lengths[axis];
    if (axis == rank - 1) inner = 1;
    const Lines lines{outer, inner, points, points, complex, complex};
    transform<T>(inverse ? kIfft : kFft, lines, inverse ? T(1) / T(points) : T(1), from, to);
  };
  if (kind == kRealInverse) {
    Scratch scratch(rank > 1 ? batch * others * last * complex : 0);
    if (!scratch) return kOutOfMemory;
    for (i64 axis = 0; axis < rank - 1; ++axis) {
      along(axis, axis == 0 ? in : scratch.as<char>(), scratch.as<char>());
    }
    const Lines lines{batch * others, 1, half, n, complex, real};
    transform<T>(kIrfft, lines, T(1) / T(n), rank > 1 ? scratch.as<char>() : in, out);
    return 0;
  }
  if (kind == kRealForward) {
    const Lines lines{batch * others, 1, n, half, real, complex};
    transform<T>(n % 2 == 0 ? kRfftEven : kRfftOdd, lines, T(1), in, out);
  } else {
    along(rank - 1, in, out);
  }
  for (i64 axis = rank - 2; axis >= 0; --axis) along(axis, out, out);
  return 0;
}

int fft(i64 kind, i64 dtype, i64 rank, const i64* lengths, i64 batch, const char* in, char* out) {
  if (rank < 1 || rank > kMaxRank) return kUnsupported;
  if (batch == 0) return 0;
  return dtype == kF32 || dtype == kC64
             ? transform_axes<float>(kind, rank, lengths, batch, in, out)
             : transform_axes<double>(kind, rank, lengths, batch, in, out);
}

bool find_loops() {
  Ref module(PyImport_ImportModule("numpy.fft._pocketfft_umath"));
  bool all = static_cast<bool>(module);
  for (int i = 0; all && i < kLoops; ++i) {
    Ref object(PyObject_GetAttrString(module.get(), kNames[i]));
    if (!object || !PyObject_TypeCheck(object.get(), &PyUFunc_Type)) {
      all = false;
      break;
    }
    const auto* ufunc = reinterpret_cast<PyUFuncObject*>(object.get());
    for (int loop = 0; loop < ufunc->ntypes; ++loop) {
      const int factor = ufunc->types[loop * ufunc->nargs + 1];
      if (factor != NPY_FLOAT && factor != NPY_DOUBLE) continue;
      loops[i][factor == NPY_DOUBLE] = {
          ufunc->functions[loop],
          ufunc->data == nullptr ? nullptr : const_cast<void*>(ufunc->data[loop])};
    }
    all = loops[i][0].function != nullptr && loops[i][1].function != nullptr;
    object.release();  // its loops are used as long as the process lives
  }
  PyErr_Clear();
  return all;
}

}  // namespace

// Without NumPy's loops the name is not registered, and programs call the host.
void register_fft_library() {
  if (find_loops()) register_library("fft", reinterpret_cast<void*>(&fft));
}

}  // namespace functrans
