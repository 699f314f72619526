// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_decoder.h"

#include <algorithm>
#include <exception>
#include <map>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "core/check.h"

namespace mc::model {
namespace {

// A second stream; the current stream is synchronized first.  Each thread has one stream for each
// device, because PyTorch's allocator keeps freed memory for the stream that used it.
c10::Stream own_stream(at::Device device) {
  thread_local std::map<c10::DeviceIndex, c10::Stream> streams;
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  cuda.getStream(device).synchronize();
  const auto known = streams.find(device.index());
  if (known != streams.end()) return known->second;
  return streams.emplace(device.index(), cuda.getStreamFromGlobalPool(device)).first->second;
}

at::Tensor doubles(std::span<const double> values) {
  return at::tensor(at::ArrayRef<double>(values.data(), values.size()), at::kDouble).pin_memory();
}

std::vector<Choice> choices_of(const at::Tensor& results) {
  const at::Tensor on_host = results.cpu();
  const double* data = on_host.const_data_ptr<double>();
  std::vector<Choice> choices(static_cast<size_t>(on_host.numel() / 2));
  for (size_t i = 0; i < choices.size(); ++i) {
    choices[i] = {static_cast<int32_t>(data[2 * i]), data[2 * i + 1]};
  }
  return choices;
}

void multiply_into(const at::Tensor& x, const at::Tensor& w, at::Tensor to) {
  at::mm_out(to, x, w.t());
}

// Rows padded to whole vectors of elements; logits of the padding have probability 0.
at::Tensor room_for_logits(int64_t rows, const Parameters& weights) {
  constexpr int64_t kVector = 8;
  constexpr double kNoLogit = -1e30;
  const int64_t width = (weights.config.vocab + kVector - 1) / kVector * kVector;
  return at::full({rows, width}, kNoLogit, weights.flat.options());
}

}  // namespace

bool GpuDecoder::fits(const ForwardContext& context) {
  const Config& c = context.weights.config;
  return context.form == ops::Form::kNative && gpu::has_rows(context.weights.embedding) &&
         c.ffn % 8 == 0 &&
         gpu::has_heads(context.weights.flat, {0, c.head_dim, c.heads, c.kv_heads});
}

GpuDecoder::GpuDecoder(const ForwardContext& context, int64_t slots, int64_t length_max,
                       const Sampling& sampling)
    : context_(context),
      sampling_(sampling),
      length_max_(length_max),
      stream_(own_stream(context.weights.flat.device())) {
  const Config& c = context.weights.config;
  cache_ = at::empty({c.layers, 2, slots, c.kv_heads, length_max, c.head_dim},
                     context.weights.flat.options());
}

// Exceptions are ignored here: a fault of the device is also thrown where its results are read.
GpuDecoder::~GpuDecoder() {
  try {
    stream_.current_stream().synchronize();
  } catch (const std::exception&) {
  }
}

gpu::Sizes GpuDecoder::sizes() const {
  const Config& c = context_.weights.config;
  return {.width = 0, .head_dim = c.head_dim, .heads = c.heads, .kv_heads = c.kv_heads};
}

at::Tensor GpuDecoder::cache(size_t block, int64_t which) const {
  return cache_.select(0, static_cast<int64_t>(block)).select(0, which);
}

at::Tensor GpuDecoder::prefill(std::span<const std::vector<int32_t>> prompts,
                               std::span<const Target> targets) {
  const at::Device device = cache_.device();
  const Batch batch = make_batch(prompts, device);
  std::vector<int64_t> prompt_of, slot_of, last;
  for (const Target& target : targets) {
    prompt_of.push_back(target.prompt);
    slot_of.push_back(target.slot);
  }
  for (const int64_t start : batch.extents.starts) {
    if (start > 0) last.push_back(start - 1);
  }
  const gpu::CachePairs pairs{ops::on_device(batch.extents.starts, device),
                              ops::on_device(prompt_of, device), ops::on_device(slot_of, device),
                              batch.extents.longest};
  const at::Tensor hidden =
      forward(context_, batch, nullptr, [&](size_t i, const ops::AttentionInputs& heads) {
        gpu::fill_cache(sizes(), heads.k_TKD, heads.v_TKD, pairs, cache(i, 0), cache(i, 1));
      });
  return hidden.index_select(0, ops::on_device(last, device));
}

void GpuDecoder::copy(std::span<const std::pair<int64_t, int64_t>> from_to, int64_t length) {
  if (from_to.empty()) return;
  std::vector<int64_t> from, to;
  for (const auto& [source, target] : from_to) {
    from.push_back(source);
    to.push_back(target);
  }
  at::Tensor tokens = cache_.narrow(4, 0, length);
  const at::Device device = cache_.device();
  tokens.index_copy_(2, ops::on_device(to, device),
                     tokens.index_select(2, ops::on_device(from, device)));
}

std::vector<Choice> GpuDecoder::choose_first(const at::Tensor& hidden,
                                             std::span<const double> uniforms) {
  const auto options = hidden.options();
  const int64_t rows = hidden.size(0);
  const at::Tensor results = at::empty({rows, 2}, options.dtype(at::kDouble));
  const at::Tensor logits = room_for_logits(rows, context_.weights);
  multiply_into(hidden, context_.weights.head, logits.narrow(1, 0, context_.weights.config.vocab));
  gpu::choose(logits, {sampling_.temperature, sampling_.top_p,
                       doubles(uniforms).to(hidden.device(), /*non_blocking=*/true),
                       at::zeros({}, options.dtype(at::kInt)),
                       at::empty({rows}, options.dtype(at::kLong)), results});
  return choices_of(results);
}

GpuDecoder::Lane GpuDecoder::make_lane(int64_t rows, int64_t steps) const {
  const Config& c = context_.weights.config;
  const auto options = cache_.options();
  const auto room = [&](int64_t width) { return at::empty({rows, width}, options); };
  const int64_t parts = gpu::parts_size(sizes(), rows);
  Lane lane;
  lane.tokens = at::zeros({rows}, options.dtype(at::kLong));
  lane.positions = at::zeros({rows}, options.dtype(at::kLong));
  lane.step = at::zeros({}, options.dtype(at::kInt));
  lane.uniforms = at::zeros({steps, rows}, options.dtype(at::kDouble));
  lane.results = at::zeros({steps, rows, 2}, options.dtype(at::kDouble));
  lane.x = room(c.hidden);
  lane.y = room(c.hidden);
  lane.qkv = room((c.heads + 2 * c.kv_heads) * c.head_dim);
  lane.out = room(c.heads * c.head_dim);
  lane.branch = room(c.hidden);
  lane.gate_up = room(2 * c.ffn);
  lane.inner = room(c.ffn);
  lane.logits = room_for_logits(rows, context_.weights);
  if (parts > 0) lane.parts = at::empty({parts}, options.dtype(at::kFloat));
  return lane;
}

void GpuDecoder::load(const Lane& lane, std::span<const Start> starts,
                      std::span<const double> uniforms) const {
  std::vector<int64_t> tokens, positions;
  for (const Start& start : starts) {
    tokens.push_back(start.token);
    positions.push_back(std::min(start.length, length_max_ - 1));
  }
  const auto fill = [](const at::Tensor& to, const at::Tensor& from) {
    to.view({-1}).copy_(from, /*non_blocking=*/true);
  };
  fill(lane.tokens, at::tensor(tokens, at::kLong).pin_memory());
  fill(lane.positions, at::tensor(positions, at::kLong).pin_memory());
  fill(lane.uniforms, doubles(uniforms));
  lane.step.zero_();
}

void GpuDecoder::block(const Lane& lane, const Block& block, size_t index) const {
  const double epsilon = context_.weights.config.norm_epsilon;
  const at::Tensor before = index == 0 ? at::Tensor() : lane.branch;
  gpu::add_rms_norm_into(lane.x, before, block.attention_norm, epsilon, lane.y);
  multiply_into(lane.y, block.qkv, lane.qkv);
  if (block.qkv_bias.defined()) at::Tensor(lane.qkv).add_(block.qkv_bias);
  const gpu::HeadInputs heads{
      sizes(),      lane.qkv,     lane.positions, context_.rope.cos_PD2, context_.rope.sin_PD2,
      block.q_norm, block.k_norm, epsilon};
  gpu::make_heads_into(heads, cache(index, 0), cache(index, 1));
  gpu::attend_cache(heads, cache(index, 0), cache(index, 1), lane.out, lane.parts);
  multiply_into(lane.out, block.o, lane.branch);
  gpu::add_rms_norm_into(lane.x, lane.branch, block.ffn_norm, epsilon, lane.y);
  multiply_into(lane.y, block.gate_up, lane.gate_up);
  gpu::swiglu_into(lane.gate_up, lane.inner);
  multiply_into(lane.inner, block.down, lane.branch);
}

void GpuDecoder::step(const Lane& lane) const {
  const Parameters& weights = context_.weights;
  gpu::gather_rows(weights.embedding, lane.tokens, lane.x);
  for (size_t i = 0; i < weights.blocks.size(); ++i) block(lane, weights.blocks[i], i);
  gpu::add_rms_norm_into(lane.x, lane.branch, weights.last_norm, weights.config.norm_epsilon,
                         lane.y);
  multiply_into(lane.y, weights.head, lane.logits.narrow(1, 0, weights.config.vocab));
  gpu::choose(lane.logits, {sampling_.temperature, sampling_.top_p, lane.uniforms, lane.step,
                            lane.tokens, lane.results});
  gpu::advance(lane.positions, length_max_ - 1, lane.step);
}

std::vector<Choice> GpuDecoder::run(std::span<const Start> starts, std::span<const double> uniforms,
                                    int64_t steps) {
  const auto rows = static_cast<int64_t>(starts.size());
  MC_CHECK(uniforms.size() == static_cast<size_t>(rows * steps));
  auto found = lanes_.find({rows, steps});
  if (found == lanes_.end()) {
    found = lanes_.emplace(std::pair(rows, steps), make_lane(rows, steps)).first;
  }
  Lane& lane = found->second;
  load(lane, starts, uniforms);
  if (!lane.is_recorded) {
    // The first step runs without a graph, so that libraries load what they need.  It writes only
    // what the first step of the graph writes again.
    step(lane);
    load(lane, starts, uniforms);
    lane.graph.begin();
    step(lane);
    lane.graph.end();
    lane.is_recorded = true;
  }
  for (int64_t i = 0; i < steps; ++i) lane.graph.replay();
  return choices_of(lane.results);
}

}  // namespace mc::model
