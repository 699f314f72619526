// SPDX-License-Identifier: Apache-2.0
//
// The library libcudart, for a process that has no device: the functions under CUDA's own names,
// each of which sends commands to the device process (commands.h).
//
// The library takes libcudart's place (its SONAME and symbol version), so PyTorch and a candidate's
// libraries bind to it without knowing.  Tensors are CUDA tensors like any others, and PyTorch's
// own kernels (copies, fills, random numbers) cross as launches, as the candidate's do.  The
// functions that it lacks are in unsupported.cc: each returns an error and leaves a note for the
// verdict.
#include <link.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "client/attributes.h"
#include "client/client.h"
#include "client/graphs.h"
#include "client/managed.h"

namespace mc::device {
namespace {

constexpr uint64_t kWriteBytesMax = 512u << 10;
constexpr uint64_t kOperatorBytesMax = kCommandBytesMax - 256;
constexpr int kConfigurationsMax = 16;

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
cudaError_t note(uint32_t status) { return note(static_cast<cudaError_t>(status)); }

Sender& device() { return Client::get().sender(); }

// Notes the caller of one of the functions below, for findings.  A return address is one byte
// behind the call.
void note_caller(const void* return_address) {
  Client::get().note_location(static_cast<const char*>(return_address) - 1);
}

// Notes that the host has waited for the device.
template <typename Status>
Status end_work(Status status) {
  Managed::get().end_work();
  return status;
}

template <typename Command>
cudaError_t send(Op op, const Command& command, Tail tail = {}) {
  device().send(op, command, tail);
  return cudaSuccess;
}

int attribute(int index) { return device().page().attributes[index]; }

// ---- Launches -----------------------------------------------------------------------------------

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  uint64_t location = 0;
};
thread_local std::array<Configuration, kConfigurationsMax> configurations;
thread_local int num_configurations = 0;

// Launch attributes that change no result: they permit an earlier start, and work here runs in
// stream order.
constexpr cudaLaunchAttributeID kHints[] = {
    cudaLaunchAttributeIgnore,
    cudaLaunchAttributePriority,
#ifndef MC_DEVICE_MUSA  // MUSA may lack these.
    cudaLaunchAttributeAccessPolicyWindow,
    cudaLaunchAttributeProgrammaticStreamSerialization,
    cudaLaunchAttributeMemSyncDomain,
    cudaLaunchAttributeMemSyncDomainMap,
    cudaLaunchAttributePreferredSharedMemoryCarveout,
#endif
};

struct LaunchOptions {
  dim3 cluster{0, 0, 0};
  bool is_cooperative = false;
};

// Finds a registered function and the device's facts about it.
cudaError_t find(const void* host, Function*& function) {
  function = Client::get().find_function(host);
  return function == nullptr ? cudaErrorInvalidDeviceFunction : Client::get().prepare(*function);
}

// The error that libcudart itself would report before the launch.
cudaError_t check(const Function& function, const Configuration& c) {
  const auto& facts = *function.facts;
  const auto fits = [](const dim3& sizes, int first) {  // The attributes of x, y and z.
    const unsigned each[] = {sizes.x, sizes.y, sizes.z};
    for (int i = 0; i < 3; ++i) {
      if (each[i] == 0 || each[i] > static_cast<unsigned>(attribute(first + i))) return false;
    }
    return true;
  };
  const uint64_t threads = uint64_t{c.block.x} * c.block.y * c.block.z;
  if (!fits(c.block, kMaxBlockDimX) || !fits(c.grid, kMaxGridDimX) ||
      threads > static_cast<uint64_t>(attribute(kMaxThreadsPerBlock))) {
    return cudaErrorInvalidConfiguration;
  }
  const auto limit = [&](FunctionAttribute index) {
    return static_cast<uint64_t>(facts.attributes[index]);
  };
  if (threads > limit(kFunctionMaxThreadsPerBlock)) return cudaErrorLaunchOutOfResources;
  if (c.shared_bytes > limit(kFunctionMaxDynamicSharedBytes)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t launch(const void* host, const Configuration& c, void** arguments,
                   const LaunchOptions& options = {}) {
  Function* function = nullptr;
  if (const cudaError_t error = find(host, function)) return error;
  const FunctionFacts& facts = *function->facts;
  Launch command{function->handle,
                 {c.grid.x, c.grid.y, c.grid.z},
                 {c.block.x, c.block.y, c.block.z},
                 static_cast<uint32_t>(std::min<size_t>(c.shared_bytes, UINT32_MAX)),
                 handle_of(c.stream),
                 {options.cluster.x, options.cluster.y, options.cluster.z},
                 options.is_cooperative ? 1u : 0u,
                 0};
  if (const cudaError_t error = check(*function, c)) {
    device().send(Op::kRefusedLaunch, command);
    return error;
  }
  std::array<char, kArgumentBytesMax> packed;
  uint32_t end = 0;
  for (uint32_t i = 0; i < facts.num_parameters; ++i) {
    const auto& parameter = facts.parameters[i];
    if (parameter.offset + parameter.bytes > packed.size()) return cudaErrorInvalidValue;
    std::memset(packed.data() + end, 0, std::max(end, parameter.offset) - end);
    std::memcpy(packed.data() + parameter.offset, arguments[i], parameter.bytes);
    end = parameter.offset + parameter.bytes;
  }
  command.argument_bytes = end;
  Managed::get().begin_work();
  return send(Op::kLaunch, command, {packed.data(), end});
}

// ---- Copies -------------------------------------------------------------------------------------

struct Rows {
  char* target;
  const char* source;
  size_t target_pitch, source_pitch;
  size_t bytes, rows;
};

cudaError_t write_rows(const Rows& r, cudaStream_t stream) {
  for (size_t row = 0; row < r.rows; ++row) {
    const char* source = r.source + row * r.source_pitch;
    const auto target = reinterpret_cast<uint64_t>(r.target + row * r.target_pitch);
    for (size_t done = 0; done < r.bytes; done += kWriteBytesMax) {
      const uint64_t part = std::min<uint64_t>(kWriteBytesMax, r.bytes - done);
      send(Op::kWrite, Write{target + done, part, handle_of(stream)}, {source + done, part});
    }
  }
  return cudaSuccess;
}

cudaError_t read_rows(const Rows& r, cudaStream_t stream) {
  for (size_t row = 0; row < r.rows; ++row) {
    char* target = r.target + row * r.target_pitch;
    const auto source = reinterpret_cast<uint64_t>(r.source + row * r.source_pitch);
    for (size_t done = 0; done < r.bytes; done += kReplyBytesMax) {
      const uint64_t part = std::min<uint64_t>(kReplyBytesMax, r.bytes - done);
      const Read command{source + done, part, part, 1, handle_of(stream)};
      const uint32_t status = device().call(Op::kRead, command, target + done, part);
      if (status != 0) return static_cast<cudaError_t>(status);
    }
  }
  return cudaSuccess;
}

cudaError_t move_rows(const Rows& r, cudaStream_t stream) {
  device().call(Op::kSynchronize, Handle{handle_of(stream)});
  for (size_t row = 0; row < r.rows; ++row) {
    std::memmove(r.target + row * r.target_pitch, r.source + row * r.source_pitch, r.bytes);
  }
  return cudaSuccess;
}

cudaError_t copy_rows(const Rows& r, cudaMemcpyKind kind, cudaStream_t stream) {
  if (r.bytes == 0 || r.rows == 0) return cudaSuccess;
  // A copy to or from managed memory runs in stream order, whatever direction the program names.
  Managed& managed = Managed::get();
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
                           (kind == cudaMemcpyDefault && Client::get().is_on_device(r.source)) ||
                           managed.has(r.source);
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
                         (kind == cudaMemcpyDefault && Client::get().is_on_device(r.target)) ||
                         managed.has(r.target);
  if (from_device && to_device) {
    const Copy command{reinterpret_cast<uint64_t>(r.target),
                       reinterpret_cast<uint64_t>(r.source),
                       r.bytes,
                       r.rows,
                       r.target_pitch,
                       r.source_pitch,
                       handle_of(stream)};
    const cudaError_t status = send(Op::kCopy, command);
    const bool is_seen = managed.has(r.source) || managed.has(r.target);
    if (status != cudaSuccess || !is_seen) return status;
    // The host may use either memory right after this call.
    return static_cast<cudaError_t>(device().call(Op::kSynchronize, Handle{handle_of(stream)}));
  }
  if (r.source == nullptr || r.target == nullptr) return cudaErrorInvalidValue;
  return Graphs::get().run(stream, [=](cudaStream_t where) {
    if (to_device) return write_rows(r, where);
    return from_device ? read_rows(r, where) : move_rows(r, where);
  });
}

cudaError_t copy_2d(const Rows& r, cudaMemcpyKind kind, cudaStream_t stream) {
  if (r.bytes > r.target_pitch || r.bytes > r.source_pitch) return cudaErrorInvalidPitchValue;
  return copy_rows(r, kind, stream);
}

cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  return copy_rows(
      {static_cast<char*>(target), static_cast<const char*>(source), bytes, bytes, bytes, 1}, kind,
      stream);
}

cudaError_t fill(void* target, size_t pitch, int value, size_t bytes, size_t rows,
                 cudaStream_t stream) {
  if (bytes == 0 || rows == 0) return cudaSuccess;
  Managed::get().begin_work();
  return send(Op::kFill, Fill{reinterpret_cast<uint64_t>(target), bytes, rows, pitch,
                              static_cast<uint32_t>(value & 0xff), 1, handle_of(stream)});
}

// The address of a part of a device variable.
cudaError_t address_in(const void* symbol, size_t offset, size_t bytes, char** address) {
  Variable* variable = Client::get().find_variable(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  if (const cudaError_t error = Client::get().prepare(*variable)) return error;
  if (offset > variable->bytes || bytes > variable->bytes - offset) return cudaErrorInvalidValue;
  *address = reinterpret_cast<char*>(variable->address + offset);
  return cudaSuccess;
}

cudaError_t copy_to_symbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                           cudaMemcpyKind kind, cudaStream_t stream) {
  char* target = nullptr;
  if (const cudaError_t error = address_in(symbol, offset, bytes, &target)) return error;
  if (kind == cudaMemcpyDefault) {
    kind = Client::get().is_on_device(source) ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  }
  return copy(target, source, bytes, kind, stream);
}

cudaError_t copy_from_symbol(void* target, const void* symbol, size_t bytes, size_t offset,
                             cudaMemcpyKind kind, cudaStream_t stream) {
  char* source = nullptr;
  if (const cudaError_t error = address_in(symbol, offset, bytes, &source)) return error;
  if (kind == cudaMemcpyDefault) {
    kind = Client::get().is_on_device(target) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  }
  return copy(target, source, bytes, kind, stream);
}

// The function gets the status of the work before it.
cudaError_t call_on_host(cudaStream_t stream, const std::function<void(cudaError_t)>& function) {
  Graphs& graphs = Graphs::get();
  if (graphs.is_capturing() && !Client::get().is_checked()) {
    return cudaErrorStreamCaptureUnsupported;
  }
  return graphs.run(stream, [function](cudaStream_t where) {
    const uint32_t status = device().call(Op::kSynchronize, Handle{handle_of(where)});
    function(static_cast<cudaError_t>(status));
    return cudaSuccess;
  });
}

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status,
                         unsigned long long* id) {
  CaptureFacts facts{};
  uint32_t error = 0;
  if (Graphs::get().is_capturing()) {
    error = device().call(Op::kCaptureInfo, Handle{handle_of(stream)}, &facts, sizeof facts);
  }
  *status = static_cast<cudaStreamCaptureStatus>(facts.status);
  if (id != nullptr) *id = facts.id;
  return static_cast<cudaError_t>(error);
}

void describe(cudaDeviceProp& p) {
  const Page& page = device().page();
  const auto at = [&](int index) { return page.attributes[index]; };
  p = {};
  std::memcpy(p.name, page.name, sizeof p.name);
  std::memcpy(&p.uuid, page.uuid, sizeof p.uuid);
  p.totalGlobalMem = page.total_bytes;
  p.maxThreadsPerBlock = at(kMaxThreadsPerBlock);
  for (int i = 0; i < 3; ++i) p.maxThreadsDim[i] = at(kMaxBlockDimX + i);
  for (int i = 0; i < 3; ++i) p.maxGridSize[i] = at(kMaxGridDimX + i);
  p.sharedMemPerBlock = static_cast<size_t>(at(kMaxSharedMemoryPerBlock));
  p.totalConstMem = static_cast<size_t>(at(kTotalConstantMemory));
  p.warpSize = at(kWarpSize);
  p.memPitch = static_cast<size_t>(at(kMaxPitch));
  p.regsPerBlock = at(kMaxRegistersPerBlock);
  p.textureAlignment = static_cast<size_t>(at(kTextureAlignment));
  p.multiProcessorCount = at(kMultiprocessorCount);
  p.integrated = at(kIntegrated);
  p.concurrentKernels = at(kConcurrentKernels);
  p.ECCEnabled = at(kEccEnabled);
  p.pciBusID = at(kPciBusId);
  p.pciDeviceID = at(kPciDeviceId);
  p.memoryBusWidth = at(kGlobalMemoryBusWidth);
  p.l2CacheSize = at(kL2CacheSize);
  p.maxThreadsPerMultiProcessor = at(kMaxThreadsPerMultiprocessor);
  p.asyncEngineCount = at(kAsyncEngineCount);
  p.unifiedAddressing = at(kUnifiedAddressing);
  p.canMapHostMemory = at(kCanMapHostMemory);
  p.managedMemory = at(kManagedMemory);
  p.concurrentManagedAccess = at(kConcurrentManagedAccess);
  p.pciDomainID = at(kPciDomainId);
  p.texturePitchAlignment = static_cast<size_t>(at(kTexturePitchAlignment));
  p.major = at(kComputeCapabilityMajor);
  p.minor = at(kComputeCapabilityMinor);
  p.streamPrioritiesSupported = at(kStreamPrioritiesSupported);
  p.globalL1CacheSupported = at(kGlobalL1CacheSupported);
  p.localL1CacheSupported = at(kLocalL1CacheSupported);
  p.sharedMemPerMultiprocessor = static_cast<size_t>(at(kMaxSharedMemoryPerMultiprocessor));
  p.regsPerMultiprocessor = at(kMaxRegistersPerMultiprocessor);
  p.computePreemptionSupported = at(kComputePreemptionSupported);
  p.cooperativeLaunch = at(kCooperativeLaunch);
  p.sharedMemPerBlockOptin = static_cast<size_t>(at(kMaxSharedMemoryPerBlockOptin));
  p.maxBlocksPerMultiProcessor = at(kMaxBlocksPerMultiprocessor);
  p.persistingL2CacheMaxSize = at(kMaxPersistingL2CacheSize);
  p.accessPolicyMaxWindowSize = at(kMaxAccessPolicyWindowSize);
  p.reservedSharedMemPerBlock = static_cast<size_t>(at(kReservedSharedMemoryPerBlock));
  p.memoryPoolsSupported = at(kMemoryPoolsSupported);
  p.clusterLaunch = at(kClusterLaunch);
}

}  // namespace

cudaError_t note_unsupported(const char* name) {
  if (Client::get().is_open()) {
    device().send(Op::kUnsupported, Handle{0}, {name, std::strlen(name) + 1});
  }
  return note(cudaErrorNotSupported);
}

// The function that unsupported.cc calls.
int note_unsupported_name(const char* name) { return note_unsupported(name); }

}  // namespace mc::device

using namespace mc::device;  // NOLINT: the functions below are libcudart's, in no namespace.

extern "C" {

// Opens the channel behind the descriptor, for the harness: 0, or 1 if that fails.
int mc_device_open(int descriptor) { return Client::get().open(descriptor) ? 0 : 1; }

// True if the program was linked with this library; false if it loaded the library later.
static bool is_linked_with_us() {
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = _r_debug.r_map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  for (const ElfW(Dyn)* entry = _r_debug.r_map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag != DT_NEEDED || names == nullptr) continue;
    if (std::strstr(names + entry->d_un.d_val, "libcudart.so") != nullptr) return true;
  }
  return false;
}

// Restarts the program in the sandbox, with a device (src/check/command.h).
static void run_checked(const char* checker, int argc, char** argv) {
  char program[PATH_MAX] = {};
  if (::readlink("/proc/self/exe", program, sizeof program - 1) <= 0) return;
  std::vector<const char*> words = {checker, "check", "--program", program, "--"};
  words.insert(words.end(), argv + std::min(argc, 1), argv + argc);
  words.push_back(nullptr);
  ::execv(checker, const_cast<char**>(words.data()));
  std::perror(checker);
  _exit(1);
}

// For a standalone program (src/check) the environment names the descriptor.  At exit the program
// waits for work that it launched and did not wait for.
__attribute__((constructor)) static void open_by_environment(int argc, char** argv) {
  const char* const descriptor = std::getenv("MC_DEVICE_CHANNEL");
  if (descriptor == nullptr) {
    const char* const checker = std::getenv("MC_CHECK_PROGRAM");
    if (checker != nullptr && is_linked_with_us()) run_checked(checker, argc, argv);
    return;
  }
  if (!Client::get().open(std::atoi(descriptor))) {
    std::fputs("the channel to the device cannot be mapped\n", stderr);
    _exit(1);
  }
  Client::get().set_checked();
  Managed::get().watch();
  if (const char* const memory = std::getenv("MC_DEVICE_MEMORY")) Managed::get().open(memory);
  std::atexit([] { cudaDeviceSynchronize(); });
}

// Functions for the harness: a PyTorch operator (operators/operators.h), whose reply has at most
// `reply_max` bytes; and the begin and end of a timed call (commands.h).
int mc_device_operator(const void* call, size_t bytes, void* reply, size_t reply_max) {
  if (bytes > kOperatorBytesMax) return cudaErrorInvalidValue;
  const mc::device::OperatorCall command{bytes};
  return note(device().call(Op::kOperator, command, reply, reply_max, {call, bytes}));
}

void mc_device_operator_result(uint32_t slot, uint64_t address, uint64_t bytes) {
  send(Op::kOperatorResult, mc::device::OperatorResult{address, bytes, slot});
}

void mc_device_begin_call(uint32_t call) {
  // The first batch may contain the process's first calls, in which libraries may still return
  // errors.
  static uint32_t batches = 0;
  batches += call == 0 ? 1 : 0;
  Client::get().set_in_timed_call(batches > 1);
  device().send(Op::kBeginCall, mc::device::Call{call, 0});
}

void mc_device_end_call(uint32_t call, const mc::device::OutputPart* parts, uint32_t num_parts) {
  Client::get().set_in_timed_call(false);
  device().send(Op::kEndCall, mc::device::Call{call, num_parts},
                mc::device::Tail{parts, num_parts * sizeof *parts});
}

// ---- What compiled code calls (crt/host_runtime.h) ----------------------------------------------

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic, version;
    const void* image;
    void* unused;
  };
  return reinterpret_cast<void**>(
      Client::get().add_binary(static_cast<const Wrapper*>(wrapper)->image));
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** binary) {
  Client::get().remove_binary(reinterpret_cast<Binary*>(binary));
}

char __cudaInitModule(void** binary) {
  auto& registered = *reinterpret_cast<Binary*>(binary);
  if (!registered.managed.empty() && !Managed::get().is_open()) {
    note_unsupported("__managed__ variables");
  } else {
    note(Client::get().open_managed(registered));
  }
  return 1;
}

void __cudaRegisterManagedVar(void** binary, void** host, char*, const char* name, int,
                              size_t bytes, int, int) {
  Client::get().add_managed(reinterpret_cast<Binary*>(binary), host, name, bytes);
}

void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  Client::get().add_function(reinterpret_cast<Binary*>(binary), host, name);
}

void __cudaRegisterVar(void** binary, char* host, char*, const char* name, int, size_t bytes, int,
                       int) {
  Client::get().add_variable(reinterpret_cast<Binary*>(binary), host, name, bytes);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  Function* function = Client::get().find_function(host);
  if (function == nullptr) return note(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(function);
  return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  if (num_configurations == kConfigurationsMax) return 1;
  note_caller(__builtin_return_address(0));
  configurations[static_cast<size_t>(num_configurations++)] = {grid, block, shared_bytes, stream,
                                                               Sender::location};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  if (num_configurations == 0) return note(cudaErrorMissingConfiguration);
  const Configuration& c = configurations[static_cast<size_t>(--num_configurations)];
  *grid = c.grid;
  *block = c.block;
  *shared_bytes = c.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = c.stream;
  Sender::location = c.location;
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return note(launch(kernel, {grid, block, shared_bytes, stream}, arguments));
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes, cudaStream_t stream) {
  if (stream == nullptr) stream = cudaStreamPerThread;
  return note(launch(kernel, {grid, block, shared_bytes, stream}, arguments));
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return note(launch(function, {grid, block, shared_bytes, stream}, arguments));
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared_bytes,
                                        cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(
      launch(function, {grid, block, shared_bytes, stream}, arguments, {.is_cooperative = true}));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  note_caller(__builtin_return_address(0));
  LaunchOptions options;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension) {
      const auto& c = attribute.val.clusterDim;
      options.cluster = {c.x, c.y, c.z};
    } else if (attribute.id == cudaLaunchAttributeCooperative) {
      options.is_cooperative = attribute.val.cooperative != 0;
    } else if (std::ranges::find(kHints, attribute.id) == std::end(kHints)) {
      return note_unsupported("cudaLaunchKernelEx with an attribute that changes more than speed");
    }
  }
  return note(launch(function,
                     {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream},
                     arguments, options));
}

// ---- Functions ----------------------------------------------------------------------------------

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host) {
  Function* function = nullptr;
  if (const cudaError_t error = find(host, function)) return note(error);
  const int32_t* v = function->facts->attributes;
  *attributes = {};
  attributes->maxThreadsPerBlock = v[kFunctionMaxThreadsPerBlock];
  attributes->sharedSizeBytes = static_cast<size_t>(v[kFunctionSharedBytes]);
  attributes->constSizeBytes = static_cast<size_t>(v[kFunctionConstBytes]);
  attributes->localSizeBytes = static_cast<size_t>(v[kFunctionLocalBytes]);
  attributes->numRegs = v[kFunctionRegisters];
  attributes->ptxVersion = v[kFunctionPtxVersion];
  attributes->binaryVersion = v[kFunctionBinaryVersion];
  attributes->cacheModeCA = v[kFunctionCacheModeCa];
  attributes->maxDynamicSharedSizeBytes = v[kFunctionMaxDynamicSharedBytes];
  attributes->preferredShmemCarveout = v[kFunctionSharedMemoryCarveout];
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute attribute_id, int value) {
  Function* function = nullptr;
  if (const cudaError_t error = find(host, function)) return note(error);
  FunctionFacts& facts = *function->facts;
  if (attribute_id == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 ||
        value > attribute(kMaxSharedMemoryPerBlockOptin) - facts.attributes[kFunctionSharedBytes])
      return note(cudaErrorInvalidValue);
    facts.attributes[kFunctionMaxDynamicSharedBytes] = value;
  } else if (attribute_id == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (value < -1 || value > 100) return note(cudaErrorInvalidValue);
    facts.attributes[kFunctionSharedMemoryCarveout] = value;
  }
  return send(Op::kSetAttribute,
              SetAttribute{function->handle, static_cast<int32_t>(attribute_id), value});
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* host,
                                                                   int block_threads,
                                                                   size_t shared_bytes,
                                                                   unsigned flags) {
  Function* function = nullptr;
  if (const cudaError_t error = find(host, function)) return note(error);
  const Occupancy command{shared_bytes, function->handle, block_threads, flags};
  return note(device().call(Op::kOccupancy, command, blocks, sizeof *blocks));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* host,
                                                          int block_threads, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, host, block_threads,
                                                                shared_bytes, 0);
}

// ---- Memory -------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return note(Client::get().allocate(pointer, bytes));
}

cudaError_t cudaFree(void* pointer) {
  // A running kernel may use the memory: the host frees it only after that kernel, as the device
  // does.
  if (Managed::get().has(pointer)) cudaDeviceSynchronize();
  Managed::get().release(pointer);
  return note(Client::get().release(pointer));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return note(Client::get().allocate_in_order(pointer, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t,
                                    cudaStream_t stream) {
  return note(Client::get().allocate_in_order(pointer, bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return note(Client::get().release_in_order(pointer, stream));
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return note(Client::get().allocate(pointer, *pitch * height));
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  if ((flags & cudaHostAllocMapped) != 0 && Managed::get().is_open()) {
    return note(Managed::get().allocate(pointer, bytes));
  }
  *pointer = Client::get().allocate_host(bytes);
  return *pointer == nullptr ? note(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr || Client::get().release_host(pointer)) return cudaSuccess;
  return Managed::get().has(pointer) ? cudaFree(pointer) : note(cudaErrorInvalidValue);
}

cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  note_caller(__builtin_return_address(0));
  return end_work(note(copy(target, source, bytes, kind, nullptr)));
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(copy(target, source, bytes, kind, stream));
}

cudaError_t cudaMemcpyPeerAsync(void* target, int, const void* source, int, size_t bytes,
                                cudaStream_t stream) {
  return note(copy(target, source, bytes, cudaMemcpyDeviceToDevice, stream));
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(copy_2d({static_cast<char*>(target), static_cast<const char*>(source), target_pitch,
                       source_pitch, width, height},
                      kind, stream));
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  note_caller(__builtin_return_address(0));
  return end_work(note(copy_2d({static_cast<char*>(target), static_cast<const char*>(source),
                                target_pitch, source_pitch, width, height},
                               kind, nullptr)));
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  note_caller(__builtin_return_address(0));
  return note(fill(target, bytes, value, bytes, 1, nullptr));
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(fill(target, bytes, value, bytes, 1, stream));
}

cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(fill(target, pitch, value, width, height, stream));
}

cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  note_caller(__builtin_return_address(0));
  return note(fill(target, pitch, value, width, height, nullptr));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  note_caller(__builtin_return_address(0));
  return note(copy_to_symbol(symbol, source, bytes, offset, kind, nullptr));
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(copy_to_symbol(symbol, source, bytes, offset, kind, stream));
}

cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  note_caller(__builtin_return_address(0));
  return note(copy_from_symbol(target, symbol, bytes, offset, kind, nullptr));
}

cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  return note(copy_from_symbol(target, symbol, bytes, offset, kind, stream));
}

cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  char* address = nullptr;
  const cudaError_t error = address_in(symbol, 0, 0, &address);
  *pointer = address;
  return note(error);
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  Variable* variable = Client::get().find_variable(symbol);
  if (variable == nullptr) return note(cudaErrorInvalidSymbol);
  *bytes = variable->bytes;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  *attributes = {};
  if (Client::get().is_on_device(pointer)) {
    const bool is_managed = Managed::get().has(pointer);
    attributes->type = is_managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (is_managed) attributes->hostPointer = const_cast<void*>(pointer);
  } else {
    attributes->type =
        Client::get().is_allocated_host(pointer) ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const Page& page = device().page();
  const uint64_t most = std::min<uint64_t>(page.memory_bytes_max, page.total_bytes);
  *free_bytes = most - std::min<uint64_t>(Client::get().bytes_used(), most);
  *total_bytes = page.total_bytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = pointer_of<cudaMemPool_t>(1);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int) {
  *pool = pointer_of<cudaMemPool_t>(1);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

// ---- Streams and events -------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const uint32_t handle = Client::get().new_handle();
  *stream = pointer_of<cudaStream_t>(handle);
  return send(Op::kCreateStream, CreateStream{handle, flags, priority});
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return send(Op::kDestroyStream, Handle{handle_of(stream)});
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return end_work(note(device().call(Op::kSynchronize, Handle{handle_of(stream)})));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const auto error =
      static_cast<cudaError_t>(device().call(Op::kQueryStream, Handle{handle_of(stream)}));
  return error == cudaErrorNotReady ? error : end_work(note(error));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  Graphs::get().note_wait(stream);
  return send(Op::kWaitEvent, StreamEvent{handle_of(stream), handle_of(event), flags});
}

cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  *flags = handle_of(stream) < kFirstStream ? cudaStreamDefault : cudaStreamNonBlocking;
  return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  return note(call_on_host(stream, [=](cudaError_t status) { callback(stream, status, data); }));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return note(call_on_host(stream, [=](cudaError_t) { function(data); }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const uint32_t handle = Client::get().new_handle();
  *event = pointer_of<cudaEvent_t>(handle);
  return send(Op::kCreateEvent, CreateEvent{handle, flags});
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return send(Op::kDestroyEvent, Handle{handle_of(event)});
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return send(Op::kRecordEvent, StreamEvent{handle_of(stream), handle_of(event), flags});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return end_work(note(device().call(Op::kSynchronizeEvent, Handle{handle_of(event)})));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const auto error =
      static_cast<cudaError_t>(device().call(Op::kQueryEvent, Handle{handle_of(event)}));
  return error == cudaErrorNotReady ? error : end_work(note(error));
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return note(
      device().call(Op::kElapsed, Elapsed{handle_of(start), handle_of(end)}, ms, sizeof *ms));
}

// ---- Graphs -------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Graphs::get().begin_capture(stream, static_cast<uint32_t>(mode));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return note(Graphs::get().end_capture(stream, graph));
}

#ifdef MC_DEVICE_MUSA  // MUSA has the form of CUDA 12, as far as is known.
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                        unsigned long long* id, cudaGraph_t* graph,
                                        const cudaGraphNode_t** dependencies,
                                        size_t* num_dependencies) {
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* num_dependencies) {
  if (edges != nullptr) *edges = nullptr;
#endif
  if (graph != nullptr) *graph = nullptr;
  if (dependencies != nullptr) *dependencies = nullptr;
  if (num_dependencies != nullptr) *num_dependencies = 0;
  return note(capture_info(stream, status, id));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return note(capture_info(stream, status, nullptr));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  static thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return note(Graphs::get().instantiate(exec, graph));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  note_caller(__builtin_return_address(0));
  Managed::get().begin_work();
  return note(Graphs::get().launch(exec, stream));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Graphs::get().destroy(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  Graphs::get().destroy(exec);
  return cudaSuccess;
}

// PyTorch calls this only to warn about an empty graph; it does not need the number of nodes.
cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, size_t* num_nodes) {
  *num_nodes = 1;
  return cudaSuccess;
}

// ---- The device ---------------------------------------------------------------------------------

// Without a channel there is no device.  The process that only records which extensions a candidate
// would compile never has a channel.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = Client::get().is_open() ? 1 : 0;
  return *count > 0 ? cudaSuccess : note(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* index) {
  *index = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int index) {
  return index == 0 ? cudaSuccess : note(cudaErrorInvalidDevice);
}
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index != 0) return note(cudaErrorInvalidDevice);
  describe(*properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr index, int) {
  if (index < 0 || index >= kDeviceAttributesMax) return note(cudaErrorInvalidValue);
  *value = attribute(index);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = device().page().driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int) {
  if (length <= 0) return note(cudaErrorInvalidValue);
  std::strncpy(text, device().page().pci_bus_id, static_cast<size_t>(length));
  text[length - 1] = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
  *value = 0;
  return note_unsupported("cudaDeviceGetLimit");
}

cudaError_t cudaDeviceSynchronize() {
  return end_work(note(device().call(Op::kSynchronize, Handle{kWholeDevice})));
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }

// ---- Errors -------------------------------------------------------------------------------------

cudaError_t cudaPeekAtLastError() {
  if (Client::get().is_open()) {
    const uint32_t queued = device().page().error.exchange(0);
    if (queued != 0 && last_error == cudaSuccess) last_error = static_cast<cudaError_t>(queued);
  }
  return last_error;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define MC_ERROR(name, text) \
  case name:                 \
    return #name;
#include "client/errors.inc"
#undef MC_ERROR
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define MC_ERROR(name, text) \
  case name:                 \
    return text;
#include "client/errors.inc"
#undef MC_ERROR
    default:
      return "unrecognized error code";
  }
}

}  // extern "C"
