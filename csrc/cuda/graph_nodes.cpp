#include "cuda/graph_nodes.h"

#include "cuda/nccl.h"

#include <algorithm>
#include <string>

namespace functrans::cuda {
namespace {

// The nodes of graphs have pitches, which the driver bounds.
constexpr std::size_t kLargestNode = std::size_t{1} << 31;
constexpr int kOldestWithLoops = 12040;

// Sets those of four conditions that the mask names, by two flags; a null flag holds. A loop goes on
// where both hold. The first end follows where the first does not, the second end where only the
// second does not. The driver knows the function that sets a condition.
constexpr char kFlags[] = R"(.version 6.0
.target sm_50
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 condition, .param .b32 value);
.visible .entry decide(.param .u64 first_flag, .param .u64 second_flag, .param .u64 going,
                       .param .u64 again, .param .u64 first_end, .param .u64 second_end,
                       .param .u32 mask)
{
  .reg .pred %at, %both, %p, %q, %chosen;
  .reg .b16 %flag;
  .reg .b32 %first, %second, %value, %mask, %bit;
  .reg .b64 %place, %condition;
  ld.param.u32 %mask, [mask];
  mov.u32 %first, 1;
  mov.u32 %second, 1;
  ld.param.u64 %place, [first_flag];
  setp.ne.u64 %at, %place, 0;
  @!%at bra SECOND;
  ld.global.u8 %flag, [%place];
  cvt.u32.u16 %first, %flag;
SECOND:
  ld.param.u64 %place, [second_flag];
  setp.ne.u64 %at, %place, 0;
  @!%at bra DECIDE;
  ld.global.u8 %flag, [%place];
  cvt.u32.u16 %second, %flag;
DECIDE:
  setp.ne.u32 %p, %first, 0;
  setp.ne.u32 %q, %second, 0;
  and.pred %both, %p, %q;
)";
constexpr char kSet[] = R"(
  {
    .param .b64 to;
    .param .b32 what;
    st.param.b64 [to], %condition;
    st.param.b32 [what], %value;
    call.uni cudaGraphSetConditional, (to, what);
  }
)";

// The instructions that set a condition, if the mask has its bit, to what others give as %value.
std::string set_condition(const char* condition, unsigned bit, const char* value) {
  const std::string after = "AFTER_" + std::to_string(bit);
  return "  and.b32 %bit, %mask, " + std::to_string(bit) +
         ";\n  setp.ne.u32 %chosen, %bit, 0;\n  @!%chosen bra " + after +
         ";\n  ld.param.u64 %condition, [" + condition + "];\n" + value + kSet + after + ":\n";
}

// The launch of a kernel costs 1 us between two small ones, unless it happens while the first runs.
bool launched_early(const Kernel* before, const Kernel& kernel) {
  return driver.GraphAddDependencies != nullptr && before != nullptr && before->waits &&
         kernel.waits;
}

CUcontext context() {
  CUcontext now = nullptr;
  FT_CU(CtxGetCurrent(&now));
  return now;
}

}  // namespace

Kernel decide_kernel() {
  Kernel kernel;
  kernel.name = "decide";
  const char* both = "  selp.u32 %value, 1, 0, %both;";
  kernel.image = kFlags + set_condition("going", 1, both) + set_condition("again", 2, both) +
                 set_condition("first_end", 4, "  selp.u32 %value, 0, 1, %p;") +
                 set_condition("second_end", 8,
                               "  selp.u32 %value, 0, 1, %q;\n  selp.u32 %value, %value, 0, %p;") +
                 "  ret;\n}\n";
  kernel.kinds = "pplllli";
  kernel.threads = 1;
  return kernel;
}

bool graphs_have_loops() noexcept {
  return driver_version() >= kOldestWithLoops && driver.GraphConditionalHandleCreate != nullptr &&
         driver.GraphAddNode != nullptr;
}

bool can_be_node(const Step& step, bool loops) {
  switch (step.kind) {
    case StepKind::launch:
    case StepKind::fill:
    case StepKind::copy: return step.bytes < kLargestNode;
    case StepKind::collective:
    case StepKind::wait: return true;
    case StepKind::until:
      return loops && std::all_of(step.parts.begin(), step.parts.end(), [](const auto& part) {
               return std::all_of(part.begin(), part.end(),
                                  [](const Step& one) { return can_be_node(one, true); });
             });
    // what a library gives to the stream is its own affair
    case StepKind::library:
    case StepKind::host:
    case StepKind::rounds: break;
  }
  return false;
}

struct Chain::Condition {
  ConditionalHandle handle = 0;
};

void Chain::add_kernel(Step& step) {
  const Kernel& kernel = source_.kernels[step.kernel];
  step.bind(source_.bases);
  const KernelNodeParams params = kernel_node(step, kernel);
  const bool early = count_ == 1 && launched_early(last_kernel_, kernel);
  CUgraphNode node = nullptr;
  FT_CU(GraphAddKernelNode(&node, graph_, before(), early ? 0 : count(), &params));
  if (early) FT_CU(GraphAddDependencies(graph_, &last_, &node, &kEarlyLaunch, 1));
  follow(node);
  last_kernel_ = &kernel;
}

CUgraphNode Chain::add(Step& step) {
  if (step.kind == StepKind::launch) {
    add_kernel(step);
    return last_;
  }
  if (step.kind == StepKind::collective) {
    add_collective(step);
    return collective_;
  }
  if (step.kind == StepKind::wait) {
    for (const auto& [number, node] : collectives_) {
      if (number != step.count) continue;
      before_[1] = node;  // collectives are in order: this one is behind all that were waited for
      if (count_ == 0) before_[0] = node;
      count_ = count_ == 0 ? 1 : 2;
    }
    return nullptr;
  }
  if (step.kind == StepKind::until) {
    add_until(step);
  } else if (step.kind == StepKind::fill) {
    const MemsetNodeParams params = memset_node(step, source_.bases);
    CUgraphNode node = nullptr;
    FT_CU(GraphAddMemsetNode(&node, graph_, before(), count(), &params, context()));
    follow(node);
  } else {
    const MemcpyParams params = memcpy_node(step, source_.bases);
    CUgraphNode node = nullptr;
    FT_CU(GraphAddMemcpyNode(&node, graph_, before(), count(), &params, context()));
    follow(node);
  }
  last_kernel_ = nullptr;
  return last_;
}

void Chain::follow(CUgraphNode node) {
  last_ = before_[0] = node;
  count_ = 1;
}

void Chain::add_collective(const Step& step) {
  CUgraphNode after[2] = {};
  std::size_t count = 0;
  if (last_ != nullptr) after[count++] = last_;
  if (collective_ != nullptr) after[count++] = collective_;
  const CUgraph part = capture_collectives(*source_.device, step, source_.bases);
  const CUresult result =
      driver.GraphAddChildGraphNode(&collective_, graph_, count == 0 ? nullptr : after, count, part);
  driver.GraphDestroy(part);  // the node has a copy
  check(result, "GraphAddChildGraphNode");
  collectives_.emplace_back(step.count, collective_);
}

CUgraph capture_collectives(Device& device, const Step& step, const CUdeviceptr* bases) {
  std::vector<CollectiveCall> calls;
  for (const CollectivePart& one : step.collectives) {
    calls.push_back({one.numbers, one.source.in(bases), one.target.in(bases)});
  }
  const CUstream stream = device.capture();
  std::lock_guard<std::mutex> lock(device.capture_mutex);
  CUgraph graph = nullptr;
  FT_CU(StreamBeginCapture(stream, kCaptureThreadLocal));
  try {
    give_collectives(device, calls, stream);
  } catch (const Failure&) {
    if (driver.StreamEndCapture(stream, &graph) == kSuccess) driver.GraphDestroy(graph);
    throw;
  }
  FT_CU(StreamEndCapture(stream, &graph));
  return graph;
}

void Chain::add_all(std::vector<Step>& steps) {
  for (Step& step : steps) add(step);
}

Chain::Condition Chain::condition(unsigned preset) {
  Condition made;
  FT_CU(GraphConditionalHandleCreate(&made.handle, graph_, context(), preset, kPresetAtLaunch));
  return made;
}

Chain Chain::body(const Condition& condition, int type) {
  NodeParams params{};
  params.type = kConditionalNode;
  params.conditional.handle = condition.handle;
  params.conditional.type = type;
  params.conditional.size = 1;
  params.conditional.context = context();
  CUgraphNode node = nullptr;
  FT_CU(GraphAddNode(&node, graph_, before(), nullptr, count(), &params));
  follow(node);
  last_kernel_ = nullptr;
  return Chain(params.conditional.graphs[0], source_);
}

void Chain::decide(const CUdeviceptr* first, const CUdeviceptr* second, const Condition* going,
                   const Condition* again, const Condition* first_end,
                   const Condition* second_end) {
  const Condition* conditions[] = {going, again, first_end, second_end};
  std::uint64_t values[7] = {first == nullptr ? 0 : *first, second == nullptr ? 0 : *second};
  for (unsigned i = 0; i < 4; ++i) {
    if (conditions[i] == nullptr) continue;
    values[2 + i] = conditions[i]->handle;
    values[6] |= 1u << i;
  }
  void* parameters[7];
  for (unsigned i = 0; i < 7; ++i) parameters[i] = &values[i];
  KernelNodeParams params{};
  params.func = source_.decide;
  params.grid_x = params.grid_y = params.grid_z = 1;
  params.block_x = params.block_y = params.block_z = 1;
  params.params = parameters;
  CUgraphNode node = nullptr;
  FT_CU(GraphAddKernelNode(&node, graph_, before(), count(), &params));
  follow(node);
  last_kernel_ = nullptr;
}

// Two iterations a round, from the first side to the second and back. With `ahead` the second one
// runs also where its flag is not set: what it writes is not the result. The flags say on which
// side the loop ends, and whether it does.
void Chain::add_until(Step& loop) {
  const CUdeviceptr flags[] = {loop.places[0].in(source_.bases), loop.places[1].in(source_.bases)};
  const Condition going = condition(0), ends[] = {condition(0), condition(0)};
  add_all(loop.parts[0]);
  decide(nullptr, &flags[0], &going, nullptr, &ends[1], &ends[0]);
  Chain round = body(going, kWhile);
  round.add_all(loop.parts[1]);
  round.add_all(loop.parts[3]);
  if (loop.ahead) {
    round.add_all(loop.parts[4]);
    round.add_all(loop.parts[0]);
    round.decide(&flags[1], &flags[0], &going, nullptr, &ends[1], &ends[0]);
  } else {
    const Condition again = round.condition(0);
    round.decide(&flags[1], nullptr, &going, &again, &ends[1], nullptr);
    Chain back = round.body(again, kIf);
    back.add_all(loop.parts[4]);
    back.add_all(loop.parts[0]);
    back.decide(nullptr, &flags[0], &going, nullptr, nullptr, &ends[0]);
  }
  for (std::size_t side = 0; side < 2; ++side) {
    body(ends[side], kIf).add_all(loop.parts[3 * side + 2]);
  }
}

}  // namespace functrans::cuda
