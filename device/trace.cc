// SPDX-License-Identifier: Apache-2.0
//
// Two sources, joined by CUPTI's correlation ids.  A callback on every launch through the runtime
// tells who owns the kernel: the file that its host stub lies in, which is either where the runtime
// was given the stub's address, or where the stub called the runtime from (newer compilers hand
// over a handle instead of the address).  Activity records tell what ran on the device, and when. A
// kernel without a launch of its own was launched by the driver's interface, or by a graph.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include "mc_device.h"

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kKernelsMax = 20000;
constexpr int kFramesMax = 24;
constexpr useconds_t kLookOnUs = 2000;  // For work that begins after everything was waited for.

struct Kernel {
  std::string name;
  uint32_t correlation = 0;
  uint32_t stream = 0;
  bool is_graph = false;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  int grid[3] = {};
  int block[3] = {};
  int registers = 0;
  int shared_bytes = 0;
};

struct Trace {
  CUpti_SubscriberHandle subscriber = nullptr;
  std::mutex mutex;
  // Guarded by mutex.
  std::map<uint32_t, std::string> owners;  // By correlation id.
  std::vector<Kernel> kernels;
  uint64_t opened_ns = 0;  // 0 where no gate was closed.
  std::string json;
  bool is_on = false;
};

Trace trace;

// Every entry point of the runtime that launches a kernel has its function as the first argument.
const void* launched_function(const CUpti_CallbackData& data) {
  return *static_cast<const void* const*>(data.functionParams);
}

constexpr CUpti_CallbackId kLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000,
};
constexpr CUpti_CallbackId kExtendedLaunches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060,
};

bool is_extended(CUpti_CallbackId id) {
  return id == kExtendedLaunches[0] || id == kExtendedLaunches[1];
}

const char* file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

bool is_ours_or_nvidias(const char* file) {
  for (const char* name : {"libcupti", "libcudart", "libcuda.so", "mc_device"}) {
    if (std::strstr(file, name) != nullptr) return true;
  }
  return false;
}

// Where the runtime was called from.
const char* caller() {
  void* frames[kFramesMax];
  const int depth = backtrace(frames, kFramesMax);
  for (int i = 0; i < depth; ++i) {
    const char* file = file_of(frames[i]);
    if (file != nullptr && !is_ours_or_nvidias(file)) return file;
  }
  return "unknown";
}

void CUPTIAPI note_launch(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* given) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(given);
  if (data.callbackSite != CUPTI_API_ENTER) return;
  const void* function =
      is_extended(id)
          ? static_cast<const cudaLaunchKernelExC_v11060_params*>(data.functionParams)->func
          : launched_function(data);
  const char* file = file_of(function);
  if (file == nullptr) file = caller();
  const std::lock_guard lock(trace.mutex);
  if (trace.owners.size() < kKernelsMax) trace.owners[data.correlationId] = file;
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* records_max) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *records_max = 0;
}

Kernel kernel_of(const CUpti_ActivityKernel9& record) {
  Kernel kernel;
  kernel.name = record.name == nullptr ? "" : record.name;
  kernel.correlation = record.correlationId;
  kernel.stream = record.streamId;
  kernel.is_graph = record.graphId != 0;
  kernel.start_ns = record.start;
  kernel.end_ns = record.end;
  kernel.grid[0] = record.gridX, kernel.grid[1] = record.gridY, kernel.grid[2] = record.gridZ;
  kernel.block[0] = record.blockX, kernel.block[1] = record.blockY, kernel.block[2] = record.blockZ;
  kernel.registers = record.registersPerThread;
  kernel.shared_bytes = record.staticSharedMemory + record.dynamicSharedMemory;
  return kernel;
}

// Copies and fills are device time too; they have no owner.
template <typename Record>
Kernel transfer_of(const Record& record, const char* name) {
  Kernel kernel;
  kernel.name = name;
  kernel.correlation = record.correlationId;
  kernel.stream = record.streamId;
  kernel.is_graph = record.graphId != 0;
  kernel.start_ns = record.start;
  kernel.end_ns = record.end;
  return kernel;
}

// The last such mark counts: who imitates it can only harm itself.
void note_fill(const CUpti_ActivityMemset4& record) {
  if (record.value == kMcOpenedMark && record.bytes == sizeof(uint32_t)) {
    trace.opened_ns = std::max(trace.opened_ns, record.start);
  } else {
    trace.kernels.push_back(transfer_of(record, "[memset]"));
  }
}

void note_record(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      trace.kernels.push_back(kernel_of(reinterpret_cast<const CUpti_ActivityKernel9&>(record)));
      break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      trace.kernels.push_back(
          transfer_of(reinterpret_cast<const CUpti_ActivityMemcpy5&>(record), "[memcpy]"));
      break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      note_fill(reinterpret_cast<const CUpti_ActivityMemset4&>(record));
      break;
    default:
      break;
  }
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::lock_guard lock(trace.mutex);
  CUpti_Activity* record = nullptr;
  while (trace.kernels.size() < kKernelsMax &&
         cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    note_record(*record);
  }
  std::free(buffer);
}

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                         CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

CUptiResult subscribe() {
  const CUptiResult status = cuptiSubscribe(&trace.subscriber, note_launch, nullptr);
  return status == CUPTI_SUCCESS ? cuptiActivityRegisterCallbacks(give_buffer, take_buffer)
                                 : status;
}

CUptiResult set_enabled(bool enabled) {
  for (const CUpti_CallbackId id : kLaunches) {
    cuptiEnableCallback(enabled, trace.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id);
  }
  for (const CUpti_CallbackId id : kExtendedLaunches) {
    cuptiEnableCallback(enabled, trace.subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id);
  }
  for (const CUpti_ActivityKind kind : kKinds) {
    const CUptiResult status = enabled ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
    if (status != CUPTI_SUCCESS) return status;
  }
  return CUPTI_SUCCESS;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

const char* owner_of(const Kernel& kernel) {
  if (kernel.name[0] == '[') return "runtime";
  const auto it = trace.owners.find(kernel.correlation);
  if (it != trace.owners.end()) return it->second.c_str();
  return kernel.is_graph ? "graph" : "driver";
}

const char* json_of(bool value) { return value ? "true" : "false"; }

std::string json_of(const Kernel& kernel, uint64_t end_ns) {
  char numbers[400];
  std::snprintf(numbers, sizeof numbers,
                "\"stream\": %u, \"us\": %.3f, \"early\": %s, \"late\": %s, "
                "\"grid\": [%d, %d, %d], \"block\": [%d, %d, %d], \"registers\": %d, "
                "\"shared_bytes\": %d}",
                kernel.stream, static_cast<double>(kernel.end_ns - kernel.start_ns) / 1e3,
                json_of(kernel.start_ns < trace.opened_ns), json_of(kernel.start_ns > end_ns),
                kernel.grid[0], kernel.grid[1], kernel.grid[2], kernel.block[0], kernel.block[1],
                kernel.block[2], kernel.registers, kernel.shared_bytes);
  return "{\"name\": " + quoted(kernel.name) + ", \"owner\": " + quoted(owner_of(kernel)) + ", " +
         numbers;
}

}  // namespace

int mc_trace_start() {
  if (trace.subscriber == nullptr) {
    if (const CUptiResult status = subscribe(); status != CUPTI_SUCCESS) return status;
  }
  {
    const std::lock_guard lock(trace.mutex);
    trace.owners.clear();
    trace.kernels.clear();
    trace.opened_ns = 0;
  }
  trace.is_on = true;
  return set_enabled(true);
}

const char* mc_trace_take() {
  if (!std::exchange(trace.is_on, false)) return "";
  cuCtxSynchronize();
  uint64_t end_ns = 0;
  cuptiGetTimestamp(&end_ns);
  usleep(kLookOnUs);
  cuCtxSynchronize();
  cuptiActivityFlushAll(0);
  if (set_enabled(false) != CUPTI_SUCCESS) return nullptr;
  const std::lock_guard lock(trace.mutex);
  trace.json = "[";
  for (const Kernel& kernel : trace.kernels) {
    if (trace.json.size() > 1) trace.json += ", ";
    trace.json += json_of(kernel, end_ns);
  }
  trace.json += "]";
  return trace.json.c_str();
}
