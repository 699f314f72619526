// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * {{W}} + threadIdx.x / 32, t = threadIdx.x % 32;
  [[exit|if (r >= n) return;]]
  {{decode:r}}
  {{#passes}}
  {{real}} {{acc}} = {{identity}};
  for (int j = t; [[bound|j < m]]; j += 32) {
    {{decode:j}}
    {{load}}
    {{combine}}
  }
  for (int w = [[shuffle|16]]; [[shuffle_end|w > 0]]; w /= 2) {{shuffle}}
  {{finish}}
  {{/passes}}
  {{#reduces}}
  [[writer|if (t == 0) ]]{
    {{result}}
    o[{{place}}] = {{stored}};
  }
  {{/reduces}}
  {{#keeps}}
  for (int j = t; [[bound2|j < m]]; j += 32) {
    {{decode:j}}
    {{load}}
    {{result_after_load}}
    o[{{place}}] = {{stored}};
  }
  {{/keeps}}
}
// Launch.
{{k}}<<<[[grid|(n + {{W-1}}) / {{W}}]], {{T}}>>>({{args}});
