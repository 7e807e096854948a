// Caching allocator for array data: 64-byte aligned blocks in size classes that keep their pages.
#pragma once

#include "common.h"

#include <cstddef>
#include <cstdint>

namespace functrans {

struct MemoryStats {
  std::size_t in_use = 0;  // bytes in blocks that are handed out
  std::size_t peak = 0;    // highest in_use so far
  std::size_t cached = 0;  // bytes in blocks that wait for reuse
  std::size_t limit = 0;   // bound on cached
  std::uint64_t allocations = 0;
  std::uint64_t hits = 0;  // allocations served from the cache
};

// All of these are thread safe, need no GIL, and work in a forked child.
void* allocate(std::size_t nbytes) noexcept;  // null when there is no memory
void* reallocate(void* data, std::size_t nbytes) noexcept;
void deallocate(void* data) noexcept;
std::size_t block_bytes(const void* data) noexcept;  // of the block that the data lies in
void clear_memory_cache() noexcept;
MemoryStats memory_stats() noexcept;

// Makes the NumPy memory handler; called once at import. False with an exception set on failure.
bool init_allocator();

// Whether an ndarray with this memory handler frees its data through this allocator.
bool is_ours(PyObject* mem_handler) noexcept;

// A new C-ordered (or Fortran-ordered) ndarray on this allocator. Steals the reference to descr,
// also on failure. MemoryError names the bytes asked for, the shape and the dtype.
PyArrayObject* new_ndarray(PyArray_Descr* descr, int ndim, const npy_intp* dims, bool writeable,
                           bool fortran = false);

}  // namespace functrans
