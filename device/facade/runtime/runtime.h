// SPDX-License-Identifier: Apache-2.0
// The functions that the candidate process's Python side calls, by ctypes.PyDLL (the GIL is held).
// The library is compiled once for each PyTorch and loaded after `import torch`, with RTLD_GLOBAL.
#ifndef MC_FACADE_RUNTIME_RUNTIME_H_
#define MC_FACADE_RUNTIME_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// Between start and stop, calls of operators are counted, including calls by other operators, and
// casts that change values.  stop returns JSON that stays valid until the next start:
// {"aten::empty_like": 3, "cast Float Int": 1}.
void mc_shim_record_start(void);
const char* mc_shim_record_stop(void);

// Bytes that copies within the device have reordered, moved or rounded since the start.
uint64_t mc_shim_moved_bytes(void);

// Until mc_init_computed, operators that are not allowed count if their results are real or complex
// numbers, and so do casts that change values.  `allowed` has names without `aten::`, one per line.
void mc_init_watch(const char* allowed);
void mc_init_pause(int is_paused);
// The calls of these operators since the last build ended, and the number of elements of their
// results; 0 if the operator only scaled a draw or a constant: [{"mul.Tensor[300]": 1},
// {"mul.Tensor[300]": 0}].
const char* mc_init_calls(void);
// Call this when the module is imported or a model constructed; draws that the allowed calls scaled
// are not followed: signatures as in mc_init_calls(), one per line.
void mc_init_end_build(const char* allowed_calls);
// The calls that scaled draws which still exist, themselves or as copies: {"mul.Tensor[300]": 2}.
const char* mc_init_computed(void);

// Marks all operators defined so far as PyTorch's; operators that are defined later are a
// candidate's own.  These are neither counted nor removed, because the operators that they call
// are.
void mc_guard_know(void);

// Permits only the allowed operators for this backend ("CUDA", "CPU", "PrivateUse1", including
// sparse, quantized and nested tensors): all others throw NotImplementedError, which names the
// operator and the policy.  `allowed` has names without "aten::", one per line, with an overload
// ("empty.memory_format") or for all overloads; the operators that they call must be allowed, too.
// This cannot be undone.  Returns the number of kernels that were replaced; 0 if the key was done
// before, -1 if the key is unknown.
int mc_guard_remove(const char* dispatch_key, const char* allowed, const char* policy);

// The operators that were called and refused since the process began: [{"name": "aten::mm",
// "count": 3}], sorted by name.  Valid until the next call.
const char* mc_guard_refused(void);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_FACADE_RUNTIME_RUNTIME_H_
