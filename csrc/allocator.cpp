#include "allocator.h"

#include "recycled.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace functrans {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLinearBytes =
    1024;  // up to here one class per 64 bytes, then 8 per doubling
constexpr int kLinearClasses = kLinearBytes / kAlignment;
constexpr int kClasses = kLinearClasses + 8 * 54;
constexpr std::size_t kLargest = std::size_t{1} << 62;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kHugeThreshold = std::size_t{4} << 20;
// Above this an uncached request is compared with what the machine has left: Linux hands out memory
// it does not have and kills the process at the first touch.
constexpr std::size_t kCheckThreshold = std::size_t{64} << 20;

// Stands before the data. A free block uses `next`; a live one only `size_class`.
struct alignas(kAlignment) Block {
  Block* next;
  std::uint32_t size_class;
};
static_assert(sizeof(Block) == kAlignment);

int class_of(std::size_t total) {
  if (total <= kLinearBytes) return static_cast<int>((total + kAlignment - 1) / kAlignment) - 1;
  const std::size_t last = total - 1;
  const int log = 63 - __builtin_clzll(last);
  return kLinearClasses + (log - 10) * 8 + static_cast<int>((last >> (log - 3)) & 7);
}

std::size_t class_bytes(int size_class) {
  if (size_class < kLinearClasses) return (size_class + std::size_t{1}) * kAlignment;
  const int step = size_class - kLinearClasses;
  const int log = 10 + step / 8;
  return (std::size_t{1} << log) + (step % 8 + std::size_t{1}) * (std::size_t{1} << (log - 3));
}

struct Cache {
  std::mutex mutex;
  std::array<Block*, kClasses> free{};
  std::array<std::uint64_t, kClasses> last_used{};
  std::uint64_t tick = 0;
  MemoryStats stats;
};

// Never destroyed: arrays may die after the static destructors have run.
Cache& cache() {
  static Cache* instance = new Cache();
  return *instance;
}

void lock_before_fork() { cache().mutex.lock(); }
void unlock_after_fork() { cache().mutex.unlock(); }

std::size_t default_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  const std::size_t ram = pages > 0 && page > 0 ? std::size_t(pages) * std::size_t(page) : 0;
  return std::clamp(ram / 8, std::size_t{64} << 20, std::size_t{4} << 30);
}

// Reads one number from a file of the kernel; `key` selects a line, null takes the first number.
bool read_number(const char* path, const char* key, std::size_t& value) {
  std::FILE* file = std::fopen(path, "re");
  if (file == nullptr) return false;
  char line[256];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file) != nullptr) {
    const std::size_t skip = key == nullptr ? 0 : std::strlen(key);
    if (skip != 0 && std::strncmp(line, key, skip) != 0) continue;
    std::uint64_t number = 0;
    if (std::sscanf(line + skip, "%" SCNu64, &number) != 1) break;
    value = number;
    found = true;
  }
  std::fclose(file);
  return found;
}

// What the machine (or the container) can still give, in bytes; an upper bound where unknown.
std::size_t available_bytes() {
  std::size_t available = kLargest;
  std::size_t kib = 0;
  if (read_number("/proc/meminfo", "MemAvailable:", kib)) {
    std::size_t swap = 0;
    read_number("/proc/meminfo", "SwapFree:", swap);
    available = (kib + swap) * 1024;
  }
  std::size_t limit = 0;
  std::size_t used = 0;
  if (read_number("/sys/fs/cgroup/memory.max", nullptr, limit) &&
      read_number("/sys/fs/cgroup/memory.current", nullptr, used)) {
    std::size_t reclaimable = 0;
    read_number("/sys/fs/cgroup/memory.stat", "inactive_file ", reclaimable);
    used -= std::min(used, reclaimable);
    available = std::min(available, limit - std::min(limit, used));
  }
  return available;
}

// A part of a vector is stored by instructions that may fault on all of its lanes (VEXTRACTI32X4
// with a mask): the largest vector is mapped behind the last element, too.
constexpr std::size_t kTail = 64;

Block* system_allocate(std::size_t block_bytes) {
  const std::size_t bytes = block_bytes + kTail;
  if (bytes >= kCheckThreshold && bytes > available_bytes()) return nullptr;
  const bool huge = bytes >= kHugeThreshold;
  const std::size_t alignment = huge ? kHugePage : kAlignment;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
#ifdef MADV_HUGEPAGE
  if (huge && memory != nullptr) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<Block*>(memory);
}

// Takes blocks out of the cache, least recently used class first, until `room` more bytes fit.
// The mutex is held; returns a list to be freed after it is released.
Block* evict(Cache& c, std::size_t room) {
  Block* evicted = nullptr;
  while (c.stats.cached > 0 && c.stats.cached + room > c.stats.limit) {
    int oldest = -1;
    for (int k = 0; k < kClasses; ++k) {
      if (c.free[k] != nullptr && (oldest < 0 || c.last_used[k] < c.last_used[oldest])) oldest = k;
    }
    const std::size_t bytes = class_bytes(oldest);
    while (c.free[oldest] != nullptr && c.stats.cached + room > c.stats.limit) {
      Block* block = c.free[oldest];
      c.free[oldest] = block->next;
      c.stats.cached -= bytes;
      block->next = evicted;
      evicted = block;
    }
  }
  return evicted;
}

void free_list(Block* block) {
  while (block != nullptr) {
    Block* next = block->next;
    std::free(block);
    block = next;
  }
}

}  // namespace

void* allocate(std::size_t nbytes) noexcept {
  if (nbytes > kLargest - kAlignment) return nullptr;
  const int size_class = class_of(nbytes + kAlignment);
  const std::size_t bytes = class_bytes(size_class);
  Cache& c = cache();
  Block* block;
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.last_used[size_class] = ++c.tick;
    ++c.stats.allocations;
    block = c.free[size_class];
    if (block != nullptr) {
      c.free[size_class] = block->next;
      c.stats.cached -= bytes;
      ++c.stats.hits;
    }
    c.stats.in_use += bytes;
    c.stats.peak = std::max(c.stats.peak, c.stats.in_use);
  }
  if (block == nullptr) {
    block = system_allocate(bytes);
    if (block == nullptr) {
      clear_memory_cache();
      block = system_allocate(bytes);
    }
    if (block == nullptr) {
      std::lock_guard<std::mutex> lock(c.mutex);
      c.stats.in_use -= bytes;
      return nullptr;
    }
  }
  block->size_class = static_cast<std::uint32_t>(size_class);
  return block + 1;
}

void deallocate(void* data) noexcept {
  if (data == nullptr) return;
  Block* block = static_cast<Block*>(data) - 1;
  const std::size_t bytes = class_bytes(static_cast<int>(block->size_class));
  Cache& c = cache();
  Block* dropped = nullptr;
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    c.stats.in_use -= bytes;
    if (bytes > c.stats.limit) {
      block->next = nullptr;
      dropped = block;
    } else {
      if (c.stats.cached + bytes > c.stats.limit) dropped = evict(c, bytes);
      block->next = c.free[block->size_class];
      c.free[block->size_class] = block;
      c.stats.cached += bytes;
    }
  }
  free_list(dropped);
}

std::size_t block_bytes(const void* data) noexcept {
  return class_bytes(static_cast<int>((static_cast<const Block*>(data) - 1)->size_class));
}

void* reallocate(void* data, std::size_t nbytes) noexcept {
  if (data == nullptr) return allocate(nbytes);
  const Block* block = static_cast<Block*>(data) - 1;
  const std::size_t capacity = class_bytes(static_cast<int>(block->size_class)) - kAlignment;
  if (nbytes <= capacity && nbytes >= capacity / 2) return data;
  void* moved = allocate(nbytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(capacity, nbytes));
  deallocate(data);
  return moved;
}

void clear_memory_cache() noexcept {
  Cache& c = cache();
  Block* list = nullptr;
  {
    std::lock_guard<std::mutex> lock(c.mutex);
    for (Block*& head : c.free) {
      while (head != nullptr) {
        Block* block = head;
        head = block->next;
        block->next = list;
        list = block;
      }
    }
    c.stats.cached = 0;
  }
  free_list(list);
}

MemoryStats memory_stats() noexcept {
  std::lock_guard<std::mutex> lock(cache().mutex);
  return cache().stats;
}

// --- the NumPy side (NEP 49): an ndarray that owns its data frees it through our handler.

namespace {

void* handler_malloc(void*, std::size_t size) { return allocate(size); }

void* handler_calloc(void*, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  void* data = allocate(bytes);
  if (data != nullptr) std::memset(data, 0, bytes);
  return data;
}

void* handler_realloc(void*, void* data, std::size_t size) { return reallocate(data, size); }

void handler_free(void*, void* data, std::size_t) { deallocate(data); }

PyDataMem_Handler handler = {
    "functrans", 1, {nullptr, handler_malloc, handler_calloc, handler_realloc, handler_free}};
PyObject* handler_capsule = nullptr;

void raise_memory_error(PyArray_Descr* descr, int ndim, const npy_intp* dims) {
  Ref shape(PyTuple_New(ndim));
  if (!shape) return;
  Ref bytes(PyLong_FromSsize_t(PyDataType_ELSIZE(descr)));
  for (int i = 0; i < ndim && bytes; ++i) {
    PyObject* dim = PyLong_FromSsize_t(dims[i]);
    if (dim == nullptr) return;
    PyTuple_SET_ITEM(shape.get(), i, dim);
    bytes = Ref(PyNumber_Multiply(bytes.get(), dim));
  }
  if (!bytes) return;
  const double gib = PyLong_AsDouble(bytes.get()) / (1024.0 * 1024.0 * 1024.0);
  if (gib == -1.0 && PyErr_Occurred()) PyErr_Clear();
  char readable[64];
  PyOS_snprintf(readable, sizeof readable, "%.3g GiB", gib);
  PyErr_Format(PyExc_MemoryError,
               "out of memory: %S bytes (%s) were asked for an array of shape %S "
               "and dtype %S",
               bytes.get(), readable, shape.get(), descr);
}

}  // namespace

bool init_allocator() {
  if (handler_capsule != nullptr) return true;
  handler_capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  if (handler_capsule == nullptr) return false;
  cache().stats.limit = default_limit();
  if (pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork) != 0) {
    PyErr_SetString(PyExc_RuntimeError, "functrans: pthread_atfork failed");
    return false;
  }
  return true;
}

bool is_ours(PyObject* mem_handler) noexcept { return mem_handler == handler_capsule; }

PyArrayObject* new_ndarray(PyArray_Descr* descr, int ndim, const npy_intp* dims, bool writeable,
                           bool fortran) {
  if (!fortran) {
    if (PyArrayObject* waiting = take_recycled(descr, ndim, dims)) {
      if (!writeable) PyArray_CLEARFLAGS(waiting, NPY_ARRAY_WRITEABLE);
      Py_DECREF(descr);
      return waiting;
    }
  }
  std::size_t bytes = static_cast<std::size_t>(PyDataType_ELSIZE(descr));
  // Zero extents are left out of the product as NumPy does, so that strides cannot overflow either.
  bool overflow = false;
  bool empty = bytes == 0;
  for (int i = 0; i < ndim; ++i) {
    if (dims[i] == 0) {
      empty = true;
    } else {
      overflow |= __builtin_mul_overflow(bytes, static_cast<std::size_t>(dims[i]), &bytes);
    }
  }
  overflow |= bytes > static_cast<std::size_t>(NPY_MAX_INTP);
  void* data = overflow ? nullptr : allocate(empty ? 0 : bytes);
  if (data == nullptr) {
    raise_memory_error(descr, ndim, dims);
    Py_DECREF(descr);
    return nullptr;
  }
  int flags = NPY_ARRAY_ALIGNED;
  if (writeable) flags |= NPY_ARRAY_WRITEABLE;
  if (fortran) flags |= NPY_ARRAY_F_CONTIGUOUS;
  PyObject* array =
      PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims, nullptr, data, flags, nullptr);
  if (array == nullptr) {
    deallocate(data);
    return nullptr;
  }
  auto* fields = reinterpret_cast<PyArrayObject_fields*>(array);
  Py_XSETREF(fields->mem_handler, Py_NewRef(handler_capsule));
  fields->flags |= NPY_ARRAY_OWNDATA;
  return reinterpret_cast<PyArrayObject*>(array);
}

}  // namespace functrans
