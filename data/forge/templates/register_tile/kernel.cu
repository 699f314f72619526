// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int j = blockIdx.x * blockDim.x + threadIdx.x, r4 = blockIdx.y * {{U}};
  if (j >= m) return;
  {{#batched}}
  int l = blockIdx.z;
  {{decode:l}}
  {{/batched}}
  {{decode:j}}
  {{real}} sums[{{U}}] = {};
  for (int q = 0; [[bound|q < depth]]; q++) {
    {{decode:q}}
    {{real}} f = {{right}};
    for (int c = 0; c < {{U}}; c++) {
      int r = r4 + c;
      [[row_guard|if (r < n) ]]{
        {{decode:r}}
        {{real}} p = {{left}};
        sums[c] += p * f;
      }
    }
  }
  for (int c = 0; c < {{U}} && r4 + c < n; c++) {
    int r = r4 + c;
    {{decode:r}}
    {{real}} a = sums[c];
    {{result}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<dim3([[grid|(m + 63) / 64]], (n + {{U-1}}) / {{U}}{{#batched}}, batch{{/batched}}), 64>>>({{args}});
