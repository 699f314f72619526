// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's operators on a device in software: the candidate process sends each one as a command,
// and the device process computes it with PyTorch's operators for the CPU, on its own memory.
//
// PyTorch's CUDA kernels are machine code, which such a device cannot run.  So mc_operators_install
// replaces all operators that PyTorch has for CUDA, but for those that only hold memory and views,
// by one function that writes its arguments down (values.h).  A call is the operator's name and
// overload, the number of its arguments and these.  A reply is how the operator ended (End), and
// then an error's text, or the number of results and these.
//
// A tensor is the address of its memory and its form.  A result that is an argument is named by its
// place among the tensors of the call; a new one stays in the device process until the candidate
// process, which divides the addresses, says where it is to be (kOperatorResult).
//
// One library, compiled once for each PyTorch, has both ends: candidate.cc and device.cc.
#ifndef MC_DEVICE_OPERATORS_OPERATORS_H_
#define MC_DEVICE_OPERATORS_OPERATORS_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// ---- The candidate process.  REQUIRES: the client of device/client is loaded.
// The number of operators that were replaced; -1 where there is no client.
int mc_operators_install();

// ---- The device process.
// `host` gives the place in this process of bytes of the device, null for those that are none.
// `note` gets the bytes that an operator wrote, from `target` on, which lie within `extent` bytes,
// and the tensors of the device that it read.
void mc_operators_open(void* (*host)(uint64_t address, uint64_t bytes),
                       void (*note)(uint64_t target, uint64_t bytes, uint64_t extent,
                                    const uint64_t* sources, size_t count));
// Runs an operator, and writes the reply, of at most `reply_max` bytes: its size.
size_t mc_operators_run(const void* call, size_t bytes, void* reply, size_t reply_max);
// Writes a new result to the device's memory; 0 where that cannot be.
int mc_operators_fetch(uint32_t slot, uint64_t address, uint64_t bytes);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_DEVICE_OPERATORS_OPERATORS_H_
