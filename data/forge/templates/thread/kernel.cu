// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int i = [[index_line|blockIdx.x * blockDim.x + threadIdx.x]];
  [[guard|if (i < n) ]]{
    {{decode:i}}
    {{value}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{T-1}}) / {{T}}]], {{T}}>>>({{args}});
