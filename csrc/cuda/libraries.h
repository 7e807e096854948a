// Functions of cuFFT, cuSOLVER, cuBLAS and NCCL as steps of programs. The libraries are loaded when they
// are asked for; their few functions that are used here are declared from the public documentation.
#pragma once

#include "cuda/device.h"
#include "cuda/steps.h"

#include <string>
#include <vector>

namespace functrans::cuda {

// What one step gives to a library.
struct LibraryCall {
  Device& device;
  const std::vector<std::int64_t>& numbers;
  const std::vector<CUdeviceptr>& pointers;  // of operands, then of results

  std::int64_t number(std::size_t i) const { return numbers[i]; }
  int small(std::size_t i) const { return static_cast<int>(numbers[i]); }
  CUdeviceptr pointer(std::size_t i) const { return pointers[i]; }
};

// Memory of the device's pool while work is given to the compute stream.
class Workspace {
 public:
  Workspace(Device& device, std::size_t bytes)
      : device_(device), block_(bytes == 0 ? nullptr : device.allocate(bytes)) {}
  ~Workspace() {
    if (block_ == nullptr) return;
    device_.timeline.advance();  // what uses it was given since
    device_.release(block_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  CUdeviceptr pointer() const { return block_ == nullptr ? 0 : block_->pointer; }

 private:
  Device& device_;
  Block* block_;
};

inline void* address(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

// Opens one of "cufft", "cusolver", "cublas" and "nccl"; empty, or why it cannot be used.
std::string open_library(const std::string& name, const char* path);

// The function of this name, how many numbers (at least) and pointers it takes; null: none is.
const LibraryFunction* find_library_function(const std::string& name);
// Gives a step to the compute stream; the context is current. Throws Failure.
void run_library(Device& device, const Step& step, const CUdeviceptr* bases);

// Throws for a status of a library that is not 0; `no_memory` is the status that means that.
void check_library(int status, const char* call, int no_memory, const Device& device);

// Throws where a library was not opened before its functions are called.
inline void require_library(bool is_open, const char* name, const Device& device) {
  if (!is_open) throw Failure{Cause::library, kSuccess, name, "it is not open", device.ordinal, 0};
}

// The symbols of an open library; `open` gives them to the tables of the functions.
struct Symbols {
  void* handle;
  std::string absent;  // the first symbol that is not there
  void* find(const char* symbol);
};
void open_cufft(Symbols& symbols);
void open_cusolver(Symbols& symbols);
void open_cublas(Symbols& symbols);

extern const std::vector<LibraryFunction> cufft_functions;
extern const std::vector<LibraryFunction> cusolver_functions;

}  // namespace functrans::cuda
