// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  [[guard|if (r < n) ]]{
    {{decode:r}}
    {{real}} a = 0.0f, b = 0.0f;
    for (int j = 0; [[bound|j < m]]; j++) {
      {{decode:j}}
      {{load}}
      {{real}} d = {{first_element}} - a;
      a += d / (j + 1);
      b += [[welford|d * ({{first_element}} - a)]];
    }
    b /= [[count|m]];
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
