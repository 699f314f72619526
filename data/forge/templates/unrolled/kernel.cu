// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = blockIdx.x * {{B}} + threadIdx.x;
  for (int c = 0; [[steps|c < {{U}}]]; c++) {
    int i = t + c * {{T}};
    [[guard|if (i < n) ]]{
      {{decode:i}}
      {{value}}
      o[{{place}}] = {{stored}};
    }
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{B-1}}) / {{B}}]], {{T}}>>>({{args}});
