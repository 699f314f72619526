// SPDX-License-Identifier: Apache-2.0
//
// The driver's calls about streams, events and graphs.  All work is done when it is queued, so that
// streams and events have nothing to wait for; a graph is the work that a stream, and those that
// waited for its events, got while it was captured.
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "ptx_driver/driver.h"

using mc::ptx_driver::Driver;
using mc::ptx_driver::Event;
using mc::ptx_driver::Graph;

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  *stream = reinterpret_cast<CUstream>(new char);
  Driver::get().order.add_stream(*stream, flags);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Driver::get().captures.erase(stream);
  delete reinterpret_cast<char*>(stream);
  return CUDA_SUCCESS;
}

// Programs do not know the executor's own stream, so it does not order their work.
CUresult cuStreamSynchronize(CUstream stream) {
  if (stream != CU_STREAM_PER_THREAD) Driver::get().order.host_waits_for(stream);
  return Driver::get().fault();
}
// A query reports that all work is done, so it orders later work like a wait.
CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const auto* known = reinterpret_cast<Event*>(event);
  if (const std::shared_ptr<Graph> graph = known->capture.lock()) {
    Driver::get().captures.try_emplace(stream, graph);
    return CUDA_SUCCESS;
  }
  Driver::get().order.wait(stream, known->clock);
  return Driver::get().fault();
}
CUresult cuStreamWaitValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// ---- Events -------------------------------------------------------------------------------------

CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  delete reinterpret_cast<Event*>(event);
  return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  auto* known = reinterpret_cast<Event*>(event);
  const auto& captures = Driver::get().captures;
  if (const auto found = captures.find(stream); found != captures.end()) {
    known->capture = found->second;
    return CUDA_SUCCESS;
  }
  *known = {true, std::chrono::steady_clock::now(), Driver::get().order.clock_of(stream), {}};
  return Driver::get().fault();
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventSynchronize(CUevent event) {
  Driver::get().order.host_waits(reinterpret_cast<Event*>(event)->clock);
  return Driver::get().fault();
}
CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

// The time by this machine's clock, which is not that of a GPU.
CUresult cuEventElapsedTime_v2(float* ms, CUevent start, CUevent end) {
  const auto* first = reinterpret_cast<Event*>(start);
  const auto* last = reinterpret_cast<Event*>(end);
  if (!first->is_recorded || !last->is_recorded) return CUDA_ERROR_INVALID_HANDLE;
  *ms = std::chrono::duration<float, std::milli>(last->time - first->time).count();
  return Driver::get().fault();
}

// ---- Graphs -------------------------------------------------------------------------------------

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  if (stream == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const bool is_new = Driver::get().captures.try_emplace(stream, std::make_shared<Graph>()).second;
  return is_new ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = Driver::get().captures.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                    : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph*, const CUgraphNode**, const CUgraphEdgeData**,
                                   size_t*) {
  const auto found = Driver::get().captures.find(stream);
  *id =
      found == Driver::get().captures.end() ? 0 : reinterpret_cast<cuuint64_t>(found->second.get());
  return cuStreamIsCapturing(stream, status);
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  auto capture = Driver::get().captures.extract(stream);
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Graph> captured = std::move(capture.mapped());
  std::erase_if(Driver::get().captures, [&](const auto& one) { return one.second == captured; });
  *graph = reinterpret_cast<CUgraph>(new Graph(std::move(*captured)));
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(graph)));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  for (const auto& work : *reinterpret_cast<Graph*>(exec)) {
    if (const CUresult status = Driver::get().queue(stream, work)) return status;
  }
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return cuGraphDestroy(reinterpret_cast<CUgraph>(exec));
}

}  // extern "C"
