// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  __shared__ {{real}} s[{{T}}];
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  {{#passes}}
  {{real}} carry = {{identity}};
  for (int j0 = 0; j0 < m; j0 += {{T}}) {
    int j = j0 + t;
    {{real}} {{acc}} = {{identity}};
    if (j < m) {
      {{load}}
      {{scan_step}}
    }
    s[t] = {{acc}};
    [[sync|__syncthreads();]]
    for (int w = 1; [[steps|w < {{T}}]]; w *= 2) {
      {{real}} before = t >= w ? s[t - w] : {{identity}};
      [[sync|__syncthreads();]]
      {{join_acc:before}}
      s[t] = {{acc}};
      [[sync|__syncthreads();]]
    }
    [[carry|{{join_acc:carry}}]]
    if (j < m) {
      {{result}}
      o[{{place}}] = {{stored}};
    }
    {{join_last}}
    __syncthreads();
  }
  {{/passes}}
}
// Launch.
{{k}}<<<n, {{T}}>>>({{args}});
