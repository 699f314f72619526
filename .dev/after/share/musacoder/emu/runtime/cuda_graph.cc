// SPDX-License-Identifier: Apache-2.0
// CUDA's streams, events and graphs over the emulated device; see cuda_api.h.
#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "runtime/cuda_api.h"
#include "runtime/runtime.h"
// Last: it defines __noinline__, which the standard library uses.
#include "mc_emu/runtime_api.h"

using mc::emu::capture_of;
using mc::emu::finish;
using mc::emu::Runtime;
using mc::emu::stream_behind;

namespace mc::emu {
namespace {

constexpr int kGreatestPriority = -5;

std::atomic<uint64_t> streams_made{0};

// The live streams: the end of a capture leaves none of them in it.
std::set<McEmuStream*>& streams() {
  static std::set<McEmuStream*>* const all = new std::set<McEmuStream*>;
  return *all;
}

void leave_capture(const McEmuGraph* graph) {
  for (McEmuStream* stream : streams()) {
    if (stream->capture != graph) continue;
    stream->capture = nullptr;
    stream->owns_capture = false;
  }
}

cudaError_t run(const std::vector<std::function<void()>>& work) {
  for (const auto& step : work) step();
  return finish(cudaSuccess);
}

}  // namespace

McEmuStream* stream_behind(McEmuStream* handle) {
  return handle == cudaStreamLegacy || handle == cudaStreamPerThread ? nullptr : handle;
}

McEmuGraph* capture_of(McEmuStream* handle) {
  const McEmuStream* stream = stream_behind(handle);
  return stream == nullptr ? nullptr : stream->capture;
}

}  // namespace mc::emu

extern "C" {

// --- Streams.

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr) return finish(cudaErrorInvalidValue);
  const int clamped = priority > 0                            ? 0
                      : priority < mc::emu::kGreatestPriority ? mc::emu::kGreatestPriority
                                                              : priority;
  *stream = new McEmuStream{flags, clamped, ++mc::emu::streams_made, nullptr, false};
  mc::emu::streams().insert(*stream);
  return finish(cudaSuccess);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  McEmuStream* const object = stream_behind(stream);
  if (object == nullptr) return finish(cudaErrorInvalidResourceHandle);
  mc::emu::streams().erase(object);
  delete object;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return finish(capture_of(stream) != nullptr ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaStreamQuery(cudaStream_t) { return finish(cudaSuccess); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  McEmuStream* const object = stream_behind(stream);
  if (object != nullptr && event != nullptr && event->capture != nullptr) {
    object->capture = event->capture;
  }
  return finish(cudaSuccess);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  const McEmuStream* const object = stream_behind(stream);
  *priority = object == nullptr ? 0 : object->priority;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  const McEmuStream* const object = stream_behind(stream);
  *flags = object == nullptr ? 0 : object->flags;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  const McEmuStream* const object = stream_behind(stream);
  *id = object == nullptr ? 0 : object->id;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamGetDevice(cudaStream_t, int* device) {
  *device = 0;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamCopyAttributes(cudaStream_t, cudaStream_t) { return finish(cudaSuccess); }
cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return finish(cudaSuccess);
}
cudaError_t cudaStreamGetAttribute(cudaStream_t, cudaStreamAttrID, cudaStreamAttrValue* value) {
  *value = {};
  return finish(cudaSuccess);
}
cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, size_t, unsigned) {
  return finish(cudaSuccess);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = mc::emu::kGreatestPriority;
  return finish(cudaSuccess);
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (McEmuGraph* const graph = capture_of(stream)) {
    graph->work.push_back([=] { function(data); });
  } else {
    function(data);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned) {
  if (capture_of(stream) != nullptr) return finish(cudaErrorStreamCaptureUnsupported);
  callback(stream, static_cast<cudaError_t>(Runtime::get().sticky_error()), data);
  return finish(cudaSuccess);
}

// --- Events.

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new McEmuEvent;
  return finish(cudaSuccess);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return finish(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return finish(cudaErrorInvalidResourceHandle);
  event->capture = capture_of(stream);
  event->recorded_at = mc_emu_nanoseconds();
  return finish(cudaSuccess);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return finish(cudaSuccess); }
cudaError_t cudaEventQuery(cudaEvent_t) { return finish(cudaSuccess); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr) return finish(cudaErrorInvalidResourceHandle);
  *milliseconds = static_cast<float>(static_cast<double>(end->recorded_at) -
                                     static_cast<double>(start->recorded_at)) *
                  1e-6f;
  return finish(cudaSuccess);
}

// --- Capture.

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t*, const void*, size_t,
                                          cudaStreamCaptureMode) {
  McEmuStream* const object = stream_behind(stream);
  if (object == nullptr) return finish(cudaErrorStreamCaptureUnsupported);
  if (object->capture != nullptr) return finish(cudaErrorIllegalState);
  object->capture = graph;
  object->owns_capture = true;
  return finish(cudaSuccess);
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  auto graph = std::make_unique<McEmuGraph>();
  const cudaError_t error =
      cudaStreamBeginCaptureToGraph(stream, graph.get(), nullptr, nullptr, 0, mode);
  if (error == cudaSuccess) graph.release();
  return error;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const McEmuStream* const object = stream_behind(stream);
  if (object == nullptr || object->capture == nullptr) return finish(cudaErrorIllegalState);
  if (!object->owns_capture) return finish(cudaErrorStreamCaptureUnmatched);
  *graph = object->capture;
  mc::emu::leave_capture(*graph);
  return finish(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status =
      capture_of(stream) != nullptr ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return finish(cudaSuccess);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
  return finish(cudaSuccess);
}

// --- Graphs.

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new McEmuGraph;
  return finish(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return finish(cudaSuccess);
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  *clone = new McEmuGraph(*graph);
  return finish(cudaSuccess);
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes == nullptr) *count = graph->work.size();
  for (size_t i = 0; nodes != nullptr && i < *count; ++i) {
    nodes[i] = reinterpret_cast<cudaGraphNode_t>(i + 1);
  }
  return finish(cudaSuccess);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*,
                                   size_t, const cudaMemsetParams* parameters) {
  const cudaMemsetParams p = *parameters;
  if (p.elementSize != 1 && p.value != 0) {
    mc_emu_unsupported("a graph's fill with elements of more than one byte");
    return finish(cudaErrorNotSupported);
  }
  graph->work.push_back([p] {
    for (size_t row = 0; row < p.height; ++row) {
      Runtime::get().fill(static_cast<char*>(p.dst) + row * p.pitch, static_cast<int>(p.value),
                          p.width * p.elementSize);
    }
  });
  *node = reinterpret_cast<cudaGraphNode_t>(graph->work.size());
  return finish(cudaSuccess);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t*, size_t, void* to, const void* from,
                                     size_t size, cudaMemcpyKind) {
  graph->work.push_back([=] { Runtime::get().copy(to, from, size); });
  *node = reinterpret_cast<cudaGraphNode_t>(graph->work.size());
  return finish(cudaSuccess);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*,
                                 size_t, const cudaHostNodeParams* parameters) {
  graph->work.push_back([p = *parameters] { p.fn(p.userData); });
  *node = reinterpret_cast<cudaGraphNode_t>(graph->work.size());
  return finish(cudaSuccess);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t*,
                                  size_t) {
  graph->work.push_back([] {});
  *node = reinterpret_cast<cudaGraphNode_t>(graph->work.size());
  return finish(cudaSuccess);
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t*, size_t, cudaGraph_t child) {
  graph->work.push_back([work = child->work] { mc::emu::run(work); });
  *node = reinterpret_cast<cudaGraphNode_t>(graph->work.size());
  return finish(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new McEmuGraphExec{graph->work};
  return finish(cudaSuccess);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  executable->work = graph->work;
  if (result != nullptr) *result = {};
  return finish(cudaSuccess);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return finish(cudaSuccess); }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (McEmuGraph* const graph = capture_of(stream)) {
    graph->work.push_back([work = executable->work] { mc::emu::run(work); });
    return finish(cudaSuccess);
  }
  return mc::emu::run(executable->work);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return finish(cudaSuccess);
}

}  // extern "C"
