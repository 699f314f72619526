// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  [[guard|if (r < n) ]]{
    {{decode:r}}
    {{#passes}}
    {{real}} {{acc}} = {{identity}};
    {{/passes}}
    for (int j = 0; [[bound|j < m]]; j++) {
      {{load}}
      {{scan_step}}
      {{result_after_load}}
      o[{{place}}] = {{stored}};
    }
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{T-1}}) / {{T}}]], {{T}}>>>({{args}});
