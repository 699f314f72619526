// SPDX-License-Identifier: Apache-2.0
//
// The commands that a candidate process sends to a device process.
//
// A candidate process has no device.  Its host code calls a client (client/cudart.cc has the names
// of libcudart), which sends these commands through shared memory (channel.h) to the device process
// (cuda/executor.h), which holds the memory and runs the kernels.  Commands run in the order in
// which they were sent.  The client waits for a reply to each command that is marked "reply".
//
// Handles of functions, modules, streams, events and graphs are numbers that the client chooses, so
// that creating one needs no reply.  The device process checks every field: the sender is hostile.
//
// Addresses are those of the device process.  The client divides [arena, arena + arena_bytes) of
// the Page by itself, and maps memory at an address with kMap.
#ifndef MC_DEVICE_COMMANDS_H_
#define MC_DEVICE_COMMANDS_H_

#include <cstdint>

namespace mc::device {

enum class Op : uint32_t {
  kPad,               // Padding to the end of the ring; the next command begins at its start.
  kMap,               // Map; reply; the device may have no memory left.
  kUnmap,             // Map
  kWrite,             // Write, then the bytes: host to device.
  kRead,              // Read; reply: the bytes, from device to host.
  kCopy,              // Copy: device to device.
  kFill,              // Fill
  kLoadModule,        // LoadModule, then the path of the file that holds the image.
  kLoadText,          // LoadText, then a part of a module's PTX; reply.
  kUnloadModule,      // Handle
  kFindFunction,      // Find, then the name; reply: FunctionFacts.
  kFindVariable,      // Find, then the name; reply: VariableFacts.
  kSetAttribute,      // SetAttribute
  kOccupancy,         // Occupancy; reply: an int32_t.
  kTensorMap,         // TensorMap; reply: a CUtensorMap.
  kLaunch,            // Launch, then the bytes of the arguments.
  kRefusedLaunch,     // Launch: the client refused it; a device in software reports why.
  kCreateStream,      // CreateStream
  kDestroyStream,     // Handle
  kCreateEvent,       // CreateEvent
  kDestroyEvent,      // Handle
  kRecordEvent,       // StreamEvent
  kWaitEvent,         // StreamEvent
  kElapsed,           // Elapsed; reply: a float, of milliseconds.
  kQueryStream,       // Handle; reply without data; CUDA_ERROR_NOT_READY as the status.
  kQueryEvent,        // Handle; reply like that of kQueryStream.
  kSynchronize,       // Handle of a stream, or kWholeDevice; reply.
  kSynchronizeEvent,  // Handle; reply.
  kBeginCapture,      // Capture
  kEndCapture,        // Capture: the graph gets `graph` as its handle; reply.
  kCaptureInfo,       // Handle of a stream; reply: CaptureFacts.
  kInstantiate,       // Graph; reply.
  kLaunchGraph,       // Graph
  kDestroyGraph,      // Handle
  kDestroyGraphExec,  // Handle
  kBeginCall,         // Call: the next timed call's inputs appear, and its time begins.
  kEndCall,           // Call, then an OutputPart for each tensor of its outputs.
  kLibraryCall,       // LibraryCall, then its words; if it asks for one, a reply of words.
  kOperator,          // OperatorCall, then its bytes (operators/operators.h); reply.
  kOperatorResult,    // OperatorResult: copies a result of the last kOperator to an address.
  kHostAccess,        // HostAccess; reply after all queued work.
  kUnsupported,       // The name of a function that the client does not support.
};
constexpr uint32_t kOps = static_cast<uint32_t>(Op::kUnsupported) + 1;

// Every command begins with a header; `bytes` includes the header and is a multiple of
// kCommandAlignment.
struct Header {
  Op op;
  uint32_t bytes;
  uint64_t location;  // The caller's offset in a checked program's image; otherwise 0.
};

constexpr uint32_t kCommandAlignment = 16;
constexpr uint32_t kCommandBytesMax = 1u << 20;
constexpr uint32_t kReplyBytesMax = 1u << 20;
constexpr uint32_t kNameBytesMax = 1u << 16;  // Names of template kernels are long.
constexpr uint32_t kParametersMax = 1024;
constexpr uint32_t kArgumentBytesMax = 32764;  // CUDA's limit from sm_70 on.
constexpr uint64_t kGranularity = 2u << 20;    // The unit of kMap's addresses.

constexpr uint32_t kWholeDevice = ~0u;
// The first streams exist: the legacy default stream, CUDA's two names of it, and the default
// stream of threads.
constexpr uint32_t kFirstStream = 3;

struct Handle {
  uint32_t handle;
};

struct Map {
  uint64_t address;
  uint64_t bytes;  // The requested size; the device rounds it up to its own granularity.
};

struct Write {
  uint64_t target;
  uint64_t bytes;  // That follow.
  uint32_t stream;
};

// Reads `rows` rows of `bytes` bytes, at most kReplyBytesMax in total.
struct Read {
  uint64_t source;
  uint64_t bytes;
  uint64_t pitch;
  uint64_t rows;
  uint32_t stream;
};

struct Copy {
  uint64_t target;
  uint64_t source;
  uint64_t bytes;  // Per row.
  uint64_t rows;
  uint64_t target_pitch;
  uint64_t source_pitch;
  uint32_t stream;
};

struct Fill {
  uint64_t target;
  uint64_t count;  // Elements of a row.
  uint64_t rows;
  uint64_t pitch;
  uint32_t value;
  uint32_t element_bytes;  // 1, 2 or 4
  uint32_t stream;
};

struct LoadModule {
  uint64_t offset;  // The fat binary's offset in its file.
  uint32_t module;
};

// An access by a checked program's own code to the device's memory.
struct HostAccess {
  uint64_t address;
  uint32_t is_managed;  // 0: this memory is not mapped on the host.
  uint32_t writes;
};

constexpr uint32_t kTextPartMax = 1u << 19;
constexpr uint32_t kTextBytesMax = 64u << 20;  // Per candidate, for parts of incomplete modules.

// A part of a PTX module that a program has in memory, as Triton, NVRTC and CuPy compile it.  The
// module is loaded after its last part.
struct LoadText {
  uint32_t module;
  uint32_t bytes;  // That follow.
  uint32_t is_last;
};

struct Find {
  uint32_t module;
  uint32_t function;  // The handle that the client chose for the function; unused for variables.
};

// Values of CUfunction_attribute, by their numbers there.
constexpr uint32_t kFunctionAttributes = 10;

struct FunctionFacts {
  int32_t attributes[kFunctionAttributes];
  uint32_t num_parameters;
  struct {
    uint32_t offset;
    uint32_t bytes;
  } parameters[kParametersMax];
};

struct VariableFacts {
  uint64_t address;
  uint64_t bytes;
};

struct SetAttribute {
  uint32_t function;
  int32_t attribute;
  int32_t value;
};

struct Occupancy {
  uint64_t shared_bytes;
  uint32_t function;
  int32_t block_threads;
  uint32_t flags;
};

constexpr uint32_t kTensorMapRankMax = 5;
constexpr uint32_t kTensorMapBytes = 128;

// The arguments of cuTensorMapEncodeTiled.
struct TensorMap {
  uint64_t address;
  uint64_t sizes[kTensorMapRankMax];
  uint64_t strides[kTensorMapRankMax];
  uint32_t box[kTensorMapRankMax];
  uint32_t steps[kTensorMapRankMax];
  uint32_t rank;
  int32_t kinds[5];  // Element type, interleave, swizzle, L2 promotion, fill.
};

struct Launch {
  uint32_t function;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  uint32_t stream;
  uint32_t cluster[3];  // Zeros: no cluster.
  uint32_t is_cooperative;
  uint32_t argument_bytes;  // That follow.
};

struct CreateStream {
  uint32_t stream;
  uint32_t flags;
  int32_t priority;
};

struct CreateEvent {
  uint32_t event;
  uint32_t flags;
};

struct StreamEvent {
  uint32_t stream;
  uint32_t event;
  uint32_t flags;
};

struct Elapsed {
  uint32_t start;
  uint32_t end;
};

struct Capture {
  uint32_t stream;
  uint32_t mode;
  uint32_t graph;
};

struct CaptureFacts {
  uint64_t id;
  uint32_t status;
};

struct Graph {
  uint32_t graph;
  uint32_t exec;
  uint32_t stream;
};

struct LibraryCall {
  uint32_t function;  // Index in kLibraryFunctions.
  uint32_t num_words;
  uint32_t has_reply;
  uint32_t unused = 0;
};

struct OperatorCall {
  uint64_t bytes;  // That follow.
};

struct OperatorResult {
  uint64_t target;
  uint64_t bytes;
  uint32_t slot;
};

// ---- Timing (cuda/timed_batch.h).  While a batch runs, the device works only inside timed calls.
struct Call {
  uint32_t call;  // The index in its batch, from 0.
  uint32_t num_parts;
};

struct OutputPart {
  uint64_t source;
  uint64_t bytes;
};

}  // namespace mc::device

#endif  // MC_DEVICE_COMMANDS_H_
