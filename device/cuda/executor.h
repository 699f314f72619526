// SPDX-License-Identifier: Apache-2.0
//
// Executor: the device process's end of a channel, on CUDA's driver API.
//
// It owns the context and the memory, and executes a candidate process's commands (commands.h).
// The sender is hostile: every handle, size and host-visible address is checked here.  A kernel's
// accesses on the device cannot be checked: after a sticky error of the device, the executor and
// its process are discarded.
//
// One thread uses an executor at a time.
#ifndef MC_DEVICE_CUDA_EXECUTOR_H_
#define MC_DEVICE_CUDA_EXECUTOR_H_

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arena_map.h"
#include "channel.h"
#include "cuda/call_items.h"
#include "cuda/image_file.h"
#include "cuda/libraries.h"
#include "cuda/timed_batch.h"

namespace mc::device {

// The counts and findings about a candidate that a verdict needs.
struct Use {
  uint64_t launches = 0;
  uint64_t launches_own = 0;
  uint64_t operators = 0;
  // Bytes of information that the host received: elapsed times and query results count, data that
  // the host wrote and reads back unchanged does not.
  uint64_t bytes_to_host = 0;
  // Bytes that copies on the device moved to another offset in their tensor or allocation, as far
  // as offsets are known.
  uint64_t bytes_moved = 0;
  std::string unsupported;  // The first unsupported feature that the candidate used.
  std::string forbidden;    // The first PyTorch kernel that a candidate must not run.
};

class Executor : private CallContext {
 public:
  struct Options {
    uint64_t arena_bytes = uint64_t{256} << 30;    // Address range of candidates' allocations.
    uint64_t regions_bytes = uint64_t{256} << 30;  // Address range of inputs.
    uint64_t memory_bytes_max = 0;                 // 0: half of the device's memory.
    void (*sleep)(std::chrono::microseconds) = nullptr;  // Null: sleeps.
  };
  // Opens the device's primary context and reserves the address ranges; null if the driver fails,
  // with its error in `why`.
  static std::unique_ptr<Executor> create(const Options& options, std::string& why);
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Maps the channel behind the descriptor, at its start; false if it cannot be mapped.
  bool attach(int descriptor);
  // Permits modules from a file, given by its path in the candidate process and its path here.
  void allow_file(std::string path_there, std::string path_here, bool is_own);
  // Permits kernels from files that are not the candidate's own if their mangled names match the
  // pattern.
  void allow_foreign_kernels(std::string pattern);
  // Executes commands until `is_over` is set.
  void serve(const std::atomic<bool>& is_over);
  Use use();
  // Releases all resources of the candidate.  False if the process must be replaced.
  bool detach();

  // ---- For the judge's side of the process.  A mutex lets them run beside serve().
  // The candidate's commands wait between pause() and resume().
  void pause() { mutex_.lock(); }
  void resume() { mutex_.unlock(); }
  // Maps memory that another process exported (cuMemExportToShareableHandle); returns its address
  // here, or 0 on failure.  `extents` are the ranges of its tensors: a device that allocates by the
  // byte maps only these, so that an access beyond a tensor's end is out of bounds.
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };
  uint64_t import_region(int descriptor, uint64_t bytes, std::span<const Extent> extents = {});
  void release_region(uint64_t address);
  // Copies parts of the candidate's memory, each to its offset, into new memory and exports that as
  // a descriptor; -1 if a part is not the candidate's, kNoRoom if the device has no memory for the
  // copy.  Afterwards the candidate cannot write until a region is released or imported, so that
  // its inputs are compared as they were when its outputs were copied.
  struct Part {
    uint64_t source;
    uint64_t bytes;
    uint64_t offset;
  };
  static constexpr int kNoRoom = -2;
  int export_parts(const Part* parts, size_t num_parts, uint64_t bytes);

  // A library that runs PyTorch's operators on the device's memory (operators/operators.h).
  struct Operators {
    size_t (*run)(const void* call, size_t bytes, void* reply, size_t reply_max) = nullptr;
    int (*fetch)(uint32_t slot, uint64_t address, uint64_t bytes) = nullptr;
    void (*end)() = nullptr;  // Called when the operators stop using device memory; may be null.
  };
  // Without this library, operators are not supported.
  void set_operators(const Operators& operators) { operators_ = operators; }

  // ---- Records and replays (docs/replay.md).
  // Until detach(), each command, reply and error is written to the file as a NoteHeader and its
  // bytes: those of a command start at its Op, a reply's are its status and first kNotedBytesMax
  // bytes, and an error's are its status.
  enum class Note : uint32_t { kCommand = 1, kReply, kError };
  struct NoteHeader {
    Note kind;
    uint32_t bytes;
  };
  static constexpr size_t kNotedBytesMax = 16;
  static constexpr uint64_t kRecordBytesMax = uint64_t{1} << 30;
  void record(int descriptor);
  // False if a write failed, or the record exceeded kRecordBytesMax.
  bool is_recorded() const { return record_ >= 0; }
  // Executes a command as serve() would; false if there is no such command.  REQUIRES: serve() is
  // not running.
  struct Outcome {
    bool is_reply = false;
    uint32_t status = 0;  // The reply's status, or the error's if there is no reply.
    std::string_view reply;
  };
  bool run_alone(Op op, const char* body, uint32_t bytes, Outcome& outcome);
  // Waits for the device and copies bytes from the candidate's memory or its inputs.
  bool read_bytes(uint64_t address, uint64_t bytes, void* target);
  // Like import_region(), but copies the bytes of a file of the host.
  uint64_t place_region(int descriptor, uint64_t bytes, std::span<const Extent> extents);
  uint64_t arena() const { return arena_; }
  uint64_t regions() const { return regions_; }
  uint32_t capability() const;  // Such as 90.
  std::string name() const;

  // ---- Timing, for the judge's side too (timed_batch.h).
  // Allocates memory for batches of at most `calls` calls of that size.  Returns the address at
  // which the candidate sees the first call's inputs, or 0 if there is no memory; the second call's
  // inputs are behind the first's, and the third's replace the first's.  From then on the candidate
  // may use the device only inside calls.
  uint64_t prepare_batches(uint32_t calls, const CallBytes& bytes);
  // Starts a batch, whose inputs are in memory that another process exported; false on failure.
  // REQUIRES: the candidate is waiting for a request.
  enum class BatchKind : uint8_t {
    kUngated,
    kGated,
    kItemised,  // Without a gate; reports each item of the calls' work.
  };
  bool start_batch(int descriptor, uint64_t bytes, uint32_t calls, BatchKind kind);
  // A call of a batch.
  struct TimedCall {
    double us;
    double host_us;  // The time by the host's clock; 0 if it did not check the call.
    uint32_t launches_own;
    uint32_t was_queued_whole;
    uint32_t was_long;  // More than can wait behind a gate.
  };
  // The times of the calls, one each; false if the candidate failed or did not make all calls.
  bool finish_batch(std::vector<TimedCall>& calls);
  // The items of an itemised batch, the longest first.  REQUIRES: the batch is finished.
  bool take_items(std::vector<CallItem>& items);
  // The candidate's peak memory since the last batch's first call, in bytes, a multiple of
  // kGranularity: parameters, results and workspace, without the calls' inputs.
  uint64_t batch_memory_bytes();
  // Exports the outputs of a finished batch's call like export_parts(), each at a multiple of
  // TimedBatch::kAlignment.  `bytes` are the expected sizes; -1 if the sizes differ, kNoRoom as
  // above.
  int export_outputs(uint32_t call, const uint64_t* bytes, size_t num_parts);

 private:
  struct File {
    std::string path_here;
    bool is_own = false;
    std::unique_ptr<ImageFile> file;
  };
  struct Module {
    CUmodule module = nullptr;
    bool is_own = false;
    std::string path;  // The module's file on this side.
    uint64_t offset = 0;
  };
  struct FunctionEntry {
    CUfunction function = nullptr;
    bool is_own = false;
    CallItem item;                // The fields that all launches share.
    uint32_t argument_bytes = 0;  // The minimum for a launch.
    uint32_t module = 0;
  };
  // The driver's form of a launch.
  struct Configuration {
    CUlaunchConfig config{};
    CUlaunchAttribute attributes[2];
    const FunctionEntry* function = nullptr;
  };
  // Counts of a stream's commands, or of those of each run of a graph.
  struct Work {
    uint64_t launches = 0;
    uint64_t launches_own = 0;
    uint64_t bytes_moved = 0;
  };
  struct CapturedGraph {
    CUgraph graph = nullptr;
    Work work;
  };
  struct GraphExec {
    CUgraphExec exec = nullptr;
    Work work;
  };
  struct Block {
    uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
    std::vector<uint64_t> tensors{};  // The offsets of an input region's tensors, ascending.
  };

  Executor() = default;

  // ---- Commands (executor_commands.cc).
  struct CommandRow;
  static const CommandRow& row_of(Op op);
  template <auto kHandler>
  static CUresult run(Executor& executor, std::string_view body);
  template <typename Command>
  CUresult call(CUresult (Executor::*handler)(const Command&, std::string_view),
                std::string_view body);
  // Executes a command, of which `body` is all behind its Op, and sends its reply if it has one.
  // REQUIRES: `op` is an enumerator other than kPad.
  void execute(Op op, std::string_view body);
  bool is_allowed_now(const CommandRow& row, size_t bytes);
  // Sets the data of the reply, which is sent even if the command fails.  Called at most once.
  void set_reply(const void* data, size_t bytes);
  void reply(CUresult status);
  void fail(CUresult status);
  void note(Note kind, const void* first, size_t first_bytes, const void* second = nullptr,
            size_t second_bytes = 0);

  // A handler executes one command, whose fixed part `rest` follows.
  CUresult map(const Map& command, std::string_view rest);
  CUresult unmap(const Map& command, std::string_view rest);
  CUresult write(const Write& command, std::string_view data);
  CUresult read(const Read& command, std::string_view rest);
  CUresult copy(const Copy& command, std::string_view rest);
  CUresult fill(const Fill& command, std::string_view rest);
  CUresult load_module(const LoadModule& command, std::string_view path);
  CUresult load_text(const LoadText& command, std::string_view part);
  CUresult unload_module(const Handle& command, std::string_view rest);
  CUresult find_function(const Find& command, std::string_view name);
  CUresult find_variable(const Find& command, std::string_view name);
  CUresult set_attribute(const SetAttribute& command, std::string_view rest);
  CUresult occupancy(const Occupancy& command, std::string_view rest);
  CUresult tensor_map(const TensorMap& command, std::string_view rest);
  CUresult launch(const Launch& command, std::string_view arguments);
  CUresult note_refused(const Launch& command, std::string_view rest);
  CUresult create_stream(const CreateStream& command, std::string_view rest);
  CUresult destroy_stream(const Handle& command, std::string_view rest);
  CUresult query_stream(const Handle& command, std::string_view rest);
  CUresult synchronize(const Handle& command, std::string_view rest);
  CUresult create_event(const CreateEvent& command, std::string_view rest);
  CUresult destroy_event(const Handle& command, std::string_view rest);
  CUresult record_event(const StreamEvent& command, std::string_view rest);
  CUresult wait_event(const StreamEvent& command, std::string_view rest);
  CUresult query_event(const Handle& command, std::string_view rest);
  CUresult synchronize_event(const Handle& command, std::string_view rest);
  CUresult elapsed(const Elapsed& command, std::string_view rest);
  CUresult begin_capture(const Capture& command, std::string_view rest);
  CUresult end_capture(const Capture& command, std::string_view rest);
  CUresult describe_capture(const Handle& command, std::string_view rest);
  CUresult instantiate(const Graph& command, std::string_view rest);
  CUresult launch_graph(const Graph& command, std::string_view rest);
  CUresult destroy_graph(const Handle& command, std::string_view rest);
  CUresult destroy_exec(const Handle& command, std::string_view rest);
  CUresult begin_call(const Call& command, std::string_view rest);
  CUresult end_call(const Call& command, std::string_view parts);
  CUresult call_library(const LibraryCall& command, std::string_view words);
  CUresult run_operator(const OperatorCall& command, std::string_view call);
  CUresult fetch_result(const OperatorResult& command, std::string_view rest);
  CUresult host_access(const HostAccess& command, std::string_view rest);
  CUresult unsupported(const Handle& command, std::string_view name);

  std::string architecture() const;
  void note_unsupported(std::string_view what) {
    if (use_.unsupported.empty()) use_.unsupported = what;
  }
  void forget_after_this(const Module& module);
  CUresult describe_function(const Find& command, const char* name, FunctionFacts& facts);
  bool configure(const Launch& command, Configuration& configuration);
  void count(CUstream stream, const Work& work);
  static std::vector<uint64_t> offsets_of(std::span<const Extent> extents);
  uint64_t offset_of(uint64_t address) const;
  uint64_t bytes_moved(const Copy& command) const;
  CUresult count_query(CUresult status);
  void end_item(CallItem item);
  CUresult join(CUstream stream);
  void count_entries(uint32_t number);
  static CUmemAllocationProp properties_of_memory(CUdevice device);
  // Maps new exportable memory in the address range of regions; 0 if there is none.
  uint64_t map_new_region(uint64_t bytes, Block& block);
  int exported(uint64_t address, const Block& block, CUresult status);

  bool may_run_foreign(const char* name);
  bool stream_of(uint32_t handle, CUstream& stream) override;
  CUevent event_of(uint32_t handle) const;
  bool is_device_range(uint64_t address, uint64_t bytes) const override;
  bool is_capturing(CUstream stream) const;

  // The time of a reply reveals to the host how long launches took, and a kernel could send data
  // that way.  After many such replies in one call, each is delayed by a random time.
  void delay_reply();

  // True for the device in software, which allocates by the byte and reports refused operations.
  bool is_in_software() const { return granularity_ == 1; }

  CUresult map_at(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle);
  CUresult map_part(uint64_t address, Extent part, CUmemGenericAllocationHandle handle);
  CUresult map_extents(uint64_t address, std::span<const Extent> extents, const Block& block);
  void unmap_block(uint64_t address, const Block& block);

  std::mutex mutex_;  // Held during each command and each call of the judge's side.

  // Constant after construction:
  CUcontext context_ = nullptr;
  CUdevice device_ = 0;
  Options options_;
  uint64_t granularity_ = kGranularity;  // The device's allocation granularity.
  uint64_t arena_ = 0;
  uint64_t regions_ = 0;

  // State of the current candidate:
  Page* page_ = nullptr;
  const char* ring_ = nullptr;
  char* reply_area_ = nullptr;
  uint64_t position_ = 0;
  int record_ = -1;  // The file of notes; -1 for none.
  uint64_t recorded_bytes_ = 0;
  size_t reply_bytes_ = 0;  // The bytes of the current command's reply in reply_area_.
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, Block> region_blocks_;
  ArenaMap region_map_;
  uint64_t mapped_bytes_ = 0;
  size_t imports_ = 0;              // The number of imports of inputs, one for each call.
  uint64_t mapped_bytes_peak_ = 0;  // Since the last batch's first call.
  std::unordered_map<std::string, File> files_;
  std::vector<std::string> foreign_allowed_;  // Patterns.
  std::unordered_map<uint32_t, Module> modules_;
  std::unordered_map<uint32_t, FunctionEntry> functions_;
  std::unordered_map<uint32_t, CUstream> streams_;
  std::unordered_map<uint32_t, CUevent> events_;
  std::unordered_map<uint32_t, CapturedGraph> graphs_;
  std::unordered_map<uint32_t, GraphExec> graph_execs_;
  uint32_t num_captures_ = 0;            // Begun and not ended.
  std::map<cuuint64_t, Work> captured_;  // Keys are the driver's capture ids.
  bool is_taken_ = false;  // Outputs were copied, inputs still mapped: writes are refused.
  std::map<uint64_t, uint64_t> variables_;  // Size by address.
  // The most recent small copies from the host, by address.
  std::map<uint64_t, std::string> given_by_host_;
  Use use_;
  uint64_t launches_replied_ = 0;         // Launches before the last reply.
  uint64_t replies_behind_launches_ = 0;  // Replies after launches, in this call.
  std::minstd_rand delays_{std::random_device()()};

  // State of a batch:
  std::unique_ptr<TimedBatch> batch_;  // Null until the first is prepared.
  bool is_timed_ = false;
  CallBytes call_bytes_;
  uint64_t slots_ = 0;                  // The address of the inputs.
  uint32_t entries_ = 0;                // Entries of the current call in the device's queue.
  std::vector<CUstream> streams_used_;  // Streams of the call, without the legacy one.
  std::vector<CUevent> joins_;
  size_t num_joins_ = 0;                // Joins that the call needed so far.
  std::vector<uint32_t> launches_own_;  // One for each call, like the next member.
  std::vector<bool> was_long_;
  uint64_t launches_own_before_ = 0;
  CallItems items_;
  bool has_failed_ = false;

  Libraries libraries_{*this};
  Operators operators_;

  // PyTorch's modules stay loaded for the next candidate, except those that a candidate may have
  // changed.
  using ImageKey = std::pair<std::string, uint64_t>;
  std::map<uint32_t, std::string> texts_;  // Incomplete modules' PTX, by handle.
  uint64_t text_bytes_ = 0;                // Total size of texts_.
  std::map<ImageKey, CUmodule> kept_modules_;
  std::set<ImageKey> changed_modules_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_EXECUTOR_H_
