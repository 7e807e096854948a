// Pointers that share what they point to. The GIL guards the counts: std::shared_ptr counts by atomic
// operations, which are 10 ns of each call.
#pragma once

#include <cstddef>
#include <utility>

namespace functrans {

struct Shared {
  std::size_t references = 0;
};

template <typename T>
class SharedPtr {
 public:
  SharedPtr() = default;
  SharedPtr(std::nullptr_t) {}
  explicit SharedPtr(T* object) : object_(object) { ++object->references; }
  SharedPtr(const SharedPtr& other) : object_(other.object_) {
    if (object_ != nullptr) ++object_->references;
  }
  SharedPtr(SharedPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  SharedPtr& operator=(SharedPtr other) noexcept {  // what was here dies last
    std::swap(object_, other.object_);
    return *this;
  }
  ~SharedPtr() {
    if (object_ != nullptr && --object_->references == 0) delete object_;
  }

  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  std::size_t use_count() const { return object_ == nullptr ? 0 : object_->references; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const SharedPtr& a, const SharedPtr& b) { return a.object_ == b.object_; }
  friend bool operator!=(const SharedPtr& a, const SharedPtr& b) { return a.object_ != b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace functrans
