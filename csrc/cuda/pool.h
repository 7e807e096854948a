// A caching pool of device memory in stream order: what is released may be handed out again at
// once, because whoever uses it next does so on the same stream, behind its last use.
#pragma once

#include "cuda/driver_api.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace functrans::cuda {

struct Slab;

// A piece of device memory. Large blocks know their neighbours in the segment that one cuMemAlloc
// gave; small ones are pieces of a slab, which is a large block.
struct Block {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  std::uint64_t used_until = 0;  // position on the timeline of the work that used it last
  Block* left = nullptr;
  Block* right = nullptr;
  Block* next = nullptr;  // among free blocks
  Block* previous = nullptr;
  Slab* slab = nullptr;  // of a small block
  bool free = false;
};

// Small blocks of one size in one large block.
struct Slab {
  Block* memory = nullptr;
  std::vector<Block> blocks;
  int used = 0;
  int size_class = 0;
};

struct PoolStats {
  std::size_t in_use = 0;
  std::size_t peak = 0;
  std::size_t reserved = 0;  // taken from the driver
  std::size_t peak_reserved = 0;
  std::size_t largest = 0;       // allocation so far
  std::size_t largest_free = 0;  // block
  std::uint64_t allocations = 0;
  std::uint64_t segments = 0;
};

// Where the pool's memory comes from.
struct MemorySource {
  virtual CUdeviceptr take(std::size_t bytes) = 0;  // 0 where there is not enough
  virtual void give(CUdeviceptr pointer) = 0;
  virtual void settle() = 0;  // before give: until nothing uses the memory
  virtual ~MemorySource() = default;
};

class Pool {
 public:
  explicit Pool(MemorySource& source) : source_(source) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Null where there is not enough memory, after everything cached has been given back.
  Block* allocate(std::size_t bytes);
  // `used_until`: where the timeline stands after the work that used the block.
  void release(Block* block, std::uint64_t used_until);
  // Gives free segments back to the driver; returns how many bytes.
  std::size_t release_cached();
  PoolStats stats();

 private:
  static constexpr int kSmallClasses = 16 + 8 * 8;
  static constexpr int kBins = 8 + 8 * 40;

  Block* allocate_small(std::size_t bytes);
  Block* allocate_large(std::size_t bytes, std::size_t most = SIZE_MAX);
  void release_large(Block* block);
  Block* find(std::size_t bytes);
  bool grow(std::size_t bytes);
  bool add_slab(int size_class);
  void free_slabs();
  std::size_t free_segments();
  void link(Block* block);
  void unlink(Block* block);
  Block* new_block();
  void drop_block(Block* block) { spare_.push_back(block); }

  MemorySource& source_;
  std::mutex mutex_;
  std::array<Block*, kSmallClasses> small_{};
  std::array<Block*, kBins> bins_{};
  std::array<std::uint64_t, (kBins + 63) / 64> occupied_{};
  std::vector<std::unique_ptr<Slab>> slabs_;
  std::vector<Block*> spare_;
  PoolStats stats_;
};

}  // namespace functrans::cuda
