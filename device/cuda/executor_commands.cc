// SPDX-License-Identifier: Apache-2.0
//
// The table of commands, and the handlers of those for streams, events and graphs.
#include <algorithm>
#include <cstring>

#include "check.h"
#include "cuda/executor.h"
#include "cuda/kernels.h"

namespace mc::device {
namespace {

constexpr size_t kObjectsMax = 1u << 14;         // For streams, for events and for graphs.
constexpr uint32_t kStagedBytesMax = 64u << 10;  // A larger copy waits for the stream.

// CUDA 12 has no edge data.
template <typename Stream>
CUresult capture_info(Stream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  if constexpr (requires {
                  cuStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
                }) {
    return cuStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
  } else {
    return cuStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr);
  }
}

}  // namespace

// A row of the table of commands.
struct Executor::CommandRow {
  enum Reply : uint8_t { kNever, kAlways, kOnRequest };
  enum Access : uint8_t { kReadsOnly, kWrites };
  // The effect on the gate of a timed call (stopwatch.h).  A command that waits for the device
  // opens the gate.  A command that only queries (as PyTorch's allocator does after
  // record_stream()) does not: a candidate that polls waits until the gate opens by itself.
  enum Gate : uint8_t { kLeavesGate, kQueuesEntry, kOpensGate };

  Op op;
  Reply reply;
  Access access;  // A command that writes is refused after the outputs were copied.
  Gate gate;
  CUresult (*run)(Executor&, std::string_view body);
};

// Calls a handler with the command's fixed part and the bytes behind it.
template <typename Command>
CUresult Executor::call(CUresult (Executor::*handler)(const Command&, std::string_view),
                        std::string_view body) {
  Command command;
  if (body.size() < sizeof command) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(&command, body.data(), sizeof command);
  return (this->*handler)(command, body.substr(sizeof command));
}

template <auto kHandler>
CUresult Executor::run(Executor& executor, std::string_view body) {
  return executor.call(kHandler, body);
}

const Executor::CommandRow& Executor::row_of(Op op) {
  using enum CommandRow::Reply;
  using enum CommandRow::Access;
  using enum CommandRow::Gate;
  // The rows are in the order of the enumerators.
  static constexpr CommandRow kRows[] = {
      {Op::kPad, kNever, kReadsOnly, kLeavesGate, nullptr},  // The receiver skips it.
      {Op::kMap, kAlways, kReadsOnly, kOpensGate, run<&Executor::map>},
      {Op::kUnmap, kNever, kReadsOnly, kOpensGate, run<&Executor::unmap>},
      {Op::kWrite, kNever, kWrites, kQueuesEntry, run<&Executor::write>},
      {Op::kRead, kAlways, kReadsOnly, kOpensGate, run<&Executor::read>},
      {Op::kCopy, kNever, kWrites, kQueuesEntry, run<&Executor::copy>},
      {Op::kFill, kNever, kWrites, kQueuesEntry, run<&Executor::fill>},
      {Op::kLoadModule, kAlways, kReadsOnly, kOpensGate, run<&Executor::load_module>},
      {Op::kLoadText, kAlways, kReadsOnly, kOpensGate, run<&Executor::load_text>},
      {Op::kUnloadModule, kNever, kReadsOnly, kOpensGate, run<&Executor::unload_module>},
      {Op::kFindFunction, kAlways, kReadsOnly, kOpensGate, run<&Executor::find_function>},
      {Op::kFindVariable, kAlways, kReadsOnly, kOpensGate, run<&Executor::find_variable>},
      {Op::kSetAttribute, kNever, kReadsOnly, kLeavesGate, run<&Executor::set_attribute>},
      {Op::kOccupancy, kAlways, kReadsOnly, kLeavesGate, run<&Executor::occupancy>},
      {Op::kTensorMap, kAlways, kReadsOnly, kLeavesGate, run<&Executor::tensor_map>},
      {Op::kLaunch, kNever, kWrites, kQueuesEntry, run<&Executor::launch>},
      {Op::kRefusedLaunch, kNever, kWrites, kLeavesGate, run<&Executor::note_refused>},
      {Op::kCreateStream, kNever, kReadsOnly, kLeavesGate, run<&Executor::create_stream>},
      {Op::kDestroyStream, kNever, kReadsOnly, kOpensGate, run<&Executor::destroy_stream>},
      {Op::kCreateEvent, kNever, kReadsOnly, kLeavesGate, run<&Executor::create_event>},
      {Op::kDestroyEvent, kNever, kReadsOnly, kOpensGate, run<&Executor::destroy_event>},
      {Op::kRecordEvent, kNever, kReadsOnly, kQueuesEntry, run<&Executor::record_event>},
      {Op::kWaitEvent, kNever, kReadsOnly, kQueuesEntry, run<&Executor::wait_event>},
      {Op::kElapsed, kAlways, kReadsOnly, kOpensGate, run<&Executor::elapsed>},
      {Op::kQueryStream, kAlways, kReadsOnly, kLeavesGate, run<&Executor::query_stream>},
      {Op::kQueryEvent, kAlways, kReadsOnly, kLeavesGate, run<&Executor::query_event>},
      {Op::kSynchronize, kAlways, kReadsOnly, kOpensGate, run<&Executor::synchronize>},
      {Op::kSynchronizeEvent, kAlways, kReadsOnly, kOpensGate, run<&Executor::synchronize_event>},
      {Op::kBeginCapture, kNever, kReadsOnly, kOpensGate, run<&Executor::begin_capture>},
      {Op::kEndCapture, kAlways, kReadsOnly, kOpensGate, run<&Executor::end_capture>},
      {Op::kCaptureInfo, kAlways, kReadsOnly, kLeavesGate, run<&Executor::describe_capture>},
      {Op::kInstantiate, kAlways, kReadsOnly, kOpensGate, run<&Executor::instantiate>},
      {Op::kLaunchGraph, kNever, kWrites, kQueuesEntry, run<&Executor::launch_graph>},
      {Op::kDestroyGraph, kNever, kReadsOnly, kOpensGate, run<&Executor::destroy_graph>},
      {Op::kDestroyGraphExec, kNever, kReadsOnly, kOpensGate, run<&Executor::destroy_exec>},
      {Op::kBeginCall, kNever, kReadsOnly, kLeavesGate, run<&Executor::begin_call>},
      {Op::kEndCall, kNever, kReadsOnly, kLeavesGate, run<&Executor::end_call>},
      {Op::kLibraryCall, kOnRequest, kWrites, kLeavesGate, run<&Executor::call_library>},
      {Op::kOperator, kAlways, kWrites, kOpensGate, run<&Executor::run_operator>},
      {Op::kOperatorResult, kNever, kWrites, kOpensGate, run<&Executor::fetch_result>},
      {Op::kHostAccess, kAlways, kReadsOnly, kOpensGate, run<&Executor::host_access>},
      {Op::kUnsupported, kNever, kReadsOnly, kLeavesGate, run<&Executor::unsupported>},
  };
  static_assert(std::size(kRows) == kOps);
  const CommandRow& row = kRows[static_cast<size_t>(op)];
  MC_CHECK(row.op == op);
  return row;
}

void Executor::execute(Op op, std::string_view body) {
  MC_CHECK(page_ != nullptr && op != Op::kPad && static_cast<uint32_t>(op) < kOps);
  const CommandRow& row = row_of(op);
  LibraryCall call{};
  if (row.reply == CommandRow::kOnRequest && body.size() >= sizeof call) {
    std::memcpy(&call, body.data(), sizeof call);
  }
  const bool has_reply = row.reply == CommandRow::kAlways || call.has_reply != 0;
  items_.cancel();
  reply_bytes_ = 0;
  const bool is_allowed = is_allowed_now(row, body.size());
  const CUresult status = is_allowed ? row.run(*this, body) : CUDA_ERROR_NOT_PERMITTED;
  const bool is_timing = op == Op::kBeginCall || op == Op::kEndCall || op == Op::kLibraryCall;
  has_failed_ = has_failed_ || !is_allowed || (is_timing && !has_reply && status != CUDA_SUCCESS);
  MC_CHECK(has_reply || reply_bytes_ == 0);
  has_reply ? reply(status) : fail(status);
}

// A timed candidate may use the device only inside calls.
bool Executor::is_allowed_now(const CommandRow& row, size_t bytes) {
  const bool writes = row.access == CommandRow::kWrites;
  if (is_taken_ && writes) return false;
  if (!is_timed_) return true;
  MC_CHECK(batch_ != nullptr);
  if (!batch_->is_in_call()) return !writes && row.op != Op::kMap && row.op != Op::kRead;
  const bool is_staged = row.op != Op::kWrite || bytes <= kStagedBytesMax;
  if (row.gate == CommandRow::kQueuesEntry) count_entries(1);
  if (row.gate == CommandRow::kOpensGate || !is_staged) batch_->open_gate();
  return true;
}

void Executor::set_reply(const void* data, size_t bytes) {
  MC_CHECK(bytes <= kReplyBytesMax && reply_bytes_ == 0);
  if (data != reply_area_ && bytes > 0) std::memcpy(reply_area_, data, bytes);
  reply_bytes_ = bytes;
}

// ---- Streams and events -------------------------------------------------------------------------

CUresult Executor::create_stream(const CreateStream& command, std::string_view) {
  if (command.stream < kFirstStream || streams_.contains(command.stream) ||
      streams_.size() >= kObjectsMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUstream stream = nullptr;
  const CUresult status = cuStreamCreateWithPriority(&stream, command.flags, command.priority);
  if (status == CUDA_SUCCESS) streams_.emplace(command.stream, stream);
  return status;
}

CUresult Executor::destroy_stream(const Handle& command, std::string_view) {
  const auto stream = streams_.extract(command.handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (std::erase(streams_used_, stream.mapped()) > 0) {
    has_failed_ = join(stream.mapped()) != CUDA_SUCCESS || has_failed_;
  }
  return cuStreamDestroy(stream.mapped());
}

CUresult Executor::query_stream(const Handle& command, std::string_view) {
  CUstream stream = nullptr;
  if (!stream_of(command.handle, stream)) return CUDA_ERROR_INVALID_HANDLE;
  return count_query(cuStreamQuery(stream));
}

CUresult Executor::synchronize(const Handle& command, std::string_view) {
  CUstream stream = nullptr;
  if (command.handle == kWholeDevice) return cuCtxSynchronize();
  return stream_of(command.handle, stream) ? cuStreamSynchronize(stream)
                                           : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Executor::create_event(const CreateEvent& command, std::string_view) {
  CUevent event = nullptr;
  if (events_.contains(command.event) || events_.size() >= kObjectsMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult status = cuEventCreate(&event, command.flags);
  if (status == CUDA_SUCCESS) events_.emplace(command.event, event);
  return status;
}

CUresult Executor::destroy_event(const Handle& command, std::string_view) {
  const auto event = events_.extract(command.handle);
  return event ? cuEventDestroy(event.mapped()) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Executor::record_event(const StreamEvent& command, std::string_view) {
  CUstream stream = nullptr;
  const CUevent event = event_of(command.event);
  if (event == nullptr || !stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  return cuEventRecordWithFlags(event, stream, command.flags);
}

CUresult Executor::wait_event(const StreamEvent& command, std::string_view) {
  CUstream stream = nullptr;
  const CUevent event = event_of(command.event);
  if (event == nullptr || !stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  return cuStreamWaitEvent(stream, event, command.flags);
}

CUresult Executor::query_event(const Handle& command, std::string_view) {
  const CUevent event = event_of(command.handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : count_query(cuEventQuery(event));
}

CUresult Executor::synchronize_event(const Handle& command, std::string_view) {
  const CUevent event = event_of(command.handle);
  return event == nullptr ? CUDA_ERROR_INVALID_HANDLE : cuEventSynchronize(event);
}

// The reply counts as one byte of information; a candidate that polls until the work is done
// receives one.
CUresult Executor::count_query(CUresult status) {
  if (status == CUDA_SUCCESS) ++use_.bytes_to_host;
  return status;
}

CUresult Executor::elapsed(const Elapsed& command, std::string_view) {
  float ms = 0;
  use_.bytes_to_host += sizeof ms;
  const CUevent start = event_of(command.start), end = event_of(command.end);
  const bool are_known = start != nullptr && end != nullptr;
  const CUresult status =
      are_known ? cuEventElapsedTime(&ms, start, end) : CUDA_ERROR_INVALID_HANDLE;
  set_reply(&ms, sizeof ms);
  return status;
}

// ---- Graphs -------------------------------------------------------------------------------------

bool Executor::is_capturing(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// The work of a stream that is being captured is done with the graph.
void Executor::count(CUstream stream, const Work& work) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  if (num_captures_ > 0 && capture_info(stream, &capture, &id) == CUDA_SUCCESS &&
      capture == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    Work& later = captured_[id];
    later.launches += work.launches;
    later.launches_own += work.launches_own;
    later.bytes_moved += work.bytes_moved;
    return;
  }
  use_.launches += work.launches;
  use_.launches_own += work.launches_own;
  use_.bytes_moved += work.bytes_moved;
}

CUresult Executor::begin_capture(const Capture& command, std::string_view) {
  CUstream stream = nullptr;
  if (!stream_of(command.stream, stream) || command.mode > 2) return CUDA_ERROR_INVALID_VALUE;
  // The receiver's one thread serves all threads of the candidate, so a capture mode per thread has
  // no effect.
  const CUresult status = cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (status == CUDA_SUCCESS) ++num_captures_;
  return status;
}

CUresult Executor::end_capture(const Capture& command, std::string_view) {
  CUstream stream = nullptr;
  if (!stream_of(command.stream, stream) || graphs_.contains(command.graph) ||
      graphs_.size() >= kObjectsMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  capture_info(stream, &capture, &id);
  CUgraph graph = nullptr;
  const CUresult status = cuStreamEndCapture(stream, &graph);
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return status;
  if (num_captures_ > 0) --num_captures_;
  const auto captured = captured_.extract(id);
  if (status == CUDA_SUCCESS && graph != nullptr) {
    graphs_[command.graph] = {graph, captured ? captured.mapped() : Work{}};
  }
  return status;
}

CUresult Executor::describe_capture(const Handle& command, std::string_view) {
  CUstream stream = nullptr;
  if (!stream_of(command.handle, stream)) return CUDA_ERROR_INVALID_HANDLE;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  const CUresult status = capture_info(stream, &capture, &id);
  const CaptureFacts facts{id, static_cast<uint32_t>(capture)};
  set_reply(&facts, sizeof facts);
  return status;
}

CUresult Executor::instantiate(const Graph& command, std::string_view) {
  const auto graph = graphs_.find(command.graph);
  if (graph == graphs_.end() || graph_execs_.contains(command.exec) ||
      graph_execs_.size() >= kObjectsMax) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUgraphExec exec = nullptr;
  const CUresult status = cuGraphInstantiate(&exec, graph->second.graph, 0);
  if (status == CUDA_SUCCESS) graph_execs_[command.exec] = {exec, graph->second.work};
  return status;
}

CUresult Executor::launch_graph(const Graph& command, std::string_view) {
  CUstream stream = nullptr;
  const auto graph = graph_execs_.find(command.exec);
  if (graph == graph_execs_.end() || !stream_of(command.stream, stream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto& [exec, work] = graph->second;
  count(stream, work);
  const CUresult status = cuGraphLaunch(exec, stream);
  end_item({.name = "[graph]", .owner = work.launches_own > 0 ? "" : "runtime"});
  return status;
}

CUresult Executor::destroy_graph(const Handle& command, std::string_view) {
  const auto graph = graphs_.extract(command.handle);
  return graph ? cuGraphDestroy(graph.mapped().graph) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Executor::destroy_exec(const Handle& command, std::string_view) {
  const auto exec = graph_execs_.extract(command.handle);
  return exec ? cuGraphExecDestroy(exec.mapped().exec) : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace mc::device
