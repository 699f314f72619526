// SPDX-License-Identifier: Apache-2.0
// PyTorch's CPU allocator over the emulator's arena.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cerrno>

#include "runtime/mc_emu.h"
#include "torch/shim.h"

namespace {

constexpr uint8_t kPriority = 100;  // Above PyTorch's own.

void release(void* pointer) { mc_emu_arena_release(pointer); }

struct ArenaAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* pointer = nullptr;
    if (size > 0) {
      pointer = mc_emu_arena_allocate(size);
      TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr,
                       "CUDA out of memory. Tried to allocate ", size,
                       " bytes on the emulated device.");
    }
    return {pointer, pointer, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override {
    default_copy_data(to, from, size);
  }
};

ArenaAllocator arena_allocator;

}  // namespace

extern "C" int mc_shim_enable_arena(void) {
  void* probe = mc_emu_arena_allocate(1);
  if (probe == nullptr) return ENOMEM;
  mc_emu_arena_release(probe);
  c10::SetCPUAllocator(&arena_allocator, kPriority);
  return 0;
}
