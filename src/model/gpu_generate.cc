// SPDX-License-Identifier: Apache-2.0
#include "model/gpu_generate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>

#include "core/check.h"
#include "model/gpu_decoder.h"

namespace mc::model {
namespace {

constexpr int64_t kPrefillTokensMax = 16384;
constexpr int64_t kStepsAtOnce = 8;
// A prefill waits until 1 / kFreeShare of the slots are free.
constexpr int64_t kFreeShare = 8;

struct Slot {
  bool is_active = false;
  size_t request = 0;
  int64_t length = 0;  // Tokens in the cache.
  at::Tensor prompt_hidden;
  Answer answer;
};

class Generator {
 public:
  Generator(const ForwardContext& context, std::span<const Request> requests,
            const GenerateOptions& options, const std::function<bool(size_t, const Answer&)>& done)
      : ends_(context.weights.config.ends),
        requests_(requests),
        options_(options),
        done_(done),
        length_max_(longest(context.weights.config)),
        slots_(static_cast<size_t>(std::min(options.batch, static_cast<int64_t>(requests.size())))),
        num_rows_(static_cast<int64_t>(slots_.size())),
        decoder_(context, num_rows_, length_max_, options.sampling) {}

  GenerateCounts run() {
    while (!is_stopped_) {
      if (is_time_to_admit()) {
        admit();
      } else if (num_active() > 0) {
        step();
      } else {
        break;
      }
    }
    return counts_;
  }

 private:
  int64_t longest(const Config& config) const {
    int64_t longest = 0;
    for (const Request& request : requests_) {
      MC_CHECK(!request.prompt.empty());
      longest = std::max(longest, static_cast<int64_t>(request.prompt.size()));
    }
    return std::max(longest, std::min(longest + options_.tokens_max, config.positions_max));
  }

  int64_t num_active() const { return std::ranges::count_if(slots_, &Slot::is_active); }

  bool is_time_to_admit() const {
    if (next_ >= requests_.size()) return false;
    const auto slots = static_cast<int64_t>(slots_.size());
    const int64_t num_free = slots - num_active();
    return num_free > 0 && (num_free == slots || num_free >= slots / kFreeShare);
  }

  const std::vector<int32_t>& prompt_of(const Slot& slot) const {
    return requests_[slot.request].prompt;
  }

  // Fills free slots with the next prompts.  A prompt passes through the decoder once for all its
  // slots, and not at all if an active slot already contains it.
  void admit() {
    std::vector<size_t> admitted;
    std::vector<std::vector<int32_t>> prompts;
    std::vector<size_t> first_slots;  // The first slot of each prompt.
    std::vector<GpuDecoder::Target> targets;
    int64_t tokens = 0;
    for (size_t i = 0; i < slots_.size() && next_ < requests_.size(); ++i) {
      if (slots_[i].is_active) continue;
      const std::vector<int32_t>& prompt = requests_[next_].prompt;
      const auto length = static_cast<int64_t>(prompt.size());
      const auto same = std::ranges::find_if(
          slots_, [&](const Slot& slot) { return slot.is_active && prompt_of(slot) == prompt; });
      const auto known = std::ranges::find(prompts, prompt);
      if (known != prompts.end()) {
        targets.push_back({known - prompts.begin(), static_cast<int64_t>(i)});
      } else if (same != slots_.end()) {
        const std::pair<int64_t, int64_t> pair{same - slots_.begin(), static_cast<int64_t>(i)};
        decoder_.copy({&pair, 1}, length);
        slots_[i].prompt_hidden = same->prompt_hidden;
      } else if (tokens > 0 && tokens + length > kPrefillTokensMax) {
        break;
      } else {
        targets.push_back({static_cast<int64_t>(prompts.size()), static_cast<int64_t>(i)});
        prompts.push_back(prompt);
        tokens += length;
      }
      slots_[i] = {true, next_++, length, slots_[i].prompt_hidden, {}};
      admitted.push_back(i);
    }
    prefill(prompts, targets);
    counts_.prefilled += tokens;
    choose_first(admitted);
  }

  void prefill(const std::vector<std::vector<int32_t>>& prompts,
               const std::vector<GpuDecoder::Target>& targets) {
    if (prompts.empty()) return;
    const at::Tensor hidden = decoder_.prefill(prompts, targets);
    for (const GpuDecoder::Target& target : targets) {
      slots_[static_cast<size_t>(target.slot)].prompt_hidden = hidden.narrow(0, target.prompt, 1);
    }
  }

  void choose_first(const std::vector<size_t>& admitted) {
    std::vector<at::Tensor> hidden;
    std::vector<double> uniforms;
    for (const size_t i : admitted) {
      hidden.push_back(slots_[i].prompt_hidden);
      uniforms.push_back(uniform_of(slots_[i], 0));
    }
    const std::vector<Choice> choices = decoder_.choose_first(at::cat(hidden), uniforms);
    for (size_t i = 0; i < admitted.size(); ++i) take(slots_[admitted[i]], choices[i]);
  }

  double uniform_of(const Slot& slot, int64_t later) const {
    const Request& request = requests_[slot.request];
    if (options_.sampling.temperature == 0) return 0;
    return draw(options_.seed, request.id, request.sample,
                static_cast<int64_t>(slot.answer.tokens.size()) + later);
  }

  // Halves the number of slots in a step when no request waits and the active sequences fit in
  // half.
  void shrink() {
    if (next_ < requests_.size()) return;
    const int64_t active = num_active();
    const int64_t before = num_rows_;
    while (num_rows_ > 1 && active <= (num_rows_ + 1) / 2) num_rows_ = (num_rows_ + 1) / 2;
    if (num_rows_ == before) return;
    std::vector<std::pair<int64_t, int64_t>> moves;
    int64_t length = 1;
    int64_t free = 0;
    for (int64_t i = num_rows_; i < before; ++i) {
      Slot& slot = slots_[static_cast<size_t>(i)];
      if (!slot.is_active) continue;
      while (slots_[static_cast<size_t>(free)].is_active) ++free;
      length = std::max(length, slot.length);
      moves.emplace_back(i, free);
      slots_[static_cast<size_t>(free)] = std::exchange(slot, {});
    }
    decoder_.copy(moves, length);
  }

  // Decodes several tokens for each active slot.
  void step() {
    shrink();
    std::vector<GpuDecoder::Start> starts;
    for (int64_t i = 0; i < num_rows_; ++i) {
      const Slot& slot = slots_[static_cast<size_t>(i)];
      starts.push_back(slot.is_active ? GpuDecoder::Start{slot.answer.tokens.back(), slot.length}
                                      : GpuDecoder::Start{0, 0});
    }
    std::vector<double> uniforms;
    for (int64_t later = 0; later < kStepsAtOnce; ++later) {
      for (int64_t i = 0; i < num_rows_; ++i) {
        const Slot& slot = slots_[static_cast<size_t>(i)];
        uniforms.push_back(slot.is_active ? uniform_of(slot, later) : 0);
      }
    }
    const std::vector<Choice> choices = decoder_.run(starts, uniforms, kStepsAtOnce);
    for (size_t i = 0; i < choices.size(); ++i) {
      Slot& slot = slots_[i % static_cast<size_t>(num_rows_)];
      if (!slot.is_active) continue;
      ++slot.length;
      ++counts_.decoded;
      take(slot, choices[i]);
    }
  }

  void take(Slot& slot, const Choice& choice) {
    Answer& answer = slot.answer;
    answer.is_stopped = std::ranges::find(ends_, choice.token) != ends_.end();
    answer.log_probs.push_back(choice.log_prob);
    if (answer.is_stopped) {
      answer.end = choice.token;
    } else {
      answer.tokens.push_back(choice.token);
    }
    const bool is_full = static_cast<int64_t>(answer.tokens.size()) >= options_.tokens_max ||
                         slot.length >= length_max_;
    if (!answer.is_stopped && !is_full) return;
    slot.is_active = false;
    if (!is_stopped_ && !done_(slot.request, answer)) is_stopped_ = true;
  }

  const std::vector<int64_t>& ends_;
  const std::span<const Request> requests_;
  const GenerateOptions& options_;
  const std::function<bool(size_t, const Answer&)>& done_;
  const int64_t length_max_;
  std::vector<Slot> slots_;
  int64_t num_rows_;  // The number of slots in a step.
  GpuDecoder decoder_;
  size_t next_ = 0;
  bool is_stopped_ = false;
  GenerateCounts counts_;
};

}  // namespace

GenerateCounts generate_on_gpu(const ForwardContext& context, std::span<const Request> requests,
                               const GenerateOptions& options,
                               const std::function<bool(size_t, const Answer&)>& done) {
  return Generator(context, requests, options, done).run();
}

}  // namespace mc::model
