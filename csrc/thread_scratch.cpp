#include "thread_scratch.h"

#include "allocator.h"

#include <cstdlib>

namespace functrans {
namespace {

constexpr std::size_t kLine = 64;
// What a thread keeps, in how many blocks; larger ones are worth the allocator's lock.
constexpr std::size_t kKept = std::size_t{2} << 20, kLargest = std::size_t{1} << 20;
constexpr int kBlocks = 8;

alignas(kLine) char nothing[kLine];

// Blocks are not counted as memory of arrays, as a thread's stack is not.
struct Blocks {
  struct Block {
    char* data = nullptr;
    std::size_t bytes = 0;
    bool taken = false;
  };
  Block blocks[kBlocks];
  std::size_t kept = 0;

  ~Blocks() {
    for (Block& block : blocks) std::free(block.data);
  }

  void drop(Block& block) {
    std::free(block.data);
    kept -= block.bytes;
    block = {};
  }

  // The smallest block that is free and large enough, or a new one; null if there is no place.
  char* take(std::size_t bytes) {
    Block* best = nullptr;
    for (Block& block : blocks) {
      if (block.taken || block.bytes < bytes) continue;
      if (best == nullptr || block.bytes < best->bytes) best = &block;
    }
    if (best == nullptr) best = make(bytes);
    if (best == nullptr) return nullptr;
    best->taken = true;
    return best->data;
  }

  Block* make(std::size_t bytes) {
    bytes = (bytes + bytes / 4 + kLine - 1) / kLine * kLine;  // the next may need a little more
    Block* place = nullptr;
    for (Block& block : blocks) {
      if (block.data == nullptr) place = &block;
    }
    for (Block& block : blocks) {
      if (place != nullptr && kept + bytes <= kKept) break;
      if (block.data == nullptr || block.taken) continue;
      drop(block);
      place = &block;
    }
    if (place == nullptr || kept + bytes > kKept) return nullptr;
    place->data = static_cast<char*>(std::aligned_alloc(kLine, bytes));
    if (place->data == nullptr) return nullptr;
    place->bytes = bytes;
    kept += bytes;
    return place;
  }

  bool give(const char* data) {
    for (Block& block : blocks) {
      if (block.data != data) continue;
      block.taken = false;
      return true;
    }
    return false;
  }
};

thread_local Blocks own;

}  // namespace

ThreadScratch::ThreadScratch(long long bytes) noexcept : data_(nothing) {
  if (bytes <= 0) return;
  const auto wanted = static_cast<std::size_t>(bytes);
  data_ = wanted <= kLargest ? own.take(wanted) : nullptr;
  if (data_ == nullptr) data_ = static_cast<char*>(allocate(wanted));
}

ThreadScratch::~ThreadScratch() {
  if (data_ != nullptr && data_ != nothing && !own.give(data_)) deallocate(data_);
}

}  // namespace functrans
