// SPDX-License-Identifier: Apache-2.0
//
// The gate is a word in host memory that supervisor, contestant and device share.  The stream waits
// for it (cuStreamWaitValue32), so that queueing a batch costs the device nothing and the
// supervisor says when it begins.  Events lie inside the gate; the supervisor's clock brackets
// both.
//
// A gate before the first launch of a kernel would hang: the driver loads a kernel's module when it
// is first launched, and waits for the device to do so.  Callers warm up through mc_gate_await.
#include <atomic>

#include <cuda.h>
#include <sys/mman.h>

#include "mc_device.h"

namespace {

constexpr size_t kPageBytes = 4096;
enum Word { kGate, kReady, kDone, kTraced, kLaunches, kOwnLaunches };

struct Gate {
  uint32_t* words = nullptr;
  CUdeviceptr on_device = 0;
  CUevent start = nullptr;
  CUevent end = nullptr;
  CUdeviceptr mark = 0;    // What is filled.
  McLaunches before = {};  // The batch.
};

Gate gate;

// Lines that a forward has asked the L2 to keep would outlive the judge's flush.
void forget_persisting_lines() { cuCtxResetPersistingL2Cache(); }

// Whether a batch is traced is known here and nowhere before: a candidate that could tell would
// behave meanwhile.
bool is_traced(uint32_t number) {
  const std::atomic_ref<uint32_t> word(gate.words[kTraced]);
  return word.load(std::memory_order_acquire) == number;
}

CUresult mark() { return cuMemsetD32Async(gate.mark, kMcOpenedMark, 1, nullptr); }

void tell(Word word, uint32_t number) {
  std::atomic_ref<uint32_t>(gate.words[word]).store(number, std::memory_order_release);
}

void tell_launches() {
  const McLaunches now = mc_trace_launches();
  tell(kLaunches, static_cast<uint32_t>(now.all - gate.before.all));
  tell(kOwnLaunches, static_cast<uint32_t>(now.own - gate.before.own));
}

}  // namespace

int mc_gate_attach(int descriptor) {
  void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  gate.words = static_cast<uint32_t*>(page);
  CUresult status = cuMemHostRegister(page, kPageBytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  if (status == CUDA_SUCCESS) status = cuMemHostGetDevicePointer(&gate.on_device, page, 0);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&gate.start, CU_EVENT_DEFAULT);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&gate.end, CU_EVENT_DEFAULT);
  if (status == CUDA_SUCCESS) status = cuMemAlloc(&gate.mark, sizeof(uint32_t));
  if (status == CUDA_SUCCESS) status = mark();  // Once before anything is gated.
  return status;
}

int mc_gate_close(uint32_t number) {
  forget_persisting_lines();
  gate.before = mc_trace_launches();
  const bool traced = is_traced(number);
  if (const int failed = traced ? mc_trace_start() : 0; failed != 0) return failed;
  CUdeviceptr word = gate.on_device + kGate * sizeof(uint32_t);
  CUresult status = cuStreamWaitValue32(nullptr, word, number, CU_STREAM_WAIT_VALUE_GEQ);
  if (status == CUDA_SUCCESS && traced) status = mark();
  return status == CUDA_SUCCESS ? cuEventRecord(gate.start, nullptr) : status;
}

int mc_gate_await(uint32_t number) {
  forget_persisting_lines();
  gate.before = mc_trace_launches();
  if (const int failed = is_traced(number) ? mc_trace_start() : 0; failed != 0) return failed;
  tell(kReady, number);
  const std::atomic_ref<uint32_t> word(gate.words[kGate]);
  while (word.load(std::memory_order_acquire) < number) {
  }
  return cuEventRecord(gate.start, nullptr);
}

int mc_gate_end() { return cuEventRecord(gate.end, nullptr); }

int mc_gate_finish(uint32_t number, double* elapsed_us) {
  tell_launches();
  tell(kReady, number);
  CUresult status = cuCtxSynchronize();
  tell(kDone, number);
  float elapsed_ms = 0;
  if (status == CUDA_SUCCESS) status = cuEventElapsedTime(&elapsed_ms, gate.start, gate.end);
  *elapsed_us = 1e3 * static_cast<double>(elapsed_ms);
  return status;
}
