// SPDX-License-Identifier: Apache-2.0
//
// Two sources, joined by CUPTI's correlation ids.  Callbacks of the driver's interface, through
// which every launch comes, tell who owns a kernel: the file that holds the image of the library
// that it was loaded from, whoever launched it and whatever it is called.  Activity records of a
// traced batch tell what ran on the device, and when.  A graph's kernels have no launches of their
// own; they are owned by who owns what was launched under that name as the graph was captured.
//
// Callbacks are on for as long as the process lives, so that launches are counted in every batch.
// They cost the host some 0.1 us a launch and the device nothing.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include "mc_device.h"

namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kKernelsMax = 20000;
constexpr useconds_t kLookOnUs = 2000;  // For work that begins after everything was waited for.
constexpr const char* kInMemory = "memory";  // The owner of code that no file holds.
constexpr const char* kSeveral = "several";  // The owner of a name that several files have.

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

struct Owner {
  std::string file;
  bool is_own = false;
};

struct Trace {
  CUpti_SubscriberHandle subscriber = nullptr;
  std::atomic<uint64_t> launches = 0;
  std::atomic<uint64_t> launches_own = 0;
  std::mutex mutex;
  // Guarded by mutex.
  std::set<std::string> own_files;
  std::map<CUlibrary, std::string> libraries;  // The files of their images.
  std::unordered_map<CUfunction, Owner> functions;
  std::map<std::string, std::string> files;  // By kernels' names.
  std::map<uint32_t, std::string> owners;    // By correlation id, of a traced batch.
  std::vector<Kernel> kernels;
  uint64_t opened_ns = 0;  // 0 where no gate was closed.
  std::string json;
  bool is_on = false;
};

// Never destroyed: launches may come as long as the process lives.
Trace& trace = *new Trace;

std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fname : kInMemory;
}

// ---- Callbacks ----------------------------------------------------------------------------------

using Id = CUpti_CallbackId;

constexpr Id kLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz};
constexpr Id kExtendedLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz};
constexpr Id kGraphLaunches[] = {CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
                                 CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};
constexpr Id kLoads[] = {CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData};
constexpr Id kUnloads[] = {CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload,
                           CUPTI_DRIVER_TRACE_CBID_cuModuleUnload};

template <size_t n>
bool is_one_of(const Id (&ids)[n], Id id) {
  return std::ranges::find(ids, id) != std::end(ids);
}

template <typename Params>
const Params& params_of(const CUpti_CallbackData& data) {
  return *static_cast<const Params*>(data.functionParams);
}

// REQUIRES: trace.mutex is held; so no call here may load anything, which would come back.
const Owner& owner_of(CUfunction function) {
  const auto known = trace.functions.find(function);
  if (known != trace.functions.end()) return known->second;
  const auto kernel = reinterpret_cast<CUkernel>(function);
  Owner owner{kInMemory, false};
  CUlibrary library = nullptr;
  if (cuKernelGetLibrary(&library, kernel) == CUDA_SUCCESS) {
    const auto loaded = trace.libraries.find(library);
    if (loaded != trace.libraries.end()) owner.file = loaded->second;
  }
  owner.is_own = trace.own_files.contains(owner.file);
  const char* name = nullptr;
  if (cuKernelGetName(&name, kernel) == CUDA_SUCCESS) {
    const auto [of_name, is_new] = trace.files.emplace(name, owner.file);
    if (!is_new && of_name->second != owner.file) of_name->second = kSeveral;
  }
  return trace.functions[function] = owner;
}

void note_launch(const CUpti_CallbackData& data, CUfunction function) {
  const std::lock_guard lock(trace.mutex);
  const Owner& owner = owner_of(function);
  ++trace.launches;
  if (owner.is_own) ++trace.launches_own;
  if (trace.is_on && trace.owners.size() < kKernelsMax) {
    trace.owners[data.correlationId] = owner.file;
  }
}

void note_load(const CUpti_CallbackData& data) {
  const auto& params = params_of<cuLibraryLoadData_params>(data);
  if (*static_cast<const CUresult*>(data.functionReturnValue) != CUDA_SUCCESS) return;
  const std::lock_guard lock(trace.mutex);
  trace.libraries[*params.library] = file_of(params.code);
}

// A handle may be given to another one now.
void forget_functions() {
  const std::lock_guard lock(trace.mutex);
  trace.functions.clear();
}

// The kernels of a graph are known from traced batches alone.
void note_graph() {
  ++trace.launches;
  ++trace.launches_own;
}

void CUPTIAPI note_call(void*, CUpti_CallbackDomain, Id id, const void* given) {
  const auto& data = *static_cast<const CUpti_CallbackData*>(given);
  const bool begins = data.callbackSite == CUPTI_API_ENTER;
  if (!begins && is_one_of(kLoads, id)) note_load(data);
  if (!begins && is_one_of(kUnloads, id)) forget_functions();
  if (!begins) return;
  if (is_one_of(kLaunches, id)) note_launch(data, params_of<cuLaunchKernel_params>(data).f);
  if (is_one_of(kExtendedLaunches, id)) {
    note_launch(data, params_of<cuLaunchKernelEx_params>(data).f);
  }
  if (is_one_of(kGraphLaunches, id)) note_graph();
}

// ---- Records ------------------------------------------------------------------------------------

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

template <size_t n>
CUptiResult enable(const Id (&ids)[n]) {
  for (const Id id : ids) {
    const CUptiResult status =
        cuptiEnableCallback(1, trace.subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (status != CUPTI_SUCCESS) return status;
  }
  return CUPTI_SUCCESS;
}

CUptiResult subscribe() {
  CUptiResult status = cuptiSubscribe(&trace.subscriber, note_call, nullptr);
  if (status == CUPTI_SUCCESS) status = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  if (status == CUPTI_SUCCESS) status = enable(kLaunches);
  if (status == CUPTI_SUCCESS) status = enable(kExtendedLaunches);
  if (status == CUPTI_SUCCESS) status = enable(kGraphLaunches);
  if (status == CUPTI_SUCCESS) status = enable(kLoads);
  return status == CUPTI_SUCCESS ? enable(kUnloads) : status;
}

CUptiResult record(bool enabled) {
  for (const CUpti_ActivityKind kind : kKinds) {
    const CUptiResult status = enabled ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind);
    if (status != CUPTI_SUCCESS) return status;
  }
  return CUPTI_SUCCESS;
}

// The time in which anything ran, however much of it at once.
double busy_us(const std::vector<Kernel>& kernels) {
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  for (const Kernel& kernel : kernels) spans.emplace_back(kernel.start_ns, kernel.end_ns);
  std::ranges::sort(spans);
  uint64_t busy_ns = 0;
  uint64_t until_ns = 0;
  for (const auto& [start_ns, end_ns] : spans) {
    if (end_ns > until_ns) busy_ns += end_ns - std::max(start_ns, until_ns);
    until_ns = std::max(until_ns, end_ns);
  }
  return static_cast<double>(busy_ns) / 1e3;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

std::string owner_of(const Kernel& kernel) {
  if (kernel.name[0] == '[') return "runtime";
  const auto launch = trace.owners.find(kernel.correlation);
  if (launch != trace.owners.end()) return launch->second;
  const auto captured = trace.files.find(kernel.name);
  return kernel.is_graph && captured != trace.files.end() ? captured->second : "unknown";
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

int mc_trace_attach() { return subscribe(); }

void mc_trace_own(const char* file) {
  const std::lock_guard lock(trace.mutex);
  trace.own_files.insert(file);
  trace.functions.clear();
}

McLaunches mc_trace_launches() { return {trace.launches, trace.launches_own}; }

int mc_trace_start() {
  {
    const std::lock_guard lock(trace.mutex);
    trace.owners.clear();
    trace.kernels.clear();
    trace.opened_ns = 0;
    trace.is_on = true;
  }
  return record(true);
}

const char* mc_trace_take() {
  {
    const std::lock_guard lock(trace.mutex);
    if (!std::exchange(trace.is_on, false)) return "";
  }
  cuCtxSynchronize();
  uint64_t end_ns = 0;
  cuptiGetTimestamp(&end_ns);
  usleep(kLookOnUs);
  cuCtxSynchronize();
  cuptiActivityFlushAll(0);
  if (record(false) != CUPTI_SUCCESS) return nullptr;
  const std::lock_guard lock(trace.mutex);
  std::string kernels;
  for (const Kernel& kernel : trace.kernels) {
    kernels += (kernels.empty() ? "" : ", ") + json_of(kernel, end_ns);
  }
  char busy[40];
  std::snprintf(busy, sizeof busy, "%.3f", busy_us(trace.kernels));
  trace.json = std::string("{\"busy_us\": ") + busy + ", \"kernels\": [" + kernels + "]}";
  return trace.json.c_str();
}
