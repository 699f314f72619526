// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device: atomic adds under PyTorch's names.
#pragma once

template <class T>
inline T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
inline void gpuAtomicAddNoReturn(T* address, T value) {
  atomicAdd(address, value);
}
inline long atomicAdd(long* address, long value) { return mc_emu::atomic_add(address, value); }
inline long gpuAtomicAdd(long* address, long value) { return atomicAdd(address, value); }
