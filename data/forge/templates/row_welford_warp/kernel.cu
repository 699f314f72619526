// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  {{real}} a = 0.0f, b = 0.0f, count = 0.0f;
  for (int j = t; [[bound|j < m]]; j += 32) {
    {{decode:j}}
    {{load}}
    {{real}} d = {{first_element}} - a;
    count += 1.0f;
    a += d / count;
    b += d * ({{first_element}} - a);
  }
  for (int w = [[shuffle|16]]; w > 0; w /= 2) {
    {{real}} other_a = __shfl_xor_sync(0xffffffff, a, w), other_b = __shfl_xor_sync(0xffffffff, b, w);
    {{real}} other = __shfl_xor_sync(0xffffffff, count, w);
    {{real}} all = fmaxf(count + other, 1.0f), d = other_a - a;
    b = [[merge|b + other_b + d * d * count * other / all]];
    a = (a * count + other_a * other) / all;
    count += other;
  }
  b /= m;
  {{#reduces}}
  if (t == 0) {
    {{result}}
    o[{{place}}] = {{stored}};
  }
  {{/reduces}}
  {{#keeps}}
  for (int j = t; [[bound2|j < m]]; j += 32) {
    {{decode:j}}
    {{load}}
    {{result_after_load}}
    o[{{place}}] = {{stored}};
  }
  {{/keeps}}
}
// Launch.
{{k}}<<<n, 32>>>({{args}});
