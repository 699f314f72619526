// SPDX-License-Identifier: Apache-2.0
//
// The devices of MUSA as programs see them.  Attributes that no public source documents have the
// values of the device that judges instead (docs/musa.md names the sources).
#ifndef MC_TASK_MUSA_DEVICE_H_
#define MC_TASK_MUSA_DEVICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "task/task.h"

namespace mc::task {

// The number of threads of a warp: 128 on mp_21 and mp_22, else 32.  NVIDIA's GPUs have no warps of
// 128.
int warp_threads(Dialect dialect, std::string_view musa_architecture);

// The known attributes of a device of the architecture, by their names in PyTorch; none for CUDA.
std::map<std::string, int64_t> described(Dialect dialect, std::string_view musa_architecture);

// The value of __MUSA_ARCH__ in device code: 220 for "mp_22".
int architecture_number(std::string_view musa_architecture);

}  // namespace mc::task

#endif  // MC_TASK_MUSA_DEVICE_H_
