// SPDX-License-Identifier: Apache-2.0
#include <torch/extension.h>

torch::Tensor forward(torch::Tensor x);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }
