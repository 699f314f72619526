// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  {{#passes}}
  {{real}} carry = {{identity}};
  for (int j0 = 0; j0 < m; j0 += 32) {
    int j = j0 + t;
    {{real}} {{acc}} = {{identity}};
    if (j < m) {
      {{load}}
      {{scan_step}}
    }
    for (int w = 1; [[steps|w < 32]]; w *= 2) {
      {{real}} before = __shfl_up_sync(0xffffffff, {{acc}}, w);
      if ([[lanes|t >= w]]) {{join_acc:before}}
    }
    [[carry|{{join_acc:carry}}]]
    carry = __shfl_sync(0xffffffff, {{acc}}, 31);
    if (j < m) {
      {{result}}
      o[{{place}}] = {{stored}};
    }
  }
  {{/passes}}
}
// Launch.
{{k}}<<<n, 32>>>({{args}});
