// SPDX-License-Identifier: Apache-2.0
// What the contestant's Python side calls in the shim, by ctypes.PyDLL (the interpreter's lock is
// held).  The shim is compiled once for each PyTorch, loaded after `import torch` and after
// libmc_emu.so, with RTLD_GLOBAL; candidates find it by its file name.
#ifndef MC_EMU_TORCH_SHIM_H_
#define MC_EMU_TORCH_SHIM_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// From now on every CPU tensor's memory comes from the emulator's arena: it ends at an inaccessible
// page and is filled with 0xFF when fresh.  0, or an errno value.  REQUIRES: mc_emu_init.
int mc_shim_enable_arena(void);

// A CPU tensor over memory that outlives it, as a new Python object; null with a Python error set.
// `dtype` is PyTorch's ScalarType number; `strides` null means contiguous.
void* mc_shim_from_blob(void* data, int dtype, int64_t num_dims, const int64_t* sizes,
                        const int64_t* strides);

// PyTorch's ScalarType number of a torch.dtype object; -1 for anything else.
int mc_shim_dtype_number(void* dtype);

// Between the two, dispatcher operations are counted.  stop returns JSON that stays valid until the
// next start: [{"name": "aten::empty_like", "count": 3, "top": 2, "parents":
// ["aten::zeros_like"]}], sorted by name.  `top` counts calls that no other operation made;
// `parents` are the operations that made the rest.
void mc_shim_record_start(void);
const char* mc_shim_record_stop(void);

// From now on no operator computes for this backend ("CUDA", "CPU", "PrivateUse1"; its sparse,
// quantized and nested tensors too) but those that are allowed and what these are made of: all
// others refuse with NotImplementedError, which names the operator and the policy.  `allowed` are
// names without "aten::", one a line, with an overload ("empty.memory_format") or for all of them.
// There is no way back.  The number of kernels that were replaced; 0 where it was done for this key
// before, -1 where the key is unknown.
int mc_guard_remove(const char* dispatch_key, const char* allowed, const char* policy);

// Which operators were called and refused, since the process began: [{"name": "aten::mm", "count":
// 3}], sorted by name.  Valid until the next call.
const char* mc_guard_refused(void);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_EMU_TORCH_SHIM_H_
