// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = (blockIdx.x * blockDim.x + threadIdx.x) * {{U}};
  for (int i = t; [[bound|i < t + {{U}} && i < n]]; i++) {
    {{decode:i}}
    {{value}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{B-1}}) / {{B}}]], {{T}}>>>({{args}});
