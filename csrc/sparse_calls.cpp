#include "sparse_calls.h"

#include "allocator.h"
#include "array.h"
#include "compressed_rows.h"
#include "coordinate_sums.h"
#include "sparse_products.h"
#include "trace_state.h"

#include <cstring>
#include <limits>

namespace functrans {
namespace {

constexpr i64 kReleased = 1 << 14;          // elements from which other threads may run meanwhile
constexpr i64 kMostColumns = i64{1} << 26;  // a product has a sum for each

// A plain Array of one of some types, contiguous in the memory of the host; else null.
ArrayObject* plain(PyObject* object, int ndim, bool numbers) {
  if (!is_exact_array(object)) return nullptr;
  ArrayObject* array = as_array(object);
  if (has_device_place(array) || !array->c_contiguous || PyArray_NDIM(array->np) != ndim) {
    return nullptr;
  }
  const int type = array->loop_type;
  const bool fits = numbers ? type == NPY_FLOAT || type == NPY_DOUBLE
                            : type == NPY_INT32 || type == NPY_INT64;
  return fits ? array : nullptr;
}

i64 size(ArrayObject* array, int axis) { return PyArray_DIM(array->np, axis); }
void* data(ArrayObject* array) { return PyArray_DATA(array->np); }

Ref fresh(int type, int ndim, const npy_intp* shape) {
  return Ref(reinterpret_cast<PyObject*>(
      new_ndarray(PyArray_DescrFromType(type), ndim, shape, false)));
}
Ref fresh(int type, npy_intp count) { return fresh(type, 1, &count); }
void* data(const Ref& array) { return PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.get())); }
PyObject* wrapped(Ref& array) {
  return wrap_ndarray(reinterpret_cast<PyArrayObject*>(array.release()));
}

// The interpreter's lock is given up for as long as this lives, if there is much to do. Operands are
// held: another thread may donate them meanwhile.
class Working {
 public:
  explicit Working(bool much) : saved_(much ? PyEval_SaveThread() : nullptr) {}
  ~Working() {
    if (saved_ != nullptr) restore_thread(saved_);
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  PyThreadState* saved_;
};

bool integer(PyObject* object, i64& value) {
  if (!PyLong_CheckExact(object)) return false;
  value = PyLong_AsLongLong(object);
  if (value >= 0) return true;
  PyErr_Clear();
  return false;
}

PyObject* refuse() { return PyErr_Occurred() ? nullptr : Py_NewRef(Py_NotImplemented); }

// A matrix on Arrays; `rows` is null where these are of other types.
struct Operand {
  ArrayObject *data = nullptr, *indices, *indptr;
  bool fits;
  Operand(PyObject* const* args, bool with_data)
      : indices(plain(args[1], 1, false)), indptr(plain(args[2], 1, false)) {
    if (with_data) data = plain(args[0], 1, true);
    fits = indices != nullptr && indptr != nullptr && indices->loop_type == indptr->loop_type &&
           size(indptr, 0) > 0 &&
           (!with_data || (data != nullptr && size(data, 0) == size(indices, 0)));
  }
  bool wide() const { return indices->loop_type == NPY_INT64; }
  template <typename T, typename I>
  Rows<T, I> rows(i64 columns) const {
    return {size(indptr, 0) - 1, columns, size(indices, 0),
            data == nullptr ? nullptr : static_cast<const T*>(functrans::data(data)),
            static_cast<const I*>(functrans::data(indices)),
            static_cast<const I*>(functrans::data(indptr))};
  }
};

template <typename T, typename I>
PyObject* product(const Operand& left, const Operand& right, i64 columns) {
  std::vector<i64> counts;
  std::vector<ProductRows<T, I>> parts;
  bool enough = false;
  const Ref held[] = {hold_data(left.indices), hold_data(left.indptr), hold_data(right.indices),
                      hold_data(right.indptr), hold_data(left.data), hold_data(right.data)};
  const auto a = left.rows<T, I>(size(right.indptr, 0) - 1);
  const auto b = right.rows<T, I>(columns);
  const bool much = a.nse + b.nse > kReleased;
  {
    const Working working(much);
    try {
      in_order(a, [&](const Rows<T, I>& a) {
        return in_order(b, [&](const Rows<T, I>& b) {
          enough = multiply_rows_of_both(a, b, counts, parts);
          return 0;
        });
      });
    } catch (const std::bad_alloc&) {
    }
  }
  if (!enough) return PyErr_NoMemory();
  i64 nse = 0;
  for (const auto& part : parts) nse += part.size;
  if (sizeof(I) == 4 && nse > std::numeric_limits<std::int32_t>::max()) return refuse();
  const int index = sizeof(I) == 4 ? NPY_INT32 : NPY_INT64;
  const int type = sizeof(T) == 4 ? NPY_FLOAT : NPY_DOUBLE;
  Ref indices = fresh(index, nse), indptr = fresh(index, a.rows + 1);
  Ref values = fresh(type, nse);
  if (!indices || !indptr || !values) return nullptr;
  {
    const Working working(much);
    i64 at = 0;
    for (const auto& part : parts) {
      if (part.size == 0) continue;
      const std::size_t count = static_cast<std::size_t>(part.size);
      std::memcpy(static_cast<I*>(data(indices)) + at, part.columns.get(), count * sizeof(I));
      std::memcpy(static_cast<T*>(data(values)) + at, part.values.get(), count * sizeof(T));
      at += part.size;
    }
    I* pointers = static_cast<I*>(data(indptr));
    pointers[0] = 0;
    for (i64 i = 0; i < a.rows; ++i) pointers[i + 1] = pointers[i] + static_cast<I>(counts[i]);
    parts.clear();
  }
  Ref first(wrapped(values)), second(wrapped(indices)), third(wrapped(indptr));
  if (!first || !second || !third) return nullptr;
  return PyTuple_Pack(3, first.get(), second.get(), third.get());
}

template <typename I>
void compress(const I* pairs, const I* order, i64 nse, i64 rows, i64 columns, I* indices,
              I* indptr) {
  // an element out of bounds is of the row before it
  i64 row = 0;
  std::memset(indptr, 0, static_cast<std::size_t>(rows + 1) * sizeof(I));
  for (i64 p = 0; p < nse; ++p) {
    const i64 e = order == nullptr ? p : static_cast<i64>(order[p]);
    const i64 i = pairs[2 * e], j = pairs[2 * e + 1];
    const bool inside = i >= 0 && i < rows && j >= 0 && j < columns;
    row = std::max(row, inside ? i : 0);
    if (rows > 0) indptr[row + 1] = static_cast<I>(p + 1);  // the last of a row is what stays
    indices[p] = static_cast<I>(inside ? j : columns);
  }
  for (i64 i = 0; i < rows; ++i) indptr[i + 1] = std::max(indptr[i], indptr[i + 1]);
}

}  // namespace

PyObject* csr_product(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  i64 columns;
  if (nargs != 6 || tracing() || !integer(args[4], columns)) return refuse();
  const Operand a(args, true);
  if (!a.fits) return refuse();
  ArrayObject* x = plain(args[3], 1, true);
  if (x == nullptr) x = plain(args[3], 2, true);
  if (x == nullptr || x->loop_type != a.data->loop_type || (a.data->weak_type && x->weak_type)) {
    return refuse();
  }
  const bool transpose = args[5] == Py_True;
  const i64 rows = size(a.indptr, 0) - 1, nse = size(a.indices, 0);
  const int ndim = PyArray_NDIM(x->np);
  const npy_intp shape[2] = {transpose ? columns : rows, ndim == 2 ? size(x, 1) : 1};
  if (size(x, 0) != (transpose ? rows : columns)) return refuse();
  Ref out = fresh(x->loop_type, ndim, shape);
  if (!out) return nullptr;
  const Ref held[] = {hold_data(a.data), hold_data(a.indices), hold_data(a.indptr), hold_data(x)};
  int status;
  {
    const Working working(nse * shape[1] > kReleased);
    status = csr_dot(x->loop_type == NPY_FLOAT ? kF32 : kF64, a.wide(), transpose, rows, columns,
                     nse, shape[1], data(a.data), data(a.indices), data(a.indptr), data(x),
                     data(out));
  }
  if (status != 0) return PyErr_NoMemory();
  return wrapped(out);
}

PyObject* csr_times_csr(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  i64 columns;
  if (nargs != 7 || tracing() || !integer(args[6], columns) || columns > kMostColumns) {
    return refuse();
  }
  const Operand a(args, true), b(args + 3, true);
  if (!a.fits || !b.fits || a.wide() != b.wide() || a.data->loop_type != b.data->loop_type ||
      (a.data->weak_type && b.data->weak_type)) {
    return refuse();
  }
  if (a.data->loop_type == NPY_FLOAT) {
    return a.wide() ? product<float, i64>(a, b, columns)
                    : product<float, std::int32_t>(a, b, columns);
  }
  return a.wide() ? product<double, i64>(a, b, columns)
                  : product<double, std::int32_t>(a, b, columns);
}

PyObject* rows_of_coordinates(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  i64 rows, columns;
  if (nargs != 5 || tracing() || !integer(args[2], rows) || !integer(args[3], columns)) {
    return refuse();
  }
  ArrayObject* pairs = plain(args[1], 2, false);
  if (pairs == nullptr || size(pairs, 1) != 2) return refuse();
  const i64 nse = size(pairs, 0);
  const bool wide = pairs->loop_type == NPY_INT64, in_order = args[4] == Py_True;
  // counting is for matrices that are not much larger than what they store
  if (!in_order && std::max(rows, columns) > 8 * nse + 4096) return refuse();
  if (!wide && std::max(nse, columns) > std::numeric_limits<std::int32_t>::max()) return refuse();
  ArrayObject* numbers = plain(args[0], 1, true);
  if (numbers != nullptr && size(numbers, 0) != nse) return refuse();
  Ref indices = fresh(pairs->loop_type, nse), indptr = fresh(pairs->loop_type, rows + 1);
  Ref order = in_order ? Ref() : fresh(pairs->loop_type, nse);
  Ref moved = in_order || numbers == nullptr ? Ref() : fresh(numbers->loop_type, nse);
  if (!indices || !indptr || (!in_order && (!order || (numbers != nullptr && !moved)))) {
    return nullptr;
  }
  const Ref held[] = {hold_data(pairs), numbers == nullptr ? Ref() : hold_data(numbers)};
  bool enough = true;
  {
    const Working working(nse > kReleased);
    const auto run = [&](auto zero) {
      using I = decltype(zero);
      const I* given = static_cast<const I*>(data(pairs));
      I* places = in_order ? nullptr : static_cast<I*>(data(order));
      try {
        if (!in_order) order_of(given, nse, rows, columns, places);
      } catch (const std::bad_alloc&) {
        enough = false;
        return;
      }
      compress(given, places, nse, rows, columns, static_cast<I*>(data(indices)),
               static_cast<I*>(data(indptr)));
      if (!moved) return;
      const auto move = [&](auto number) {
        using T = decltype(number);
        const T* from = static_cast<const T*>(data(numbers));
        T* to = static_cast<T*>(data(moved));
        for (i64 p = 0; p < nse; ++p) to[p] = from[places[p]];
      };
      numbers->loop_type == NPY_FLOAT ? move(float{}) : move(double{});
    };
    wide ? run(i64{}) : run(std::int32_t{});
  }
  if (!enough) return PyErr_NoMemory();
  const bool weak = numbers != nullptr && numbers->weak_type;
  Ref first(moved ? wrap_ndarray(reinterpret_cast<PyArrayObject*>(moved.release()), weak)
                  : Py_NewRef(args[0]));
  Ref second(wrapped(indices)), third(wrapped(indptr));
  Ref last(in_order || numbers != nullptr ? Py_NewRef(Py_None) : wrapped(order));
  if (!first || !second || !third || !last) return nullptr;
  return PyTuple_Pack(4, first.get(), second.get(), third.get(), last.get());
}

PyObject* sum_coordinates(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  i64 rows, columns, room = 0;
  if (nargs != 5 || tracing() || !integer(args[2], rows) || !integer(args[3], columns)) {
    return refuse();
  }
  ArrayObject* numbers = plain(args[0], 1, true);
  ArrayObject* pairs = plain(args[1], 2, false);
  if (numbers == nullptr || pairs == nullptr || size(pairs, 1) != 2) return refuse();
  const i64 nse = size(pairs, 0);
  const bool exact = args[4] == Py_None, wide = pairs->loop_type == NPY_INT64;
  if (exact) room = nse;
  else if (!integer(args[4], room)) return refuse();
  constexpr i64 kMost = std::numeric_limits<i64>::max() / 2;
  if (size(numbers, 0) != nse || (columns > 0 && rows > kMost / columns) ||
      (!wide && nse > std::numeric_limits<std::int32_t>::max())) {
    return refuse();
  }
  i64 count = 0;
  const auto run = [&](auto number, auto zero) -> PyObject* {
    using T = decltype(number);
    using I = decltype(zero);
    const npy_intp shape[2] = {room, 2};
    Ref sums = fresh(numbers->loop_type, room), places = fresh(pairs->loop_type, 2, shape);
    if (!sums || !places) return nullptr;
    const Ref held[] = {hold_data(pairs), hold_data(numbers)};
    bool enough = true;
    {
      const Working working(nse > kReleased);
      T* of = static_cast<T*>(data(sums));
      I* at = static_cast<I*>(data(places));
      try {
        const CoordinatePart<T, I> part{static_cast<const I*>(data(pairs)),
                                        static_cast<const T*>(data(numbers)), nse, nullptr};
        const i64 sizes[] = {rows, columns};
        SumPlaces<T, I> out{room, 2, of, at};
        sum_coordinates(&part, 1, sizes, 2, out);
        if (!exact) out.fill(sizes);
        count = out.kept();
      } catch (const std::bad_alloc&) {
        enough = false;
      }
    }
    if (!enough) return PyErr_NoMemory();
    if (exact && count < nse) {
      const npy_intp smaller[2] = {count, 2};
      Ref fewer = fresh(numbers->loop_type, count), some = fresh(pairs->loop_type, 2, smaller);
      if (!fewer || !some) return nullptr;
      std::memcpy(data(fewer), data(sums), static_cast<std::size_t>(count) * sizeof(T));
      std::memcpy(data(some), data(places), static_cast<std::size_t>(count) * 2 * sizeof(I));
      sums = std::move(fewer);
      places = std::move(some);
    }
    Ref first(wrap_ndarray(reinterpret_cast<PyArrayObject*>(sums.release()),
                           numbers->weak_type));
    Ref second(wrapped(places));
    return first && second ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
  };
  if (numbers->loop_type == NPY_FLOAT) {
    return wide ? run(float{}, i64{}) : run(float{}, std::int32_t{});
  }
  return wide ? run(double{}, i64{}) : run(double{}, std::int32_t{});
}

PyObject* coordinates_of_rows(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs != 2 || tracing()) return refuse();
  PyObject* const three[] = {nullptr, args[0], args[1]};
  const Operand a(three, false);
  if (!a.fits) return refuse();
  const i64 nse = size(a.indices, 0), rows = size(a.indptr, 0) - 1;
  const npy_intp shape[2] = {nse, 2};
  Ref out = fresh(a.indices->loop_type, 2, shape);
  if (!out) return nullptr;
  const Ref held[] = {hold_data(a.indices), hold_data(a.indptr)};
  {
    const Working working(nse > kReleased);
    const auto run = [&](auto zero) {
      using I = decltype(zero);
      const auto matrix = a.rows<double, I>(0);
      I* to = static_cast<I*>(data(out));
      i64 e = 0;
      for (i64 i = 0; i <= rows + 1; ++i) {  // elements before the first row are of row -1
        const i64 end = i > rows ? nse : std::max(e, matrix.start(i));
        for (; e < end; ++e) {
          to[2 * e] = static_cast<I>(i - 1);
          to[2 * e + 1] = matrix.indices[e];
        }
      }
    };
    a.wide() ? run(i64{}) : run(std::int32_t{});
  }
  return wrapped(out);
}

}  // namespace functrans
