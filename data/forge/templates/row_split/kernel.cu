// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  [[guard|if (t < n * {{P}}) ]]{
    int r = t / {{P}};
    {{decode:r}}
    {{#passes}}
    {{real}} {{acc}} = {{identity}};
    for (int j = t % {{P}}; [[bound|j < m]]; j += {{P}}) {
      {{decode:j}}
      {{load}}
      {{combine}}
    }
    part[t] = {{acc}};
    {{/passes}}
  }
}
__global__ void {{k:_finish}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    {{decode:r}}
    {{#passes}}
    {{real}} {{acc}} = part[r * {{P}}];
    for (int c = 1; [[parts|c < {{P}}]]; c++) {{join_acc:part[r * {{P}} + c]}}
    {{finish}}
    {{/passes}}
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
auto {{name:part}} = torch::empty({n * {{P}}}, {{options}});
{{k}}<<<(n * {{P}} + 127) / 128, 128>>>({{args}});
{{k}}_finish<<<(n + 127) / 128, 128>>>({{args}});
