// SPDX-License-Identifier: Apache-2.0
#include "cli/source.h"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/model_sampler.h"
#include "cli/numbers.h"
#include "core/check.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

sample::Endpoint endpoint_of(const SourceArguments& arguments) {
  const char* key = std::getenv("OPENAI_API_KEY");
  return {.endpoint = arguments.endpoint,
          .model = arguments.model_name,
          .api_key = key != nullptr ? key : "",
          .timeout_s = arguments.request_timeout_s,
          .retries = arguments.retries,
          .headers = arguments.headers,
          .extra_body = arguments.extra_body};
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

void add_source_options(CLI::App& command, SourceArguments& arguments) {
  command.add_option("--model", arguments.model, "A model's folder; musacoder-learn answers");
  command.add_option("--endpoint", arguments.endpoint,
                     "An OpenAI-compatible server, http://host:8000/v1 ($OPENAI_API_KEY)");
  command.add_option("--model-name", arguments.model_name, "Which of the server's models");
}

void add_sampling_options(CLI::App& command, SourceArguments& arguments) {
  command.add_option("--temperature", arguments.sampling.temperature, "0: the likeliest token")
      ->check(number_range(0.0, 10.0));
  command.add_option("--top-p", arguments.sampling.top_p, "Nucleus")->check(number_range(0.0, 1.0));
  command.add_option("--max-tokens", arguments.sampling.tokens_max, "Of one answer")
      ->check(whole_range(1, 10'000'000));
  command.add_option("--sampling-seed", arguments.sampling_seed, "Of the model's choices");
}

void add_request_options(CLI::App& command, SourceArguments& arguments) {
  command.add_option("--batch", arguments.batch, "Answers that --model makes at once")
      ->check(whole_range(1, 4096));
  command.add_option("--device", arguments.device, "Where --model answers: cpu, cuda or cuda:N");
  command.add_option("--retries", arguments.retries, "Of a request, after 1, 2, 4, ... s")
      ->check(whole_range(0, 20));
  command.add_option("--extra-body", arguments.extra_body,
                     "A JSON object whose members go into each request");
  command.add_option("--header", arguments.headers, "A header of each request: \"Name: value\"");
  command.add_option("--request-timeout", arguments.request_timeout_s, "Seconds for one answer")
      ->check(number_range(0.1, 86400.0));
}

Status check_source(const SourceArguments& arguments) {
  std::error_code ignored;
  const fs::path config = fs::path(arguments.model) / "config.json";
  if (!arguments.model.empty() && !fs::exists(config, ignored)) {
    return invalid(arguments.model + " is no model's folder: it has no config.json");
  }
  const bool is_url =
      arguments.endpoint.starts_with("http://") || arguments.endpoint.starts_with("https://");
  if (!arguments.endpoint.empty() && !is_url) {
    return invalid("--endpoint: expected a URL, such as http://host:8000/v1, got \"" +
                   arguments.endpoint + '"');
  }
  if (!arguments.endpoint.empty() && arguments.model_name.empty()) {
    return invalid("--endpoint needs --model-name: which of its models to ask");
  }
  if (!nlohmann::json::parse(arguments.extra_body, nullptr, false).is_object()) {
    return invalid("--extra-body: expected a JSON object, such as {\"top_k\": 20}");
  }
  for (const std::string& header : arguments.headers) {
    const bool is_line = header.find_first_of("\r\n") == std::string::npos;
    if (!is_line || header.find(':') == std::string::npos) {
      return invalid("--header: expected \"Name: value\" in one line");
    }
  }
  return ok();
}

Result<Source> open_source(const SourceArguments& arguments, const Layout& layout,
                           const fs::path& folder) {
  MC_CHECK(arguments.model.empty() || arguments.endpoint.empty());
  Source source;
  if (!arguments.endpoint.empty()) {
    MC_TRY(sample::HttpClient http, sample::HttpClient::create(), "endpoint");
    source.http = std::make_unique<sample::HttpClient>(std::move(http));
    source.client =
        std::make_unique<sample::ChatClient>(*source.http, endpoint_of(arguments), sleep_s);
    source.sampler = std::make_unique<bench::EndpointSampler>(*source.client, arguments.sampling,
                                                              arguments.sampling_seed);
  } else if (!arguments.model.empty()) {
    source.sampler = std::make_unique<ModelSampler>(
        layout,
        ModelOptions{arguments.model, arguments.device, arguments.batch, arguments.sampling_seed,
                     arguments.sampling},
        folder);
  }
  return source;
}

}  // namespace mc::cli
