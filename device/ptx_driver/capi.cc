// SPDX-License-Identifier: Apache-2.0
//
// The C functions that the device process (python/harness/device/process.py) finds in this library
// besides the executor's, and the kernels that only timing needs.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "check.h"
#include "cuda/kernels.h"
#include "ptx/program.h"
#include "ptx_driver/driver.h"

extern "C" {

// The findings since the last call, as lines of JSON; valid until the next call.
const char* mc_executor_take_report() {
  static std::string lines;
  lines = mc::ptx_driver::Driver::get().report().take();
  return lines.c_str();
}

// REQUIRES: no executor was created.
void mc_executor_set_warp_threads(int threads) {
  mc::ptx_driver::Driver::unstarted().warp_threads = threads;
}

// Uses the file as the device's memory; a trusted program maps parts of it at their device
// addresses (client/managed.cc). Returns the device address of the file's first byte. REQUIRES:
// no executor was created, and the file is as large as the address range.
uint64_t mc_executor_share_memory(int descriptor) {
  mc::ptx_driver::Driver::unstarted().memory_descriptor = descriptor;
  mc::ptx_driver::Driver::get().order.record();
  return mc::ptx::kGlobalBase;
}

uint64_t mc_executor_memory_bytes() { return mc::ptx_driver::kAddresses + (1 << 20); }

// Sets the device name that programs read.
void mc_executor_set_device_name(const char* name) { mc::ptx_driver::Driver::get().name = name; }

// Replaces these attributes of the H100 for the candidate's device.
void mc_executor_describe(const int* attributes, const int* values, size_t count) {
  MC_CHECK((attributes != nullptr && values != nullptr) || count == 0);
  std::map<CUdevice_attribute, int> others;
  for (size_t i = 0; i < count; ++i) {
    others[static_cast<CUdevice_attribute>(attributes[i])] = values[i];
  }
  mc::ptx_driver::Driver::get().description = mc::ptx_driver::Description(std::move(others));
}

// Begins a candidate: clears findings, and seeds the random order of blocks and warps.
void mc_executor_begin_candidate(uint64_t seed) {
  mc::ptx_driver::Driver::get().begin_candidate(seed);
}

// Sets the step limit of a launch, as a multiple of a candidate's limit.
void mc_executor_allow_steps(int64_t factor) {
  mc::ptx_driver::Driver::get().steps_factor = factor;
}

// Sends text that kernels print to this process's standard output from now on.
void mc_executor_show_printed() { mc::ptx_driver::Driver::get().shows_printed = true; }

void mc_executor_begin_call(uint64_t given_bytes) {
  mc::ptx_driver::Driver::get().begin_call(given_bytes);
}

void mc_executor_end_call(const mc::ptx_driver::OutputPart* outputs, size_t count) {
  MC_CHECK(outputs != nullptr || count == 0);
  mc::ptx_driver::Driver::get().end_call({outputs, count});
}

// Notes that an operator computed a tensor's bytes from the sources, or filled it if there are
// none. The bytes are within `extent` bytes from the target on.
void mc_executor_note_operator(uint64_t target, uint64_t bytes, uint64_t extent,
                               const uint64_t* sources, size_t count) {
  mc::ptx::Device& device = mc::ptx_driver::Driver::get().device();
  MC_CHECK(sources != nullptr || count == 0);
  uint8_t origins = count == 0 ? mc::ptx::kByFill : 0;
  for (size_t k = 0; k < count; ++k) origins |= device.origins(sources[k]);
  device.note_origins(target, bytes, origins);
  device.note_write(target, extent);
}

// Sets the number of threads that run a launch's blocks. REQUIRES: no executor was created.
void mc_executor_use_workers(int workers) { mc::ptx_driver::Driver::unstarted().workers = workers; }

// Counts the launches. REQUIRES: no executor was created.
void mc_executor_count() { mc::ptx_driver::Driver::unstarted().counts = true; }

// The counts since the last call, as lines of JSON; valid until the next call.
const char* mc_executor_take_profile() {
  static std::string lines;
  lines = mc::ptx_driver::Driver::get().take_profile();
  return lines.c_str();
}

// Sets Driver::checks_copies and fresh_byte. REQUIRES: no executor was created.
void mc_executor_check_copies(int fresh_byte) {
  mc::ptx_driver::Driver::unstarted().checks_copies = true;
  mc::ptx_driver::Driver::get().fresh_byte = fresh_byte;
}

// Ends a launch that has run for more than `older_than_s` seconds.
void mc_executor_cancel(double older_than_s) {
  mc::ptx_driver::Driver::get().device().cancel(std::chrono::duration<double>(older_than_s));
}

// The address in this process of device memory; null if the bytes are not in one allocation.
void* mc_executor_host(uint64_t address, uint64_t bytes) {
  return mc::ptx_driver::Driver::get().device().host(address, bytes);
}

}  // extern "C"

namespace mc::device {

CUresult copy_masked(CUdeviceptr, CUdeviceptr, uint64_t, const Mask&, uint64_t, CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult store_word(CUdeviceptr, uint64_t, CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult read_through(CUdeviceptr, uint64_t, CUdeviceptr, CUstream) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

void begin_command(uint64_t location) { ptx_driver::Driver::get().report().set_location(location); }
void note_refused_copy(uint64_t bytes) { ptx_driver::Driver::get().report_refused_copy(bytes); }
void note_host_access(const HostAccess& access) {
  ptx_driver::Driver::get().note_host_access(access);
}
void note_missing_library(const char* function) {
  ptx_driver::Driver::get().report().add_unsupported("", std::string(function) + " of a library");
}

}  // namespace mc::device
