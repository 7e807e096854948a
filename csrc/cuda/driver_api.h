// The part of the CUDA driver interface that is used here, declared from its public documentation:
// there are no CUDA headers at build time, and no library at link time.
#pragma once

#include <cstddef>

namespace functrans::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using ConditionalHandle = unsigned long long;

enum : CUresult {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
};

enum : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryOptIn = 97,
};
constexpr int kFuncMaxDynamicShared = 8;
constexpr int kFuncPreferredCarveout = 9;  // percent of shared memory
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kHostAllocPortable = 1;
constexpr int kMemoryTypeDevice = 2;
constexpr int kPointerDeviceOrdinal = 9;

struct KernelNodeParams {
  CUfunction func;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  unsigned shared_bytes;
  void** params;
  void** extra;
  void* kern;
  CUcontext ctx;
};

struct MemsetNodeParams {
  CUdeviceptr dst;
  std::size_t pitch;
  unsigned value;
  unsigned element_size;
  std::size_t width;
  std::size_t height;
};

struct MemcpyParams {
  std::size_t src_x, src_y, src_z, src_lod;
  int src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  void* src_array;
  void* reserved0;
  std::size_t src_pitch, src_height;
  std::size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  void* dst_array;
  void* reserved1;
  std::size_t dst_pitch, dst_height;
  std::size_t width, height, depth;
};

// How a node of a graph waits for another.
struct EdgeData {
  unsigned char from_port = 0, to_port = 0, type = 0, reserved[5] = {};
};
// The node is a kernel that is launched while the one before it runs, and waits for that itself.
inline constexpr EdgeData kEarlyLaunch{1, 0, 1, {}};

constexpr int kCaptureThreadLocal = 1;

constexpr int kConditionalNode = 13;
enum : int { kIf = 0, kWhile = 1 };
constexpr unsigned kPresetAtLaunch = 1;

// The parameters of a node of any kind, of which conditional ones are used here.
struct NodeParams {
  int type;
  int reserved0[3];
  union {
    struct {
      ConditionalHandle handle;
      int type;
      unsigned size;
      CUgraph* graphs;  // the driver's: the bodies that it made
      CUcontext context;
    } conditional;
    long long reserved1[29];
  };
  long long reserved2;
};

// X(member, exported symbol, parameters)
#define FT_CUDA_FUNCTIONS(X)                                                                      \
  X(Init, "cuInit", (unsigned))                                                                   \
  X(DriverGetVersion, "cuDriverGetVersion", (int*))                                               \
  X(GetErrorName, "cuGetErrorName", (CUresult, const char**))                                     \
  X(GetErrorString, "cuGetErrorString", (CUresult, const char**))                                 \
  X(DeviceGetCount, "cuDeviceGetCount", (int*))                                                   \
  X(DeviceGet, "cuDeviceGet", (CUdevice*, int))                                                   \
  X(DeviceGetName, "cuDeviceGetName", (char*, int, CUdevice))                                     \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, CUdevice))                            \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (std::size_t*, CUdevice))                              \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                   \
  X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext*))                                               \
  X(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                                \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                           \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext*))                                            \
  X(CtxSynchronize, "cuCtxSynchronize", ())                                                       \
  X(MemGetInfo, "cuMemGetInfo_v2", (std::size_t*, std::size_t*))                                  \
  X(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr*, std::size_t))                                       \
  X(MemFree, "cuMemFree_v2", (CUdeviceptr))                                                       \
  X(MemHostAlloc, "cuMemHostAlloc", (void**, std::size_t, unsigned))                              \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, std::size_t, CUstream))   \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, std::size_t, CUstream))         \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))   \
  X(MemcpyPeerAsync, "cuMemcpyPeerAsync",                                                         \
    (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream))                      \
  X(MemsetD8Async, "cuMemsetD8Async", (CUdeviceptr, unsigned char, std::size_t, CUstream))        \
  X(PointerGetAttribute, "cuPointerGetAttribute", (void*, int, CUdeviceptr))                      \
  X(StreamCreate, "cuStreamCreate", (CUstream*, unsigned))                                        \
  X(StreamCreateWithPriority, "cuStreamCreateWithPriority", (CUstream*, unsigned, int))           \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int))                               \
  X(StreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph*))                                 \
  X(CtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", (int*, int*))                       \
  X(StreamSynchronize, "cuStreamSynchronize", (CUstream))                                         \
  X(StreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                          \
  X(EventCreate, "cuEventCreate", (CUevent*, unsigned))                                           \
  X(EventDestroy, "cuEventDestroy_v2", (CUevent))                                                 \
  X(EventRecord, "cuEventRecord", (CUevent, CUstream))                                            \
  X(EventQuery, "cuEventQuery", (CUevent))                                                        \
  X(EventSynchronize, "cuEventSynchronize", (CUevent))                                            \
  X(EventElapsedTime, "cuEventElapsedTime", (float*, CUevent, CUevent))                           \
  X(ModuleLoadData, "cuModuleLoadData", (CUmodule*, const void*))                                 \
  X(ModuleUnload, "cuModuleUnload", (CUmodule))                                                   \
  X(ModuleGetFunction, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))               \
  X(FuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int, int))                               \
  X(LaunchKernel, "cuLaunchKernel",                                                               \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,  \
     void**, void**))                                                                             \
  X(GraphCreate, "cuGraphCreate", (CUgraph*, unsigned))                                           \
  X(GraphDestroy, "cuGraphDestroy", (CUgraph))                                                    \
  X(GraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const KernelNodeParams*))            \
  X(GraphAddMemcpyNode, "cuGraphAddMemcpyNode",                                                   \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const MemcpyParams*, CUcontext))     \
  X(GraphAddMemsetNode, "cuGraphAddMemsetNode",                                                   \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, const MemsetNodeParams*, CUcontext)) \
  X(GraphAddChildGraphNode, "cuGraphAddChildGraphNode",                                           \
    (CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, CUgraph))                            \
  X(GraphExecChildGraphNodeSetParams, "cuGraphExecChildGraphNodeSetParams",                       \
    (CUgraphExec, CUgraphNode, CUgraph))                                                          \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags",                                              \
    (CUgraphExec*, CUgraph, unsigned long long))                                                  \
  X(GraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams_v2",                            \
    (CUgraphExec, CUgraphNode, const KernelNodeParams*))                                          \
  X(GraphExecMemcpyNodeSetParams, "cuGraphExecMemcpyNodeSetParams",                               \
    (CUgraphExec, CUgraphNode, const MemcpyParams*, CUcontext))                                   \
  X(GraphExecMemsetNodeSetParams, "cuGraphExecMemsetNodeSetParams",                               \
    (CUgraphExec, CUgraphNode, const MemsetNodeParams*, CUcontext))                               \
  X(GraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                        \
  X(GraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))
// those of newer drivers: null where there are none
#define FT_CUDA_NEWER_FUNCTIONS(X)                                                                \
  X(GraphAddDependencies, "cuGraphAddDependencies_v2",                                            \
    (CUgraph, const CUgraphNode*, const CUgraphNode*, const EdgeData*, std::size_t))              \
  X(GraphAddNode, "cuGraphAddNode_v2",                                                            \
    (CUgraphNode*, CUgraph, const CUgraphNode*, const EdgeData*, std::size_t, NodeParams*))       \
  X(GraphConditionalHandleCreate, "cuGraphConditionalHandleCreate",                               \
    (ConditionalHandle*, CUgraph, CUcontext, unsigned, unsigned))

}  // namespace functrans::cuda
