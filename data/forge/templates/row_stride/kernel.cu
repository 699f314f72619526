// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  for (int r = [[start|blockIdx.x * blockDim.x + threadIdx.x]]; [[rows|r < n]]; r += gridDim.x * blockDim.x) {
    {{decode:r}}
    {{#passes}}
    {{real}} {{acc}} = {{identity}};
    for (int j = 0; [[bound|j < m]]; j++) {
      {{decode:j}}
      {{load}}
      {{combine}}
    }
    {{finish}}
    {{/passes}}
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<(n + {{B-1}}) / {{B}}, {{T}}>>>({{args}});
