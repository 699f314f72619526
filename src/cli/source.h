// SPDX-License-Identifier: Apache-2.0
//
// The model that a command uses for answers, a folder or an endpoint: its options and its sampler.
//
//   MC_TRY(const Source source, open_source(arguments, layout, folder), "bench");
//   course.run(source.sampler.get(), *pipeline);
#ifndef MC_CLI_SOURCE_H_
#define MC_CLI_SOURCE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/sampler.h"
#include "core/layout.h"
#include "core/result.h"
#include "sample/chat_client.h"
#include "sample/http.h"

namespace mc::cli {

struct SourceArguments {
  std::string model;  // A folder; "" if an endpoint is used.  At most one of the two is set.
  std::string endpoint;
  std::string model_name;
  std::vector<std::string> headers;
  std::string extra_body = "{}";
  int batch = 16;
  std::string device = "cpu";
  int retries = 4;
  double request_timeout_s = 600;
  uint64_t sampling_seed = 0;
  sample::Sampling sampling;
};

void add_source_options(CLI::App& command, SourceArguments& arguments);
void add_sampling_options(CLI::App& command, SourceArguments& arguments);
void add_request_options(CLI::App& command, SourceArguments& arguments);

// kInvalidInput for invalid options.
Status check_source(const SourceArguments& arguments);

// The sampler with its parts; all are empty if no model is given.
struct Source {
  std::unique_ptr<sample::HttpClient> http;
  std::unique_ptr<sample::ChatClient> client;
  std::unique_ptr<bench::Sampler> sampler;
};
// Opens the source.  A model folder's answers are written to `folder`.  REQUIRES: `layout` outlives
// the source.
Result<Source> open_source(const SourceArguments& arguments, const Layout& layout,
                           const std::filesystem::path& folder);

}  // namespace mc::cli

#endif  // MC_CLI_SOURCE_H_
