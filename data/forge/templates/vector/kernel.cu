// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = (blockIdx.x * blockDim.x + threadIdx.x) * {{V}};
  if ([[vector_bound|t + {{V-1}} < n]]) {
    {{#vectors}}
    float{{V}} {{vector}}4 = *(const float{{V}}*)({{vector}} + t);
    float* {{vector}}s = (float*)&{{vector}}4;
    {{/vectors}}
    float{{V}} o4;
    for (int c = 0; c < {{V}}; c++) {
      int i = t + c;
      {{decode:i}}
      {{vector_value}}
      ((float*)&o4)[c] = v;
    }
    *(float{{V}}*)(o + t) = o4;
  } [[tail|else {
    for (int i = t; i < n; i++) {
      {{decode:i}}
      {{value}}
      o[i] = {{stored}};
    }
  }]]
}
// Launch.
{{k}}<<<[[grid|(n + {{B-1}}) / {{B}}]], {{T}}>>>({{args}});
