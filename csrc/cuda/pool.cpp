#include "cuda/pool.h"

#include <algorithm>

namespace functrans::cuda {

namespace {

constexpr std::size_t kSmallest = 256;  // what kernels assume of the alignment of arrays
constexpr std::size_t kLinear = 4096;   // up to here a class per 256 bytes, then 8 per doubling
constexpr std::size_t kSmallLimit = std::size_t{1} << 20;
constexpr std::size_t kUnit = std::size_t{64} << 10;  // large blocks are multiples of this
constexpr std::size_t kGranule = std::size_t{2} << 20;
constexpr std::size_t kSlabBytes = std::size_t{2} << 20;
constexpr std::size_t kSlabBlocks = 64;
// Smaller requests share segments of this size: a cuMemAlloc costs about as much as 100 launches.
constexpr std::size_t kSegment = std::size_t{32} << 20;
constexpr std::size_t kShares = std::size_t{16} << 20;
constexpr std::size_t kLargest = std::size_t{1} << 46;
constexpr int kLookAt = 32;  // free blocks of one bin that are compared

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }
int log2(std::size_t n) { return 63 - __builtin_clzll(n); }

int small_class(std::size_t bytes) {
  if (bytes <= kLinear) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kSmallest);
  const std::size_t last = bytes - 1;
  const int log = log2(last);
  return 16 + (log - 12) * 8 + static_cast<int>((last >> (log - 3)) & 7);
}

std::size_t small_bytes(int size_class) {
  if (size_class < 16) return (static_cast<std::size_t>(size_class) + 1) * kSmallest;
  const int step = size_class - 16;
  const int log = 12 + step / 8;
  return (std::size_t{1} << log) +
         (static_cast<std::size_t>(step % 8) + 1) * (std::size_t{1} << (log - 3));
}

int bin_of(std::size_t bytes) {
  const std::size_t units = bytes / kUnit;
  if (units < 8) return static_cast<int>(units);
  const int log = log2(units);
  return 8 + (log - 3) * 8 + static_cast<int>((units >> (log - 3)) & 7);
}

}  // namespace

Block* Pool::new_block() {
  if (spare_.empty()) return new Block();
  Block* block = spare_.back();
  spare_.pop_back();
  *block = Block();
  return block;
}

void Pool::link(Block* block) {
  const int bin = bin_of(block->bytes);
  block->free = true;
  block->previous = nullptr;
  block->next = bins_[bin];
  if (block->next != nullptr) block->next->previous = block;
  bins_[bin] = block;
  occupied_[bin / 64] |= std::uint64_t{1} << (bin % 64);
}

void Pool::unlink(Block* block) {
  const int bin = bin_of(block->bytes);
  block->free = false;
  if (block->previous != nullptr) {
    block->previous->next = block->next;
  } else {
    bins_[bin] = block->next;
    if (block->next == nullptr) occupied_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
  }
  if (block->next != nullptr) block->next->previous = block->previous;
  block->next = block->previous = nullptr;
}

// The smallest of the free blocks that are looked at and that are large enough.
Block* Pool::find(std::size_t bytes) {
  for (int bin = bin_of(bytes); bin < kBins;) {
    Block* best = nullptr;
    int seen = 0;
    for (Block* one = bins_[bin]; one != nullptr && seen < kLookAt; one = one->next, ++seen) {
      if (one->bytes == bytes) return one;
      if (one->bytes > bytes && (best == nullptr || one->bytes < best->bytes)) best = one;
    }
    if (best != nullptr) return best;
    ++bin;
    std::size_t word = static_cast<std::size_t>(bin) / 64;
    if (word >= occupied_.size()) return nullptr;
    std::uint64_t rest = occupied_[word] >> (bin % 64) << (bin % 64);
    while (rest == 0 && ++word < occupied_.size()) rest = occupied_[word];
    if (rest == 0) return nullptr;
    bin = static_cast<int>(word * 64) + __builtin_ctzll(rest);
  }
  return nullptr;
}

bool Pool::grow(std::size_t bytes) {
  const std::size_t exact = round_up(bytes, kGranule);
  std::size_t size = exact < kShares ? kSegment : exact;
  CUdeviceptr pointer = source_.take(size);
  if (pointer == 0 && size != exact) pointer = source_.take(size = exact);
  if (pointer == 0) return false;
  Block* block = new_block();
  block->pointer = pointer;
  block->bytes = size;
  link(block);
  stats_.reserved += size;
  stats_.peak_reserved = std::max(stats_.peak_reserved, stats_.reserved);
  ++stats_.segments;
  return true;
}

Block* Pool::allocate_large(std::size_t bytes, std::size_t most) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kUnit);
  Block* block = find(size);
  // A block that is far too large is only cut where the device has no other memory.
  if (block != nullptr && block->bytes > most && grow(size)) block = find(size);
  if (block == nullptr) {
    if (!grow(size)) {
      free_slabs();
      block = find(size);  // slabs that were given up may have merged
      if (block == nullptr && (free_segments() == 0 || !grow(size))) return nullptr;
    }
    if (block == nullptr) block = find(size);
  }
  unlink(block);
  // What is left of a segment of one large array stays with it: a small one there would outlive it.
  const bool alone = block->left == nullptr && block->right == nullptr && size >= kShares &&
                     block->bytes - size < kGranule;
  if (block->bytes > size && !alone) {
    Block* rest = new_block();
    rest->pointer = block->pointer + size;
    rest->bytes = block->bytes - size;
    rest->used_until = block->used_until;
    rest->left = block;
    rest->right = block->right;
    if (rest->right != nullptr) rest->right->left = rest;
    block->right = rest;
    block->bytes = size;
    link(rest);
  }
  return block;
}

void Pool::release_large(Block* block) {
  if (Block* right = block->right; right != nullptr && right->free) {
    unlink(right);
    block->bytes += right->bytes;
    block->used_until = std::max(block->used_until, right->used_until);
    block->right = right->right;
    if (block->right != nullptr) block->right->left = block;
    drop_block(right);
  }
  if (Block* left = block->left; left != nullptr && left->free) {
    unlink(left);
    left->bytes += block->bytes;
    left->used_until = std::max(left->used_until, block->used_until);
    left->right = block->right;
    if (left->right != nullptr) left->right->left = left;
    drop_block(block);
    block = left;
  }
  link(block);
}

bool Pool::add_slab(int size_class) {
  const std::size_t size = small_bytes(size_class);
  const std::size_t count =
      std::clamp(kSlabBytes / size, std::size_t{2}, std::max(kSlabBlocks, kUnit / size));
  // Small arrays live long: one in a large segment would keep all of it from the driver.
  Block* memory = allocate_large(count * size, 2 * kSegment);
  if (memory == nullptr) return false;
  auto slab = std::make_unique<Slab>();
  slab->memory = memory;
  slab->size_class = size_class;
  slab->blocks.resize(memory->bytes / size);
  for (std::size_t i = slab->blocks.size(); i-- > 0;) {
    Block& one = slab->blocks[i];
    one.pointer = memory->pointer + i * size;
    one.bytes = size;
    one.used_until = memory->used_until;
    one.slab = slab.get();
    one.free = true;
    one.next = small_[size_class];
    if (one.next != nullptr) one.next->previous = &one;
    small_[size_class] = &one;
  }
  slabs_.push_back(std::move(slab));
  return true;
}

Block* Pool::allocate_small(std::size_t bytes) {
  const int size_class = small_class(bytes);
  if (small_[size_class] == nullptr && !add_slab(size_class)) return nullptr;
  Block* block = small_[size_class];
  small_[size_class] = block->next;
  if (block->next != nullptr) block->next->previous = nullptr;
  block->next = nullptr;
  block->free = false;
  ++block->slab->used;
  return block;
}

// Slabs of which nothing is in use become large blocks again.
void Pool::free_slabs() {
  for (std::unique_ptr<Slab>& slab : slabs_) {
    if (slab->used != 0) continue;
    for (Block& one : slab->blocks) {
      if (one.previous != nullptr) {
        one.previous->next = one.next;
      } else {
        small_[slab->size_class] = one.next;
      }
      if (one.next != nullptr) one.next->previous = one.previous;
      slab->memory->used_until = std::max(slab->memory->used_until, one.used_until);
    }
    release_large(slab->memory);
    slab.reset();
  }
  slabs_.erase(std::remove(slabs_.begin(), slabs_.end(), nullptr), slabs_.end());
}

std::size_t Pool::free_segments() {
  std::size_t freed = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    for (Block* one = bins_[bin]; one != nullptr;) {
      Block* next = one->next;
      if (one->left == nullptr && one->right == nullptr) {
        if (freed == 0) source_.settle();
        unlink(one);
        source_.give(one->pointer);
        freed += one->bytes;
        stats_.reserved -= one->bytes;
        --stats_.segments;
        drop_block(one);
      }
      one = next;
    }
  }
  return freed;
}

Block* Pool::allocate(std::size_t bytes) {
  if (bytes > kLargest) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  Block* block = bytes < kSmallLimit ? allocate_small(bytes) : allocate_large(bytes);
  if (block == nullptr) return nullptr;
  ++stats_.allocations;
  stats_.in_use += block->bytes;
  stats_.peak = std::max(stats_.peak, stats_.in_use);
  stats_.largest = std::max(stats_.largest, block->bytes);
  return block;
}

void Pool::release(Block* block, std::uint64_t used_until) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.in_use -= block->bytes;
  block->used_until = used_until;
  if (block->slab == nullptr) {
    release_large(block);
    return;
  }
  const int size_class = block->slab->size_class;
  --block->slab->used;
  block->free = true;
  block->previous = nullptr;
  block->next = small_[size_class];
  if (block->next != nullptr) block->next->previous = block;
  small_[size_class] = block;
}

std::size_t Pool::release_cached() {
  std::lock_guard<std::mutex> lock(mutex_);
  free_slabs();
  return free_segments();
}

PoolStats Pool::stats() {
  std::lock_guard<std::mutex> lock(mutex_);
  PoolStats result = stats_;
  for (int bin = kBins - 1; bin >= 0 && result.largest_free == 0; --bin) {
    for (Block* one = bins_[bin]; one != nullptr; one = one->next) {
      result.largest_free = std::max(result.largest_free, one->bytes);
    }
  }
  return result;
}

}  // namespace functrans::cuda
