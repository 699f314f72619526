// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * {{R}} + threadIdx.x / {{G}}, t = threadIdx.x % {{G}};
  bool is_row = r < n;
  if (!is_row) r = n - 1;
  {{decode:r}}
  {{#passes}}
  {{real}} {{acc}} = {{identity}};
  for (int j = t; [[bound|j < m]]; j += {{G}}) {
    {{decode:j}}
    {{load}}
    {{combine}}
  }
  for (int w = [[shuffle|{{H}}]]; w > 0; w /= 2) {{shuffle}}
  {{finish}}
  {{/passes}}
  {{#reduces}}
  if (is_row && t == 0) {
    {{result}}
    o[{{place}}] = {{stored}};
  }
  {{/reduces}}
  {{#keeps}}
  for (int j = t; is_row && [[bound2|j < m]]; j += {{G}}) {
    {{decode:j}}
    {{load}}
    {{result_after_load}}
    o[{{place}}] = {{stored}};
  }
  {{/keeps}}
}
// Launch.
{{k}}<<<[[grid|(n + {{R-1}}) / {{R}}]], 128>>>({{args}});
