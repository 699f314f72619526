// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n * {{P}}) {
    int r = t / {{P}};
    {{decode:r}}
    {{#passes}}
    {{real}} {{acc}} = {{identity}};
    for (int j = t % {{P}}; [[bound|j < m]]; j += {{P}}) {
      {{decode:j}}
      {{load}}
      {{combine}}
    }
    [[atomic|atomicAdd(part + r, a);]]
    {{/passes}}
  }
}
__global__ void {{k:_finish}}({{params}}) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < n) {
    {{decode:r}}
    {{real}} a = part[r];
    {{#passes}}
    {{finish}}
    {{/passes}}
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
auto {{name:part}} = [[zeros|torch::zeros]]({n}, {{options}});
{{k}}<<<(n * {{P}} + 127) / 128, 128>>>({{args}});
{{k}}_finish<<<(n + 127) / 128, 128>>>({{args}});
