// SPDX-License-Identifier: Apache-2.0
//
// ModelSampler: a model's folder, which musacoder-learn answers from, all open requests at once.
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

// The answers of a killed run are in `folder`, in a file for each turn, and are not made again.
// Each set of options, and of prompts, needs a folder of its own.
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
