// SPDX-License-Identifier: Apache-2.0
//
// Slots hold one sequence each.  Free slots are filled with prompts, which pass the decoder
// together and leave their keys and values in the cache; then all slots that hold a sequence take
// one step.
#include "model/generate.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>

#include "core/check.h"
#include "model/parallel.h"

namespace mc::model {
namespace {

constexpr int64_t kPrefillTokensMax = 8192;

struct Slot {
  size_t request = 0;
  int64_t length = 0;  // Tokens in the cache.
  int32_t next = 0;    // The token that is not yet.
  Answer answer;
};

// What the workers share: which request is next, and whom to tell of answers.
struct Queue {
  using Done = std::function<bool(size_t, const Answer&)>;

  Queue(std::span<const Request> all, const Done& callback) : requests(all), done(callback) {}

  std::span<const Request> requests;
  const Done& done;
  std::atomic<size_t> next = 0;
  std::atomic<bool> is_stopped = false;
  std::mutex mutex;  // Held while `done` runs.

  void tell(size_t request, const Answer& answer) {
    const std::lock_guard lock(mutex);
    if (!is_stopped && !done(request, answer)) is_stopped = true;
  }
};

class Generator {
 public:
  Generator(const Passage& passage, Queue& queue, const GenerateOptions& options, int64_t num_slots)
      : passage_(passage),
        queue_(queue),
        requests_(queue.requests),
        options_(options),
        length_max_(longest()),
        cache_(passage.weights.config, num_slots, length_max_, passage.weights.flat.options()) {
    for (int64_t i = num_slots; i-- > 0;) free_.push_back(i);
    slots_.resize(static_cast<size_t>(num_slots));
  }

  void run() {
    while (!queue_.is_stopped) {
      // Sequences may end with their first token, so more than one round may find new ones.
      if (!free_.empty() && queue_.next < requests_.size()) {
        admit();
      } else if (active_.empty()) {
        return;
      }
      if (!active_.empty()) step();
    }
  }

 private:
  int64_t longest() const {
    int64_t longest = 0;
    for (const Request& request : requests_) {
      longest = std::max(longest, static_cast<int64_t>(request.prompt.size()));
    }
    return std::max(longest,
                    std::min(longest + options_.tokens_max, passage_.weights.config.positions_max));
  }

  // Fills free slots with the next prompts.
  void admit() {
    std::vector<int64_t> taken;
    std::vector<std::vector<int32_t>> prompts;
    int64_t tokens = 0;
    while (!free_.empty() && tokens < kPrefillTokensMax) {
      const size_t request = queue_.next++;
      if (request >= requests_.size()) break;
      const std::vector<int32_t>& prompt = requests_[request].prompt;
      MC_CHECK(!prompt.empty());
      const int64_t slot = free_.back();
      free_.pop_back();
      slots_[static_cast<size_t>(slot)] = {request, static_cast<int64_t>(prompt.size()), 0, {}};
      prompts.push_back(prompt);
      taken.push_back(slot);
      tokens += static_cast<int64_t>(prompt.size());
    }
    if (prompts.empty()) return;
    const Batch batch = make_batch(prompts, passage_.weights.flat.device());
    const at::Tensor hidden = forward(passage_, batch, nullptr, &cache_, taken);
    std::vector<int64_t> last;
    for (size_t i = 1; i < batch.starts.size(); ++i) last.push_back(batch.starts[i] - 1);
    const at::Tensor rows = at::tensor(last, at::kLong).to(hidden.device());
    active_.insert(active_.end(), taken.begin(), taken.end());
    choose(hidden.index_select(0, rows), taken);
  }

  // One token more for every slot that holds a sequence.
  void step() {
    const std::vector<int64_t> slots = active_;
    std::vector<int64_t> lengths;
    std::vector<int64_t> tokens;
    for (const int64_t slot : slots) {
      lengths.push_back(slots_[static_cast<size_t>(slot)].length++);
      tokens.push_back(slots_[static_cast<size_t>(slot)].next);
    }
    const at::Tensor tokens_B = at::tensor(tokens, at::kLong).to(passage_.weights.flat.device());
    choose(decode_step(passage_, tokens_B, cache_, slots, lengths), slots);
  }

  // Draws the next token of each slot and ends those that are complete.
  void choose(const at::Tensor& hidden_Bh, const std::vector<int64_t>& slots) {
    const at::Tensor logits = ops::linear(hidden_Bh, passage_.weights.head);
    std::vector<double> uniforms;
    for (const int64_t slot : slots) {
      const Slot& one = slots_[static_cast<size_t>(slot)];
      const Request& request = requests_[one.request];
      uniforms.push_back(draw(options_.seed, request.id, request.sample,
                              static_cast<int64_t>(one.answer.tokens.size())));
    }
    const Sampling& sampling = options_.sampling;
    const bool stays = !logits.device().is_cpu() && sampling.temperature > 0 && sampling.top_p == 1;
    const std::vector<Choice> choices =
        stays ? choose_on_device(logits, sampling.temperature, uniforms)
              : choose_on_host(logits.to(at::kCPU, at::kFloat).contiguous(), uniforms);
    for (size_t i = 0; i < slots.size(); ++i) take(slots[i], choices[i]);
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

  void take(int64_t number, const Choice& choice) {
    Slot& slot = slots_[static_cast<size_t>(number)];
    const std::vector<int64_t>& ends = passage_.weights.config.ends;
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
    free_.push_back(number);
    active_.erase(std::find(active_.begin(), active_.end(), number));
  }

  const Passage& passage_;
  Queue& queue_;
  const std::span<const Request> requests_;
  const GenerateOptions& options_;
  const int64_t length_max_;
  Cache cache_;
  std::vector<Slot> slots_;
  std::vector<int64_t> free_;
  std::vector<int64_t> active_;
};

}  // namespace

void generate(const Passage& passage, std::span<const Request> requests,
              const GenerateOptions& options, const Queue::Done& done) {
  const auto count = static_cast<int64_t>(requests.size());
  Queue queue(requests, done);
  const int64_t workers = std::max<int64_t>(1, std::min(options.workers, count));
  const int64_t slots = std::min(count, (options.batch + workers - 1) / workers);
  if (slots == 0) return;
  in_parallel(static_cast<size_t>(workers),
              [&](size_t) { Generator(passage, queue, options, slots).run(); });
}

}  // namespace mc::model
