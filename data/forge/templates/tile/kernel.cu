// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  __shared__ {{real}} left[{{T}}][{{T}}], right[{{T}}][{{T}}];
  int ty = threadIdx.y, tx = threadIdx.x;
  int r0y = blockIdx.y * {{T}} + ty, j0x = blockIdx.x * {{T}} + tx;
  {{#batched}}
  int l = blockIdx.z;
  {{decode:l}}
  {{/batched}}
  {{real}} a = 0.0f;
  for (int d = 0; d < depth; d += {{T}}) {
    {
      int r = r0y, q = d + tx;
      {{decode:r}}
      {{decode:q}}
      left[ty][tx] = [[rows_guard|r < n && q < depth]] ? {{left}} : 0.0f;
    }
    {
      int j = j0x, q = d + ty;
      {{decode:j}}
      {{decode:q}}
      right[ty][tx] = [[columns_guard|j < m && q < depth]] ? {{right}} : 0.0f;
    }
    [[sync|__syncthreads();]]
    for (int c = 0; [[inner|c < {{T}}]]; c++) a += left[ty][c] * right[c][tx];
    [[sync|__syncthreads();]]
  }
  int r = r0y, j = j0x;
  [[guard|if (r < n && j < m) ]]{
    {{decode:r}}
    {{decode:j}}
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<dim3([[grid|(m + {{T-1}}) / {{T}}]], (n + {{T-1}}) / {{T}}{{#batched}}, batch{{/batched}}), dim3({{T}}, {{T}})>>>({{args}});
