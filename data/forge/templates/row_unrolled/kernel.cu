// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  [[guard|if (r < n) ]]{
    {{decode:r}}
    {{#passes}}
    {{real}} p[{{U}}];
    for (int c = 0; c < {{U}}; c++) p[c] = {{identity}};
    for (int j0 = 0; j0 < m; j0 += {{U}}) {
      for (int c = 0; c < {{U}}; c++) {
        int j = j0 + c;
        if (j < m) {
          {{decode:j}}
          {{load}}
          {{combine_into:p[c]}}
        }
      }
    }
    {{real}} {{acc}} = p[0];
    for (int c = 1; [[parts|c < {{U}}]]; c++) {{join_acc:p[c]}}
    {{finish}}
    {{/passes}}
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<[[grid|(n + {{T-1}}) / {{T}}]], {{T}}>>>({{args}});
