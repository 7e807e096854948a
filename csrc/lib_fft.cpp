// Library function: discrete Fourier transforms. Lengths of small prime factors are planned, and
// lines side by side are transformed in vectors; others by the C loops of NumPy's pocketfft.
#include "common.h"
#include "fft_isa.h"
#include "library.h"
#include "rows.h"

#include <algorithm>
#include <memory>

namespace functrans {
namespace {

constexpr i64 kPiecePoints = 4096;     // of NumPy's loops
constexpr i64 kPlannedPoints = 16384;  // of vectors: as long as another thread needs to wake
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

// Lines of one kind, planned: groups of as many as a vector has lanes, and long ones by columns and
// rows. `in` and `out` may be the same memory where inputs and results are complex.
template <typename T>
class PlannedLines {
 public:
  PlannedLines(std::shared_ptr<const FftPlan<T>> plan, FftKind kind, bool inverse, T scale)
      : plan_(std::move(plan)), kind_(kind), inverse_(inverse), scale_(scale) {}

  // [outer, n, inner] arrays; false where memory ran out.
  bool run(i64 outer, i64 inner, const T* in, T* out) const {
    const bool is_long = inner == 1 && plan_->columns != nullptr;
    return is_long ? run_long(outer, in, out) : run_short(outer, inner, in, out);
  }

 private:
  // Complex numbers of a line as it is given, and as it is left.
  i64 given() const { return plan_->points + (kind_ == FftKind::kRealInverse); }
  i64 left() const { return plan_->points + (kind_ == FftKind::kRealForward); }

  FftGroup<T> group(const FftPlan<T>* plan, FftPlace<const T> in, FftPlace<T> out, i64 count,
                    const Scratch& scratch) const {
    return {plan,  in, out, count, FftKind::kComplex, false, false, T(1), nullptr, nullptr, 0,
            scratch.as<char>()};
  }

  bool run_short(i64 outer, i64 inner, const T* in, T* out) const {
    const FftPlan<T>& plan = *plan_;
    const i64 groups = (inner + lanes() - 1) / lanes();
    const i64 lines = inner == 1 ? (outer + lanes() - 1) / lanes() : outer * groups;
    bool failed = false;
    parallel_pieces(lines, pieces(plan.points * lanes()), [&](i64 begin, i64 end) {
      Scratch scratch(fft_scratch_bytes<T>(plan.points, bytes()));
      if (!scratch) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
      for (i64 g = begin; g < end; ++g) {
        const i64 block = inner == 1 ? 0 : g / groups;
        const i64 first = (inner == 1 ? g : g % groups) * lanes();
        const i64 count = std::min(lanes(), (inner == 1 ? outer : inner) - first);
        FftPlace<const T> from{in + 2 * first * given(), given(), 1};
        FftPlace<T> to{out + 2 * first * left(), left(), 1};
        if (inner > 1) {
          from = {in + 2 * (block * given() * inner + first), 1, inner};
          to = {out + 2 * (block * left() * inner + first), 1, inner};
        }
        FftGroup<T> lines_of = group(&plan, from, to, count, scratch);
        lines_of.kind = kind_;
        lines_of.exchanged_in = inverse_ && kind_ != FftKind::kRealInverse;
        lines_of.exchanged_out = inverse_;
        lines_of.scale = scale_;
        kernel(lines_of);
      }
    });
    return !failed;
  }

  // Columns of [n1, n2] points, times roots; then rows, whose points k2 are at k1 + n1 k2.
  bool run_long(i64 outer, const T* in, T* out) const {
    const FftPlan<T> &columns = *plan_->columns, &rows = *plan_->rows;
    const i64 n = plan_->points, n1 = columns.points, n2 = rows.points;
    const i64 scratch_bytes = fft_scratch_bytes<T>(std::max(n1, n2), bytes());
    bool failed = false;
    const auto fail = [&] { __atomic_store_n(&failed, true, __ATOMIC_RELAXED); };
    const auto of_columns = [&](const T* from, T* to, i64 first, const Scratch& scratch) {
      const i64 count = std::min(lanes(), n2 - first);
      FftGroup<T> g = group(&columns, {from + 2 * first, 1, n2}, {to + 2 * first, 1, n2}, count,
                            scratch);
      g.exchanged_in = inverse_ && kind_ != FftKind::kRealInverse;
      g.real = plan_->real.data() + first;
      g.imag = plan_->imag.data() + first;
      g.root_step = n2;
      kernel(g);
    };
    const auto of_rows = [&](const T* from, T* to, i64 first, const Scratch& scratch) {
      const i64 count = std::min(lanes(), n1 - first);
      FftGroup<T> g = group(&rows, {from + 2 * first * n2, n2, 1}, {to + 2 * first, 1, n1}, count,
                            scratch);
      g.exchanged_out = inverse_;
      g.scale = scale_;
      kernel(g);
    };
    const auto line = [&](i64 l, T* between, const Scratch& scratch, auto&& over) {
      const T* from = in + 2 * l * given();
      T* to = out + 2 * l * left();
      T* real = between + 2 * n;  // a line of complex numbers beside what is between
      if (kind_ == FftKind::kRealInverse) complex_from_real(from, real), from = real;
      over((n2 + lanes() - 1) / lanes(), [&](i64 g, const Scratch& s) {
        of_columns(from, between, g * lanes(), s);
      });
      T* found = kind_ == FftKind::kRealForward ? real : to;
      over((n1 + lanes() - 1) / lanes(), [&](i64 g, const Scratch& s) {
        of_rows(between, found, g * lanes(), s);
      });
      if (kind_ == FftKind::kRealForward) real_from_complex(found, to);
      (void)scratch;
    };
    if (outer > 1) {
      parallel_pieces(outer, pieces(n), [&](i64 begin, i64 end) {
        Scratch scratch(scratch_bytes), between((4 * n + 4) * static_cast<i64>(sizeof(T)));
        if (!scratch || !between) return fail();
        for (i64 l = begin; l < end; ++l) {
          line(l, between.as<T>(), scratch, [&](i64 groups, auto&& run) {
            for (i64 g = 0; g < groups; ++g) run(g, scratch);
          });
        }
      });
      return !failed;
    }
    Scratch between((4 * n + 4) * static_cast<i64>(sizeof(T)));
    if (!between) return false;
    line(0, between.as<T>(), between, [&](i64 groups, auto&& run) {
      parallel_pieces(groups, pieces(n / groups), [&](i64 begin, i64 end) {
        Scratch scratch(scratch_bytes);
        if (!scratch) return fail();
        for (i64 g = begin; g < end; ++g) run(g, scratch);
      });
    });
    return !failed;
  }

  // The same as of groups (fft_kernels.h), along one line.
  void real_from_complex(const T* z, T* x) const {
    const i64 n = plan_->points;
    for (i64 k = 1; k < n; ++k) {
      const T *a = z + 2 * k, *b = z + 2 * (n - k);
      const T c = plan_->halves[2 * k], s = plan_->halves[2 * k + 1];
      const T odd_re = T(0.5) * (a[1] + b[1]), odd_im = T(0.5) * (b[0] - a[0]);
      x[2 * k] = T(0.5) * (a[0] + b[0]) + (odd_re * c - odd_im * s);
      x[2 * k + 1] = T(0.5) * (a[1] - b[1]) + (odd_re * s + odd_im * c);
    }
    x[0] = z[0] + z[1];
    x[2 * n] = z[0] - z[1];
    x[1] = x[2 * n + 1] = T(0);
  }
  void complex_from_real(const T* x, T* z) const {
    const i64 n = plan_->points;
    for (i64 k = 1; k < n; ++k) {
      const T *a = x + 2 * k, *b = x + 2 * (n - k);
      const T c = plan_->halves[2 * k], s = -plan_->halves[2 * k + 1];
      const T re = a[0] - b[0], im = a[1] + b[1];
      z[2 * k + 1] = (a[0] + b[0]) - (re * s + im * c);
      z[2 * k] = (a[1] - b[1]) + (re * c - im * s);
    }
    z[1] = x[0] + x[2 * n];
    z[0] = x[0] - x[2 * n];
  }

  static i64 bytes() { return fft_kernels().lane_bytes; }
  static i64 lanes() { return bytes() / static_cast<i64>(sizeof(T)); }
  static i64 pieces(i64 points) { return std::max<i64>(1, kPlannedPoints / points); }
  static void kernel(const FftGroup<T>& g) {
    if constexpr (sizeof(T) == 4) {
      fft_kernels().of_float(g);
    } else {
      fft_kernels().of_double(g);
    }
  }

  std::shared_ptr<const FftPlan<T>> plan_;
  FftKind kind_;
  bool inverse_;
  T scale_;
};

// The plan of some lines; null where NumPy's loops transform them.
template <typename T>
std::shared_ptr<const FftPlan<T>> plan_of(Loop kind, const Lines& lines) {
  const bool is_real = kind == kRfftEven || kind == kRfftOdd || kind == kIrfft;
  const i64 points = kind == kIrfft ? lines.out_points : lines.in_points;
  if (is_real && points % 2 != 0) return nullptr;
  return fft_plan<T>(is_real ? points / 2 : points);
}

// False where memory ran out.
template <typename T>
bool transform(Loop kind, const Lines& lines, T factor, const char* in, char* out) {
  if (auto plan = plan_of<T>(kind, lines)) {
    const FftKind of = kind == kRfftEven ? FftKind::kRealForward
                       : kind == kIrfft  ? FftKind::kRealInverse
                                         : FftKind::kComplex;
    const PlannedLines<T> planned(std::move(plan), of, kind == kIfft || kind == kIrfft, factor);
    return planned.run(lines.outer, lines.inner, reinterpret_cast<const T*>(in),
                       reinterpret_cast<T*>(out));
  }
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
  return true;
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
    return transform<T>(inverse ? kIfft : kFft, lines, inverse ? T(1) / T(points) : T(1), from, to);
  };
  if (kind == kRealInverse) {
    Scratch scratch(rank > 1 ? batch * others * last * complex : 0);
    if (!scratch) return kOutOfMemory;
    for (i64 axis = 0; axis < rank - 1; ++axis) {
      if (!along(axis, axis == 0 ? in : scratch.as<char>(), scratch.as<char>())) {
        return kOutOfMemory;
      }
    }
    const Lines lines{batch * others, 1, half, n, complex, real};
    return transform<T>(kIrfft, lines, T(1) / T(n), rank > 1 ? scratch.as<char>() : in, out)
               ? 0
               : kOutOfMemory;
  }
  bool done;
  if (kind == kRealForward) {
    const Lines lines{batch * others, 1, n, half, real, complex};
    done = transform<T>(n % 2 == 0 ? kRfftEven : kRfftOdd, lines, T(1), in, out);
  } else {
    done = along(rank - 1, in, out);
  }
  for (i64 axis = rank - 2; done && axis >= 0; --axis) done = along(axis, out, out);
  return done ? 0 : kOutOfMemory;
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
