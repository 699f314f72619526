// SPDX-License-Identifier: Apache-2.0
#include "ptx/device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <ranges>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/check.h"
#include "ptx/decode.h"
#include "ptx/finding_log.h"
#include "ptx/global_memory.h"
#include "ptx/machine.h"
#include "ptx/mbarrier.h"
#include "ptx/order.h"
#include "ptx/program.h"
#include "ptx/shadow.h"
#include "ptx/undo_log.h"
#include "ptx/unwritten.h"

namespace mc::ptx {
namespace {

constexpr uint32_t kThreadsMax = 1024;
constexpr uint32_t kGridMaxX = 0x7FFFFFFF, kGridMaxYZ = 65535;
constexpr uint32_t kSharedStaticMax = 48 << 10, kSharedMax = 227 << 10;
constexpr size_t kContextsBytesMax = size_t{512} << 20;
constexpr size_t kContextsMax = 32 * kMultiprocessors;    // A cooperative grid of the largest size.
constexpr size_t kCooperativeBytesMax = size_t{4} << 30;  // Memory for the contexts of a launch.
constexpr uint32_t kLocalMax = 512 << 10;  // Bytes per thread, for every compute capability.
// Two words that are zero when a launch begins: cooperative_groups/details/driver_abi.h.
constexpr size_t kGridWorkspaceBytes = 8;
constexpr int64_t kLaunchBytesMax = 1 << 30;             // Frames of calls and copies under way.
constexpr int64_t kHeapBytes = 64 << 20;                 // For malloc of kernels.
constexpr uint64_t kNoiseOfLaunch = 0x9FB21C651E98DF25;  // Odd, so that launches differ.
constexpr uint64_t kLatePauses = 3;
constexpr uint64_t kTicksOfLaunch = 50'000;      // The time from one launch to the next.
constexpr size_t kUnwrittenSitesMax = 4;         // Read sites that are tested with other bytes.
constexpr uint64_t kFollowedBytesMax = 1 << 30;  // Undoing a launch needs as much memory again.
// The bytes that replace unwritten memory: large numbers, NaN and zeros.
constexpr uint8_t kOtherBytes[] = {0x7F, 0xFF, 0x00};
// The same for shared memory, with large negative numbers, so that no maximum hides them.
constexpr uint8_t kSharedBytes[] = {0x7F, 0xFF, 0x00, 0xFE};

// Triton's modules name the file of the kernel.
bool is_in_python(const Program& program) {
  return std::ranges::any_of(program.module->files,
                             [](const auto& file) { return file.second.ends_with(".py"); });
}

struct Loaded {
  std::shared_ptr<const Module> module;
  Addresses addresses;
  std::map<std::string, std::unique_ptr<Program>, std::less<>> programs;
};

std::string triple(const std::array<uint32_t, 3>& three) {
  return std::to_string(three[0]) + " x " + std::to_string(three[1]) + " x " +
         std::to_string(three[2]);
}

// The rule that a launch's shape breaks, or an empty text.
std::string shape_fault(const LaunchOptions& options, const Program& program) {
  const auto& [x, y, z] = options.block;
  const uint64_t threads = uint64_t{x} * y * z;
  const int64_t most = std::min<int64_t>(program.kernel->threads_max, kThreadsMax);
  if (threads == 0 || x > kThreadsMax || y > kThreadsMax || z > 64 ||
      static_cast<int64_t>(threads) > most) {
    return "a block of " + triple(options.block) + " threads, at most " + std::to_string(most) +
           " are possible";
  }
  const auto& required = program.kernel->threads_required;
  for (size_t k = 0; k < required.size(); ++k) {
    if (required[k] != options.block[k]) {
      return "a block of " + triple(options.block) + " threads, the kernel requires others";
    }
  }
  const auto& grid = options.grid;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > kGridMaxX || grid[1] > kGridMaxYZ ||
      grid[2] > kGridMaxYZ) {
    return "a grid of " + triple(grid) + " blocks is not possible";
  }
  if (options.shared_bytes > kSharedMax ||
      options.shared_bytes + program.shared_bytes > kSharedMax + 4096) {
    return std::to_string(options.shared_bytes) + " bytes of dynamic shared memory are too many";
  }
  if (program.codes.front()->local_bytes > kLocalMax) {
    return std::to_string(program.codes.front()->local_bytes) +
           " bytes of local memory for a thread; at most " + std::to_string(kLocalMax) +
           " are possible";
  }
  if (options.arguments.bytes().size() < program.parameter_bytes) {
    return "the arguments have " + std::to_string(options.arguments.bytes().size()) +
           " bytes, the kernel takes " + std::to_string(program.parameter_bytes);
  }
  return "";
}

void place_value(std::vector<uint8_t>& bytes, const Relocation& relocation, uint64_t value) {
  const size_t at = static_cast<size_t>(relocation.at);
  MC_CHECK(at + static_cast<size_t>(relocation.bytes) <= bytes.size());
  for (int k = 0; k < relocation.bytes; ++k) {
    bytes[at + static_cast<size_t>(k)] = static_cast<uint8_t>(value >> (8 * k));
  }
}

// The memory of this process that a running block needs.
size_t context_bytes(const Launch& launch, int lanes) {
  const Program& program = *launch.program;
  const size_t warps = launch.threads / static_cast<uint32_t>(lanes) + 1;
  const size_t local_bytes = program.codes.front()->local_bytes * size_t{launch.threads};
  return warps * (program.frame_bytes_max + 1024) + local_bytes +
         24 * size_t{program.shared_bytes + launch.shared_dynamic};
}

Result<uint64_t> address_of(const Module& module, const Addresses& addresses,
                            const std::string& symbol) {
  const auto variable = addresses.find(symbol);
  if (variable != addresses.end()) return variable->second;
  const Function* function = module.find_function(symbol);
  if (function != nullptr) {
    return function_address(static_cast<size_t>(function - module.functions.data()));
  }
  return invalid("\"" + symbol + "\" has no address");
}

void add(RequestCounts& sum, const RequestCounts& one) {
  sum.requests += one.requests;
  sum.sectors += one.sectors;
}

}  // namespace

void Counts::add(const Counts& other) {
  instructions += other.instructions;
  lanes += other.lanes;
  ptx::add(loads, other.loads);
  ptx::add(stores, other.stores);
  ptx::add(atomics, other.atomics);
  shared_passes += other.shared_passes;
  shared_passes_least += other.shared_passes_least;
}

Arguments& Arguments::add_bytes(const void* data, size_t size, size_t align) {
  bytes_.resize((bytes_.size() + align - 1) / align * align);
  const uint8_t* begin = static_cast<const uint8_t*>(data);
  bytes_.insert(bytes_.end(), begin, begin + size);
  return *this;
}

using Clock = std::chrono::steady_clock;

// Bytes that have another value in a launch than before it.
struct Overlay {
  const std::vector<Extent>* extents = nullptr;
  uint8_t byte = 0;
};

struct Device::Impl {
  DeviceOptions options;
  const Variant* variant = nullptr;
  std::unique_ptr<GlobalMemory> memory;
  std::unique_ptr<Unwritten> unwritten;
  std::map<ModuleId, Loaded> modules;
  ModuleId next_module = 1;
  std::vector<std::unique_ptr<ShadowMemory>> shadows;  // One for each worker.
  std::unique_ptr<UndoLog> undo;
  std::vector<Counts> counts;              // Each worker's, in the last run.
  std::set<const Program*> in_place;       // Kernels that wrote what their blocks read.
  std::set<const Program*> reads_written;  // Kernels that read nothing unwritten so far.
  uint64_t grid_workspace = 0;             // Memory of cooperative launches.
  uint64_t launches = 0;
  std::atomic<Clock::time_point> begun{Clock::time_point()};  // The running launch; or none.
  std::atomic<bool> is_cancelled{false};

  Status place_variables(Loaded& loaded);
  Result<const Program*> program(ModuleId module, std::string_view kernel);
  Result<uint64_t> cleared_grid_workspace();
  void prepare_launch(Launch& launch, const LaunchOptions& options, const Program& program);
  void add_unwritten(uint64_t address, size_t bytes);
  void note_writes_of(const Launch& launch);
  TouchedBytes touched_by(const Launch& launch) const;
  bool may_follow(const LaunchOptions& options, const Program& program) const;
  void follow(Launch& launch, const LaunchOptions& options, UnwrittenReads& reads);
  void run(Launch& launch, const Overlay& overlay = {});
  void run_again(Launch& launch, const LaunchOptions& options, const Overlay& overlay = {});
  bool are_disproved(Launch& launch, const LaunchOptions& options, const FindingLog& log);
  bool are_races_disproved(Launch& launch, const LaunchOptions& options, const FindingLog& log);
  bool are_unwritten_reads_disproved(Launch& launch, const LaunchOptions& options,
                                     const FindingLog& log);
  bool may_recheck(const LaunchOptions& options, const Launch& launch) const;
  bool depends_on_order(const Launch& launch) const;
};

Device::Device(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Device::~Device() = default;

Result<std::unique_ptr<Device>> Device::create(const DeviceOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->options.workers = std::clamp(options.workers, 1, kWorkersMax);
  if (!__builtin_cpu_supports("x86-64-v3")) {
    return Error{ErrorCode::kUnsupported, "PTX is executed with AVX2, which this processor lacks"};
  }
  impl->variant = variant_of(options.lanes);
  if (impl->variant == nullptr) {
    return invalid("warps of " + std::to_string(options.lanes) + " lanes; 32 and 128 are possible");
  }
  MC_TRY(impl->memory, GlobalMemory::create(options.memory_bytes, options.memory_descriptor),
         "ptx device");
  MC_TRY(impl->unwritten, Unwritten::create(options.memory_bytes), "ptx device");
  for (int k = 0; k < impl->options.workers; ++k) {
    MC_TRY(std::unique_ptr<ShadowMemory> shadow, ShadowMemory::create(options.memory_bytes),
           "ptx device");
    impl->shadows.push_back(std::move(shadow));
  }
  MC_TRY(impl->undo, UndoLog::create(*impl->memory, impl->options.workers), "ptx device");
  return std::unique_ptr<Device>(new Device(std::move(impl)));
}

Result<uint64_t> Device::allocate(size_t bytes, std::string name) {
  MC_TRY(const uint64_t address, impl_->memory->allocate(bytes, std::move(name)), "allocate");
  impl_->add_unwritten(address, bytes);
  return address;
}

Result<uint64_t> Device::reserve(size_t bytes, uint64_t wanted) {
  return impl_->memory->reserve(bytes, wanted);
}

Status Device::allocate_at(uint64_t address, size_t bytes, std::string name) {
  MC_TRY_VOID(impl_->memory->allocate_at(address, bytes, std::move(name)), "allocate");
  impl_->add_unwritten(address, bytes);
  return ok();
}

void Device::Impl::add_unwritten(uint64_t address, size_t bytes) {
  if (bytes == 0) return;
  unwritten->add({address, address + bytes});
  const Allocation* allocation = memory->find(address);
  MC_CHECK(allocation != nullptr && allocation->begin == address);
  allocation->has_unwritten = true;
}

uint8_t* Device::host(uint64_t address, size_t bytes) const {
  return impl_->memory->host(address, bytes);
}

Status Device::release(uint64_t address) {
  const Allocation* allocation = impl_->memory->find(address);
  const uint64_t end = allocation == nullptr ? address : allocation->end;
  if (!impl_->memory->release(address)) return invalid("no allocation begins at this address");
  impl_->unwritten->forget({address, end});
  for (const auto& shadow : impl_->shadows) {
    shadow->forget(address - kGlobalBase, end - kGlobalBase);
  }
  return ok();
}

Status Device::copy_in(uint64_t to, std::span<const uint8_t> bytes) {
  uint8_t* host = impl_->memory->host(to, bytes.size());
  if (host == nullptr) return invalid("a copy is not within one allocation");
  if (!bytes.empty()) std::memcpy(host, bytes.data(), bytes.size());
  note_write(to, bytes.size());
  return ok();
}

Status Device::copy_out(uint64_t from, std::span<uint8_t> bytes) const {
  const uint8_t* host = impl_->memory->host(from, bytes.size());
  if (host == nullptr) return invalid("a copy is not within one allocation");
  if (!bytes.empty()) std::memcpy(bytes.data(), host, bytes.size());
  return ok();
}

Status Device::fill(uint64_t to, uint8_t byte, size_t size) {
  uint8_t* host = impl_->memory->host(to, size);
  if (host == nullptr) return invalid("a fill is not within one allocation");
  if (size > 0) std::memset(host, byte, size);
  note_write(to, size);
  return ok();
}

uint8_t Device::origins(uint64_t address) const {
  const Allocation* allocation = impl_->memory->find(address);
  return allocation == nullptr ? 0 : allocation->origins;
}

void Device::note_origins(uint64_t address, size_t bytes, uint8_t origins) {
  const Allocation* allocation = impl_->memory->find(address);
  if (allocation == nullptr || bytes == 0) return;
  const bool is_whole = bytes >= allocation->end - allocation->begin;
  allocation->origins = is_whole ? origins : allocation->origins | origins;
  note_write(address, bytes);
}

void Device::note_copy(uint64_t to, uint64_t from, size_t bytes) {
  const Allocation *source = impl_->memory->find(from), *target = impl_->memory->find(to);
  if (source == nullptr || target == nullptr || bytes == 0) return;
  const bool has_unwritten = source->has_unwritten;
  note_origins(to, bytes, source->origins);
  if (!has_unwritten) return;
  impl_->unwritten->copy(to, {from, from + bytes});
  target->has_unwritten = impl_->unwritten->has_any({target->begin, target->end});
}

std::shared_ptr<const Finding> Device::unwritten_read(uint64_t address, size_t bytes) const {
  return impl_->unwritten->read_before({address, address + bytes});
}

void Device::note_write(uint64_t address, size_t bytes) {
  const Allocation* allocation = impl_->memory->find(address);
  if (allocation == nullptr || !allocation->has_unwritten) return;
  Unwritten& unwritten = *impl_->unwritten;
  unwritten.remove({address, std::min(allocation->end, address + bytes)});
  allocation->has_unwritten = unwritten.has_any({allocation->begin, allocation->end});
}

bool Device::has_unwritten(uint64_t address, size_t bytes) const {
  const Allocation* allocation = impl_->memory->find(address);
  return allocation != nullptr && allocation->has_unwritten &&
         impl_->unwritten->has_any({address, address + bytes});
}

void Device::cancel(std::chrono::duration<double> older_than) {
  const Clock::time_point begun = impl_->begun;
  if (begun != Clock::time_point() && Clock::now() - begun > older_than) impl_->is_cancelled = true;
}

bool Device::take_given_read() { return impl_->memory->take_given_read(); }

Result<ModuleId> Device::load(std::string_view text) {
  MC_TRY(Module module, parse(without_mbarriers(text)), "load a module");
  Loaded loaded;
  loaded.module = std::make_shared<const Module>(std::move(module));
  MC_TRY_VOID(impl_->place_variables(loaded), "load a module");
  const ModuleId id = impl_->next_module++;
  impl_->modules.emplace(id, std::move(loaded));
  return id;
}

Status Device::Impl::place_variables(Loaded& loaded) {
  const Module& module_text = *loaded.module;
  for (const Variable& one : module_text.variables) {
    if (one.space == Space::kShared) continue;
    if (one.is_external) return invalid("the variable \"" + one.name + "\" is not in the module");
    MC_TRY(const uint64_t address, memory->allocate(static_cast<size_t>(one.bytes), one.name),
           "variable " + one.name);
    loaded.addresses[one.name] = address;
    std::memset(memory->origin() + address, 0, static_cast<size_t>(one.bytes));
  }
  for (const Variable& one : module_text.variables) {
    if (one.space == Space::kShared || one.initial.empty()) continue;
    std::vector<uint8_t> bytes = one.initial;
    MC_CHECK(bytes.size() <= static_cast<size_t>(one.bytes));
    for (const Relocation& relocation : one.relocations) {
      MC_TRY(const uint64_t base, address_of(module_text, loaded.addresses, relocation.symbol),
             "variable " + one.name);
      place_value(bytes, relocation, base + static_cast<uint64_t>(relocation.offset));
    }
    std::memcpy(memory->origin() + loaded.addresses[one.name], bytes.data(), bytes.size());
  }
  return ok();
}

Status Device::unload(ModuleId module) {
  const auto found = impl_->modules.find(module);
  if (found == impl_->modules.end()) return invalid("the module is not loaded");
  for (const auto& [name, address] : found->second.addresses) impl_->memory->release(address);
  for (const auto& [name, program] : found->second.programs) {
    impl_->in_place.erase(program.get());
    impl_->reads_written.erase(program.get());
  }
  impl_->modules.erase(found);
  return ok();
}

std::vector<std::string> Device::kernels(ModuleId module) const {
  std::vector<std::string> names;
  const auto found = impl_->modules.find(module);
  if (found == impl_->modules.end()) return names;
  for (const Function& one : found->second.module->functions) {
    if (one.is_kernel && !one.is_declaration) names.push_back(one.name);
  }
  return names;
}

Result<uint64_t> Device::variable(ModuleId module, std::string_view name) const {
  const auto found = impl_->modules.find(module);
  if (found == impl_->modules.end()) return invalid("the module is not loaded");
  const auto address = found->second.addresses.find(std::string(name));
  if (address != found->second.addresses.end()) return address->second;
  return Error{ErrorCode::kNotFound, "the module has no variable " + std::string(name)};
}

Result<size_t> Device::variable_bytes(ModuleId module, std::string_view name) const {
  MC_TRY(const uint64_t address, variable(module, name), "variable");
  const Allocation* allocation = impl_->memory->find_before(address);
  if (allocation == nullptr || allocation->begin != address) {
    return Error{ErrorCode::kNotFound, "the variable " + std::string(name) + " was released"};
  }
  return static_cast<size_t>(allocation->end - allocation->begin);
}

Result<const Program*> Device::Impl::program(ModuleId module, std::string_view kernel) {
  const auto found = modules.find(module);
  if (found == modules.end()) return invalid("the module is not loaded");
  Loaded& loaded = found->second;
  const auto known = loaded.programs.find(kernel);
  if (known != loaded.programs.end()) return known->second.get();
  const Function* function = loaded.module->find_function(kernel);
  if (function == nullptr || !function->is_kernel || function->is_declaration) {
    return Error{ErrorCode::kNotFound, "the module has no kernel " + std::string(kernel)};
  }
  MC_TRY(std::unique_ptr<Program> decoded,
         ptx::decode(loaded.module, *function, loaded.addresses, *variant,
                     options.counts ? Counting::kOn : Counting::kOff),
         "PTX");
  return loaded.programs.emplace(kernel, std::move(decoded)).first->second.get();
}

Result<KernelFacts> Device::decode(ModuleId module, std::string_view kernel) {
  MC_TRY(const Program* program, impl_->program(module, kernel), "decode");
  if (!program->unsupported.empty()) {
    return Error{ErrorCode::kUnsupported,
                 "decode: kernel " + std::string(kernel) + ": " + program->unsupported.front()};
  }
  return facts(module, kernel);
}

Result<KernelFacts> Device::facts(ModuleId module, std::string_view kernel) {
  MC_TRY(const Program* program, impl_->program(module, kernel), "decode");
  // A GPU has no gaps between the arrays, as the program does.
  uint32_t shared_bytes = 0;
  for (const SharedArray& one : program->shared_arrays) {
    if (one.end != UINT32_MAX) shared_bytes += (one.end - one.begin + 3) / 4 * 4;
  }
  KernelFacts facts{{},
                    program->parameter_bytes,
                    shared_bytes,
                    program->codes.front()->local_bytes,
                    program->kernel->threads_max,
                    program->has_loops};
  for (const Variable& one : program->kernel->parameters) {
    facts.parameters.push_back(
        {static_cast<uint32_t>(one.offset), static_cast<uint32_t>(one.bytes)});
  }
  return facts;
}

Result<uint64_t> Device::Impl::cleared_grid_workspace() {
  if (grid_workspace == 0) {
    MC_TRY(grid_workspace, memory->allocate(kGridWorkspaceBytes, "the grid's barrier"), "launch");
  }
  uint8_t* words = memory->host(grid_workspace, kGridWorkspaceBytes);
  MC_CHECK(words != nullptr);
  std::memset(words, 0, kGridWorkspaceBytes);
  unwritten->remove({grid_workspace, grid_workspace + kGridWorkspaceBytes});
  return grid_workspace;
}

void Device::Impl::prepare_launch(Launch& launch, const LaunchOptions& given,
                                  const Program& program) {
  launch.memory = memory.get();
  launch.program = &program;
  launch.variant = variant;
  std::copy(given.grid.begin(), given.grid.end(), launch.grid);
  std::copy(given.block.begin(), given.block.end(), launch.block);
  launch.threads = given.block[0] * given.block[1] * given.block[2];
  launch.blocks = uint64_t{given.grid[0]} * given.grid[1] * given.grid[2];
  launch.shared_dynamic = given.shared_bytes;
  launch.parameters = given.arguments.bytes().data();
  launch.checks_races = given.checks_races;
  launch.reads_by_words = in_place.contains(&program);
  const int wanted = program.blocks_communicate ? 1 : std::min(options.workers, given.workers_max);
  const auto most = static_cast<uint64_t>(std::max(wanted, 1));
  launch.workers = static_cast<int>(std::min(most, launch.blocks));
  const size_t contexts =
      std::max<size_t>(kContextsBytesMax / context_bytes(launch, variant->lanes), 2);
  launch.contexts_max = std::max<size_t>(
      std::min<size_t>(contexts, kContextsMax) / static_cast<size_t>(launch.workers), 1);
  if (given.is_cooperative) {
    launch.workers = 1;
    launch.turn = kCooperativeTurn;
    launch.starts_all = true;
    launch.contexts_max =
        std::max<size_t>(launch.contexts_max, std::min<uint64_t>(launch.blocks, kContextsMax));
  }
  launch.seed = given.seed;
  launch.turns = turns_of(launch.blocks, given.seed);
  launch.noise = (given.seed << 32) + ++launches * kNoiseOfLaunch;
  launch.began = launches * kTicksOfLaunch;
  if (given.seed != 0 && program.blocks_communicate) {
    launch.late_block = number_at(turns_of(launch.blocks, given.seed + 1), 0);
    launch.late_pause = static_cast<int>(given.seed % kLatePauses);
  }
  launch.turns_left = given.steps_max * 1000 / launch.turn;
  launch.is_cancelled = &is_cancelled;
  launch.heap_left = kHeapBytes;
  launch.bytes_left = kLaunchBytesMax;
}

void Device::Impl::run(Launch& launch, const Overlay& overlay) {
  MC_CHECK(launch.workers >= 1 && static_cast<size_t>(launch.workers) <= shadows.size());
  for (const auto& shadow : shadows) shadow->begin_launch();
  launch.shadows = shadows.data();
  std::vector<Order> orders(static_cast<size_t>(launch.workers));
  launch.orders = orders.data();
  counts.assign(static_cast<size_t>(launch.workers), {});
  launch.counts = counts.data();
  launch.undo = launch.workers > 1 || launch.may_undo ? undo.get() : nullptr;
  if (launch.undo != nullptr) undo->begin_launch();
  if (overlay.extents != nullptr) {
    MC_CHECK(launch.undo != nullptr);
    for (const auto& [begin, end] : *overlay.extents) {
      undo->save(0, begin, end - begin);
      std::memset(memory->origin() + begin, overlay.byte, end - begin);
    }
  }
  std::vector<std::thread> threads;
  for (int k = 1; k < launch.workers; ++k) {
    try {
      threads.emplace_back([&launch, k, this] { variant->work(launch, k); });
    } catch (const std::system_error&) {  // The machine refuses a thread: fewer do all blocks.
      break;
    }
  }
  variant->work(launch, 0);
  for (std::thread& thread : threads) thread.join();
  if (launch.writes_what_it_read) in_place.insert(launch.program);
}

// True if the results of a launch with several workers depend on the order of the blocks.
bool Device::Impl::depends_on_order(const Launch& launch) const {
  return launch.workers > 1 && (launch.stopped || launch.reads_unwritten ||
                                undo->workers_conflict(shadows, launch.program->granule_shift));
}

void Device::Impl::run_again(Launch& launch, const LaunchOptions& given, const Overlay& overlay) {
  MC_CHECK(launch.undo != nullptr && launch.workers == 1);
  undo->restore();
  launch.next_block = 0;
  launch.stopped = false;
  launch.turns_left = given.steps_max * 1000 / launch.turn;
  launch.bytes_left = kLaunchBytesMax;
  launch.reads_unwritten = false;
  if (launch.unwritten_reads != nullptr) launch.unwritten_reads->sites.clear();
  run(launch, overlay);
}

// Marks the bytes that the launch wrote as written.
void Device::Impl::note_writes_of(const Launch& launch) {
  const int shift = launch.program->granule_shift;
  for (const auto& [begin, allocation] : memory->allocations()) {
    if (!std::exchange(allocation.is_written, false) || !allocation.has_unwritten) continue;
    for (int k = 0; k < launch.workers; ++k) {
      unwritten->remove_written(*shadows[static_cast<size_t>(k)], {begin, allocation.end}, shift);
    }
    allocation.has_unwritten = unwritten->has_any({begin, allocation.end});
  }
}

// The bytes that the launch touched, from the lines of the workers' shadows.
TouchedBytes Device::Impl::touched_by(const Launch& launch) const {
  TouchedBytes touched;
  const auto add = [](std::vector<Extent>& extents, uint64_t begin, uint64_t end) {
    if (!extents.empty() && extents.back().end >= begin) {
      extents.back().end = std::max(extents.back().end, end);
    } else {
      extents.push_back({begin, end});
    }
  };
  const int granule_shift = launch.program->granule_shift, shift = granule_shift + kLineShift;
  for (const auto& [begin, allocation] : memory->allocations()) {
    const uint64_t last = (allocation.end - 1 - kGlobalBase) >> shift;
    for (uint64_t line = (begin - kGlobalBase) >> shift; line <= last; ++line) {
      uint32_t read = 0, written = 0, updated = 0;
      for (int k = 0; k < launch.workers; ++k) {
        const ShadowMemory& shadow = *shadows[static_cast<size_t>(k)];
        read |= shadow.read_in(line);
        written |= shadow.written_in(line);
        updated |= shadow.updated_in(line);
      }
      for (int bit = 0; (read | written) >> bit != 0; ++bit) {
        const uint64_t at = kGlobalBase + (line << shift) + (uint64_t{1} << granule_shift) * bit;
        const uint64_t end = at + (uint64_t{1} << granule_shift);
        const bool is_update = (updated >> bit & 1) != 0;
        if ((read >> bit & 1) != 0) add(touched.read, at, end);
        if ((written >> bit & 1) != 0) add(is_update ? touched.updated : touched.written, at, end);
        if (bit == 31) break;
      }
    }
  }
  return touched;
}

// True if kernels of the module may allocate or release memory, which cannot be undone.
bool has_heap(const Module& module) {
  return module.find_function("malloc") != nullptr || module.find_function("free") != nullptr;
}

// A launch whose blocks communicate, or that uses the heap, cannot be undone.
bool Device::Impl::may_recheck(const LaunchOptions& given, const Launch& launch) const {
  const Program& program = *launch.program;
  if (program.blocks_communicate || !given.checks_races) return false;
  if (is_in_python(program)) return true;
  if (program.shared_bytes + launch.shared_dynamic == 0) return false;
  if (has_heap(*program.module)) return false;
  uint64_t bytes = 0;
  for (const auto& [begin, allocation] : memory->allocations()) bytes += allocation.end - begin;
  return bytes <= kFollowedBytesMax;
}

// A launch is undone only if its kernel may read unwritten memory: in its first launch, and after
// an earlier launch did.
bool Device::Impl::may_follow(const LaunchOptions& given, const Program& program) const {
  if (!given.checks_races || reads_written.contains(&program)) return false;
  if (has_heap(*program.module)) return false;
  uint64_t bytes = 0;
  bool has_unwritten = false;
  for (const auto& [begin, allocation] : memory->allocations()) {
    bytes += allocation.end - begin;
    has_unwritten |= allocation.has_unwritten;
  }
  return has_unwritten && bytes <= kFollowedBytesMax;
}

// True if a launch failed because of the bytes that a read returned. A value that is only derived
// from unwritten bytes may have bounds that replaced bytes do not respect.
bool is_fault_of(const UnwrittenReads::Site& site, const FindingLog& log) {
  const std::vector<Finding> found = log.findings();
  return !site.has_followers && std::ranges::none_of(found, [](const Finding& one) {
    return one.kind == FindingKind::kUnsupported;
  });
}

// Finds the bytes that depend on unwritten memory (unwritten.h). `launch` is the last launch.
void Device::Impl::follow(Launch& launch, const LaunchOptions& given, UnwrittenReads& reads) {
  const int shift = launch.program->granule_shift;
  const Aftermath first(*undo, *shadows[0], shift, *unwritten);
  note_writes_of(launch);
  FindingLog& log = *launch.log;
  launch.unwritten_reads = nullptr;
  reads.sites.resize(std::min(reads.sites.size(), kUnwrittenSitesMax));
  // Reverse order, because the last read processed overwrites the others: a byte that depends on
  // several reads is then attributed to the first of them.
  for (const UnwrittenReads::Site& site : std::views::reverse(reads.sites)) {
    for (const uint8_t byte : kOtherBytes) {
      if (byte == site.byte && !site.has_followers) continue;
      FindingLog second;
      launch.log = &second;
      run_again(launch, given, {&site.extents, byte});
      if (launch.stopped) {
        if (is_fault_of(site, second)) log.add(*site.first);
        break;
      }
      const Aftermath other(*undo, *shadows[0], shift, *unwritten);
      for (const Extent& bytes : first.differences(other)) {
        unwritten->add_followers(bytes, site.first);
        const Allocation* allocation = memory->find(bytes.begin);
        if (allocation == nullptr) continue;
        allocation->has_unwritten = true;
      }
    }
  }
  undo->restore();
  first.restore(*undo);
  launch.log = &log;
  launch.stopped = false;
}

bool Device::Impl::are_disproved(Launch& launch, const LaunchOptions& given,
                                 const FindingLog& log) {
  return are_races_disproved(launch, given, log) ||
         are_unwritten_reads_disproved(launch, given, log);
}

// A compiler may load an unwritten word of shared memory and then select another value. So if such
// reads are the only findings, the launch runs again with other bytes in shared memory; if it
// writes the same bytes, the findings are dropped.
bool Device::Impl::are_unwritten_reads_disproved(Launch& launch, const LaunchOptions& given,
                                                 const FindingLog& log) {
  const auto may_be_disproved = [](const Finding& one) {
    return one.kind == FindingKind::kUnwrittenShared;
  };
  const std::vector<Finding> found = log.findings();
  if (!launch.may_recheck || found.empty() || !std::ranges::all_of(found, may_be_disproved))
    return false;
  const std::vector<UndoLog::Saved> written = undo->written();
  return std::ranges::all_of(kSharedBytes, [&](uint8_t byte) {
    FindingLog other;
    launch.log = &other;
    launch.shared_byte = byte;
    run_again(launch, given);
    return !launch.stopped && std::ranges::all_of(other.findings(), may_be_disproved) &&
           undo->is_as(written);
  });
}

// Triton gives a value that is smaller than a block to several threads: all of them load it, and
// one stores its successor. A load that comes late does not use its value. So if the only findings
// are races of reads and writes in the same block, the warps run once more in the opposite order,
// which swaps each read and write: if all bytes are equal, the findings are dropped.
bool Device::Impl::are_races_disproved(Launch& launch, const LaunchOptions& given,
                                       const FindingLog& log) {
  const auto may_be_disproved = [](const Finding& finding) {
    return finding.kind == FindingKind::kGlobalRace &&
           (finding.detail == kReadAfterWriteInBlock || finding.detail == kWriteAfterReadInBlock);
  };
  const std::vector<Finding> found = log.findings();
  if (!launch.may_recheck || found.empty() || !std::ranges::all_of(found, may_be_disproved))
    return false;
  const std::vector<UndoLog::Saved> written = undo->written();
  FindingLog second;
  launch.log = &second;
  launch.is_reversed = true;
  run_again(launch, given);
  return !launch.stopped && std::ranges::all_of(second.findings(), may_be_disproved) &&
         undo->is_as(written);
}

Result<LaunchReport> Device::launch(const LaunchOptions& options) {
  MC_TRY(const Program* program, impl_->program(options.module, options.kernel), "launch");
  LaunchReport report;
  if (const std::string fault = shape_fault(options, *program); !fault.empty()) {
    report.findings.push_back(
        {.kind = FindingKind::kLaunchLimit, .kernel = options.kernel, .detail = fault});
    report.is_complete = false;
    return report;
  }
  FindingLog log;
  Launch launch;
  launch.log = &log;
  impl_->prepare_launch(launch, options, *program);
  if (options.is_cooperative) {
    if (launch.blocks * context_bytes(launch, impl_->options.lanes) > kCooperativeBytesMax) {
      return Error{ErrorCode::kUnsupported,
                   "a cooperative grid whose blocks need more than 4 GiB of memory together"};
    }
    MC_TRY(launch.grid_workspace, impl_->cleared_grid_workspace(), "launch");
  }
  launch.may_recheck = impl_->may_recheck(options, launch);
  const bool may_follow = impl_->may_follow(options, *program);
  launch.may_undo = launch.may_recheck || may_follow;
  MC_CHECK(impl_->begun.load() == Clock::time_point());  // One launch runs at a time.
  UnwrittenReads reads;
  launch.unwritten = impl_->unwritten.get();
  launch.unwritten_reads = options.checks_races ? &reads : nullptr;
  impl_->begun = Clock::now();
  impl_->run(launch);
  if (impl_->depends_on_order(launch)) {
    launch.workers = 1;
    impl_->run_again(launch, options);
  }
  report.is_complete = !launch.stopped;
  for (const Counts& one : impl_->counts) report.counts.add(one);
  const bool is_clean = log.findings().empty() || impl_->are_disproved(launch, options, log);
  if (!is_clean) report.findings = log.findings();
  if (launch.reads_unwritten) impl_->reads_written.erase(program);
  if (may_follow && !launch.reads_unwritten) impl_->reads_written.insert(program);
  if (may_follow && launch.reads_unwritten && is_clean && report.is_complete) {
    FindingLog followed;
    launch.log = &followed;
    impl_->follow(launch, options, reads);
    report.findings = followed.findings();
  } else {
    impl_->note_writes_of(launch);
  }
  impl_->begun = Clock::time_point();
  if (options.records_touched) report.touched = impl_->touched_by(launch);
  report.printed = log.printed();
  return report;
}

}  // namespace mc::ptx
