// SPDX-License-Identifier: Apache-2.0
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
  extern __shared__ {{real}} row[];
  __shared__ {{real}} shared[{{T}}];
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  for (int j = t; j < m; j += {{T}}) {
    {{decode:j}}
    {{own_load}}
    row[j] = v;
  }
  {{#passes}}
  {{real}} {{acc}} = {{identity}};
  for (int j = t; [[bound|j < m]]; j += {{T}}) {
    {{decode:j}}
    {{real}} v = row[j];
    {{combine}}
  }
  {{acc}} = {{reducer}}(shared, {{acc}});
  {{finish}}
  {{/passes}}
  for (int j = t; [[bound2|j < m]]; j += {{T}}) {
    {{decode:j}}
    {{real}} v = row[j];
    {{result_after_load}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<n, {{T}}, [[shared|m * sizeof({{real}})]]>>>({{args}});
