// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  __shared__ {{real}} left[16][16], right[16][{{W}}];
  int ty = threadIdx.y, tx = threadIdx.x;
  int r0y = blockIdx.y * 16 + ty, j0x = blockIdx.x * {{W}} + tx;
  {{#batched}}
  int l = blockIdx.z;
  {{decode:l}}
  {{/batched}}
  {{real}} sums[{{C}}] = {};
  for (int d0 = 0; d0 < depth; d0 += 16) {
    {
      int r = r0y, q = d0 + tx;
      {{decode:r}}
      {{decode:q}}
      left[ty][tx] = r < n && q < depth ? {{left}} : 0.0f;
    }
    for (int c = 0; c < {{C}}; c++) {
      int j = j0x + c * 16, q = d0 + ty;
      {{decode:j}}
      {{decode:q}}
      right[ty][tx + c * 16] = j < m && q < depth ? {{right}} : 0.0f;
    }
    [[sync|__syncthreads();]]
    for (int d = 0; [[inner|d < 16]]; d++) {
      for (int c = 0; c < {{C}}; c++) sums[c] += left[ty][d] * right[d][tx + c * 16];
    }
    [[sync|__syncthreads();]]
  }
  for (int c = 0; c < {{C}}; c++) {
    int r = r0y, j = j0x + c * 16;
    [[guard|if (r < n && j < m) ]]{
      {{decode:r}}
      {{decode:j}}
      {{real}} a = sums[c];
      {{result}}
      o[{{place}}] = {{stored}};
    }
  }
}
// Launch.
{{k}}<<<dim3([[grid|(m + {{W-1}}) / {{W}}]], (n + 15) / 16{{#batched}}, batch{{/batched}}), dim3(16, 16)>>>({{args}});
