// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  for (int j = threadIdx.x; [[bound|j < {{last}}]]; j += {{T}}) {
    int i = [[flat|blockIdx.x * {{last}} + j]];
    {{decode:i}}
    {{value}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<n / {{last}}, {{T}}>>>({{args}});
