// SPDX-License-Identifier: Apache-2.0
#include "client/graphs.h"

#include <utility>

#include "client/client.h"

namespace mc::device {
namespace {

Sender& device() { return Client::get().sender(); }

}  // namespace

Graphs& Graphs::get() {
  static auto* graphs = new Graphs;  // Programs destroy graphs after main().
  return *graphs;
}

void Graphs::begin_capture(cudaStream_t stream, uint32_t mode) {
  const std::lock_guard lock(mutex_);
  recordings_[handle_of(stream)] = {.mode = mode, .is_forked = false, .parts = {}};
  device().send(Op::kBeginCapture, Capture{handle_of(stream), mode, 0});
}

cudaError_t Graphs::end_capture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex_);
  const uint32_t handle = Client::get().new_handle();
  const uint32_t status = device().call(Op::kEndCapture, Capture{handle_of(stream), 0, handle});
  auto recording = recordings_.extract(handle_of(stream));
  if (recording && status == 0 && !recording.mapped().parts.empty()) {
    graphs_[handle] = std::move(recording.mapped().parts);
  }
  *graph = status == 0 ? pointer_of<cudaGraph_t>(handle) : nullptr;
  return static_cast<cudaError_t>(status);
}

bool Graphs::is_capturing() {
  const std::lock_guard lock(mutex_);
  return !recordings_.empty();
}

cudaError_t Graphs::run(cudaStream_t stream, const Work& work) {
  std::unique_lock lock(mutex_);
  const auto found = recordings_.find(handle_of(stream));
  if (found == recordings_.end() || found->second.is_forked || !Client::get().is_checked()) {
    lock.unlock();
    return work(stream);
  }
  Recording& recording = found->second;
  const uint32_t handle = Client::get().new_handle();
  const uint32_t status = device().call(Op::kEndCapture, Capture{handle_of(stream), 0, handle});
  if (status != 0) return static_cast<cudaError_t>(status);
  // Findings have the line where the work was captured.
  const Work placed = [work, location = Sender::location](cudaStream_t where) {
    Sender::location = location;
    return work(where);
  };
  recording.parts.push_back({handle, placed});
  device().send(Op::kBeginCapture, Capture{handle_of(stream), recording.mode, 0});
  return cudaSuccess;
}

void Graphs::note_wait(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (recordings_.contains(handle_of(stream))) return;
  for (auto& [captured, recording] : recordings_) recording.is_forked = true;
}

cudaError_t Graphs::instantiate(cudaGraphExec_t* exec, cudaGraph_t graph) {
  const std::lock_guard lock(mutex_);
  const auto make = [](uint32_t from, uint32_t& made) {
    made = Client::get().new_handle();
    return device().call(Op::kInstantiate, Graph{from, made, 0});
  };
  uint32_t status = 0;
  Parts parts;
  if (const auto found = graphs_.find(handle_of(graph)); found != graphs_.end()) {
    for (Part part : found->second) {
      if (status == 0) status = make(part.handle, part.handle);
      parts.push_back(std::move(part));
    }
  }
  uint32_t handle = 0;
  if (status == 0) status = make(handle_of(graph), handle);
  if (status == 0 && !parts.empty()) execs_[handle] = std::move(parts);
  *exec = pointer_of<cudaGraphExec_t>(handle);
  return static_cast<cudaError_t>(status);
}

cudaError_t Graphs::launch(cudaGraphExec_t exec, cudaStream_t stream) {
  const auto queue = [&](uint32_t handle) {
    device().send(Op::kLaunchGraph, Graph{0, handle, handle_of(stream)});
  };
  Parts parts;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = execs_.find(handle_of(exec)); found != execs_.end()) {
      parts = found->second;
    }
  }
  for (const Part& part : parts) {
    queue(part.handle);
    if (const cudaError_t status = part.work(stream)) return status;
  }
  queue(handle_of(exec));
  return cudaSuccess;
}

void Graphs::destroy(cudaGraph_t graph) {
  const std::lock_guard lock(mutex_);
  if (const auto parts = graphs_.extract(handle_of(graph))) {
    for (const Part& part : parts.mapped()) {
      device().send(Op::kDestroyGraph, Handle{part.handle});
    }
  }
  device().send(Op::kDestroyGraph, Handle{handle_of(graph)});
}

void Graphs::destroy(cudaGraphExec_t exec) {
  const std::lock_guard lock(mutex_);
  if (const auto parts = execs_.extract(handle_of(exec))) {
    for (const Part& part : parts.mapped()) {
      device().send(Op::kDestroyGraphExec, Handle{part.handle});
    }
  }
  device().send(Op::kDestroyGraphExec, Handle{handle_of(exec)});
}

}  // namespace mc::device
