// SPDX-License-Identifier: Apache-2.0
// Kernel launches: what `kernel<<<grid, block, shared, stream>>>(a, b)` is rewritten to.
//
//   ::mc_emu::launch(::mc_emu::Config(grid, block, shared, stream), "kernel",
//                    [=](auto... mc_a) MC_EMU_CALL { kernel(mc_a...); }, a, b);
//
// Arguments are evaluated once and copied for every thread; calling through a generic lambda keeps
// template deduction and conversions.  The call returns when the grid is done.
#ifndef MC_EMU_LAUNCH_H_
#define MC_EMU_LAUNCH_H_

#include <type_traits>
#include <utility>

#include "mc_emu/abi.h"
#include "mc_emu/driver_types.h"
#include "mc_emu/language.h"

// The attribute of the lambda that calls a kernel: its captures are in host memory.
#define MC_EMU_CALL __attribute__((no_sanitize("thread")))

// The linker's name for the begin of the section of managed variables, null where there are none.
extern "C" __attribute__((weak, visibility("hidden"))) char __start_mc_managed[];

namespace mc_emu {

struct Config {
  Config(dim3 grid_shape, dim3 block_shape, size_t shared = 0, cudaStream_t on = nullptr)
      : grid(grid_shape), block(block_shape), shared_bytes(shared), stream(on) {}
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// The launch's arguments.  Not a tuple: reading one calls functions, which would be instrumented.
template <size_t kIndex, class T>
struct Slot {
  T value;
};

template <class Indices, class F, class... Values>
struct Call;

template <size_t... kIndex, class F, class... Values>
struct Call<std::index_sequence<kIndex...>, F, Values...> : Slot<kIndex, Values>... {
  F kernel;

  template <class... Arguments>
  explicit Call(F f, Arguments&&... arguments)
      : Slot<kIndex, Values>{std::forward<Arguments>(arguments)}..., kernel(std::move(f)) {}

  __attribute__((no_sanitize("thread"))) static void invoke(void* self) {
    Call& call = *static_cast<Call*>(self);
    call.kernel(static_cast<Slot<kIndex, Values>&>(call).value...);
  }
};

template <class F, class... Arguments>
cudaError_t launch_as(bool cooperative, const Config& config, const char* name, F kernel,
                      Arguments&&... arguments) {
  using Bound = Call<std::index_sequence_for<Arguments...>, F, std::decay_t<Arguments>...>;
  if (__start_mc_managed != nullptr) {
    mc_emu_unsupported("__managed__ variables");
    return cudaErrorNotSupported;
  }
  Bound call(std::move(kernel), std::forward<Arguments>(arguments)...);
  const McEmuLaunch spec{{config.grid.x, config.grid.y, config.grid.z},
                         {config.block.x, config.block.y, config.block.z},
                         config.shared_bytes,
                         name,
                         &Bound::invoke,
                         &call,
                         sizeof call,
                         reinterpret_cast<const void*>(&Bound::invoke),
                         cooperative,
                         config.stream};
  return static_cast<cudaError_t>(mc_emu_launch(&spec));
}

template <class F, class... Arguments>
void launch(const Config& config, const char* name, F kernel, Arguments&&... arguments) {
  launch_as(false, config, name, std::move(kernel), std::forward<Arguments>(arguments)...);
}

// Stands for what cannot be emulated.
inline void unsupported(const char* construct) { mc_emu_unsupported(construct); }

// The block's dynamic shared memory.
inline void* dynamic_shared() { return mc_emu_dynamic_shared(); }

// `extern __shared__ T name[]` at file scope: a stand-in that converts to the pointer, and by a
// cast to any other pointer, as an array does.
template <class T>
struct DynamicShared {
  operator T*() const { return static_cast<T*>(mc_emu_dynamic_shared()); }
  template <class U>
  explicit operator U*() const {
    return static_cast<U*>(mc_emu_dynamic_shared());
  }
  template <class Index>
  T& operator[](Index i) const {
    return static_cast<T*>(mc_emu_dynamic_shared())[i];
  }
};

// The operand of a reinterpret_cast, which takes no object that converts to a pointer.
template <class T>
T* decayed(DynamicShared<T>& shared) {
  return shared;
}
template <class T>
T&& decayed(T&& other) {
  return static_cast<T&&>(other);
}

}  // namespace mc_emu

#endif  // MC_EMU_LAUNCH_H_
