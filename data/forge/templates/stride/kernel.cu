// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  for (int i = [[start|blockIdx.x * blockDim.x + threadIdx.x]]; [[bound|i < n]]; i += gridDim.x * blockDim.x) {
    {{decode:i}}
    {{value}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<(n + {{B-1}}) / {{B}}, {{T}}>>>({{args}});
