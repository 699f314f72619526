// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's operators on a device in software: the candidate process sends each one as a command,
// and the device process computes it with PyTorch's operators for the CPU, on its own memory.
//
// PyTorch's CUDA kernels are machine code, which such a device cannot run.  So mc_operators_install
// replaces all of PyTorch's CUDA operators, except those that only allocate memory or make views,
// by one function that serialises its arguments (values.h).  A call is the operator's name and
// overload, the number of arguments, and the arguments.  A reply is how the operator ended (End),
// then an error's text, or the number of results and the results.
//
// A tensor is serialised as its address, dtype, sizes and strides.  A result that is also an
// argument is the index of that tensor in the call.  A new result stays in the device process until
// the candidate process, which allocates addresses, sends its address (kOperatorResult).
//
// One library, compiled once for each PyTorch, has both sides: candidate.cc and device.cc.
#ifndef MC_DEVICE_OPERATORS_OPERATORS_H_
#define MC_DEVICE_OPERATORS_OPERATORS_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// ---- The candidate process.  REQUIRES: the client of device/client is loaded.
// Returns the number of replaced operators; -1 if there is no client.
int mc_operators_install();

// ---- The device process.
// `host` returns the address in this process of device memory, or null if it is not device memory.
// `note` receives the number of bytes that an operator wrote, which are within `extent` bytes from
// `target` on, and the device tensors that it read.
void mc_operators_open(void* (*host)(uint64_t address, uint64_t bytes),
                       void (*note)(uint64_t target, uint64_t bytes, uint64_t extent,
                                    const uint64_t* sources, size_t count));
// Runs an operator, writes the reply, of at most `reply_max` bytes, and returns its size.
size_t mc_operators_run(const void* call, size_t bytes, void* reply, size_t reply_max);
// Writes a new result to the device's memory; 0 on failure.
int mc_operators_fetch(uint32_t slot, uint64_t address, uint64_t bytes);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_DEVICE_OPERATORS_OPERATORS_H_
