// SPDX-License-Identifier: Apache-2.0
__global__ void {{k}}({{params}}) {
  int x0 = blockIdx.x * {{X}} + threadIdx.x;
  int y0 = blockIdx.y * {{Y}} + threadIdx.y;
  [[guard|if (x0 < {{last}} && y0 < n / {{last}}) ]]{
    int i = [[flat|y0 * {{last}} + x0]];
    {{decode:i}}
    {{value}}
    o[{{place}}] = {{stored}};
  }
}
// Launch.
{{k}}<<<dim3([[grid|({{last}} + {{X-1}}) / {{X}}]], [[grid_y|(n / {{last}} + {{Y-1}}) / {{Y}}]]), dim3({{X}}, {{Y}})>>>({{args}});
