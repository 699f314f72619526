// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of a decoder, in bfloat16 with float32 arithmetic.  gpu_module.cc compiles this
// text at run time, once for each set of sizes; gpu_ops.h documents each kernel.
//
// Sections need their sizes as macros: WIDTH (of a normed row), HEAD_DIM, HEADS and KV_HEADS.  All
// rows are read and written as vectors of eight elements, so every width is a multiple of eight.
// The order of each sum is the same in every run, except in add_rows.

// The tests compile this text for the host, whose compiler does not have these pragmas.
#ifdef __CUDACC_RTC__
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_TWO _Pragma("unroll 2")
#else
#define UNROLL
#define UNROLL_BY_TWO
#endif

typedef unsigned short bf16;
typedef unsigned int u32;
typedef long long i64;

constexpr u32 kAllLanes = 0xffffffffu;
constexpr int kWarp = 32;

struct alignas(16) Vector {
  u32 words[4];
};

__device__ inline float from_bits(u32 bits) { return __uint_as_float(bits); }

__device__ inline u32 pack(float low, float high) {
#ifdef __CUDA_ARCH__
  u32 both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  const auto rounded = [](float x) {
    const u32 bits = __float_as_uint(x);
    return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  };
  return rounded(low) | rounded(high) << 16;
#endif
}

struct Floats {
  float x[8];
};

__device__ inline Floats load(const bf16* from) {
  const Vector v = *reinterpret_cast<const Vector*>(from);
  Floats out;
  UNROLL
  for (int i = 0; i < 4; ++i) {
    out.x[2 * i] = from_bits(v.words[i] << 16);
    out.x[2 * i + 1] = from_bits(v.words[i] & 0xffff0000u);
  }
  return out;
}

__device__ inline void store(bf16* to, const Floats& in) {
  Vector v;
  UNROLL
  for (int i = 0; i < 4; ++i) v.words[i] = pack(in.x[2 * i], in.x[2 * i + 1]);
  *reinterpret_cast<Vector*>(to) = v;
}

__device__ inline float rounded(float x) { return from_bits(pack(x, 0) << 16); }
__device__ inline float from_bf16(bf16 x) { return from_bits(static_cast<u32>(x) << 16); }

// The sum over groups of `lanes` adjacent lanes.
__device__ inline float sum_lanes(float x, int lanes) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}

// Adds partial sums of columns to `to`; `parts` has one row for each block that wrote it.  Each
// block of this kernel processes 32 columns.
extern "C" __global__ void add_column_sums(const float* parts, int num_parts, int width,
                                           float* to) {
  __shared__ float sums[8][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int column = blockIdx.x * kWarp + lane;
  float sum = 0;
  if (column < width) {
    for (int part = warp; part < num_parts; part += 8) sum += parts[part * width + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= width) return;
  for (int i = 1; i < 8; ++i) sum += sums[i][lane];
  to[column] += sum;
}

#ifdef WIDTH
constexpr int kRowVectors = WIDTH / 8;
constexpr int kLaneVectors = (kRowVectors + kWarp - 1) / kWarp;
constexpr int kNormWarps = 8;

// RMSNorm, one warp for each row: sum = x + branch, rounded (x if branch is null); y = sum * scale
// * w.
extern "C" __global__ void __launch_bounds__(kNormWarps* kWarp)
    add_rms_norm(const bf16* x, const bf16* branch, const bf16* w, float epsilon, i64 rows,
                 bf16* sum, bf16* y, float* scale) {
  const int lane = threadIdx.x % kWarp;
  const i64 row = static_cast<i64>(blockIdx.x) * kNormWarps + threadIdx.x / kWarp;
  if (row >= rows) return;
  Floats kept[kLaneVectors];
  float squares = 0;
  UNROLL
  for (int i = 0; i < kLaneVectors; ++i) {
    const int vector = i * kWarp + lane;
    if (vector >= kRowVectors) continue;
    const i64 at = row * WIDTH + vector * 8;
    kept[i] = load(x + at);
    if (branch != nullptr) {
      const Floats other = load(branch + at);
      UNROLL
      for (int j = 0; j < 8; ++j) kept[i].x[j] = rounded(kept[i].x[j] + other.x[j]);
      store(sum + at, kept[i]);
    }
    UNROLL
    for (int j = 0; j < 8; ++j) squares += kept[i].x[j] * kept[i].x[j];
  }
  const float factor = rsqrtf(sum_lanes(squares, kWarp) / WIDTH + epsilon);
  if (lane == 0 && scale != nullptr) scale[row] = factor;
  UNROLL
  for (int i = 0; i < kLaneVectors; ++i) {
    const int vector = i * kWarp + lane;
    if (vector >= kRowVectors) continue;
    const Floats weight = load(w + vector * 8);
    Floats out;
    UNROLL
    for (int j = 0; j < 8; ++j) out.x[j] = kept[i].x[j] * factor * weight.x[j];
    store(y + row * WIDTH + vector * 8, out);
  }
}

// The backward pass of RMSNorm: adds the gradient to dx; each block writes its part of dw to one
// row of `parts`.
extern "C" __global__ void __launch_bounds__(kNormWarps* kWarp)
    rms_norm_backward(const bf16* dy, const bf16* x, const bf16* w, const float* scale, i64 rows,
                      bf16* dx, float* parts) {
  __shared__ float dw_block[WIDTH];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  float dw[kLaneVectors][8] = {};
  for (i64 row = static_cast<i64>(blockIdx.x) * kNormWarps + warp; row < rows;
       row += static_cast<i64>(gridDim.x) * kNormWarps) {
    const float factor = scale[row];
    float dot = 0;
    UNROLL
    for (int i = 0; i < kLaneVectors; ++i) {
      const int vector = i * kWarp + lane;
      if (vector >= kRowVectors) continue;
      const i64 at = row * WIDTH + vector * 8;
      const Floats in = load(x + at), d = load(dy + at), weight = load(w + vector * 8);
      UNROLL
      for (int j = 0; j < 8; ++j) {
        const float product = d.x[j] * in.x[j] * factor;
        dw[i][j] += product;
        dot += product * weight.x[j];
      }
    }
    const float mean = sum_lanes(dot, kWarp) / WIDTH;
    // The second read of the row hits the L1 cache.
    UNROLL
    for (int i = 0; i < kLaneVectors; ++i) {
      const int vector = i * kWarp + lane;
      if (vector >= kRowVectors) continue;
      const i64 at = row * WIDTH + vector * 8;
      const Floats in = load(x + at), d = load(dy + at), weight = load(w + vector * 8);
      Floats out = load(dx + at);
      UNROLL
      for (int j = 0; j < 8; ++j) {
        out.x[j] += factor * (d.x[j] * weight.x[j] - in.x[j] * factor * mean);
      }
      store(dx + at, out);
    }
  }
  for (int turn = 0; turn < kNormWarps; ++turn) {
    if (warp == turn) {
      UNROLL
      for (int i = 0; i < kLaneVectors; ++i) {
        const int vector = i * kWarp + lane;
        if (vector >= kRowVectors) continue;
        for (int j = 0; j < 8; ++j) {
          const float before = turn == 0 ? 0 : dw_block[vector * 8 + j];
          dw_block[vector * 8 + j] = before + dw[i][j];
        }
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < WIDTH; i += kNormWarps * kWarp) {
    parts[static_cast<i64>(blockIdx.x) * WIDTH + i] = dw_block[i];
  }
}
#endif  // WIDTH

#ifdef HEAD_DIM
// Several adjacent lanes process one head.  Each lane has eight elements of the head's first half
// and the eight of the second half with which they are rotated.
constexpr int kHalf = HEAD_DIM / 2;
constexpr int kHeadLanes = kHalf / 8;
constexpr int kQkvHeads = HEADS + 2 * KV_HEADS;
constexpr int kHeadThreads = 256;
constexpr int kGroupQueries = HEADS / KV_HEADS;

struct Pair {
  Floats low, high;
};

__device__ inline Pair load_pair(const bf16* head, int lane) {
  return {load(head + lane * 8), load(head + kHalf + lane * 8)};
}

__device__ inline void store_pair(bf16* head, int lane, const Pair& pair) {
  store(head + lane * 8, pair.low);
  store(head + kHalf + lane * 8, pair.high);
}

__device__ inline float head_dot(const Pair& a, const Pair& b) {
  float sum = 0;
  UNROLL
  for (int j = 0; j < 8; ++j) sum += a.low.x[j] * b.low.x[j] + a.high.x[j] * b.high.x[j];
  return sum_lanes(sum, kHeadLanes);
}

// Rotates a pair; `sign` = -1 is the inverse rotation.
__device__ inline Pair turned(const Pair& in, const float* cos, const float* sin, int lane,
                              float sign) {
  Pair out;
  UNROLL
  for (int j = 0; j < 8; ++j) {
    const float c = cos[lane * 8 + j], s = sin[lane * 8 + j] * sign;
    out.low.x[j] = in.low.x[j] * c - in.high.x[j] * s;
    out.high.x[j] = in.high.x[j] * c + in.low.x[j] * s;
  }
  return out;
}

// Normalizes (if weights are given) and rotates queries and keys.  Results are written to q and k,
// which may point into qkv, with `q_stride` and `k_stride` elements for each token.  If a cache is
// given, keys and values are written there instead: token i goes to slot i, at the token's
// position.
extern "C" __global__ void __launch_bounds__(kHeadThreads)
    make_heads(bf16* qkv, const i64* positions, const float* cos, const float* sin,
               const bf16* q_weight, const bf16* k_weight, float epsilon, i64 tokens, bf16* q,
               i64 q_stride, bf16* k, i64 k_stride, float* q_scale, float* k_scale, bf16* k_cache,
               bf16* v_cache, i64 cache_length) {
  const int heads = k_cache == nullptr ? HEADS + KV_HEADS : kQkvHeads;
  const int lane = threadIdx.x % kHeadLanes;
  const i64 unit =
      static_cast<i64>(blockIdx.x) * (kHeadThreads / kHeadLanes) + threadIdx.x / kHeadLanes;
  const bool is_mine = unit < tokens * heads;
  const i64 token = is_mine ? unit / heads : 0;
  const int head = is_mine ? static_cast<int>(unit % heads) : 0;
  Pair pair = load_pair(qkv + (token * kQkvHeads + head) * HEAD_DIM, lane);
  const i64 position = positions[token];
  const bool is_query = head < HEADS, is_value = head >= HEADS + KV_HEADS;
  const int kv_head = is_value ? head - HEADS - KV_HEADS : head - HEADS;
  if (q_weight != nullptr) {
    const float factor = rsqrtf(head_dot(pair, pair) / HEAD_DIM + epsilon);
    if (!is_value) {
      const Pair weight = load_pair(is_query ? q_weight : k_weight, lane);
      UNROLL
      for (int j = 0; j < 8; ++j) {
        pair.low.x[j] = rounded(pair.low.x[j] * factor * weight.low.x[j]);
        pair.high.x[j] = rounded(pair.high.x[j] * factor * weight.high.x[j]);
      }
      float* scale = is_query ? q_scale : k_scale;
      if (is_mine && lane == 0 && scale != nullptr) {
        scale[is_query ? token * HEADS + head : token * KV_HEADS + kv_head] = factor;
      }
    }
  }
  if (!is_mine) return;
  if (!is_value) pair = turned(pair, cos + position * kHalf, sin + position * kHalf, lane, 1);
  bf16* to = q + token * q_stride + head * HEAD_DIM;
  if (!is_query && k_cache == nullptr) to = k + token * k_stride + kv_head * HEAD_DIM;
  if (!is_query && k_cache != nullptr) {
    to = (is_value ? v_cache : k_cache) +
         ((token * KV_HEADS + kv_head) * cache_length + position) * HEAD_DIM;
  }
  store_pair(to, lane, pair);
}

// The backward pass of one head's norm: replaces d by the gradient of the norm's input and adds to
// dw.
__device__ inline void norm_head_backward(Pair& d, const bf16* raw, const bf16* w, float factor,
                                          int lane, Pair& dw) {
  Pair normal = load_pair(raw, lane);
  const Pair weight = load_pair(w, lane);
  UNROLL
  for (int j = 0; j < 8; ++j) {
    normal.low.x[j] *= factor;
    normal.high.x[j] *= factor;
    dw.low.x[j] += d.low.x[j] * normal.low.x[j];
    dw.high.x[j] += d.high.x[j] * normal.high.x[j];
    d.low.x[j] *= weight.low.x[j];
    d.high.x[j] *= weight.high.x[j];
  }
  const float mean = head_dot(d, normal) / HEAD_DIM;
  UNROLL
  for (int j = 0; j < 8; ++j) {
    d.low.x[j] = factor * (d.low.x[j] - normal.low.x[j] * mean);
    d.high.x[j] = factor * (d.high.x[j] - normal.high.x[j] * mean);
  }
}

// The backward pass for all query heads or all key heads: computes the gradient of qkv from that of
// the rotated heads.
__device__ inline void heads_backward(const bf16* d_heads, int count, int first, const bf16* qkv,
                                      const i64* positions, const float* cos, const float* sin,
                                      const bf16* weight, const float* scale, i64 tokens,
                                      bf16* d_qkv, Pair& dw) {
  const int lane = threadIdx.x % kHeadLanes;
  constexpr int kUnits = kHeadThreads / kHeadLanes;
  const i64 units = tokens * count;
  // All lanes of a warp run every iteration, because norm_head_backward sums across lanes.
  for (i64 base = static_cast<i64>(blockIdx.x) * kUnits; base < units;
       base += static_cast<i64>(gridDim.x) * kUnits) {
    const i64 unit = base + threadIdx.x / kHeadLanes;
    const bool is_mine = unit < units;
    const i64 token = is_mine ? unit / count : 0;
    const int head = is_mine ? static_cast<int>(unit % count) : 0;
    Pair d = load_pair(d_heads + (token * count + head) * HEAD_DIM, lane);
    const i64 position = positions[token];
    d = turned(d, cos + position * kHalf, sin + position * kHalf, lane, -1);
    const i64 at = (token * kQkvHeads + first + head) * HEAD_DIM;
    if (weight != nullptr) {
      if (!is_mine) d = {};
      norm_head_backward(d, qkv + at, weight, scale[token * count + head], lane, dw);
    }
    if (is_mine) store_pair(d_qkv + at, lane, d);
  }
}

// Sums the block's parts of a weight's gradient.
__device__ inline void sum_block(const Pair& dw, float* shared, float* part) {
  const int lane = threadIdx.x % kHeadLanes;
  for (int j = 0; j < 8; ++j) {
    float low = dw.low.x[j], high = dw.high.x[j];
    for (int step = kHeadLanes; step < kWarp; step *= 2) {
      low += __shfl_xor_sync(kAllLanes, low, step);
      high += __shfl_xor_sync(kAllLanes, high, step);
    }
    for (int turn = 0; turn < kHeadThreads / kWarp; ++turn) {
      if (static_cast<int>(threadIdx.x) / kWarp == turn &&
          static_cast<int>(threadIdx.x) % kWarp < kHeadLanes) {
        shared[lane * 8 + j] = (turn == 0 ? 0 : shared[lane * 8 + j]) + low;
        shared[kHalf + lane * 8 + j] = (turn == 0 ? 0 : shared[kHalf + lane * 8 + j]) + high;
      }
      __syncthreads();
    }
  }
  for (int i = threadIdx.x; i < HEAD_DIM; i += kHeadThreads) part[i] = shared[i];
  __syncthreads();
}

// The backward pass of make_heads, which also copies the gradient of the values to its position in
// qkv.  Each block writes its part of the norm weights' gradients to `q_parts` and `k_parts`.
extern "C" __global__ void __launch_bounds__(kHeadThreads)
    make_heads_backward(const bf16* dq, const bf16* dk, const bf16* dv, const bf16* qkv,
                        const i64* positions, const float* cos, const float* sin,
                        const bf16* q_weight, const bf16* k_weight, const float* q_scale,
                        const float* k_scale, i64 tokens, bf16* d_qkv, float* q_parts,
                        float* k_parts) {
  __shared__ float shared[HEAD_DIM];
  Pair dw_q = {}, dw_k = {};
  heads_backward(dq, HEADS, 0, qkv, positions, cos, sin, q_weight, q_scale, tokens, d_qkv, dw_q);
  heads_backward(dk, KV_HEADS, HEADS, qkv, positions, cos, sin, k_weight, k_scale, tokens, d_qkv,
                 dw_k);
  const i64 vectors = tokens * KV_HEADS * (HEAD_DIM / 8);
  for (i64 i = static_cast<i64>(blockIdx.x) * kHeadThreads + threadIdx.x; i < vectors;
       i += static_cast<i64>(gridDim.x) * kHeadThreads) {
    const i64 token = i / (KV_HEADS * (HEAD_DIM / 8)), at = i % (KV_HEADS * (HEAD_DIM / 8));
    *reinterpret_cast<Vector*>(d_qkv + (token * kQkvHeads + HEADS + KV_HEADS) * HEAD_DIM + at * 8) =
        *reinterpret_cast<const Vector*>(dv + i * 8);
  }
  if (q_weight == nullptr) return;
  sum_block(dw_q, shared, q_parts + static_cast<i64>(blockIdx.x) * HEAD_DIM);
  sum_block(dw_k, shared, k_parts + static_cast<i64>(blockIdx.x) * HEAD_DIM);
}

// Attention of one group of query heads to its cached tokens: one block for each slot, key head and
// part of the tokens.  A warp processes several tokens at once, each with HEAD_DIM / 8 lanes.
// Every group of lanes has its own running softmax; all are merged at the end.  If the tokens are
// split, `parts` contains for each part the sum of exponentials, the largest score and the unscaled
// output.
constexpr int kDecodeWarps = 8;
constexpr int kTokenLanes = HEAD_DIM / 8;
constexpr int kWarpTokens = kWarp / kTokenLanes;
constexpr int kLaneGroups = kDecodeWarps * kWarpTokens;

struct Running {
  float largest, sum;
  float out[8];
};

__device__ inline void join(Running& to, float largest, float sum, const float* out) {
  const float both = fmaxf(to.largest, largest);
  const float mine = to.sum > 0 ? __expf(to.largest - both) : 0;
  const float theirs = sum > 0 ? __expf(largest - both) : 0;
  to.largest = both;
  to.sum = to.sum * mine + sum * theirs;
  UNROLL
  for (int j = 0; j < 8; ++j) to.out[j] = to.out[j] * mine + out[j] * theirs;
}

extern "C" __global__ void __launch_bounds__(kDecodeWarps* kWarp)
    attend_cache(const bf16* q, const bf16* k_cache, const bf16* v_cache, const i64* positions,
                 i64 cache_length, i64 q_stride, bf16* out, float* parts) {
  __shared__ float shared[kLaneGroups][kTokenLanes][10];
  const i64 slot = blockIdx.x;
  const int kv_head = blockIdx.y, split = blockIdx.z, splits = gridDim.z;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kTokenLanes;
  const int group = warp * kWarpTokens + threadIdx.x % kWarp / kTokenLanes;
  const i64 length = positions[slot] + 1;
  const i64 share = (length + splits - 1) / splits;
  const i64 begin = share * split, end = begin + share < length ? begin + share : length;
  const i64 base = (slot * KV_HEADS + kv_head) * cache_length * HEAD_DIM + lane * 8;
  const float factor = rsqrtf(static_cast<float>(HEAD_DIM));
  Floats query[kGroupQueries];
  Running state[kGroupQueries];
  UNROLL
  for (int g = 0; g < kGroupQueries; ++g) {
    query[g] = load(q + slot * q_stride + (kv_head * kGroupQueries + g) * HEAD_DIM + lane * 8);
    state[g].largest = -1e30f;
    state[g].sum = 0;
    UNROLL
    for (int j = 0; j < 8; ++j) {
      query[g].x[j] *= factor;
      state[g].out[j] = 0;
    }
  }
  // All lanes of a warp run every iteration, because the scores are summed across lanes.
  UNROLL_BY_TWO
  for (i64 first = begin; first < end; first += kLaneGroups) {
    const i64 token = first + group;
    const bool is_mine = token < end;
    const i64 at = base + (is_mine ? token : begin) * HEAD_DIM;
    const Floats key = load(k_cache + at), value = load(v_cache + at);
    UNROLL
    for (int g = 0; g < kGroupQueries; ++g) {
      float score = 0;
      UNROLL
      for (int j = 0; j < 8; ++j) score += query[g].x[j] * key.x[j];
      score = sum_lanes(score, kTokenLanes);
      if (!is_mine) continue;
      const float largest = fmaxf(state[g].largest, score);
      const float before = __expf(state[g].largest - largest), now = __expf(score - largest);
      state[g].largest = largest;
      state[g].sum = state[g].sum * before + now;
      UNROLL
      for (int j = 0; j < 8; ++j) {
        state[g].out[j] = state[g].out[j] * before + now * value.x[j];
      }
    }
  }
  for (int g = 0; g < kGroupQueries; ++g) {
    shared[group][lane][8] = state[g].largest;
    shared[group][lane][9] = state[g].sum;
    for (int j = 0; j < 8; ++j) shared[group][lane][j] = state[g].out[j];
    __syncthreads();
    if (threadIdx.x < kTokenLanes) {
      Running all = state[g];
      for (int other = 1; other < kLaneGroups; ++other) {
        join(all, shared[other][lane][8], shared[other][lane][9], shared[other][lane]);
      }
      const i64 head = slot * HEADS + kv_head * kGroupQueries + g;
      if (parts == nullptr) {
        Floats result;
        for (int j = 0; j < 8; ++j) result.x[j] = all.out[j] / all.sum;
        store(out + head * HEAD_DIM + lane * 8, result);
      } else {
        float* part = parts + ((head * splits + split) * kTokenLanes + lane) * 10;
        part[8] = all.largest;
        part[9] = all.sum;
        for (int j = 0; j < 8; ++j) part[j] = all.out[j];
      }
    }
    __syncthreads();
  }
}

// Merges the parts of attend_cache: one thread for eight elements of a head's output.
extern "C" __global__ void join_parts(const float* parts, int splits, i64 heads, bf16* out) {
  const i64 unit = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const i64 head = unit / kTokenLanes, lane = unit % kTokenLanes;
  if (head >= heads) return;
  Running all = {-1e30f, 0, {}};
  for (int split = 0; split < splits; ++split) {
    const float* part = parts + ((head * splits + split) * kTokenLanes + lane) * 10;
    join(all, part[8], part[9], part);
  }
  Floats result;
  for (int j = 0; j < 8; ++j) result.x[j] = all.out[j] / all.sum;
  store(out + head * HEAD_DIM + lane * 8, result);
}

// Writes keys and values of prompts, [tokens, stride] each, into the cache: one row of blocks for
// each pair of prompt and slot.
extern "C" __global__ void fill_cache(const bf16* k, const bf16* v, i64 k_stride, i64 v_stride,
                                      const i64* starts, const i64* prompt_of_pair,
                                      const i64* slot_of_pair, i64 cache_length, bf16* k_cache,
                                      bf16* v_cache) {
  const i64 prompt = prompt_of_pair[blockIdx.y], slot = slot_of_pair[blockIdx.y];
  const i64 start = starts[prompt], length = starts[prompt + 1] - start;
  constexpr int kTokenVectors = KV_HEADS * HEAD_DIM / 8;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < length * kTokenVectors;
       i += static_cast<i64>(gridDim.x) * blockDim.x) {
    const i64 token = i / kTokenVectors, at = i % kTokenVectors * 8;
    const i64 to =
        ((slot * KV_HEADS + at / HEAD_DIM) * cache_length + token) * HEAD_DIM + at % HEAD_DIM;
    *reinterpret_cast<Vector*>(k_cache + to) =
        *reinterpret_cast<const Vector*>(k + (start + token) * k_stride + at);
    *reinterpret_cast<Vector*>(v_cache + to) =
        *reinterpret_cast<const Vector*>(v + (start + token) * v_stride + at);
  }
}
#endif  // HEAD_DIM

#ifdef PLAIN
// Each thread computes eight elements of silu(gate) * up.
extern "C" __global__ void swiglu(const bf16* gate_up, i64 rows, int width, bf16* y) {
  const i64 i = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (i >= rows * width) return;
  const i64 at = i / width * 2 * width + i % width;
  const Floats gate = load(gate_up + at), up = load(gate_up + at + width);
  Floats out;
  UNROLL
  for (int j = 0; j < 8; ++j) out.x[j] = gate.x[j] / (1 + __expf(-gate.x[j])) * up.x[j];
  store(y + i, out);
}

extern "C" __global__ void swiglu_backward(const bf16* dy, const bf16* gate_up, i64 rows, int width,
                                           bf16* d_gate_up) {
  const i64 i = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (i >= rows * width) return;
  const i64 at = i / width * 2 * width + i % width;
  const Floats gate = load(gate_up + at), up = load(gate_up + at + width), d = load(dy + i);
  Floats d_gate, d_up;
  UNROLL
  for (int j = 0; j < 8; ++j) {
    const float sigmoid = 1 / (1 + __expf(-gate.x[j])), silu = gate.x[j] * sigmoid;
    d_gate.x[j] = d.x[j] * up.x[j] * (sigmoid + silu * (1 - sigmoid));
    d_up.x[j] = d.x[j] * silu;
  }
  store(d_gate_up + at, d_gate);
  store(d_gate_up + at + width, d_up);
}

// to[rows[i]] += from[i], one thread for eight elements.  The order of the sums is not
// deterministic.
extern "C" __global__ void add_rows(const bf16* from, const i64* rows, i64 count, int width,
                                    float* to) {
  const i64 i = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (i >= count * width) return;
  const Floats in = load(from + i);
  float* row = to + rows[i / width] * width + i % width;
  UNROLL
  for (int j = 0; j < 8; ++j) atomicAdd(row + j, in.x[j]);
}

extern "C" __global__ void gather_rows(const bf16* from, const i64* rows, i64 count, int width,
                                       bf16* to) {
  const i64 i = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) * 8;
  if (i >= count * width) return;
  *reinterpret_cast<Vector*>(to + i) =
      *reinterpret_cast<const Vector*>(from + rows[i / width] * width + i % width);
}

constexpr int kSoftmaxThreads = 512;

// Sums of exponentials of a row, relative to its largest logit.
struct Exponentials {
  float largest, sum;
  float weighted;  // The sum of e^x x, for the entropy.
};

__device__ inline Exponentials joined(const Exponentials& a, const Exponentials& b) {
  const float both = fmaxf(a.largest, b.largest);
  const float da = a.largest - both, db = b.largest - both;
  const float ea = __expf(da), eb = __expf(db);
  return {both, a.sum * ea + b.sum * eb,
          ea * (a.weighted + da * a.sum) + eb * (b.weighted + db * b.sum)};
}

__device__ inline Exponentials join_block(Exponentials mine, Exponentials* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Exponentials other = {__shfl_xor_sync(kAllLanes, mine.largest, step),
                                __shfl_xor_sync(kAllLanes, mine.sum, step),
                                __shfl_xor_sync(kAllLanes, mine.weighted, step)};
    mine = joined(mine, other);
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = mine;
  __syncthreads();
  Exponentials all = shared[0];
  for (int i = 1; i < static_cast<int>(blockDim.x) / kWarp; ++i) all = joined(all, shared[i]);
  return all;
}

// One block for each row of logits: computes the target's log-probability under softmax(logits /
// temperature) and the entropy, and overwrites the logits with the gradient of coefficient *
// log-probability.  Pointers to results may be null.  The coefficient is `coefficients[row]`, or
// `coefficient` if that pointer is null.
extern "C" __global__ void __launch_bounds__(kSoftmaxThreads)
    log_softmax_row(bf16* logits, const i64* targets, i64 width, float inverse_temperature,
                    const float* coefficients, float coefficient, int writes_gradient,
                    double* log_probs, double* entropies) {
  __shared__ Exponentials shared[kSoftmaxThreads / kWarp];
  const i64 row = blockIdx.x;
  bf16* line = logits + row * width;
  Exponentials mine = {-1e30f, 0, 0};
  for (i64 i = threadIdx.x * 8; i < width; i += kSoftmaxThreads * 8) {
    const Floats in = load(line + i);
    float largest = mine.largest;
    UNROLL
    for (int j = 0; j < 8; ++j) largest = fmaxf(largest, in.x[j] * inverse_temperature);
    const float step = mine.largest - largest, before = __expf(step);
    mine.weighted = before * (mine.weighted + step * mine.sum);
    mine.sum *= before;
    mine.largest = largest;
    UNROLL
    for (int j = 0; j < 8; ++j) {
      const float d = in.x[j] * inverse_temperature - largest, e = __expf(d);
      mine.sum += e;
      mine.weighted += e * d;
    }
  }
  const Exponentials all = join_block(mine, shared);
  const float log_sum = logf(all.sum);
  const i64 target = targets[row];
  if (threadIdx.x == 0) {
    const float scaled = from_bf16(line[target]) * inverse_temperature;
    if (log_probs != nullptr) log_probs[row] = scaled - all.largest - log_sum;
    if (entropies != nullptr) entropies[row] = log_sum - all.weighted / all.sum;
  }
  if (!writes_gradient) return;
  __syncthreads();
  const float c = (coefficients != nullptr ? coefficients[row] : coefficient) * inverse_temperature;
  const float shift = all.largest + log_sum;
  for (i64 i = threadIdx.x * 8; i < width; i += kSoftmaxThreads * 8) {
    Floats in = load(line + i);
    UNROLL
    for (int j = 0; j < 8; ++j) {
      const float p = __expf(in.x[j] * inverse_temperature - shift);
      in.x[j] = c * ((i + j == target ? 1.0f : 0.0f) - p);
    }
    store(line + i, in);
  }
}

// Writes each block's sum of squares.
extern "C" __global__ void sum_squares(const float* x, i64 count, double* parts) {
  __shared__ double shared[8];
  double sum = 0;
  for (i64 base = static_cast<i64>(blockIdx.x) * 2048; base < count;
       base += static_cast<i64>(gridDim.x) * 2048) {
    float part = 0;
    UNROLL
    for (int k = 0; k < 8; ++k) {
      const i64 i = base + k * 256 + threadIdx.x;
      const float one = i < count ? x[i] : 0;
      part += one * one;
    }
    sum += part;
  }
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(kAllLanes, sum, step);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < 8; ++i) sum += shared[i];
  parts[blockIdx.x] = sum;
}

struct AdamW {
  float lr, beta1, beta2, epsilon, decay, norm_max;
  float correction1, correction2;  // 1 - beta^step
};

// AdamW with the gradient clipped to norm_max.  `copy` receives the new weights in bfloat16 and may
// be null.  Nothing changes if the norm is not finite.
extern "C" __global__ void adamw(float* weights, const float* gradients, float* first,
                                 float* second, bf16* copy, i64 count, const double* norm,
                                 AdamW o) {
  const double length = *norm;
  if (!(length < 1e300)) return;
  const float shortened = length > o.norm_max ? static_cast<float>(o.norm_max / length) : 1;
  UNROLL
  for (int k = 0; k < 4; ++k) {
    const i64 i = static_cast<i64>(blockIdx.x) * 1024 + k * 256 + threadIdx.x;
    if (i >= count) return;
    const float g = gradients[i] * shortened;
    const float m = o.beta1 * first[i] + (1 - o.beta1) * g;
    const float v = o.beta2 * second[i] + (1 - o.beta2) * g * g;
    const float root = sqrtf(v) / sqrtf(o.correction2) + o.epsilon;
    const float w = weights[i] * (1 - o.lr * o.decay) - o.lr / o.correction1 * m / root;
    first[i] = m;
    second[i] = v;
    weights[i] = w;
    if (copy != nullptr) copy[i] = static_cast<bf16>(pack(w, 0) & 0xffff);
  }
}

// The choice of the next tokens.
constexpr int kChooseThreads = 1024;

// An unsigned integer that orders floats as their values do.
__device__ inline u32 order_of(float x) {
  const u32 bits = __float_as_uint(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ inline double sum_threads(double x, double* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < kChooseThreads / kWarp; ++i) sum += shared[i];
  return sum;
}

struct Row {
  const bf16* logits;
  int width;
  float largest, inverse_temperature;
  __device__ float weight(int i) const {
    return __expf((from_bf16(logits[i]) - largest) * inverse_temperature);
  }
  __device__ float weight_of(u32 order) const {
    const u32 bits = (order & 0x80000000u ? order & 0x7fffffffu : ~order) & 0xffff0000u;
    return __expf((from_bits(bits) - largest) * inverse_temperature);
  }
};

// The total weight of the tokens whose order is at least `order`.
__device__ inline double weight_from(const Row& row, u32 order, double* shared) {
  double sum = 0;
  for (int i = threadIdx.x * 8; i < row.width; i += kChooseThreads * 8) {
    const Floats in = load(row.logits + i);
    float part = 0;
    UNROLL
    for (int j = 0; j < 8; ++j) {
      if (order_of(in.x[j]) >= order) {
        part += __expf((in.x[j] - row.largest) * row.inverse_temperature);
      }
    }
    sum += part;
  }
  return sum_threads(sum, shared);
}

// The largest order such that the tokens of at least this order weigh more than `target`.  Logits
// in bfloat16 differ only in the upper half of their order.
__device__ inline u32 order_at(const Row& row, double target, double* shared) {
  u32 order = 0;
  for (u32 bit = 0x80000000u; bit >= 0x10000u; bit >>= 1) {
    if (weight_from(row, order | bit, shared) > target) order |= bit;
  }
  return order;
}

// The id of the token at position `index` among the tokens of the given order.
__device__ inline int token_of(const Row& row, u32 order, int index, int* found) {
  int before = 0;
  if (threadIdx.x == 0) *found = -1;
  for (int base = 0; base < row.width; base += kChooseThreads) {
    const int i = base + static_cast<int>(threadIdx.x);
    const bool is_one = i < row.width && order_of(from_bf16(row.logits[i])) >> 16 == order >> 16;
    const int count = __syncthreads_count(is_one);
    if (before + count > index) {
      // Ties are few, so they are counted one by one.
      if (is_one) {
        int rank = before;
        for (int k = base; k < i; ++k) {
          rank += order_of(from_bf16(row.logits[k])) >> 16 == order >> 16;
        }
        if (rank == index) *found = i;
      }
      __syncthreads();
      return *found;
    }
    before += count;
  }
  __syncthreads();
  return *found;
}

// Draws from all tokens, in the order of their ids.
__device__ inline int draw_by_number(const Row& row, double uniform, double* shared, int* found) {
  double total = weight_from(row, 0, shared);
  const double target = uniform * total;
  double before = 0;
  if (threadIdx.x == 0) *found = row.width - 1;
  for (int base = 0; base < row.width; base += kChooseThreads * 8) {
    const int first = base + static_cast<int>(threadIdx.x) * 8;
    double mine = 0;
    for (int i = first; i < first + 8 && i < row.width; ++i) mine += row.weight(i);
    const double sum = sum_threads(mine, shared);
    if (before + sum > target) {
      // The running sum up to this thread, with the sums of earlier warps and lanes.
      double running = mine;
      const int lane = threadIdx.x % kWarp;
      for (int step = 1; step < kWarp; step *= 2) {
        const double other = __shfl_up_sync(kAllLanes, running, step);
        if (lane >= step) running += other;
      }
      double start = before + running - mine;
      for (int w = 0; w < static_cast<int>(threadIdx.x) / kWarp; ++w) start += shared[w];
      // Rounding may leave the target between two threads; the first thread that exceeds it is
      // taken.
      double mass = start;
      for (int i = first; i < first + 8 && i < row.width; ++i) {
        mass += row.weight(i);
        if (mass > target) {
          atomicMin(found, i);
          break;
        }
      }
      __syncthreads();
      return *found;
    }
    before += sum;
  }
  __syncthreads();
  return *found;
}

// Draws from the smallest set of likeliest tokens with the weight top_p, sorted by probability;
// ties by id.
__device__ inline int draw_from_nucleus(const Row& row, double top_p, double uniform,
                                        double* shared, int* found) {
  const double total = weight_from(row, 0, shared);
  const double wanted = top_p * total;
  // A set whose weight is exactly the wanted one is large enough, despite rounding.
  const u32 last = order_at(row, wanted * (1 - 1e-15), shared);
  const double above_last = weight_from(row, last + 0x10000u, shared);
  const double last_weight = row.weight_of(last);
  const double ties = last_weight > 0 ? ceil((wanted - above_last) / last_weight) : 1;
  const double nucleus = above_last + fmax(ties, 1.0) * last_weight;
  const double target = uniform * nucleus;
  const u32 order = order_at(row, target, shared);
  const double above = weight_from(row, order + 0x10000u, shared);
  const double weight = row.weight_of(order);
  const int index = weight > 0 ? static_cast<int>((target - above) / weight) : 0;
  const int token = token_of(row, order, index, found);
  return token >= 0 ? token : token_of(row, order, 0, found);
}

// One block for each row: chooses the token by the rules of choose_token (sampling.h) and writes
// its log-probability.  `step` counts the steps since the uniforms were copied: uniforms and
// results are [steps, rows].
extern "C" __global__ void __launch_bounds__(kChooseThreads)
    choose(const bf16* logits, int width, double temperature, double top_p, const double* uniforms,
           const int* step, int rows, i64* tokens, double* results) {
  __shared__ double shared[kChooseThreads / kWarp];
  __shared__ int found;
  const int row_index = blockIdx.x, at = *step * rows + row_index;
  Row row = {logits + static_cast<i64>(row_index) * width, width, -1e30f,
             temperature > 0 ? static_cast<float>(1 / temperature) : 1.0f};
  float largest = -1e30f;
  for (int i = threadIdx.x; i < width; i += kChooseThreads) {
    largest = fmaxf(largest, from_bf16(row.logits[i]));
  }
  for (int step_lanes = kWarp / 2; step_lanes > 0; step_lanes /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, step_lanes));
  }
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = largest;
  __syncthreads();
  for (int i = 0; i < kChooseThreads / kWarp; ++i) {
    largest = fmaxf(largest, static_cast<float>(shared[i]));
  }
  row.largest = largest;
  __syncthreads();
  const double uniform = uniforms[at];
  int token;
  if (temperature == 0) {
    token = token_of(row, order_of(largest), 0, &found);
  } else if (top_p < 1) {
    token = draw_from_nucleus(row, top_p, uniform, shared, &found);
  } else {
    token = draw_by_number(row, uniform, shared, &found);
  }
  const double total = weight_from(row, 0, shared);
  if (threadIdx.x != 0) return;
  if (token < 0) token = 0;
  tokens[row_index] = token;
  results[2 * at] = token;
  results[2 * at + 1] =
      (from_bf16(row.logits[token]) - largest) * row.inverse_temperature - log(total);
}

extern "C" __global__ void advance(i64* positions, int rows, i64 position_max, int* step) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && positions[i] < position_max) positions[i] += 1;
  if (i == 0) *step += 1;
}
#endif  // PLAIN
