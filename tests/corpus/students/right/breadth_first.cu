// SPDX-License-Identifier: Apache-2.0
// A search through a ring with chords, level by level: threads of a level write the same number.
__global__ void level(const int* first, const int* edges, int* distance, int n, int depth,
                      int* changed) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n || distance[v] != depth) return;
  for (int e = first[v]; e < first[v + 1]; e++) {
    if (atomicCAS(&distance[edges[e]], -1, depth + 1) == -1) *changed = 1;
  }
}

int main() {
  const int n = 300;
  int first[n + 1], edges[3 * n], h[n];
  for (int v = 0; v < n; v++) {
    first[v] = 3 * v;
    edges[3 * v] = (v + 1) % n;
    edges[3 * v + 1] = (v + n - 1) % n;
    edges[3 * v + 2] = (v * 17) % n;
    h[v] = v == 0 ? 0 : -1;
  }
  first[n] = 3 * n;
  int *d_first, *d_edges, *distance, *changed, again = 1;
  cudaMalloc(&d_first, sizeof(first));
  cudaMalloc(&d_edges, sizeof(edges));
  cudaMalloc(&distance, sizeof(h));
  cudaMalloc(&changed, sizeof(int));
  cudaMemcpy(d_first, first, sizeof(first), cudaMemcpyHostToDevice);
  cudaMemcpy(d_edges, edges, sizeof(edges), cudaMemcpyHostToDevice);
  cudaMemcpy(distance, h, sizeof(h), cudaMemcpyHostToDevice);
  for (int depth = 0; again; depth++) {
    cudaMemset(changed, 0, sizeof(int));
    level<<<(n + 63) / 64, 64>>>(d_first, d_edges, distance, n, depth, changed);
    cudaMemcpy(&again, changed, sizeof(int), cudaMemcpyDeviceToHost);
  }
  cudaMemcpy(h, distance, sizeof(h), cudaMemcpyDeviceToHost);
  for (int one : h)
    if (one < 0) return 1;
}
