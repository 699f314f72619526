// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  __shared__ float left[16][{{H}}], right[16][{{W}}];
  int ty = threadIdx.y, tx = threadIdx.x;
  {{#batched}}
  int l = blockIdx.z;
  {{decode:l}}
  {{/batched}}
  float sums[{{R}}][{{C}}] = {};
  for (int d0 = 0; d0 < depth; d0 += 16) {
    for (int c = 0; c < {{R}}; c++) {
      int r = blockIdx.y * {{H}} + ty + c * 16, q = d0 + tx;
      {{decode:r}}
      {{decode:q}}
      left[tx][ty + c * 16] = [[rows_guard|r < n && q < depth]] ? {{left}} : 0.0f;
    }
    for (int c = 0; c < {{C}}; c++) {
      int j = blockIdx.x * {{W}} + tx + c * 16, q = d0 + ty;
      {{decode:j}}
      {{decode:q}}
      right[ty][tx + c * 16] = j < m && q < depth ? {{right}} : 0.0f;
    }
    [[sync|__syncthreads();]]
    for (int d = 0; [[inner|d < 16]]; d++) {
      for (int p = 0; p < {{R}}; p++) {
        float f = left[d][ty + p * 16];
        for (int c = 0; c < {{C}}; c++) sums[p][c] += f * right[d][tx + c * 16];
      }
    }
    [[sync|__syncthreads();]]
  }
  for (int p = 0; p < {{R}}; p++) {
    for (int c = 0; c < {{C}}; c++) {
      int r = blockIdx.y * {{H}} + ty + p * 16, j = blockIdx.x * {{W}} + tx + c * 16;
      [[guard|if (r < n && j < m) ]]{
        {{decode:r}}
        {{decode:j}}
        float a = sums[p][c];
        {{result}}
        o[{{place}}] = {{stored}};
      }
    }
  }
}
// Launch.
{{k}}<<<dim3([[grid|(m + {{W-1}}) / {{W}}]], (n + {{H-1}}) / {{H}}{{#batched}}, batch{{/batched}}), dim3(16, 16)>>>({{args}});
