// SPDX-License-Identifier: Apache-2.0
//
// Post-dominators: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", on the
// reversed graph. Live ranges: the usual liveness equations, with one bit per register in each
// block.
#include "ptx/flow_graph.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/check.h"

namespace mc::ptx {
namespace {

constexpr size_t kBlocksMax = 1 << 15;
constexpr size_t kEdgesMax = 1 << 18;
constexpr size_t kWordsMax = 8 << 20;
constexpr int kRoundsMax = 1000;
constexpr int64_t kWorkMax = 2'000'000'000;

using Graph = std::vector<BasicBlock>;

bool leaves(const Instruction& one) {
  return one.opcode == "ret" || one.opcode == "exit" || one.opcode == "trap";
}

bool ends_block(const Instruction& one) {
  return one.opcode == "bra" || one.opcode == "brx" || leaves(one);
}

std::vector<int> targets_of(const Function& function, const Instruction& one) {
  const Operand& last = one.operands.back();
  if (one.opcode == "bra") return {static_cast<int>(last.value)};
  const auto list = function.branch_targets.find(last.name);
  return list == function.branch_targets.end() ? std::vector<int>() : list->second;
}

size_t count_targets(const Function& function) {
  size_t count = 0;
  for (const Instruction& one : function.instructions) {
    if (one.opcode == "bra") ++count;
    if (one.opcode != "brx") continue;
    const auto list = function.branch_targets.find(one.operands.back().name);
    if (list != function.branch_targets.end()) count += list->second.size();
  }
  return count;
}

// The beginnings of blocks: branch targets and instructions after a branch.
std::vector<int> block_starts(const Function& function) {
  const int size = static_cast<int>(function.instructions.size());
  std::set<int> starts = {0};
  for (int i = 0; i < size; ++i) {
    const Instruction& one = function.instructions[static_cast<size_t>(i)];
    if (!ends_block(one)) continue;
    starts.insert(i + 1);
    if (leaves(one)) continue;
    for (const int target : targets_of(function, one)) starts.insert(target);
  }
  starts.erase(size);
  return {starts.begin(), starts.end()};
}

void link(const Function& function, Graph& graph, const std::vector<int>& starts) {
  const int exit = static_cast<int>(graph.size()) - 1;
  auto block_of = [&](int instruction) {
    MC_CHECK(instruction >= 0);  // The parser resolved each label.
    const auto found = std::lower_bound(starts.begin(), starts.end(), instruction);
    return found == starts.end() ? exit : static_cast<int>(found - starts.begin());
  };
  for (BasicBlock& block : graph) {
    if (block.begin == block.end) continue;
    const Instruction& last = function.instructions[static_cast<size_t>(block.end - 1)];
    if (leaves(last)) {
      block.next.push_back(exit);
    } else if (ends_block(last)) {
      for (const int target : targets_of(function, last)) block.next.push_back(block_of(target));
    }
    if (!ends_block(last) || last.guard >= 0) block.next.push_back(block_of(block.end));
  }
}

// The blocks in postorder: apart from loops, each block comes after its successors.
std::vector<int> order_from_exit(const Graph& graph) {
  std::vector<std::vector<int>> before(graph.size());
  for (size_t b = 0; b < graph.size(); ++b) {
    for (const int next : graph[b].next)
      before[static_cast<size_t>(next)].push_back(static_cast<int>(b));
  }
  const int exit = static_cast<int>(graph.size()) - 1;
  std::vector<bool> seen(graph.size(), false);
  std::vector<int> order;
  std::vector<std::pair<int, size_t>> stack = {{exit, 0}};
  seen[static_cast<size_t>(exit)] = true;
  while (!stack.empty()) {
    auto& [block, k] = stack.back();
    const auto& from = before[static_cast<size_t>(block)];
    if (k == from.size()) {
      order.push_back(block);
      stack.pop_back();
      continue;
    }
    const int next = from[k++];
    if (seen[static_cast<size_t>(next)]) continue;
    seen[static_cast<size_t>(next)] = true;
    stack.push_back({next, 0});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Counts its steps down in work.
int common_join(const Graph& graph, const std::vector<int>& number, int x, int y, int64_t& work) {
  auto at = [&](int block) { return number[static_cast<size_t>(block)]; };
  for (; x != y; --work) {
    int& later = at(x) > at(y) ? x : y;
    later = graph[static_cast<size_t>(later)].join;
  }
  return x;
}

Status find_joins(Graph& graph) {
  const std::vector<int> order = order_from_exit(graph);
  const int exit = static_cast<int>(graph.size()) - 1;
  MC_CHECK(order.front() == exit);
  std::vector<int> number(graph.size(), -1);
  for (size_t k = 0; k < order.size(); ++k)
    number[static_cast<size_t>(order[k])] = static_cast<int>(k);
  graph.back().join = exit;
  bool changed = true;
  int64_t work = kWorkMax;
  for (int round = 0; changed; ++round) {
    if (round > kRoundsMax || work < 0) {
      return Error{ErrorCode::kUnsupported, "its flow is too complex"};
    }
    changed = false;
    for (const int block : order) {
      if (block == exit) continue;
      int join = -1;
      for (const int next : graph[static_cast<size_t>(block)].next) {
        if (graph[static_cast<size_t>(next)].join < 0) continue;
        join = join < 0 ? next : common_join(graph, number, next, join, work);
      }
      if (work < 0) break;
      if (join == graph[static_cast<size_t>(block)].join) continue;
      graph[static_cast<size_t>(block)].join = join;
      changed = true;
    }
  }
  return ok();
}

// ---- Registers.
constexpr std::string_view kWritesNone[] = {
    "st",      "stmatrix", "bra",           "brx",           "ret",     "exit",
    "trap",    "bar",      "barrier",       "red",           "cp",      "membar",
    "fence",   "prefetch", "prefetchu",     "call",          "discard", "nanosleep",
    "pmevent", "brkpt",    "applypriority", "griddepcontrol"};

bool writes_none(const Instruction& one) {
  if (one.opcode == "wmma") return one.has("store");
  if (one.opcode == "bar" || one.opcode == "barrier") return !one.has("red");
  return std::find(std::begin(kWritesNone), std::end(kWritesNone), one.opcode) !=
         std::end(kWritesNone);
}

void collect(const Operand& operand, bool is_result, RegisterUse& use) {
  const bool is_address = operand.kind == Operand::Kind::kAddress;
  if (operand.id >= 0) (is_result && !is_address ? use.writes : use.reads).push_back(operand.id);
  for (const Operand& part : operand.parts) collect(part, is_result, use);
}

class Liveness {
 public:
  Liveness(const Function& function, const Graph& graph)
      : function_(function),
        graph_(graph),
        words_((function.registers.size() + 63) / 64),
        lives_(function.registers.size()) {}

  Result<std::vector<Life>> run() {
    if (words_ * graph_.size() > kWordsMax) return too_complex();
    for (std::vector<uint64_t>* rows : {&in_, &reads_, &writes_}) {
      rows->assign(words_ * graph_.size(), 0);
    }
    for (size_t b = 0; b + 1 < graph_.size(); ++b) scan(b);
    size_t edges = 0;
    for (const BasicBlock& block : graph_) edges += block.next.size();
    int64_t work = kWorkMax;
    while (flow_back()) {
      work -= static_cast<int64_t>(words_ * (edges + graph_.size()));
      if (work < 0) return too_complex();
    }
    for (size_t b = 0; b + 1 < graph_.size(); ++b) extend(b);
    for (size_t id = 0; id < lives_.size(); ++id) lives_[id].is_unset = in_[id / 64] >> id % 64 & 1;
    return std::move(lives_);
  }

 private:
  static Error too_complex() {
    return {ErrorCode::kUnsupported, "it has too many blocks and registers"};
  }

  void touch(int id, int at) {
    Life& life = lives_[static_cast<size_t>(id)];
    life.first = std::min(life.first, at);
    life.last = std::max(life.last, at);
  }

  void scan(size_t block) {
    uint64_t *reads = reads_.data() + block * words_, *writes = writes_.data() + block * words_;
    for (int i = graph_[block].begin; i < graph_[block].end; ++i) {
      const Instruction& one = function_.instructions[static_cast<size_t>(i)];
      const RegisterUse use = register_use(one);
      for (const int id : use.reads) {
        const uint64_t bit = uint64_t{1} << (id % 64);
        if (!(writes[id / 64] & bit)) reads[id / 64] |= bit;
        touch(id, i);
        ++lives_[static_cast<size_t>(id)].reads;
      }
      for (const int id : use.writes) {
        // A guarded write keeps the other lanes' values.
        if (one.guard < 0) writes[id / 64] |= uint64_t{1} << (id % 64);
        touch(id, i);
        ++lives_[static_cast<size_t>(id)].writes;
      }
    }
  }

  uint64_t out(size_t block, size_t word) const {
    uint64_t bits = 0;
    for (const int next : graph_[block].next)
      bits |= in_[static_cast<size_t>(next) * words_ + word];
    return bits;
  }

  bool flow_back() {
    bool changed = false;
    for (size_t b = graph_.size() - 1; b-- > 0;) {
      for (size_t word = 0; word < words_; ++word) {
        const size_t at = b * words_ + word;
        const uint64_t live = reads_[at] | (out(b, word) & ~writes_[at]);
        changed |= live != in_[at];
        in_[at] = live;
      }
    }
    return changed;
  }

  void extend(size_t block) {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t bits = in_[block * words_ + word]; bits != 0; bits &= bits - 1) {
        touch(static_cast<int>(word * 64) + __builtin_ctzll(bits), graph_[block].begin);
      }
      for (uint64_t bits = out(block, word); bits != 0; bits &= bits - 1) {
        touch(static_cast<int>(word * 64) + __builtin_ctzll(bits), graph_[block].end - 1);
      }
    }
  }

  const Function& function_;
  const Graph& graph_;
  size_t words_;
  std::vector<Life> lives_;
  std::vector<uint64_t> in_, reads_, writes_;
};

}  // namespace

Result<std::vector<BasicBlock>> flow_graph(const Function& function) {
  if (count_targets(function) > kEdgesMax) {
    return Error{ErrorCode::kUnsupported, "it has too many branches"};
  }
  const std::vector<int> starts = block_starts(function);
  const int size = static_cast<int>(function.instructions.size());
  if (starts.size() > kBlocksMax) {
    return Error{ErrorCode::kUnsupported, "it has too many branches"};
  }
  Graph graph(starts.size() + 1);
  for (size_t b = 0; b < starts.size(); ++b) {
    graph[b].begin = starts[b];
    graph[b].end = b + 1 < starts.size() ? starts[b + 1] : size;
    MC_CHECK(graph[b].begin < graph[b].end);
  }
  graph.back().begin = graph.back().end = size;
  link(function, graph, starts);
  MC_TRY_VOID(find_joins(graph), "flow of control");
  return graph;
}

RegisterUse register_use(const Instruction& instruction) {
  RegisterUse use;
  const bool has_result = !writes_none(instruction);
  for (size_t k = 0; k < instruction.operands.size(); ++k) {
    collect(instruction.operands[k], has_result && k == 0, use);
  }
  if (instruction.guard >= 0) use.reads.push_back(instruction.guard);
  return use;
}

Result<std::vector<Life>> lives_of(const Function& function, const std::vector<BasicBlock>& graph) {
  return Liveness(function, graph).run();
}

}  // namespace mc::ptx
