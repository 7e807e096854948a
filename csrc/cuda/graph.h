// CUDA graphs of steps that follow each other: all by one launch.
#pragma once

#include "cuda/driver.h"
#include "cuda/graph_nodes.h"
#include "cuda/steps.h"

#include <array>
#include <cstdint>
#include <vector>

namespace functrans::cuda {

struct StepRange {
  Step* first;
  std::size_t count;
  std::size_t size() const { return count; }
  Step& operator[](std::size_t i) const { return first[i]; }
  Step* begin() const { return first; }
  Step* end() const { return first + count; }
};

// The graphs of some steps, each for a set of addresses. The program's mutex is held and the
// context is current in every call.
class GraphCache {
 public:
  GraphCache() = default;
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;
  ~GraphCache();

  // Replays the steps with these addresses, the last of which is the serial number of the groups
  // that collectives are in; false where launching them one by one is cheaper.
  bool run(StepRange steps, const NodeSource& source, const std::vector<CUdeviceptr>& bases,
           CUstream stream);
  std::uint64_t built() const { return built_; }
  std::uint64_t patched() const { return patched_; }
  void clear() noexcept;

 private:
  struct Graph {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    std::vector<CUgraphNode> nodes;  // one per step
    std::vector<CUdeviceptr> bases;
    std::uint64_t used = 0;
  };
  static constexpr std::size_t kGraphs = 4;

  Graph& build(StepRange steps, const NodeSource& source, const std::vector<CUdeviceptr>& bases);
  bool patch(Graph& graph, StepRange steps, const NodeSource& source,
             const std::vector<CUdeviceptr>& bases);
  void forget_other_groups(CUdeviceptr serial);
  bool seen_lately(std::uint64_t hash);
  static void destroy(Graph& graph) noexcept;

  std::vector<Graph> graphs_;
  std::array<std::uint64_t, 8> lately_{};
  std::size_t missed_ = 0;
  std::uint64_t tick_ = 0;
  std::uint64_t built_ = 0;
  std::uint64_t patched_ = 0;
};

}  // namespace functrans::cuda
