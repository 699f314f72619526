// SPDX-License-Identifier: Apache-2.0
//
// Executor: the device process's end of a channel, on CUDA's driver API.
//
// It holds the context and the memory, and does what a candidate process asks for (commands.h).
// The sender is hostile: every handle, size and host-visible address is checked here.  What a
// kernel does on the device is not, and cannot be: an executor whose device has a fault that stays
// is thrown away with its process.
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

// A candidate's acts, as far as a verdict asks.
struct Use {
  uint64_t launches = 0;
  uint64_t launches_own = 0;
  uint64_t operators = 0;
  // Bytes that the host did not have: not those that it wrote itself, and that came back unchanged;
  // but elapsed times and answers that work is done.
  uint64_t bytes_to_host = 0;
  std::string unsupported;  // The first thing that was asked for and is not there.
  std::string forbidden;    // The first kernel of PyTorch's that the candidate may not have.
};

class Executor : private CallContext {
 public:
  struct Options {
    uint64_t arena_bytes = uint64_t{256} << 30;         // Addresses, for what candidates allocate.
    uint64_t regions_bytes = uint64_t{256} << 30;       // Addresses, for inputs.
    uint64_t memory_bytes_max = 0;                      // 0: half of the device's memory.
    void (*rest)(std::chrono::microseconds) = nullptr;  // Null: sleeps.
  };
  // The device's primary context and the ranges of addresses; null where the driver refuses, and
  // then `why` has its error.
  static std::unique_ptr<Executor> create(const Options& options, std::string& why);
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Serves the channel behind the descriptor from its beginning; false where it cannot be mapped.
  bool attach(int descriptor);
  // A file that modules may come from: its path in the candidate process, and here.
  void allow_file(std::string path_there, std::string path_here, bool is_own);
  // Kernels of files that are not the candidate's own whose mangled names match this pattern.
  void allow_foreign_kernels(std::string pattern);
  // Executes commands until `is_over` is set.
  void serve(const std::atomic<bool>& is_over);
  Use use();
  // Takes all of the candidate's back.  False where the process must be replaced.
  bool detach();

  // ---- For the judge's side of the process.  A mutex lets them run beside serve().
  // The candidate's commands wait between these two.
  void pause() { mutex_.lock(); }
  void resume() { mutex_.unlock(); }
  // Maps memory that another process exported (cuMemExportToShareableHandle): its address here, or
  // 0 where that fails.  `extents` are the places of its tensors: a device that allocates by the
  // byte maps these alone, so that an access beyond the end of one is an access to nothing.
  struct Extent {
    uint64_t offset;
    uint64_t bytes;
  };
  uint64_t import_region(int descriptor, uint64_t bytes, std::span<const Extent> extents = {});
  void release_region(uint64_t address);
  // Copies parts of the candidate's memory, one behind the other, each to its offset, into new
  // memory that is exported as a descriptor; -1 where a part is not the candidate's, kNoRoom where
  // the device has no memory for the copy.  From then on until a region is released or imported the
  // candidate cannot write, so that its inputs are compared as they were when its outputs were
  // taken.
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
    void (*end)() = nullptr;  // Memory of the device is used no more until the next call; or null.
  };
  // Without one, operators are not supported.
  void set_operators(const Operators& operators) { operators_ = operators; }

  // ---- Records and replays (docs/replay.md).
  // From now on until detach(), each command, reply and error is noted in the file: a NoteHeader
  // and so many bytes, which are those of the command from its Op on; of a reply its status and its
  // first kNotedBytesMax bytes; of an error its status.
  enum class Note : uint32_t { kCommand = 1, kReply, kError };
  struct NoteHeader {
    Note kind;
    uint32_t bytes;
  };
  static constexpr size_t kNotedBytesMax = 16;
  static constexpr uint64_t kRecordBytesMax = uint64_t{1} << 30;
  void record(int descriptor);
  // False where a note could not be written, or there were more than kRecordBytesMax of them.
  bool is_recorded() const { return record_ >= 0; }
  // Executes a command as serve() would; false where there is no such command.  REQUIRES: serve()
  // is not running.
  struct Outcome {
    bool is_reply = false;
    uint32_t status = 0;  // The reply's, or that of an error that no reply tells.
    std::string_view reply;
  };
  bool run_alone(Op op, const char* body, uint32_t bytes, Outcome& outcome);
  // Waits for the device, and copies bytes of the candidate's memory or of its inputs.
  bool read_bytes(uint64_t address, uint64_t bytes, void* target);
  // The same as import_region() for a file of the host's, whose bytes are copied.
  uint64_t place_region(int descriptor, uint64_t bytes, std::span<const Extent> extents);
  uint64_t arena() const { return arena_; }
  uint64_t regions() const { return regions_; }
  uint32_t capability() const;  // Such as 90.
  std::string name() const;

  // ---- Timing, for the judge's side too (timed_batch.h).
  // Room for batches of at most so many calls, whose inputs and outputs take so many bytes each.
  // The address at which the candidate sees the first call's inputs, the next one's behind them,
  // the third one's in the place of the first's; 0 where there is no room.  From now on it has the
  // device in calls alone.
  uint64_t prepare_batches(uint32_t calls, const CallBytes& bytes);
  // A batch begins, whose inputs lie in memory that another process exported; false where it
  // cannot.  REQUIRES: the candidate waits for a question.
  enum class Manner : uint8_t {
    kUngated,
    kGated,
    kItemised,  // Ungated, and what the calls do is told piece by piece.
  };
  bool start_batch(int descriptor, uint64_t bytes, uint32_t calls, Manner manner);
  // A call of a batch.
  struct TimedCall {
    double us;
    double host_us;  // The host's clock, where it checked the call; else 0.
    uint32_t launches_own;
    uint32_t was_queued_whole;
    uint32_t was_long;  // More than can wait behind a gate.
  };
  // One for each call; false where the candidate did not make all of them, or failed.
  bool finish_batch(std::vector<TimedCall>& calls);
  // The pieces of an itemised batch, the longest first.  REQUIRES: it is finished.
  bool take_items(std::vector<CallItem>& items);
  // The most memory that the candidate held from the last batch's first call on: parameters,
  // results and what it works with, not the calls' inputs; bytes, a multiple of kGranularity.
  uint64_t batch_memory_bytes();
  // The outputs of a finished batch's call, as export_parts() does it: each from a multiple of
  // TimedBatch::kAlignment on.  `bytes` of them are wanted, one for each; -1 where they are others,
  // kNoRoom as above.
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
    std::string path;  // Its file, here.
    uint64_t offset = 0;
  };
  struct FunctionEntry {
    CUfunction function = nullptr;
    bool is_own = false;
    CallItem item;                // The part that is the same for all launches.
    uint32_t argument_bytes = 0;  // The least that a launch needs.
    uint32_t module = 0;
  };
  // The driver's form of a launch.
  struct Configuration {
    CUlaunchConfig config{};
    CUlaunchAttribute attributes[2];
    const FunctionEntry* function = nullptr;
  };
  struct Launches {
    uint64_t all = 0;
    uint64_t own = 0;
  };
  struct CapturedGraph {
    CUgraph graph = nullptr;
    Launches launches;  // Each time that it runs.
  };
  struct GraphExec {
    CUgraphExec exec = nullptr;
    Launches launches;
  };
  struct Block {
    uint64_t bytes = 0;
    CUmemGenericAllocationHandle handle = 0;
  };

  Executor() = default;
  void execute(Op op, const char* body, uint32_t bytes);
  void reply(CUresult status, const void* data = nullptr, size_t bytes = 0);
  void fail(CUresult status);
  void note(Note kind, const void* first, size_t first_bytes, const void* second = nullptr,
            size_t second_bytes = 0);

  // Each executes one command; those of answered commands reply.
  CUresult map(const Map& command);
  CUresult unmap(const Map& command);
  CUresult write(const Write& command, const char* data, uint32_t bytes);
  void read(const Read& command);
  CUresult copy(const Copy& command);
  CUresult fill(const Fill& command);
  std::string architecture() const;
  CUresult load_module(const LoadModule& command, std::string_view path);
  CUresult load_text(const LoadText& command, std::string_view part);
  void note_unsupported(std::string_view what) {
    if (use_.unsupported.empty()) use_.unsupported = what;
  }
  CUresult set_attribute(const SetAttribute& command);
  void forget_after_this(const Module& module);
  CUresult find_function(const Find& command, const char* name, FunctionFacts& facts);
  CUresult find_variable(const Find& command, const char* name, VariableFacts& facts);
  bool configure(const Launch& command, Configuration& configuration);
  CUresult launch(const Launch& command, const char* arguments);
  CUresult note_refused(const Launch& command);
  void count_launches(CUstream stream, const Launches& launches);
  CUresult end_capture(const Capture& command, CUstream stream);
  void end_item(CallItem item);
  CUresult call_library(const LibraryCall& command, const char* data, uint32_t bytes,
                        std::vector<uint64_t>& answer);
  void run_operator(const OperatorCall& command, const char* call, uint32_t bytes);
  CUresult fetch_result(const OperatorResult& command);
  void answer_query(CUresult status);
  CUresult elapsed(const Elapsed& command, float& ms);
  CUresult begin_call(const Call& command);
  CUresult join(CUstream stream);
  CUresult end_call(const Call& command, const char* parts, uint32_t bytes);
  bool is_allowed_now(Op op, uint32_t bytes);
  void count_entries(uint32_t number);
  static CUmemAllocationProp properties_of_memory(CUdevice device);
  // New memory, exportable, at an address for regions; 0 where there is none.
  uint64_t map_new_region(uint64_t bytes, Block& block);
  int exported(uint64_t place, const Block& block, CUresult status);

  bool may_run_foreign(const char* name);
  bool stream_of(uint32_t handle, CUstream& stream) override;
  CUevent event_of(uint32_t handle) const;
  bool is_device_range(uint64_t address, uint64_t bytes) const override;
  bool is_capturing(CUstream stream) const;

  // A host's clock reads, by when an answer comes, how long launches took, which may be a message
  // from the device.  Many such answers in one call are late by a time that nobody knows.
  void blur_answer();

  // Such a device allocates by the byte, and reports what it refuses.
  bool is_in_software() const { return granularity_ == 1; }

  CUresult map_at(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle);
  CUresult map_part(uint64_t address, Extent part, CUmemGenericAllocationHandle handle);
  CUresult map_extents(uint64_t address, std::span<const Extent> extents, const Block& block);
  void unmap_block(uint64_t address, const Block& block);

  std::mutex mutex_;  // Held for each command, and by what the judge's side calls.

  // Constant after construction:
  CUcontext context_ = nullptr;
  CUdevice device_ = 0;
  Options options_;
  uint64_t granularity_ = kGranularity;  // The device's unit of memory.
  uint64_t arena_ = 0;
  uint64_t regions_ = 0;

  // The candidate's:
  Page* page_ = nullptr;
  const char* ring_ = nullptr;
  char* reply_area_ = nullptr;
  uint64_t position_ = 0;
  int record_ = -1;  // The file of notes; -1 for none.
  uint64_t recorded_bytes_ = 0;
  bool may_reply_ = false;  // The command that is executed wants a reply and had none.
  std::map<uint64_t, Block> blocks_;
  std::map<uint64_t, Block> region_blocks_;
  ArenaMap region_map_;
  uint64_t mapped_bytes_ = 0;
  size_t imports_ = 0;              // Inputs were imported so often: once for each call.
  uint64_t mapped_bytes_peak_ = 0;  // Since the last batch's first call.
  std::unordered_map<std::string, File> files_;
  std::vector<std::string> foreign_allowed_;  // Patterns.
  std::unordered_map<uint32_t, Module> modules_;
  std::unordered_map<uint32_t, FunctionEntry> functions_;
  std::unordered_map<uint32_t, CUstream> streams_;
  std::unordered_map<uint32_t, CUevent> events_;
  std::unordered_map<uint32_t, CapturedGraph> graphs_;
  std::unordered_map<uint32_t, GraphExec> graph_execs_;
  uint32_t num_captures_ = 0;                // Begun and not ended.
  std::map<cuuint64_t, Launches> captured_;  // Keys are the driver's ids of captures.
  bool is_taken_ = false;  // Outputs were copied and its inputs are still there: it may not write.
  std::map<uint64_t, uint64_t> variables_;  // Bytes by address.
  // The last small copies from the host, by their address.
  std::map<uint64_t, std::string> given_by_host_;
  Use use_;
  uint64_t launches_answered_ = 0;  // Those before the last answer.
  uint64_t answers_ = 0;            // Answers behind launches, in the call.
  std::minstd_rand delays_{std::random_device()()};

  // A batch's:
  std::unique_ptr<TimedBatch> batch_;  // Null until the first is prepared.
  bool is_timed_ = false;
  CallBytes call_bytes_;
  uint64_t slots_ = 0;                  // The inputs' address.
  uint32_t entries_ = 0;                // In the device's queue, of the call that is under way.
  std::vector<CUstream> streams_used_;  // The call's, without the legacy one.
  std::vector<CUevent> joins_;
  size_t num_joins_ = 0;                // Those that the call needed so far.
  std::vector<uint32_t> launches_own_;  // One for each call, as the next.
  std::vector<bool> was_long_;
  uint64_t launches_own_before_ = 0;
  CallItems items_;
  bool has_failed_ = false;

  Libraries libraries_{*this};
  Operators operators_;

  // PyTorch's modules stay from one candidate to the next, but for those that one may have changed.
  using ModulePlace = std::pair<std::string, uint64_t>;
  std::map<uint32_t, std::string> texts_;  // Parts of modules, by their handles.
  uint64_t text_bytes_ = 0;                // The bytes of all of them.
  std::map<ModulePlace, CUmodule> kept_modules_;
  std::set<ModulePlace> changed_modules_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_EXECUTOR_H_
