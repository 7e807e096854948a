// Steps as the nodes of a CUDA graph, each after the one before; loops are conditional nodes.
// Collectives are a second chain: each comes after the one before and after the steps before it, and
// steps come after it only from the one on that waits for it.
#pragma once

#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/steps.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace functrans::cuda {

// What the nodes of a call are made of.
struct NodeSource {
  const Kernel* kernels;
  const CUdeviceptr* bases;
  CUfunction decide;  // null where a graph cannot have loops
  Device* device;
};

// What the collectives of a step launch, as a graph of its own, which the caller destroys.
CUgraph capture_collectives(Device& device, const Step& step, const CUdeviceptr* bases);

// The kernel that sets conditions of a graph by the flags of a loop, as PTX.
Kernel decide_kernel();
// Whether the driver has graphs with loops.
bool graphs_have_loops() noexcept;
// Whether a graph can have the step, with loops or without.
bool can_be_node(const Step& step, bool loops);

// A graph that gets nodes.
class Chain {
 public:
  Chain(CUgraph graph, const NodeSource& source) : graph_(graph), source_(source) {}
  // The node of a step, after the last one; of a loop its last node, of a wait none.
  CUgraphNode add(Step& step);
  void add_all(std::vector<Step>& steps);

 private:
  struct Condition;
  void add_kernel(Step& step);
  void add_until(Step& loop);
  Condition condition(unsigned preset);
  // A graph that runs if, or while, the condition holds.
  Chain body(const Condition& condition, int type);
  void decide(const CUdeviceptr* first, const CUdeviceptr* second, const Condition* going,
              const Condition* again, const Condition* first_end, const Condition* second_end);
  void add_collective(const Step& step);
  // What the next node comes after, besides what was said last.
  const CUgraphNode* before() const { return count_ == 0 ? nullptr : before_; }
  std::size_t count() const { return count_; }
  void follow(CUgraphNode node);  // it was added: the next one comes after it alone

  CUgraph graph_;
  NodeSource source_;
  CUgraphNode last_ = nullptr;
  CUgraphNode before_[2] = {};
  std::size_t count_ = 0;
  CUgraphNode collective_ = nullptr;  // the last one
  std::vector<std::pair<std::int64_t, CUgraphNode>> collectives_;  // by number
  const Kernel* last_kernel_ = nullptr;  // of the last node, if it is a launch
};

}  // namespace functrans::cuda
