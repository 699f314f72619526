// SPDX-License-Identifier: Apache-2.0
{{functions}}
{{#reducers}}
__device__ {{real}} {{each_reducer}}({{real}}* s, {{real}} p) {
  int t = threadIdx.x;
  s[t] = p;
  [[sync|__syncthreads();]]
  for (int w = [[tree|{{H}}]]; w > 0; w /= 2) {
    if (t < w) {{each_join:s[t], s[t + w]}}
    [[sync|__syncthreads();]]
  }
  p = s[0];
  [[last_sync|__syncthreads();]]
  return p;
}
{{/reducers}}
__global__ void {{k}}({{params}}) {
  __shared__ {{real}} shared[{{T}}];
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  {{#passes}}
  {{real}} {{acc}} = {{identity}};
  for (int j = t; [[bound|j < m]]; j += {{T}}) {
    {{decode:j}}
    {{load}}
    {{combine}}
  }
  {{acc}} = {{reducer}}(shared, {{acc}});
  {{finish}}
  {{/passes}}
  {{#reduces}}
  [[writer|if (t == 0) ]]{
    {{result}}
    o[{{place}}] = {{stored}};
  }
  {{/reduces}}
  {{#keeps}}
  for (int j = t; [[bound2|j < m]]; j += {{T}}) {
    {{decode:j}}
    {{load}}
    {{result_after_load}}
    o[{{place}}] = {{stored}};
  }
  {{/keeps}}
}
// Launch.
{{k}}<<<n, {{T}}>>>({{args}});
