// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  [[guard|if (r < n) ]]{
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
    {{#reduces}}
    {{result}}
    o[{{place}}] = {{stored}};
    {{/reduces}}
    {{#keeps}}
    for (int j = 0; [[bound2|j < m]]; j++) {
      {{decode:j}}
      {{load}}
      {{result_after_load}}
      o[{{place}}] = {{stored}};
    }
    {{/keeps}}
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{T-1}}) / {{T}}]], {{T}}>>>({{args}});
