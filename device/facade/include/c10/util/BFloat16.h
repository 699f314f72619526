// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mc_at/torch.h"
