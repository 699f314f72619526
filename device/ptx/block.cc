// SPDX-License-Identifier: Apache-2.0
//
// A block's memory, its time and its reports: what handlers call, compiled once.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/check.h"
#include "ptx/block_starts.h"
#include "ptx/finding_log.h"
#include "ptx/global_memory.h"
#include "ptx/shadow.h"

namespace mc::ptx {

constexpr size_t kVector = 64;    // Frames and memory begin at multiples of it.
constexpr uint32_t kSlack = 256;  // Words and bytes behind a row, which vectors may touch.
constexpr uint32_t kStackBytes = 32 << 10;  // Local memory for the functions that are called.
constexpr int64_t kStartsMax = 1 << 16;     // For each context.
constexpr size_t kNameMax = 200;
constexpr uint64_t kNearBytes = uint64_t{1} << 32;  // Accesses beyond an array's end name it.
constexpr size_t kCallFramesBytesMax = 256 << 20;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

struct BlockMemory {
  std::unique_ptr<uint8_t, Freed> frames, shared, local;
  std::unique_ptr<uint32_t, Freed> shadow;
  std::vector<std::unique_ptr<uint8_t, Freed>> call_frames;
  std::vector<SiteRange> sites;
  size_t frame_bytes = 0;
};

namespace {

size_t rounded_up(size_t bytes) { return (bytes + kVector - 1) / kVector * kVector; }

// Zeros that take room when they are touched, aligned for vectors.
template <class T>
std::unique_ptr<T, Freed> zeros(size_t count) {
  const size_t bytes = rounded_up(count * sizeof(T) + kVector);
  void* memory = std::aligned_alloc(kVector, bytes);
  MC_CHECK(memory != nullptr);
  std::memset(memory, 0, bytes);
  return std::unique_ptr<T, Freed>(static_cast<T*>(memory));
}

void lay_shadow(Block& block, BlockMemory& memory) {
  const size_t words = (block.shared_bytes >> block.program->granule_shift) + kSlack;
  memory.shadow = zeros<uint32_t>(5 * words);
  uint32_t* rows = memory.shadow.get();
  block.shadow = {rows, rows + words, rows + 2 * words, rows + 3 * words, rows + 4 * words};
  const int shift = block.program->granule_shift;
  uint32_t end = 0;
  for (const SharedArray& array : block.program->shared_arrays) {
    for (uint32_t at = (end + (1U << shift) - 1) >> shift; at < array.begin >> shift; ++at) {
      block.shadow.read_in[at] = kNoArray;
    }
    end = std::max(end, array.end);
  }
}

}  // namespace

BlockMemory* open_block(Block& block, Launch& launch, uint32_t context, int lanes) {
  auto memory = std::make_unique<BlockMemory>();
  const Program& program = *launch.program;
  const size_t warps =
      (launch.threads + static_cast<uint32_t>(lanes) - 1) / static_cast<uint32_t>(lanes);
  block.launch = &launch;
  block.program = &program;
  block.threads = launch.threads;
  block.context = context;
  block.parameters = launch.parameters;
  block.checks_races = launch.checks.races;
  block.shared_bytes = program.shared_bytes + launch.shared_dynamic;
  memory->frame_bytes = rounded_up(program.codes.front()->frame_bytes) + kSlack;
  memory->frames = zeros<uint8_t>(memory->frame_bytes * warps);
  memory->shared = zeros<uint8_t>(block.shared_bytes + kSlack);
  block.shared = memory->shared.get();
  block.local_stride = program.codes.front()->local_bytes + (program.has_calls ? kStackBytes : 0);
  memory->local.reset(static_cast<uint8_t*>(
      std::calloc(warps * static_cast<size_t>(lanes), block.local_stride + 1)));
  MC_CHECK(memory->local != nullptr);
  block.local = memory->local.get();
  block.global = launch.memory->origin();
  block.global_written_in = launch.memory->written_in();
  block.global_writer = launch.memory->writer();
  memory->sites.resize(static_cast<size_t>(program.num_sites) + 1);
  block.sites = memory->sites.data();
  block.launch_epoch = block.epoch = launch.launch_epoch;
  lay_shadow(block, *memory);
  block.memory = memory.get();
  return memory.release();
}

void release_memory(BlockMemory* memory) { delete memory; }

uint8_t* frame_of_warp(BlockMemory* memory, uint32_t warp) {
  return memory->frames.get() + memory->frame_bytes * warp;
}

void start_block(Block& block, uint64_t number) {
  const Launch& launch = *block.launch;
  block.id[0] = static_cast<uint32_t>(number % launch.grid[0]);
  block.id[1] = static_cast<uint32_t>(number / launch.grid[0] % launch.grid[1]);
  block.id[2] = static_cast<uint32_t>(number / launch.grid[0] / launch.grid[1]);
  block.number = number;
  block.first_epoch = ++block.epoch;
  block.stopped = false;
  block.clock = 0;
  launch.starts->add(block.context, block.epoch, number);
}

void close_block(Block& block) {
  std::atomic<uint32_t>& highest = block.launch->highest_epoch;
  uint32_t seen = highest;
  while (seen < block.epoch && !highest.compare_exchange_weak(seen, block.epoch)) {
  }
}

void next_epoch(Block& block) { ++block.epoch; }

bool take_turns(Block& block, int64_t count) {
  Launch& launch = *block.launch;
  if (block.number > launch.stop_block.load(std::memory_order_relaxed)) block.stopped = true;
  return launch.turns_left.fetch_sub(count, std::memory_order_relaxed) >= count;
}

bool take_bytes(Block& block, size_t bytes) {
  const int64_t wanted = static_cast<int64_t>(bytes);
  return block.launch->bytes_left.fetch_sub(wanted, std::memory_order_relaxed) >= wanted;
}

uint8_t* allocate_frame(Block& block, size_t local_bytes) {
  auto& frames = block.memory->call_frames;
  const size_t bytes = block.program->frame_bytes_max + kSlack;
  if ((frames.size() + 1) * bytes > kCallFramesBytesMax) return nullptr;
  if (!take_bytes(block, bytes + local_bytes)) return nullptr;
  frames.push_back(zeros<uint8_t>(bytes));
  return frames.back().get();
}

bool find_allocation(Block& block, uint64_t address, SiteRange& range) {
  const Allocation* allocation = block.launch->memory->find(address);
  if (allocation == nullptr) return false;
  range = {allocation->begin, allocation->end};
  return true;
}

// ---- Reports.
namespace {

ThreadPlace place_of(const Launch& launch, const uint32_t (&block)[3], int thread) {
  const uint32_t t = static_cast<uint32_t>(thread), x = launch.block[0], y = launch.block[1];
  return {{block[0], block[1], block[2]}, {t % x, t / x % y, t / x / y}};
}

ThreadPlace place_of(const Launch& launch, uint64_t block, int thread) {
  const uint64_t x = launch.grid[0], y = launch.grid[1];
  const uint32_t id[3] = {static_cast<uint32_t>(block % x), static_cast<uint32_t>(block / x % y),
                          static_cast<uint32_t>(block / x / y)};
  return place_of(launch, id, thread);
}

Finding finding_at(const Block& block, const Warp& warp, const Step* step, FindingKind kind,
                   int thread, const char* detail) {
  Finding finding;
  finding.kind = kind;
  finding.kernel = block.program->kernel->name.substr(0, kNameMax);
  finding.detail = detail;
  finding.thread = place_of(*block.launch, block.id, thread);
  const auto& instructions = warp.code->function->instructions;
  const size_t index = static_cast<size_t>(step->instruction);
  if (index >= instructions.size()) return finding;
  const Instruction& instruction = instructions[index];
  finding.instruction = instruction.full_name().substr(0, kNameMax);
  finding.line = instruction.location.line;
  const auto& files = block.program->module->files;
  const auto file = files.find(instruction.location.file);
  if (file != files.end()) finding.file = file->second;
  return finding;
}

void add(Block& block, Finding finding) {
  if (ends_launch(finding.kind)) block.stopped = true;
  finding.array.resize(std::min(finding.array.size(), kNameMax));
  block.launch->log->add(block.number, std::move(finding));
}

const SharedArray* array_at(const Program& program, uint32_t at) {
  for (const SharedArray& array : program.shared_arrays) {
    if (at >= array.begin && at < array.end) return &array;
  }
  return nullptr;
}

// The array that ends nearest before an address, for accesses beyond it.
std::string array_before(const Program& program, uint64_t at) {
  std::string name;
  for (const SharedArray& array : program.shared_arrays) {
    if (at >= array.begin) name = array.name;
  }
  return name;
}

std::string bytes_text(uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// The place of an access of global memory, in words without addresses.
std::string global_detail(const Block& block, uint64_t address, uint64_t bytes,
                          std::string& array) {
  const GlobalMemory& memory = *block.launch->memory;
  const Allocation* inside = memory.find(address);
  const Allocation* before = inside != nullptr ? inside : memory.find_before(address);
  if (address < 4096) return "an access at a null pointer";
  const bool is_far = before == nullptr || address - before->end > kNearBytes;
  if (inside == nullptr && is_far) return "an access outside of all allocations";
  array = before->name;
  const std::string size = bytes_text(before->end - before->begin);
  return "an access of " + bytes_text(bytes) + " at byte " +
         std::to_string(address - before->begin) + " of " + size;
}

std::string space_name(Space space) {
  switch (space) {
    case Space::kShared:
      return "shared memory";
    case Space::kLocal:
      return "local memory";
    case Space::kParam:
      return "the parameters";
    default:
      return "global memory";
  }
}

}  // namespace

void report(Block& block, const Warp& warp, const Step* step, FindingKind kind, int thread,
            const char* detail) {
  add(block, finding_at(block, warp, step, kind, thread, detail));
}

void report_barrier(Block& block, const Warp& warp, const Step* step, int thread, int other) {
  Finding finding = finding_at(block, warp, step, FindingKind::kDivergentBarrier, thread,
                               "threads of a block wait at different barriers");
  finding.other = place_of(*block.launch, block.id, other);
  add(block, std::move(finding));
}

void report_access(Block& block, const Warp& warp, const Step* step, bool is_write, int thread,
                   Space space, uint64_t address, int bytes) {
  const uint64_t size = static_cast<uint64_t>(bytes);
  const bool is_misaligned = size > 1 && address % size != 0 && address >= 4096;
  const FindingKind kind = is_misaligned ? FindingKind::kMisaligned
                           : is_write    ? FindingKind::kOutOfBoundsWrite
                                         : FindingKind::kOutOfBoundsRead;
  Finding finding = finding_at(block, warp, step, kind, thread, "");
  if (space == Space::kGlobal) {
    finding.detail = global_detail(block, address, size, finding.array);
  } else {
    if (space == Space::kShared) finding.array = array_before(*block.program, address);
    const uint64_t end = space == Space::kShared  ? block.shared_bytes
                         : space == Space::kLocal ? block.local_stride
                                                  : block.program->parameter_bytes;
    finding.detail = "an access at byte " + std::to_string(address) + " of " + space_name(space) +
                     ", which has " + bytes_text(end);
  }
  if (is_misaligned) finding.detail += ", no multiple of " + bytes_text(size);
  add(block, std::move(finding));
}

void report_shared(Block& block, const Warp& warp, const Step* step, FindingKind kind,
                   uint32_t granule, int thread, int other, const char* detail) {
  Finding finding = finding_at(block, warp, step, kind, thread, detail);
  const SharedArray* array = array_at(*block.program, granule << block.program->granule_shift);
  if (array != nullptr) finding.array = array->name;
  if (other >= 0) finding.other = place_of(*block.launch, block.id, other);
  add(block, std::move(finding));
}

void report_global(Block& block, const Warp& warp, const Step* step, uint64_t address, int thread,
                   uint32_t other_context, uint32_t other_epoch, int other, const char* detail) {
  Finding finding = finding_at(block, warp, step, FindingKind::kGlobalRace, thread, detail);
  const Allocation* allocation = block.launch->memory->find(address);
  if (allocation != nullptr) finding.array = allocation->name;
  const int64_t number = block.launch->starts->find(other_context, other_epoch);
  if (number >= 0) {
    finding.other = place_of(*block.launch, static_cast<uint64_t>(number), other);
  }
  add(block, std::move(finding));
}

void BlockStarts::add(uint32_t context, uint32_t epoch, uint64_t block) {
  const std::lock_guard lock(mutex_);
  if (rows_.size() <= context) rows_.resize(context + 1);
  std::vector<Start>& row = rows_[context];
  // Blocks of long ago are forgotten.
  if (std::ssize(row) >= kStartsMax) row.erase(row.begin(), row.begin() + kStartsMax / 2);
  row.push_back({epoch, block});
}

int64_t BlockStarts::find(uint32_t context, uint32_t epoch) const {
  const std::lock_guard lock(mutex_);
  if (context >= rows_.size()) return -1;
  const auto& row = rows_[context];
  const auto next =
      std::upper_bound(row.begin(), row.end(), epoch,
                       [](uint32_t wanted, const Start& one) { return wanted < one.epoch; });
  return next == row.begin() ? -1 : static_cast<int64_t>(std::prev(next)->block);
}

}  // namespace mc::ptx
