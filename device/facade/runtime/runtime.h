// SPDX-License-Identifier: Apache-2.0
// The functions that the candidate process's Python side calls, by ctypes.PyDLL (the interpreter's
// lock is held).  The library is compiled once for each PyTorch and loaded after `import torch`,
// with RTLD_GLOBAL.
#ifndef MC_FACADE_RUNTIME_RUNTIME_H_
#define MC_FACADE_RUNTIME_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// Between the two, calls of operators are counted, those by other operators too, and casts by which
// values change.  stop returns JSON that stays valid until the next start: {"aten::empty_like": 3,
// "cast Float Int": 1}.
void mc_shim_record_start(void);
const char* mc_shim_record_stop(void);

// Bytes that copies from the device to itself put into another order or place, or rounded, since
// the start.
uint64_t mc_shim_moved_bytes(void);

// From now on until mc_init_computed, operators that are not allowed count where their results hold
// real or complex numbers, and casts by which values change.  Names have no `aten::`, one a line.
void mc_init_watch(const char* allowed);
void mc_init_pause(int is_paused);
// How often each of these was called since the last build ended, and how many elements it made;
// none where it only scaled a draw or a constant: [{"mul.Tensor[300]": 1}, {"mul.Tensor[300]": 0}].
const char* mc_init_calls(void);
// The module is imported, or a model constructed; draws that these calls scaled are not followed.
void mc_init_end_build(const char* excused);
// The calls that scaled draws that are still there, or copies of these: {"mul.Tensor[300]": 2}.
const char* mc_init_computed(void);

// All operators that are defined by now are PyTorch's; those that come later are a candidate's own.
// They are neither counted nor removed, since what they are made of is.
void mc_guard_know(void);

// From now on no operator computes for this backend ("CUDA", "CPU", "PrivateUse1"; its sparse,
// quantized and nested tensors too) but those that are allowed: all others refuse with
// NotImplementedError, which names the operator and the policy.  `allowed` are names without
// "aten::", one a line, with an overload ("empty.memory_format") or for all of them; what they are
// made of must be there too.  There is no way back.  The number of kernels that were replaced; 0
// where it was done for this key before, -1 where the key is unknown.
int mc_guard_remove(const char* dispatch_key, const char* allowed, const char* policy);

// Which operators were called and refused, since the process began: [{"name": "aten::mm", "count":
// 3}], sorted by name.  Valid until the next call.
const char* mc_guard_refused(void);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_FACADE_RUNTIME_RUNTIME_H_
