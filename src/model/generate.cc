// SPDX-License-Identifier: Apache-2.0
//
// Each slot holds one sequence.  Free slots are filled with prompts, which pass through the decoder
// together and leave their keys and values in the cache; then all active slots decode one step.  A
// step reads the first slots of the cache in place, so no free slot may be among them.
#include "model/generate.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "core/check.h"
#include "model/gpu_decoder.h"
#include "model/gpu_generate.h"
#include "model/parallel.h"

namespace mc::model {
namespace {

constexpr int64_t kPrefillTokensMax = 8192;

struct Slot {
  bool is_active = false;
  size_t request = 0;
  int64_t length = 0;        // The number of tokens in the cache.
  int32_t next = 0;          // The next token, which is not yet in the cache.
  at::Tensor prompt_hidden;  // The hidden state after the prompt, [1, h].
  Answer answer;
};

// The state that the workers share: the next request, and the callback for answers.  The counter
// gives each request to one worker; requests are constant, so no order beyond that is needed.  A
// worker that reads is_stopped late only generates answers that tell() then drops.
struct Queue {
  using Done = std::function<bool(size_t, const Answer&)>;

  Queue(std::span<const Request> all, const Done& callback) : requests(all), done(callback) {}

  std::span<const Request> requests;
  const Done& done;
  std::atomic<size_t> next = 0;
  std::atomic<bool> is_stopped = false;
  std::mutex mutex;  // The mutex is held while `done` runs.

  void tell(size_t request, const Answer& answer) {
    const std::lock_guard lock(mutex);
    if (!is_stopped && !done(request, answer)) is_stopped = true;
  }
};

class Generator {
 public:
  Generator(const ForwardContext& context, Queue& queue, const GenerateOptions& options,
            int64_t num_slots)
      : context_(context),
        queue_(queue),
        requests_(queue.requests),
        options_(options),
        length_max_(longest()),
        cache_(context.weights.config, num_slots, length_max_, context.weights.flat.options()),
        slots_(static_cast<size_t>(num_slots)) {}

  GenerateCounts run() {
    while (!queue_.is_stopped) {
      // Sequences may end with their first token, so admit() may be called several times before a
      // step.
      const bool admits = num_active() < slots_.size() && queue_.next < requests_.size();
      if (admits) admit();
      if (num_active() > 0) {
        step();
      } else if (!admits) {
        break;
      }
    }
    MC_CHECK(num_active() == 0 || queue_.is_stopped);  // Every answer was passed on.
    return counts_;
  }

 private:
  int64_t longest() const {
    int64_t longest = 0;
    for (const Request& request : requests_) {
      longest = std::max(longest, static_cast<int64_t>(request.prompt.size()));
    }
    return std::max(longest,
                    std::min(longest + options_.tokens_max, context_.weights.config.positions_max));
  }

  size_t num_active() const {
    return static_cast<size_t>(std::ranges::count_if(slots_, &Slot::is_active));
  }

  const std::vector<int32_t>& prompt_of(const Slot& slot) const {
    return requests_[slot.request].prompt;
  }

  // Fills free slots with the next prompts.  If an active slot has the same prompt, its keys and
  // values are copied.
  void admit() {
    std::vector<size_t> admitted;
    std::vector<size_t> fresh;  // The slots whose prompt must pass through the decoder.
    std::vector<std::pair<size_t, size_t>> forks;  // Pairs of source and target slot.
    int64_t tokens = 0;
    for (size_t i = 0; i < slots_.size() && tokens < kPrefillTokensMax; ++i) {
      if (slots_[i].is_active) continue;
      const size_t request = queue_.next++;
      if (request >= requests_.size()) break;
      const std::vector<int32_t>& prompt = requests_[request].prompt;
      MC_CHECK(!prompt.empty());
      const auto same = std::ranges::find_if(
          slots_, [&](const Slot& slot) { return slot.is_active && prompt_of(slot) == prompt; });
      if (same == slots_.end()) {
        fresh.push_back(i);
        tokens += static_cast<int64_t>(prompt.size());
      } else {
        forks.emplace_back(same - slots_.begin(), i);
      }
      slots_[i] = {true, request, static_cast<int64_t>(prompt.size()), 0, {}, {}};
      admitted.push_back(i);
    }
    prefill(fresh);
    for (const auto& [from, to] : forks) {
      cache_.copy(static_cast<int64_t>(from), static_cast<int64_t>(to), slots_[to].length);
      slots_[to].prompt_hidden = slots_[from].prompt_hidden;
    }
    std::vector<at::Tensor> hidden;
    for (const size_t i : admitted) hidden.push_back(slots_[i].prompt_hidden);
    if (!admitted.empty()) choose(at::cat(hidden), admitted);
  }

  void prefill(const std::vector<size_t>& fresh) {
    if (fresh.empty()) return;
    std::vector<std::vector<int32_t>> prompts;
    std::vector<int64_t> numbers;
    for (const size_t i : fresh) {
      prompts.push_back(prompt_of(slots_[i]));
      numbers.push_back(static_cast<int64_t>(i));
    }
    const Batch batch = make_batch(prompts, context_.weights.flat.device());
    const at::Tensor hidden = model::prefill(context_, batch, cache_, numbers);
    for (size_t i = 0; i < fresh.size(); ++i) {
      slots_[fresh[i]].prompt_hidden = hidden.narrow(0, batch.extents.starts[i + 1] - 1, 1).clone();
    }
    counts_.prefilled += batch.extents.starts.back();
  }

  // Moves the last active slots into free slots before them, so that the active slots are the
  // first.
  void close_gaps() {
    for (size_t free = 0, last = slots_.size();; ++free) {
      while (free < slots_.size() && slots_[free].is_active) ++free;
      while (last > 0 && !slots_[last - 1].is_active) --last;
      if (free >= last) return;
      cache_.copy(static_cast<int64_t>(last - 1), static_cast<int64_t>(free),
                  slots_[last - 1].length);
      slots_[free] = std::exchange(slots_[last - 1], {});
    }
  }

  // Decodes one more token for every active slot.
  void step() {
    close_gaps();
    std::vector<size_t> active(num_active());
    std::iota(active.begin(), active.end(), 0);
    std::vector<int64_t> lengths;
    std::vector<int64_t> tokens;
    for (const size_t i : active) {
      MC_CHECK(slots_[i].is_active && slots_[i].length < length_max_);
      lengths.push_back(slots_[i].length++);
      tokens.push_back(slots_[i].next);
    }
    counts_.decoded += static_cast<int64_t>(active.size());
    const at::Tensor tokens_B = at::tensor(tokens, at::kLong).to(context_.weights.flat.device());
    choose(decode_step(context_, tokens_B, cache_, lengths), active);
  }

  // Chooses the next token of each slot and ends the sequences that are complete.
  void choose(const at::Tensor& hidden_Bh, const std::vector<size_t>& slots) {
    MC_CHECK(hidden_Bh.size(0) == static_cast<int64_t>(slots.size()));
    const at::Tensor logits = ops::linear(hidden_Bh, context_.weights.head);
    std::vector<double> uniforms;
    for (const size_t i : slots) {
      const Slot& one = slots_[i];
      const Request& request = requests_[one.request];
      uniforms.push_back(draw(options_.seed, request.id, request.sample,
                              static_cast<int64_t>(one.answer.tokens.size())));
    }
    const std::vector<Choice> choices =
        logits.is_cpu() ? choose_on_host(logits.to(at::kFloat).contiguous(), uniforms)
                        : choose_on_device(logits, options_.sampling, uniforms);
    for (size_t i = 0; i < slots.size(); ++i) take(slots_[slots[i]], choices[i]);
  }

  std::vector<Choice> choose_on_host(const at::Tensor& logits,
                                     const std::vector<double>& uniforms) const {
    std::vector<Choice> choices(uniforms.size());
    const auto width = static_cast<size_t>(logits.size(1));
    const float* data = logits.const_data_ptr<float>();
    at::parallel_for(0, static_cast<int64_t>(choices.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        choices[i] = choose_token({data + i * width, width}, options_.sampling, uniforms[i]);
      }
    });
    return choices;
  }

  void take(Slot& slot, const Choice& choice) {
    MC_CHECK(slot.is_active && slot.request < requests_.size());
    const std::vector<int64_t>& ends = context_.weights.config.ends;
    slot.answer.is_stopped = std::find(ends.begin(), ends.end(), choice.token) != ends.end();
    slot.answer.log_probs.push_back(choice.log_prob);
    if (slot.answer.is_stopped) {
      slot.answer.end = choice.token;
    } else {
      slot.answer.tokens.push_back(choice.token);
    }
    slot.next = choice.token;
    const bool is_full = static_cast<int64_t>(slot.answer.tokens.size()) >= options_.tokens_max ||
                         slot.length >= length_max_;
    if (!slot.answer.is_stopped && !is_full) return;
    queue_.tell(slot.request, slot.answer);
    slot.is_active = false;
  }

  const ForwardContext& context_;
  Queue& queue_;
  const std::span<const Request> requests_;
  const GenerateOptions& options_;
  const int64_t length_max_;
  Cache cache_;
  std::vector<Slot> slots_;
  GenerateCounts counts_;
};

}  // namespace

GenerateCounts generate(const ForwardContext& context, std::span<const Request> requests,
                        const GenerateOptions& options, const Queue::Done& done) {
  const auto count = static_cast<int64_t>(requests.size());
  if (count > 0 && GpuDecoder::fits(context)) {
    return generate_on_gpu(context, requests, options, done);
  }
  Queue queue(requests, done);
  const int64_t workers = std::max<int64_t>(1, std::min(options.workers, count));
  const int64_t slots = std::min(count, (options.batch + workers - 1) / workers);
  if (slots == 0) return {};
  std::vector<GenerateCounts> parts(static_cast<size_t>(workers));
  in_parallel(parts.size(), [&](size_t worker) {
    parts[worker] = Generator(context, queue, options, slots).run();
  });
  GenerateCounts all;
  for (const GenerateCounts& part : parts) {
    all.prefilled += part.prefilled;
    all.decoded += part.decoded;
  }
  return all;
}

}  // namespace mc::model
