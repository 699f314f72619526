// SPDX-License-Identifier: Apache-2.0
// The whole CUDA language and runtime interface, without PyTorch.
#ifndef MC_EMU_CUDA_H_
#define MC_EMU_CUDA_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "mc_emu/atomic.h"
#include "mc_emu/language.h"
#include "mc_emu/launch.h"
#include "mc_emu/runtime_api.h"
#include "mc_emu/warp.h"
#if __has_include("mc_emu/math.h")
#include "mc_emu/math.h"
#endif

#include <assert.h>

#ifndef __CUDACC__
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 800
#endif

#endif  // MC_EMU_CUDA_H_
