// SPDX-License-Identifier: Apache-2.0
#include "model/decoder.h"

#include <numeric>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "core/check.h"
#include "model/gpu_ops.h"

namespace mc::model {
namespace {

using ops::Direction;

class LayoutBuilder {
 public:
  void add(std::string name, std::vector<int64_t> shape) {
    const int64_t count =
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    layout_.slices.push_back({std::move(name), std::move(shape), layout_.total, count});
    layout_.total += count;
  }
  void end_matrices() { layout_.matrices = layout_.total; }
  Layout layout() && { return std::move(layout_); }

 private:
  Layout layout_;
};

// Cuts consecutive views from the flat tensor, in the order of layout_of.
class Cursor {
 public:
  explicit Cursor(const at::Tensor& flat) : flat_(flat) {}
  at::Tensor take(std::vector<int64_t> shape) {
    const int64_t count =
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    offset_ += count;
    return flat_.narrow(0, offset_ - count, count).view(shape);
  }
  int64_t offset() const { return offset_; }

 private:
  const at::Tensor& flat_;
  int64_t offset_ = 0;
};

struct QkvViews {
  at::Tensor q, k, v;
};

// Views of the query, key and value heads in qkv.
QkvViews views_of(const Config& config, const at::Tensor& qkv) {
  const auto heads = [&](int64_t first, int64_t count) {
    return qkv.narrow(1, first * config.head_dim, count * config.head_dim)
        .view({qkv.size(0), count, config.head_dim});
  };
  return {heads(0, config.heads), heads(config.heads, config.kv_heads),
          heads(config.heads + config.kv_heads, config.kv_heads)};
}

// The result is contiguous even for a single head, whose rows a reshape would leave at their
// stride.
at::Tensor flat_heads(const at::Tensor& x_THD) {
  return x_THD.reshape({-1, x_THD.size(2)}).contiguous();
}

gpu::HeadInputs kernel_inputs(const ForwardContext& context, const Block& block,
                              const at::Tensor& positions, const at::Tensor& qkv) {
  const Config& c = context.weights.config;
  return {{.head_dim = c.head_dim, .heads = c.heads, .kv_heads = c.kv_heads},
          qkv,
          positions,
          context.rope.cos_PD2,
          context.rope.sin_PD2,
          block.q_norm,
          block.k_norm,
          c.norm_epsilon};
}

bool has_head_kernels(const ForwardContext& context, const gpu::HeadInputs& in) {
  return context.form == ops::Form::kNative && gpu::has_heads(in.qkv, in.sizes);
}

// Computes rotated queries and keys, normalized if the family does so, and values.
void make_heads(const ForwardContext& context, const Block& block, const at::Tensor& positions,
                BlockTape& tape) {
  const Config& config = context.weights.config;
  auto [q, k, v] = views_of(config, tape.qkv);
  const gpu::HeadInputs in = kernel_inputs(context, block, positions, tape.qkv);
  if (has_head_kernels(context, in)) {
    const gpu::RotatedHeads made = gpu::make_heads(in);
    tape.heads = {made.q_THD, made.k_TKD, v};
    tape.q_norm.scale_N = made.q_scale;
    tape.k_norm.scale_N = made.k_scale;
    return;
  }
  if (block.q_norm.defined()) {
    tape.q_norm = ops::rms_norm(flat_heads(q), block.q_norm, config.norm_epsilon, context.form);
    tape.k_norm = ops::rms_norm(flat_heads(k), block.k_norm, config.norm_epsilon, context.form);
    q = tape.q_norm.y_Nh.view({-1, config.heads, config.head_dim});
    k = tape.k_norm.y_Nh.view({-1, config.kv_heads, config.head_dim});
  }
  ops::rope_(q, positions, context.rope, Direction::kForward, context.form);
  ops::rope_(k, positions, context.rope, Direction::kForward, context.form);
  tape.heads = {q, k, v};
}

// The feed-forward part of a block; returns what the block adds to x_mid.
at::Tensor feed_forward(const ForwardContext& context, const Block& block, BlockTape& tape) {
  tape.gate_up = ops::linear(tape.ffn_norm.y_Nh, block.gate_up);
  tape.inner = ops::swiglu(tape.gate_up, context.form);
  return ops::linear(tape.inner, block.down);
}

// Begins a block: adds branch, which may be undefined, to x, and computes the norm and the heads.
void begin_block(const ForwardContext& context, const Block& block, const at::Tensor& positions,
                 const at::Tensor& branch, BlockTape& tape) {
  ops::AddedNorm added = ops::add_rms_norm(tape.x, branch, block.attention_norm,
                                           context.weights.config.norm_epsilon, context.form);
  tape.x = added.sum_Nh;
  tape.attention_norm = std::move(added.norm);
  tape.qkv = ops::linear(tape.attention_norm.y_Nh, block.qkv, block.qkv_bias);
  make_heads(context, block, positions, tape);
}

// The second half of a block, from the output of attention, `out_THD`; returns what the block adds
// to x_mid.
at::Tensor end_block(const ForwardContext& context, const Block& block, const at::Tensor& out_THD,
                     BlockTape& tape) {
  ops::AddedNorm added =
      ops::add_rms_norm(tape.x, ops::linear(out_THD.view({tape.x.size(0), -1}), block.o),
                        block.ffn_norm, context.weights.config.norm_epsilon, context.form);
  tape.x_mid = added.sum_Nh;
  tape.ffn_norm = std::move(added.norm);
  return feed_forward(context, block, tape);
}

ops::Attention attend(const ForwardContext& context, const Batch& batch, const BlockTape& tape) {
  return ops::attention(tape.heads.q_THD, tape.heads.k_TKD, tape.heads.v_TKD, batch.extents,
                        context.form);
}

void fill_cache(const ops::AttentionInputs& heads, const Batch& batch,
                std::span<const int64_t> slots, at::Tensor& keys, at::Tensor& values) {
  MC_CHECK(slots.size() + 1 == batch.extents.starts.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t start = batch.extents.starts[i];
    const int64_t length = batch.extents.starts[i + 1] - start;
    const auto copy = [&](at::Tensor& to, const at::Tensor& from) {
      to.select(0, slots[i])
          .narrow(1, 0, length)
          .copy_(from.narrow(0, start, length).transpose(0, 1));
    };
    copy(keys, heads.k_TKD);
    copy(values, heads.v_TKD);
  }
}

// The backward pass of feed_forward: returns the gradient of x_mid.
at::Tensor feed_forward_backward(const ForwardContext& context, const Block& block,
                                 const BlockTape& tape, at::Tensor dx, Block& gradients) {
  ops::add_weight_gradient(gradients.down, dx, tape.inner);
  const at::Tensor d_gate_up =
      ops::swiglu_backward(ops::linear_backward(dx, block.down), tape.gate_up, context.form);
  ops::add_weight_gradient(gradients.gate_up, d_gate_up, tape.ffn_norm.y_Nh);
  ops::rms_norm_backward(ops::linear_backward(d_gate_up, block.gate_up), tape.x_mid, block.ffn_norm,
                         tape.ffn_norm.scale_N, dx, gradients.ffn_norm, context.form);
  return dx;
}

// The backward pass of make_heads: turns the gradients of the rotated heads, which are views of
// d_qkv, into the gradient of qkv.
void make_heads_backward(const ForwardContext& context, const Block& block, const Batch& batch,
                         const BlockTape& tape, const QkvViews& d_heads, Block& gradients) {
  ops::rope_(d_heads.q, batch.positions_T, context.rope, Direction::kInverse, context.form);
  ops::rope_(d_heads.k, batch.positions_T, context.rope, Direction::kInverse, context.form);
  if (!block.q_norm.defined()) return;
  const QkvViews raw = views_of(context.weights.config, tape.qkv);
  const auto norm_backward = [&](const at::Tensor& d_view, const at::Tensor& x, const at::Tensor& w,
                                 const ops::Norm& norm, at::Tensor& dw) {
    const at::Tensor x_flat = flat_heads(x);
    at::Tensor dx = at::zeros_like(x_flat);
    ops::rms_norm_backward(flat_heads(d_view), x_flat, w, norm.scale_N, dx, dw, context.form);
    d_view.copy_(dx.view(d_view.sizes()));
  };
  norm_backward(d_heads.q, raw.q, block.q_norm, tape.q_norm, gradients.q_norm);
  norm_backward(d_heads.k, raw.k, block.k_norm, tape.k_norm, gradients.k_norm);
}

// The backward pass from the output of attention to qkv.
at::Tensor attend_backward(const ForwardContext& context, const Block& block, const Batch& batch,
                           const BlockTape& tape, const at::Tensor& d_out, Block& gradients) {
  const gpu::HeadInputs in = kernel_inputs(context, block, batch.positions_T, tape.qkv);
  if (has_head_kernels(context, in) && ops::has_flash(tape.heads.q_THD, context.form)) {
    const ops::AttentionInputs d =
        ops::flash_attention_backward(d_out, tape.heads, tape.attention, batch.extents);
    const gpu::RotatedHeads made{tape.heads.q_THD, tape.heads.k_TKD, tape.q_norm.scale_N,
                                 tape.k_norm.scale_N};
    return gpu::make_heads_backward(in, made, {d.q_THD, d.k_TKD, d.v_TKD}, gradients.q_norm,
                                    gradients.k_norm);
  }
  const at::Tensor d_qkv = at::empty(tape.qkv.sizes(), tape.qkv.options());
  const QkvViews d_heads = views_of(context.weights.config, d_qkv);
  ops::attention_backward(d_out, tape.heads, tape.attention, batch.extents,
                          {d_heads.q, d_heads.k, d_heads.v}, context.form);
  make_heads_backward(context, block, batch, tape, d_heads, gradients);
  return d_qkv;
}

at::Tensor attention_part_backward(const ForwardContext& context, const Block& block,
                                   const Batch& batch, const BlockTape& tape, at::Tensor dx,
                                   Block& gradients) {
  const at::Tensor& out = tape.attention.out_THD;
  ops::add_weight_gradient(gradients.o, dx, out.view({out.size(0), -1}));
  const at::Tensor d_out = ops::linear_backward(dx, block.o).view(out.sizes());
  const at::Tensor d_qkv = attend_backward(context, block, batch, tape, d_out, gradients);
  ops::add_weight_gradient(gradients.qkv, d_qkv, tape.attention_norm.y_Nh);
  if (block.qkv_bias.defined()) ops::add_bias_gradient(gradients.qkv_bias, d_qkv);
  ops::rms_norm_backward(ops::linear_backward(d_qkv, block.qkv), tape.x, block.attention_norm,
                         tape.attention_norm.scale_N, dx, gradients.attention_norm, context.form);
  return dx;
}

// Recomputes the tape of a block of which only the input was kept.
BlockTape again(const ForwardContext& context, const Block& block, const Batch& batch,
                const BlockTape& kept) {
  BlockTape tape;
  tape.x = kept.x;
  begin_block(context, block, batch.positions_T, {}, tape);
  tape.attention = attend(context, batch, tape);
  end_block(context, block, tape.attention.out_THD, tape);
  return tape;
}

}  // namespace

Layout layout_of(const Config& c) {
  LayoutBuilder builder;
  const auto prefix = [](int64_t layer) { return "model.layers." + std::to_string(layer) + "."; };
  builder.add("model.embed_tokens.weight", {c.vocab, c.hidden});
  if (!c.tied) builder.add("lm_head.weight", {c.vocab, c.hidden});
  for (int64_t i = 0; i < c.layers; ++i) {
    builder.add(prefix(i) + "self_attn.q_proj.weight", {c.heads * c.head_dim, c.hidden});
    builder.add(prefix(i) + "self_attn.k_proj.weight", {c.kv_heads * c.head_dim, c.hidden});
    builder.add(prefix(i) + "self_attn.v_proj.weight", {c.kv_heads * c.head_dim, c.hidden});
    builder.add(prefix(i) + "self_attn.o_proj.weight", {c.hidden, c.heads * c.head_dim});
    builder.add(prefix(i) + "mlp.gate_proj.weight", {c.ffn, c.hidden});
    builder.add(prefix(i) + "mlp.up_proj.weight", {c.ffn, c.hidden});
    builder.add(prefix(i) + "mlp.down_proj.weight", {c.hidden, c.ffn});
  }
  builder.end_matrices();
  for (int64_t i = 0; i < c.layers; ++i) {
    builder.add(prefix(i) + "input_layernorm.weight", {c.hidden});
    builder.add(prefix(i) + "post_attention_layernorm.weight", {c.hidden});
    if (c.has_qkv_bias()) {
      builder.add(prefix(i) + "self_attn.q_proj.bias", {c.heads * c.head_dim});
      builder.add(prefix(i) + "self_attn.k_proj.bias", {c.kv_heads * c.head_dim});
      builder.add(prefix(i) + "self_attn.v_proj.bias", {c.kv_heads * c.head_dim});
    }
    if (c.has_qk_norm()) {
      builder.add(prefix(i) + "self_attn.q_norm.weight", {c.head_dim});
      builder.add(prefix(i) + "self_attn.k_norm.weight", {c.head_dim});
    }
  }
  builder.add("model.norm.weight", {c.hidden});
  return std::move(builder).layout();
}

Parameters::Parameters(const Config& c, at::Tensor flat_tensor)
    : config(c), flat(std::move(flat_tensor)), blocks(static_cast<size_t>(c.layers)) {
  Cursor cursor(flat);
  embedding = cursor.take({c.vocab, c.hidden});
  head = c.tied ? embedding : cursor.take({c.vocab, c.hidden});
  for (Block& block : blocks) {
    block.qkv = cursor.take({(c.heads + 2 * c.kv_heads) * c.head_dim, c.hidden});
    block.o = cursor.take({c.hidden, c.heads * c.head_dim});
    block.gate_up = cursor.take({2 * c.ffn, c.hidden});
    block.down = cursor.take({c.hidden, c.ffn});
  }
  for (Block& block : blocks) {
    block.attention_norm = cursor.take({c.hidden});
    block.ffn_norm = cursor.take({c.hidden});
    if (c.has_qkv_bias()) {
      block.qkv_bias = cursor.take({(c.heads + 2 * c.kv_heads) * c.head_dim});
    }
    if (!c.has_qk_norm()) continue;
    block.q_norm = cursor.take({c.head_dim});
    block.k_norm = cursor.take({c.head_dim});
  }
  last_norm = cursor.take({c.hidden});
  MC_CHECK(cursor.offset() == flat.numel());
}

Batch make_batch(std::span<const std::vector<int32_t>> sequences, at::Device device) {
  std::vector<int64_t> tokens;
  std::vector<int64_t> positions;
  std::vector<int64_t> starts;
  for (const auto& sequence : sequences) {
    MC_CHECK(!sequence.empty());
    starts.push_back(static_cast<int64_t>(tokens.size()));
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
    for (size_t i = 0; i < sequence.size(); ++i) positions.push_back(static_cast<int64_t>(i));
  }
  starts.push_back(static_cast<int64_t>(tokens.size()));
  return {ops::on_device(tokens, device), ops::on_device(positions, device),
          ops::make_extents(std::move(starts), device)};
}

Cache::Cache(const Config& config, int64_t slots, int64_t length_max, at::TensorOptions options) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::vector<int64_t> shape = {slots, config.kv_heads, length_max, config.head_dim};
    keys_SKPD.push_back(at::zeros(shape, options));
    values_SKPD.push_back(at::zeros(shape, options));
  }
}

void Cache::copy(int64_t from, int64_t to, int64_t length) {
  MC_CHECK(from != to);
  for (auto* tensors : {&keys_SKPD, &values_SKPD}) {
    for (at::Tensor& one : *tensors) {
      one.select(0, to).narrow(1, 0, length).copy_(one.select(0, from).narrow(1, 0, length));
    }
  }
}

ops::RopeTable rope_of(const Config& config, int64_t positions, at::Device device) {
  const ops::RopeTable table =
      ops::rope_table(positions, config.head_dim, config.rope_theta, config.rope_scaling);
  return {table.cos_PD2.to(device), table.sin_PD2.to(device)};
}

at::Tensor forward(const ForwardContext& context, const Batch& batch, Tape* tape,
                   const OnHeads& on_heads) {
  MC_CHECK(tape == nullptr || tape->blocks.empty());
  const Parameters& weights = context.weights;
  at::Tensor x = weights.embedding.index_select(0, batch.tokens_T);
  at::Tensor branch;  // The output of the previous part, not yet added to x.
  for (size_t i = 0; i < weights.blocks.size(); ++i) {
    const Block& block = weights.blocks[i];
    BlockTape one;
    one.x = x;
    begin_block(context, block, batch.positions_T, branch, one);
    if (on_heads) on_heads(i, one.heads);
    one.attention = attend(context, batch, one);
    branch = end_block(context, block, one.attention.out_THD, one);
    x = one.x_mid;
    if (tape == nullptr) continue;
    if (context.keep == Keep::kInputs) {
      BlockTape input;
      input.x = one.x;
      one = std::move(input);
    }
    tape->blocks.push_back(std::move(one));
  }
  ops::AddedNorm last =
      ops::add_rms_norm(x, branch, weights.last_norm, weights.config.norm_epsilon, context.form);
  const at::Tensor hidden = last.norm.y_Nh;
  if (tape != nullptr) {
    tape->x_last = last.sum_Nh;
    tape->last_norm = std::move(last.norm);
  }
  return hidden;
}

at::Tensor prefill(const ForwardContext& context, const Batch& batch, Cache& cache,
                   std::span<const int64_t> slots) {
  return forward(context, batch, nullptr, [&](size_t i, const ops::AttentionInputs& heads) {
    fill_cache(heads, batch, slots, cache.keys_SKPD[i], cache.values_SKPD[i]);
  });
}

void backward(const ForwardContext& context, const Batch& batch, const Tape& tape,
              const at::Tensor& dh, Parameters& gradients) {
  const Parameters& weights = context.weights;
  MC_CHECK(tape.blocks.size() == weights.blocks.size());
  at::Tensor dx = at::zeros_like(tape.x_last);
  ops::rms_norm_backward(dh, tape.x_last, weights.last_norm, tape.last_norm.scale_N, dx,
                         gradients.last_norm, context.form);
  for (size_t i = weights.blocks.size(); i-- > 0;) {
    const Block& block = weights.blocks[i];
    BlockTape recomputed;
    if (context.keep == Keep::kInputs) {
      recomputed = again(context, block, batch, tape.blocks[i]);
    }
    const BlockTape& one = context.keep == Keep::kInputs ? recomputed : tape.blocks[i];
    dx = feed_forward_backward(context, block, one, dx, gradients.blocks[i]);
    dx = attention_part_backward(context, block, batch, one, dx, gradients.blocks[i]);
  }
  if (context.form == ops::Form::kNative && gpu::has_rows(dx)) {
    gpu::add_rows(dx, batch.tokens_T, gradients.embedding);
    return;
  }
  gradients.embedding.index_add_(0, batch.tokens_T, dx.to(gradients.embedding.scalar_type()));
}

at::Tensor decode_step(const ForwardContext& context, const at::Tensor& tokens_B, Cache& cache,
                       std::span<const int64_t> lengths) {
  MC_CHECK(tokens_B.size(0) == static_cast<int64_t>(lengths.size()));
  const Parameters& weights = context.weights;
  std::vector<int64_t> seen(lengths.begin(), lengths.end());
  for (int64_t& length : seen) ++length;
  const ops::CacheRows rows(seen, weights.flat, context.form);
  const at::Tensor positions = rows.lengths_B.sub(1);
  at::Tensor x = weights.embedding.index_select(0, tokens_B);
  at::Tensor branch;
  for (size_t i = 0; i < weights.blocks.size(); ++i) {
    const Block& block = weights.blocks[i];
    BlockTape one;
    one.x = x;
    begin_block(context, block, positions, branch, one);
    // Writes the new keys and values to [slot, :, position, :].
    cache.keys_SKPD[i].transpose(1, 2).index_put_({rows.slots_B, positions}, one.heads.k_TKD);
    cache.values_SKPD[i].transpose(1, 2).index_put_({rows.slots_B, positions}, one.heads.v_TKD);
    branch = end_block(context, block,
                       ops::attention_decode(one.heads.q_THD.contiguous(), cache.keys_SKPD[i],
                                             cache.values_SKPD[i], rows, context.form),
                       one);
    x = one.x_mid;
  }
  return ops::add_rms_norm(x, branch, weights.last_norm, weights.config.norm_epsilon, context.form)
      .norm.y_Nh;
}

}  // namespace mc::model
