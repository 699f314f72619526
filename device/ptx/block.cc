// SPDX-License-Identifier: Apache-2.0
//
// A block's memory, its time and its reports: the functions that handlers call, compiled once.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "ptx/counts.h"
#include "ptx/finding_log.h"
#include "ptx/global_memory.h"
#include "ptx/machine.h"
#include "ptx/order.h"
#include "ptx/undo_log.h"
#include "ptx/unwritten.h"

namespace mc::ptx {

constexpr size_t kVector = 64;    // Frames and memory begin at multiples of it.
constexpr uint32_t kSlack = 256;  // Words and bytes behind a row, which vectors may touch.
constexpr uint32_t kStackBytes = 32 << 10;  // Local memory of called functions.
constexpr size_t kBytesOfTurn = 128 << 10;  // Clearing this much local memory costs one turn.
constexpr size_t kNameMax = 200;
constexpr uint64_t kNearBytes = uint64_t{1} << 32;  // Accesses beyond an array's end name it.
constexpr size_t kCallFramesBytesMax = 256 << 20;
constexpr int kPausesOfBlock = 2;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

struct BlockMemory {
  std::unique_ptr<uint8_t, Freed> frames, shared, local;
  std::unique_ptr<uint32_t, Freed> shadow;
  std::vector<std::unique_ptr<uint8_t, Freed>> call_frames;
  std::vector<SiteRange> sites;
  std::vector<uint32_t> parts;             // Block::parts
  std::vector<std::vector<uint32_t>> met;  // Warp::met
  size_t frame_bytes = 0;
};

namespace {

uint64_t mix(uint64_t seed) {
  const uint64_t mixed = seed * 0x9E3779B97F4A7C15;
  return (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9;
}

size_t whole_vectors(size_t bytes) { return (bytes + kVector - 1) / kVector * kVector; }

// Zeroed memory, committed on first touch and aligned for vectors.
template <class T>
std::unique_ptr<T, Freed> zeros(size_t count) {
  const size_t bytes = whole_vectors(count * sizeof(T) + kVector);
  void* memory = std::aligned_alloc(kVector, bytes);
  MC_CHECK(memory != nullptr);
  std::memset(memory, 0, bytes);
  return std::unique_ptr<T, Freed>(static_cast<T*>(memory));
}

void split_index(uint64_t number, const uint32_t (&shape)[3], uint32_t (&at)[3]) {
  at[0] = static_cast<uint32_t>(number % shape[0]);
  at[1] = static_cast<uint32_t>(number / shape[0] % shape[1]);
  at[2] = static_cast<uint32_t>(number / shape[0] / shape[1]);
}

ThreadPosition position_of(const Launch& launch, uint64_t block, int thread) {
  ThreadPosition at;
  split_index(block, launch.grid, at.block);
  split_index(static_cast<uint64_t>(thread), launch.block, at.thread);
  return at;
}

void lay_shadow(Block& block, BlockMemory& memory) {
  const size_t words = (block.shared_bytes >> block.program->granule_shift) + kSlack;
  memory.shadow = zeros<uint32_t>(5 * words);
  uint32_t* rows = memory.shadow.get();
  block.shared_shadow = {rows, rows + words, rows + 2 * words, rows + 3 * words, rows + 4 * words};
  const int shift = block.program->granule_shift;
  uint32_t end = 0;
  for (const SharedArray& array : block.program->shared_arrays) {
    MC_CHECK(end <= array.begin && array.begin <= block.shared_bytes);
    for (uint32_t at = (end + (1U << shift) - 1) >> shift; at < array.begin >> shift; ++at) {
      block.shared_shadow.read[at] = kNoArray;
    }
    end = std::max(end, array.end);
  }
}

// Clears local memory, so that the bytes do not depend on earlier blocks. Blocks of kernels with
// calls, whose memory would be large, run on one worker. All ones are NaN for every floating type,
// so that a sum into an uninitialised array is wrong.
void clear_local(Block& block) {
  if (block.program->has_calls || block.local_stride == 0) return;
  const size_t bytes = size_t{block.threads} * block.local_stride;
  std::memset(block.local, 0xFF, bytes);
  block.launch->turns_left -= static_cast<int64_t>(bytes / kBytesOfTurn);
}

}  // namespace

BlockMemory* open_block(Block& block, Launch& launch, int worker, int lanes) {
  auto memory = std::make_unique<BlockMemory>();
  const Program& program = *launch.program;
  MC_CHECK(worker >= 0 && worker < launch.workers);
  MC_CHECK(lanes == program.lanes);
  const size_t warps =
      (launch.threads + static_cast<uint32_t>(lanes) - 1) / static_cast<uint32_t>(lanes);
  block.launch = &launch;
  block.program = &program;
  block.threads = launch.threads;
  block.num_warps = static_cast<uint32_t>(warps);
  block.worker = worker;
  block.parameters = launch.parameters;
  block.checks_races = launch.checks_races;
  block.shared_bytes = program.shared_bytes + launch.shared_dynamic;
  memory->frame_bytes = whole_vectors(program.codes.front()->frame_bytes) + kSlack;
  memory->frames = zeros<uint8_t>(memory->frame_bytes * warps);
  memory->shared = zeros<uint8_t>(block.shared_bytes + kSlack);
  block.shared = memory->shared.get();
  block.local_stride = program.codes.front()->local_bytes + (program.has_calls ? kStackBytes : 0);
  memory->local.reset(static_cast<uint8_t*>(
      std::calloc(warps * static_cast<size_t>(lanes), block.local_stride + 1)));
  MC_CHECK(memory->local != nullptr);
  block.local = memory->local.get();
  block.global = launch.memory->origin();
  ShadowMemory& shadow = *launch.shadows[worker];
  block.global_shadow = shadow.rows();
  block.now = shadow.now();
  block.launch_since = shadow.launch_since();
  block.saves = launch.undo != nullptr;
  block.words = launch.orders + worker;
  block.counts = launch.counts + worker;
  block.reads_by_words = launch.reads_by_words;
  memory->sites.resize(static_cast<size_t>(program.num_sites) + 1);
  block.sites = memory->sites.data();
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
  MC_CHECK(number < launch.blocks);
  split_index(number, launch.grid, block.id);
  clear_local(block);
  if (launch.shared_byte >= 0) std::memset(block.shared, launch.shared_byte, block.shared_bytes);
  block.number = number;
  block.name = static_cast<uint32_t>(number % kBlocksNamed);
  block.begin = block.since = ++*block.now;
  block.parts = nullptr;
  block.order = {};
  const bool has_others = launch.blocks > 1 && launch.contexts_max > 1;
  const bool may_tell = launch.program->has_strong_words || launch.program->has_fences;
  block.pauses_left = has_others && may_tell ? kPausesOfBlock : 0;
  block.pauses_until_late = has_others && number == launch.late_block ? launch.late_pause : -1;
  block.is_paused = block.is_late = block.stopped = false;
  block.clock = launch.began;
}

uint64_t noise_at(const Launch& launch, uint64_t number) {
  const uint64_t mixed = mix(launch.noise + number + 1);
  return mixed ^ mixed >> 32;
}

Turns turns_of(uint64_t count, uint64_t seed) {
  if (seed == 0 || count < 2) return {count};
  const uint64_t mixed = mix(seed);
  Turns turns{count, 1 + (mixed >> 32) % count, mixed % count};
  while (std::gcd(turns.factor, count) != 1) ++turns.factor;
  return turns;
}

uint64_t number_at(const Turns& turns, uint64_t turn) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{turn} * turns.factor + turns.offset) % turns.count);
}

bool take_turns(Block& block, int64_t count) {
  Launch& launch = *block.launch;
  if (launch.stopped.load(std::memory_order_relaxed)) block.stopped = true;
  if (launch.is_cancelled->load(std::memory_order_relaxed)) return false;
  return launch.turns_left.fetch_sub(count, std::memory_order_relaxed) >= count &&
         *block.now < kTimesEnd;
}

const char* why_out_of_turns(const Block& block) {
  return block.launch->is_cancelled->load() ? "the kernel ran on when the program's time was up"
                                            : "the launch ran for longer than its budget of steps";
}

bool take_bytes(Block& block, size_t bytes) {
  const int64_t wanted = static_cast<int64_t>(bytes);
  return block.launch->bytes_left.fetch_sub(wanted, std::memory_order_relaxed) >= wanted;
}

void save_bytes(Block& block, uint64_t address, uint64_t bytes) {
  block.launch->undo->save(block.worker, address, bytes);
}

// ---- Fences, meetings and barriers: order.h, shadow.h.

void fence(Block& block, Warp& warp, LaneSet lanes, bool is_device) {
  warp.stamp = ++*block.now;
  const auto add_lanes = [&](Fence& last) {
    // The lanes of a warp may arrive one after the other.
    const bool is_with_last = last.own > warp.since;
    const LaneSet before = is_with_last ? last.lanes : LaneSet{};
    last = {lanes, warp.stamp, warp.since, block.since};
    for (int k = 0; k < 2; ++k) last.lanes.words[k] |= before.words[k];
  };
  add_lanes(warp.order.here);
  if (!is_device) return;
  add_lanes(warp.order.device);
  block.order.fenced = warp.stamp;
}

namespace {

// Merges the knowledge of lanes or warps that met: each member's row takes the latest times of all
// members; f(k) is a member and its time.
template <class F>
void join_rows(uint32_t* rows, size_t members, size_t width, F f) {
  std::vector<uint32_t> joined(width);
  for (size_t k = 0; k < members; ++k) {
    const auto [member, time] = f(k);
    const uint32_t* row = rows + member * width;
    for (size_t i = 0; i < width; ++i) joined[i] = std::max(joined[i], row[i]);
    joined[member] = std::max(joined[member], time);
  }
  for (size_t k = 0; k < members; ++k) {
    std::copy(joined.begin(), joined.end(), rows + f(k).first * width);
  }
}

void let_go_on(Block& block, std::span<Warp* const> warps) {
  for (Warp* warp : warps) warp->since = warp->stamp = ++*block.now;
}

}  // namespace

void meet(Block& block, Warp& warp, LaneSet lanes) {
  const size_t width = static_cast<size_t>(block.program->lanes);
  auto& all = block.memory->met;
  all.resize(std::max<size_t>(all.size(), warp.index + 1));
  if (warp.met == nullptr) all[warp.index].assign(width * width, 0);
  warp.met = all[warp.index].data();
  std::vector<size_t> members;
  for (size_t k = 0; k < width; ++k) {
    if (lanes.words[k / 64] >> k % 64 & 1) members.push_back(k);
  }
  join_rows(warp.met, members.size(), width,
            [&](size_t k) { return std::pair(members[k], warp.stamp); });
}

void open_barrier(Block& block, std::span<Warp* const> warps) {
  block.since = ++*block.now;
  block.words->publish(block, warps);
  for (Warp* warp : warps) {
    block.order.known = block.words->join(block.order.known, warp->order.known);
    warp->order.known = nullptr;
  }
  let_go_on(block, warps);
}

void open_part(Block& block, std::span<Warp* const> waiting, std::span<const WarpTime> arrived) {
  MC_CHECK(!waiting.empty());
  const size_t width = block.num_warps;
  auto& parts = block.memory->parts;
  if (block.parts == nullptr) parts.assign(width * width, 0);
  block.parts = parts.data();
  // Warps that only arrived (bar.arrive) learn nothing.
  std::vector<uint32_t> kept;
  for (const WarpTime& one : arrived) {
    const uint32_t* row = block.parts + one.warp->index * width;
    kept.insert(kept.end(), row, row + width);
  }
  const uint32_t now = ++*block.now;
  join_rows(block.parts, waiting.size() + arrived.size(), width, [&](size_t k) {
    if (k < waiting.size()) return std::pair(size_t{waiting[k]->index}, now);
    const WarpTime& one = arrived[k - waiting.size()];
    return std::pair(size_t{one.warp->index}, one.time);
  });
  for (size_t k = 0; k < arrived.size(); ++k) {
    std::copy_n(kept.begin() + static_cast<ptrdiff_t>(k * width), width,
                block.parts + arrived[k].warp->index * width);
  }
  block.words->publish(block, waiting);
  const Knowledge* known = nullptr;
  for (Warp* warp : waiting) known = block.words->join(known, warp->order.known);
  for (const WarpTime& one : arrived) {
    known = block.words->join(known, one.warp->order.known);
  }
  for (Warp* warp : waiting) warp->order.known = known;
  let_go_on(block, waiting);
}

uint8_t* allocate_frame(Block& block, size_t local_bytes) {
  auto& frames = block.memory->call_frames;
  const size_t bytes = block.program->frame_bytes_max + kSlack;
  if ((frames.size() + 1) * bytes > kCallFramesBytesMax) return nullptr;
  if (!take_bytes(block, bytes + local_bytes)) return nullptr;
  frames.push_back(zeros<uint8_t>(bytes));
  return frames.back().get();
}

bool find_allocation(Block& block, uint64_t address, bool is_write, SiteRange& range) {
  const Allocation* allocation = block.launch->memory->find(address);
  if (allocation == nullptr) return false;
  block.launch->memory->note_access(*allocation, is_write);
  const bool notes = block.launch->unwritten_reads != nullptr;
  range = {allocation->begin, allocation->end, notes && allocation->has_unwritten};
  return true;
}

// ---- Reports.
namespace {

// The second thread is of the same block; negative: there is none.
Finding finding_at(const Block& block, const Warp& warp, const Step* step, FindingKind kind,
                   int thread, const char* detail, int other = -1) {
  MC_CHECK(thread >= 0 && static_cast<uint32_t>(thread) < block.threads);
  MC_CHECK(other < static_cast<int>(block.threads));
  Finding finding;
  finding.kind = kind;
  finding.kernel = block.program->kernel->name.substr(0, kNameMax);
  finding.detail = detail;
  finding.thread = position_of(*block.launch, block.number, thread);
  if (other >= 0) finding.other = position_of(*block.launch, block.number, other);
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
  Launch& launch = *block.launch;
  if (ends_launch(finding.kind) || launch.workers > 1) {
    block.stopped = true;
    launch.stopped = true;
  }
  // A launch with several workers is repeated with one, which finds them again.
  if (launch.workers > 1) return;
  finding.array.resize(std::min(finding.array.size(), kNameMax));
  launch.log->add(std::move(finding));
}

// The shared array that contains an address, or else the array that ends nearest before it.
std::string array_at(const Program& program, uint64_t at) {
  std::string name;
  for (const SharedArray& array : program.shared_arrays) {
    if (at >= array.begin) name = array.name;
  }
  return name;
}

std::string bytes_text(uint64_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// Describes the location of a global access without addresses.
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
  if (space == Space::kShared) return "shared memory";
  return space == Space::kLocal ? "local memory" : "the parameters";
}

}  // namespace

void report(Block& block, const Warp& warp, const Step* step, FindingKind kind, int thread,
            const char* detail, int other) {
  add(block, finding_at(block, warp, step, kind, thread, detail, other));
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
    if (space == Space::kShared) finding.array = array_at(*block.program, address);
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
  Finding finding = finding_at(block, warp, step, kind, thread, detail, other);
  finding.array = array_at(*block.program, uint64_t{granule} << block.program->granule_shift);
  add(block, std::move(finding));
}

namespace {

// The launch wrote the byte.
bool is_written(const Block& block, uint64_t address) {
  const uint64_t granule = (address - kGlobalBase) >> block.program->granule_shift;
  const Touch& written = block.global_shadow.lines[granule >> kLineShift].written;
  return written.since >= block.launch_since && (written.mask >> granule % 32 & 1) != 0;
}

UnwrittenReads::Site& site_of(Block& block, const Warp& warp, const Step* step, uint64_t address,
                              uint32_t bytes, int thread) {
  UnwrittenReads& reads = *block.launch->unwritten_reads;
  const size_t index = static_cast<size_t>(step->instruction);
  MC_CHECK(index < warp.code->function->instructions.size());
  const Location& location = warp.code->function->instructions[index].location;
  if (UnwrittenReads::Site* known = reads.find(location); known != nullptr) return *known;
  Finding finding = finding_at(block, warp, step, FindingKind::kUnwrittenGlobal, thread, "");
  finding.detail = "a thread reads what nothing wrote, and results follow from it: " +
                   global_detail(block, address, bytes, finding.array);
  finding.array.resize(std::min(finding.array.size(), kNameMax));
  reads.sites.push_back({location, std::make_shared<const Finding>(std::move(finding)), {}});
  return reads.sites.back();
}

}  // namespace

void note_unwritten(Block& block, const Warp& warp, const Step* step, uint64_t address,
                    uint32_t bytes, int thread, int threads) {
  Launch& launch = *block.launch;
  MC_CHECK(launch.unwritten_reads != nullptr && bytes > 0 && threads > 0);
  const Extent row{address, address + uint64_t{bytes} * static_cast<uint64_t>(threads)};
  if (!launch.unwritten->has_any(row)) return;
  for (uint64_t at = row.begin; at < row.end; ++at) {
    if (!launch.unwritten->has(at) || is_written(block, at)) continue;
    launch.reads_unwritten = true;
    if (launch.workers > 1) return;  // They are found again by one.
    const uint64_t lane = (at - row.begin) / bytes;
    UnwrittenReads::Site& site = site_of(block, warp, step, row.begin + lane * bytes, bytes,
                                         thread + static_cast<int>(lane));
    const Extent one{at, at + 1};
    if (site.extents.empty()) site.byte = block.global[at];
    site.add(one);
    if (const auto read = launch.unwritten->read_before(one); read != nullptr) {
      if (site.extents.size() == 1) site.first = read;
      site.has_followers = true;
    }
  }
}

void report_global(Block& block, const Warp& warp, const Step* step, uint64_t address, int thread,
                   uint64_t other_block, int other, const char* detail) {
  Finding finding = finding_at(block, warp, step, FindingKind::kGlobalRace, thread, detail);
  const Allocation* allocation = block.launch->memory->find(address);
  if (allocation != nullptr) finding.array = allocation->name;
  if (other >= 0) finding.other = position_of(*block.launch, other_block, other);
  add(block, std::move(finding));
}

}  // namespace mc::ptx
