// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int t = (blockIdx.x * blockDim.x + threadIdx.x) * {{V}};
  if (t + {{V-1}} < n) {
    {{#vectors}}
    {{L}} {{vector}}4 = *(const {{L}}*)({{vector}} + t);
    {{element}}* {{vector}}s = ({{element}}*)&{{vector}}4;
    {{/vectors}}
    {{L}} o4;
    for (int c = 0; [[steps|c < {{V}}]]; c++) {
      int i = t + c;
      {{decode:i}}
      {{vector_value}}
      (({{element}}*)&o4)[c] = {{stored}};
    }
    *({{L}}*)(o + t) = o4;
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
