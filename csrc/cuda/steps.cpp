#include "cuda/steps.h"

#include "cuda/driver.h"

namespace functrans::cuda {

bool Step::differs(const CUdeviceptr* a, const CUdeviceptr* b) const {
  switch (kind) {
    case StepKind::launch:
      for (const PointerArgument& one : pointers) {
        if (a[one.place.base] != b[one.place.base]) return true;
      }
      return false;
    case StepKind::copy:
      if (a[source.base] != b[source.base]) return true;
      [[fallthrough]];
    case StepKind::fill: return a[target.base] != b[target.base];
    case StepKind::collective:
      for (const CollectivePart& one : collectives) {
        if (a[one.source.base] != b[one.source.base]) return true;
        if (a[one.target.base] != b[one.target.base]) return true;
      }
      return false;
    case StepKind::wait: return false;
    case StepKind::host:
    case StepKind::library:
    case StepKind::rounds:
    case StepKind::until: break;
  }
  return true;
}

void Step::go_on(std::int64_t rounds) {
  for (PointerArgument& one : pointers) one.place.offset += rounds * one.place.stride;
  for (Place& one : places) one.offset += rounds * one.stride;
  source.offset += rounds * source.stride;
  target.offset += rounds * target.stride;
}

KernelNodeParams kernel_node(const Step& step, const Kernel& kernel) {
  KernelNodeParams node{};
  node.func = kernel.function;
  node.grid_x = step.grid[0];
  node.grid_y = step.grid[1];
  node.grid_z = step.grid[2];
  node.block_x = kernel.threads;
  node.block_y = node.block_z = 1;
  node.shared_bytes = kernel.shared;
  node.params = const_cast<void**>(step.parameters.data());
  return node;
}

MemsetNodeParams memset_node(const Step& step, const CUdeviceptr* bases) {
  MemsetNodeParams node{};
  node.dst = step.target.in(bases);
  node.value = step.value;
  node.element_size = 1;
  node.width = step.bytes;
  node.height = 1;
  return node;
}

MemcpyParams memcpy_node(const Step& step, const CUdeviceptr* bases) {
  MemcpyParams node{};
  node.src_memory_type = node.dst_memory_type = kMemoryTypeDevice;
  node.src_device = step.source.in(bases);
  node.dst_device = step.target.in(bases);
  node.src_pitch = node.dst_pitch = step.bytes;
  node.src_height = node.dst_height = 1;
  node.width = step.bytes;
  node.height = node.depth = 1;
  return node;
}

void enqueue(Step& step, const Kernel* kernels, const CUdeviceptr* bases, CUstream stream) {
  switch (step.kind) {
    case StepKind::launch: {
      step.bind(bases);
      const Kernel& kernel = kernels[step.kernel];
      const CUresult result = driver.LaunchKernel(
          kernel.function, step.grid[0], step.grid[1], step.grid[2], kernel.threads, 1, 1,
          kernel.shared, stream, step.parameters.data(), nullptr);
      check(result, "LaunchKernel");
      return;
    }
    case StepKind::fill:
      FT_CU(MemsetD8Async(step.target.in(bases), step.value, step.bytes, stream));
      return;
    case StepKind::copy:
      FT_CU(MemcpyDtoDAsync(step.target.in(bases), step.source.in(bases), step.bytes, stream));
      return;
    case StepKind::host:
    case StepKind::library:
    case StepKind::rounds:
    case StepKind::until:
    case StepKind::collective:
    case StepKind::wait: return;
  }
}

}  // namespace functrans::cuda
