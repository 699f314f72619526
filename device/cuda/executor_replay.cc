// SPDX-License-Identifier: Apache-2.0
//
// Recording of a candidate's commands, and their execution without a candidate (docs/replay.md).
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "cuda/executor.h"

namespace mc::device {
namespace {

bool read_all(int descriptor, char* target, uint64_t bytes, uint64_t offset) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t step =
        pread(descriptor, target + done, bytes - done, static_cast<off_t>(offset + done));
    if (step <= 0) return false;
    done += static_cast<uint64_t>(step);
  }
  return true;
}

}  // namespace

void Executor::note(Note kind, const void* first, size_t first_bytes, const void* second,
                    size_t second_bytes) {
  if (record_ < 0) return;
  MC_CHECK(first_bytes + second_bytes <= kCommandBytesMax);
  const NoteHeader header{kind, static_cast<uint32_t>(first_bytes + second_bytes)};
  const std::array<iovec, 3> parts{{{const_cast<NoteHeader*>(&header), sizeof header},
                                    {const_cast<void*>(first), first_bytes},
                                    {const_cast<void*>(second), second_bytes}}};
  const size_t whole = sizeof header + first_bytes + second_bytes;
  recorded_bytes_ += whole;
  // An incomplete record is useless.
  if (recorded_bytes_ > kRecordBytesMax ||
      writev(record_, parts.data(), parts.size()) != static_cast<ssize_t>(whole)) {
    record_ = -1;
  }
}

void Executor::record(int descriptor) {
  const std::lock_guard lock(mutex_);
  record_ = descriptor;
  recorded_bytes_ = 0;
}

uint32_t Executor::capability() const {
  int major = 0;
  int minor = 0;
  cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device_);
  cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device_);
  return static_cast<uint32_t>(10 * major + minor);
}

std::string Executor::name() const {
  std::array<char, sizeof Page::name> name{};
  cuDeviceGetName(name.data(), static_cast<int>(name.size()), device_);
  return name.data();
}

bool Executor::run_alone(Op op, const char* body, uint32_t bytes, Outcome& outcome) {
  MC_CHECK(page_ != nullptr);
  if (static_cast<uint32_t>(op) >= kOps || op == Op::kPad || bytes > kCommandBytesMax) return false;
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  const uint32_t replies = page_->replies.load();
  execute(op, {body, bytes});
  outcome.is_reply = page_->replies.load() != replies;
  outcome.status = outcome.is_reply ? page_->reply_status : page_->error.exchange(0);
  outcome.reply = {reply_area_, outcome.is_reply ? page_->reply_bytes : 0};
  return true;
}

// This copy does not order the candidate's streams.
bool Executor::read_bytes(uint64_t address, uint64_t bytes, void* target) {
  if (bytes == 0) return true;
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  return is_device_range(address, bytes) && cuCtxSynchronize() == CUDA_SUCCESS &&
         cuMemcpyDtoHAsync(target, address, bytes, CU_STREAM_PER_THREAD) == CUDA_SUCCESS &&
         cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS;
}

uint64_t Executor::place_region(int descriptor, uint64_t bytes, std::span<const Extent> extents) {
  ++imports_;
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  const uint64_t whole = (bytes + granularity_ - 1) / granularity_ * granularity_;
  Block block;
  const uint64_t address = bytes == 0 ? 0 : map_new_region(whole, block);
  if (address == 0) return 0;
  block.tensors = offsets_of(extents);
  const bool is_new = region_blocks_.emplace(address, block).second;
  MC_CHECK(is_new);
  is_taken_ = false;
  std::vector<char> data;
  for (const Extent& part : extents) {
    if (part.bytes == 0) continue;
    if (part.offset > bytes || part.bytes > bytes - part.offset) return 0;
    data.resize(part.bytes);
    if (!read_all(descriptor, data.data(), part.bytes, part.offset) ||
        cuMemcpyHtoDAsync(address + part.offset, data.data(), part.bytes, CU_STREAM_PER_THREAD) !=
            CUDA_SUCCESS ||
        cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS) {
      return 0;
    }
  }
  return address;
}

}  // namespace mc::device
