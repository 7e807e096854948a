#include "cuda/graph.h"

#include <algorithm>

namespace functrans::cuda {
namespace {

// What the host spends, in microseconds: the launch of a graph, of a kernel, and putting another
// address into a node. They decide between a changed graph and single launches.
constexpr double kReplay = 2.8;
constexpr double kLaunch = 2.0;
constexpr double kPatch = 0.8;
constexpr double kCapture = 12.0;  // a collective, or giving it to a stream

std::uint64_t hash_of(const std::vector<CUdeviceptr>& bases) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (CUdeviceptr base : bases) hash = (hash ^ base) * 0x9e3779b97f4a7c15 + (hash >> 29);
  return hash | 1;
}

}  // namespace

GraphCache::~GraphCache() { clear(); }

void GraphCache::clear() noexcept {
  if (!forked) {
    for (Graph& graph : graphs_) destroy(graph);
  }
  graphs_.clear();
}

void GraphCache::destroy(Graph& graph) noexcept {
  if (graph.executable != nullptr) driver.GraphExecDestroy(graph.executable);
  if (graph.graph != nullptr) driver.GraphDestroy(graph.graph);
  graph.executable = nullptr;
  graph.graph = nullptr;
}

GraphCache::Graph& GraphCache::build(StepRange steps, const NodeSource& source,
                                     const std::vector<CUdeviceptr>& bases) {
  graphs_.emplace_back();
  Graph& graph = graphs_.back();
  try {
    FT_CU(GraphCreate(&graph.graph, 0));
    graph.nodes.reserve(steps.size());
    Chain chain(graph.graph, source);
    for (Step& step : steps) graph.nodes.push_back(chain.add(step));
    FT_CU(GraphInstantiate(&graph.executable, graph.graph, 0));
  } catch (...) {
    destroy(graph);
    graphs_.pop_back();
    throw;
  }
  graph.bases = bases;
  ++built_;
  return graph;
}

// Launches that are under way keep the addresses they were launched with.
bool GraphCache::patch(Graph& graph, StepRange steps, const NodeSource& source,
                       const std::vector<CUdeviceptr>& bases) {
  CUcontext context = nullptr;
  FT_CU(CtxGetCurrent(&context));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    if (!step.differs(graph.bases.data(), bases.data())) continue;
    CUresult result;
    if (step.kind == StepKind::launch) {
      step.bind(bases.data());
      const KernelNodeParams node = kernel_node(step, source.kernels[step.kernel]);
      result = driver.GraphExecKernelNodeSetParams(graph.executable, graph.nodes[i], &node);
    } else if (step.kind == StepKind::fill) {
      const MemsetNodeParams node = memset_node(step, bases.data());
      result =
          driver.GraphExecMemsetNodeSetParams(graph.executable, graph.nodes[i], &node, context);
    } else if (step.kind == StepKind::collective) {
      const CUgraph part = capture_collectives(*source.device, step, bases.data());
      result = driver.GraphExecChildGraphNodeSetParams(graph.executable, graph.nodes[i], part);
      driver.GraphDestroy(part);
    } else {
      const MemcpyParams node = memcpy_node(step, bases.data());
      result =
          driver.GraphExecMemcpyNodeSetParams(graph.executable, graph.nodes[i], &node, context);
    }
    if (result != kSuccess) return false;
  }
  graph.bases = bases;
  ++patched_;
  return true;
}

bool GraphCache::seen_lately(std::uint64_t hash) {
  if (std::find(lately_.begin(), lately_.end(), hash) != lately_.end()) return true;
  lately_[missed_++ % lately_.size()] = hash;
  return false;
}

// Graphs of groups that were given up: their collectives are of no more use.
void GraphCache::forget_other_groups(CUdeviceptr serial) {
  for (Graph& graph : graphs_) {
    if (graph.bases.back() != serial) destroy(graph);
  }
  const auto gone = [](const Graph& graph) { return graph.executable == nullptr; };
  graphs_.erase(std::remove_if(graphs_.begin(), graphs_.end(), gone), graphs_.end());
}

bool GraphCache::run(StepRange steps, const NodeSource& source,
                     const std::vector<CUdeviceptr>& bases, CUstream stream) {
  forget_other_groups(bases.back());
  Graph* chosen = nullptr;
  Graph* oldest = nullptr;
  for (Graph& graph : graphs_) {
    if (graph.bases == bases) chosen = &graph;
    if (oldest == nullptr || graph.used < oldest->used) oldest = &graph;
  }
  if (chosen == nullptr) {
    // Addresses that come again get a graph of their own: loops return to the same few sets.
    if (graphs_.empty() || (seen_lately(hash_of(bases)) && graphs_.size() < kGraphs)) {
      chosen = &build(steps, source, bases);
    } else {
      double changes = kReplay, launches = 0;
      for (const Step& step : steps) {
        if (step.kind == StepKind::until) return false;  // of bodies nothing is changed
        const bool collective = step.kind == StepKind::collective;
        if (step.kind != StepKind::wait) launches += collective ? kCapture : kLaunch;
        if (step.differs(oldest->bases.data(), bases.data())) {
          changes += collective ? kCapture : kPatch;
        }
      }
      if (changes > launches) return false;
      if (patch(*oldest, steps, source, bases)) {
        chosen = oldest;
      } else {  // half changed: of no more use
        destroy(*oldest);
        graphs_.erase(graphs_.begin() + (oldest - graphs_.data()));
        chosen = &build(steps, source, bases);
      }
    }
  }
  chosen->used = ++tick_;
  FT_CU(GraphLaunch(chosen->executable, stream));
  return true;
}

}  // namespace functrans::cuda
