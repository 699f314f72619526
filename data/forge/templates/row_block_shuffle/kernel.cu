// SPDX-License-Identifier: Apache-2.0
{{functions}}
{{#reducers}}
__device__ {{real}} {{each_reducer}}({{real}}* s, {{real}} p) {
  int t = threadIdx.x;
  for (int w = [[shuffle|16]]; w > 0; w /= 2) {{each_join:p, __shfl_xor_sync(0xffffffff, p, w)}}
  if (t % 32 == 0) s[t / 32] = p;
  [[sync|__syncthreads();]]
  p = s[0];
  for (int c = 1; c < [[warps|{{W}}]]; c++) {{each_join:p, s[c]}}
  [[last_sync|__syncthreads();]]
  return p;
}
{{/reducers}}
__global__ void {{k}}({{params}}) {
  __shared__ {{real}} shared[{{W}}];
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
