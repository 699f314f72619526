// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAStream.h>
