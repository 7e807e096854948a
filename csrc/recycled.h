// Small arrays that died and wait, whole, for a result of their dtype and shape. Making an ndarray
// and its memory anew takes 60 ns, which is more than most small results take to compute.
#pragma once

#include "array.h"
#include "common.h"

#include <cstddef>
#include <cstdint>

namespace functrans {

// All of these need the GIL.

// An ndarray of our allocator, C-ordered and writeable, with what a dead array left in its memory;
// null where none waits.
PyArrayObject* take_recycled(PyArray_Descr* descr, int ndim, const npy_intp* dims) noexcept;

// Whether `np`, which nobody else may hold, was taken over: the reference is gone then.
bool recycle(PyArrayObject* np) noexcept;

// Memory of an ArrayObject: uninitialised; null with a MemoryError.
ArrayObject* take_shell() noexcept;
void recycle_shell(ArrayObject* array) noexcept;

struct RecycledStats {
  std::size_t bytes = 0;   // of memory that waits
  std::uint64_t hits = 0;  // arrays that were taken
};
RecycledStats recycled_stats() noexcept;
void drop_recycled() noexcept;

}  // namespace functrans
