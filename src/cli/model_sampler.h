// SPDX-License-Identifier: Apache-2.0
//
// ModelSampler: answers all open requests at once with a model folder, by musacoder-learn.
#ifndef MC_CLI_MODEL_SAMPLER_H_
#define MC_CLI_MODEL_SAMPLER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/sampler.h"
#include "core/layout.h"
#include "sample/chat_client.h"

namespace mc::cli {

struct ModelOptions {
  std::string model;  // A Hugging Face folder.
  std::string device = "cpu";
  int batch = 16;
  uint64_t seed = 0;
  sample::Sampling sampling;
};

// Answers are written to `folder`, one file for each turn, and a resumed run does not generate them
// again. Each set of options and prompts needs its own folder.
class ModelSampler final : public bench::Sampler {
 public:
  // REQUIRES: `layout` outlives it.
  ModelSampler(const Layout& layout, ModelOptions options, std::filesystem::path folder)
      : layout_(layout), options_(std::move(options)), folder_(std::move(folder)) {}
  bool takes_all() const override { return true; }
  Result<std::vector<Result<store::Answer>>> ask(std::span<const bench::Request> requests) override;

 private:
  Status generate(int64_t turn, const std::vector<const bench::Request*>& requests,
                  std::map<store::AnswerKey, store::Answer>& answers);

  const Layout& layout_;
  const ModelOptions options_;
  const std::filesystem::path folder_;
};

}  // namespace mc::cli

#endif  // MC_CLI_MODEL_SAMPLER_H_
