// SPDX-License-Identifier: Apache-2.0
{{functions}}
__global__ void {{k}}({{params}}) {
  int r = blockIdx.x, t = threadIdx.x;
  {{decode:r}}
  {{real}} a = -INFINITY, b = 0.0f;
  for (int j = t; [[bound|j < m]]; j += 32) {
    {{decode:j}}
    {{load}}
    {{real}} c = fmaxf(a, {{first_element}});
    b = b * expf(a - c) + expf({{first_element}} - c);
    a = c;
  }
  for (int w = [[shuffle|16]]; w > 0; w /= 2) {
    {{real}} other_a = __shfl_xor_sync(0xffffffff, a, w), other_b = __shfl_xor_sync(0xffffffff, b, w);
    {{real}} c = fmaxf(a, other_a);
    {{real}} p = a > -INFINITY ? expf(a - c) : 0.0f, q = other_a > -INFINITY ? expf(other_a - c) : 0.0f;
    b = [[rescale|b * p + other_b * q]];
    a = c;
  }
  {{#reduces}}
  [[writer|if (t == 0) ]]{
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
