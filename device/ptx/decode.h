// SPDX-License-Identifier: Apache-2.0
//
// decode(): from a module's kernel to a program.
#ifndef MC_PTX_DECODE_H_
#define MC_PTX_DECODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "ptx/operations.h"

namespace mc::ptx {

// Device addresses of the module's global and const variables, by their names.
using Addresses = std::map<std::string, uint64_t>;

// The address of a function, for tables of pointers: its position among the module's functions.
inline uint64_t function_address(size_t position) { return kFunctionBase + position; }

// With kOn, a counting step comes before each other step (counts.h).
enum class Counting : uint8_t { kOff, kOn };

// Returns kInvalidInput for wrong PTX and kUnsupported for PTX that this executor does not support;
// the message has the line of the text and the instruction.
Result<std::unique_ptr<Program>> decode(std::shared_ptr<const Module> module,
                                        const Function& kernel, const Addresses& addresses,
                                        const Variant& variant, Counting counting);

}  // namespace mc::ptx

#endif  // MC_PTX_DECODE_H_
