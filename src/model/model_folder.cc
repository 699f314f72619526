// SPDX-License-Identifier: Apache-2.0
#include "model/model_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "model/chat_source.h"
#include "model/decoder.h"
#include "model/publish.h"

namespace mc::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTokenizerBytesMax = 256 << 20;
constexpr double kDeviation = 0.02;

Status check_is_model(const fs::path& folder) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) {
    return invalid(folder.string() + " is not a folder; a model is one with config.json, " +
                   "model.safetensors and tokenizer.json");
  }
  for (const char* name : {"config.json", "tokenizer.json"}) {
    if (!fs::exists(folder / name, failure)) {
      return invalid(folder.string() + " is no model: it has no " + name);
    }
  }
  if (!fs::exists(folder / "model.safetensors", failure) &&
      !fs::exists(folder / "model.safetensors.index.json", failure)) {
    return invalid(folder.string() + " is no model: it has no model.safetensors");
  }
  return ok();
}

Result<at::ScalarType> float_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  if (dtype == "F64") return at::kDouble;
  return invalid("its dtype " + dtype + " is not supported; F32, BF16, F16 and F64 are");
}

Status copy_tensor(const Slice& slice, const TensorBytes& bytes, const at::Tensor& flat) {
  if (bytes.shape != slice.shape) return invalid("its shape is not that of config.json");
  MC_TRY(const at::ScalarType type, float_type(bytes.dtype), "");
  // A tensor at an unaligned address is copied first.
  std::vector<std::byte> aligned(bytes.bytes.begin(), bytes.bytes.end());
  flat.narrow(0, slice.offset, slice.count)
      .copy_(at::from_blob(aligned.data(), {slice.count}, at::TensorOptions(type)));
  return ok();
}

// Redundant tensors, which a file may contain beside the parameters.
bool is_redundant_tensor(const std::string& name, const Config& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tied && name == "lm_head.weight");
}

struct Weights {
  at::Tensor flat;
  std::string dtype;  // The dtype of the first matrix, as Config has it.
};

Result<Weights> load_weights(const fs::path& folder, const Config& config) {
  MC_TRY(const auto files, open_model_files(folder), "load the weights");
  std::map<std::string, const TensorBytes*> tensors;
  for (const TensorFile& file : files) {
    for (const auto& [name, bytes] : file.tensors()) tensors[name] = &bytes;
  }
  const Layout layout = layout_of(config);
  std::set<std::string> known;
  for (const Slice& slice : layout.slices) {
    if (!tensors.contains(slice.name)) return invalid("the weights lack " + slice.name);
    known.insert(slice.name);
  }
  for (const auto& [name, bytes] : tensors) {
    if (!known.contains(name) && !is_redundant_tensor(name, config)) {
      return invalid("the weights hold " + name + ", which this decoder does not have");
    }
  }
  const at::Tensor flat = at::empty({layout.total}, at::kFloat);
  for (const Slice& slice : layout.slices) {
    MC_TRY_VOID(copy_tensor(slice, *tensors[slice.name], flat), slice.name);
  }
  const std::string& dtype = tensors[layout.slices.front().name]->dtype;
  return Weights{flat, dtype == "F64" ? "F32" : dtype};
}

std::string tokenizer_config_json() {
  nlohmann::ordered_json json;
  json["tokenizer_class"] = "PreTrainedTokenizerFast";
  json["eos_token"] = kTurnEnd;
  json["pad_token"] = "<|endoftext|>";
  json["clean_up_tokenization_spaces"] = false;
  json["chat_template"] = kChatTemplate;
  return json.dump(2) + "\n";
}

std::string generation_config_json(const Config& config) {
  nlohmann::ordered_json json;
  json["eos_token_id"] = config.ends;
  return json.dump(2) + "\n";
}

Status write_text(const fs::path& path, std::string_view text) {
  return write_file_synced(path, std::span(&text, 1));
}

at::ScalarType disk_type(const Config& config) {
  if (config.dtype == "BF16") return at::kBFloat16;
  return config.dtype == "F16" ? at::kHalf : at::kFloat;
}

// Groups of adjacent slices, each with at most `bytes_max` bytes but at least one slice.
std::vector<std::vector<Slice>> shards_of(const Config& config, int64_t bytes_max) {
  std::vector<std::vector<Slice>> shards(1);
  int64_t bytes = 0;
  for (const Slice& slice : layout_of(config).slices) {
    const int64_t more = slice.count * static_cast<int64_t>(c10::elementSize(disk_type(config)));
    if (!shards.back().empty() && bytes + more > bytes_max) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(slice);
    bytes += more;
  }
  return shards;
}

Status write_shard(const fs::path& path, const Model& model, const std::vector<Slice>& slices) {
  std::vector<at::Tensor> converted;  // The owners of the bytes.
  std::map<std::string, TensorBytes> tensors;
  for (const Slice& slice : slices) {
    converted.push_back(
        model.flat.narrow(0, slice.offset, slice.count).to(disk_type(model.config)));
    TensorBytes bytes = bytes_of(converted.back());
    bytes.shape = slice.shape;
    tensors[slice.name] = std::move(bytes);
  }
  return write_tensors(path, tensors, {{"format", "pt"}});
}

std::string shard_name(size_t number, size_t count) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "model-%05zu-of-%05zu.safetensors", number, count);
  return name.data();
}

Status write_weights(const fs::path& folder, const Model& model, int64_t shard_bytes_max) {
  const auto shards = shards_of(model.config, shard_bytes_max);
  if (shards.size() == 1) return write_shard(folder / "model.safetensors", model, shards[0]);
  nlohmann::ordered_json index;
  int64_t count = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i + 1, shards.size());
    MC_TRY_VOID(write_shard(folder / name, model, shards[i]), "the model");
    for (const Slice& slice : shards[i]) {
      index["weight_map"][slice.name] = name;
      count += slice.count;
    }
  }
  index["metadata"]["total_size"] =
      count * static_cast<int64_t>(c10::elementSize(disk_type(model.config)));
  return write_text(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

Status write_folder(const fs::path& folder, const Model& model, int64_t shard_bytes_max) {
  std::map<std::string, std::string> files = model.kept_files;
  if (files.empty()) {
    files = {{"config.json", config_json(model.config)},
             {"tokenizer_config.json", tokenizer_config_json()},
             {"generation_config.json", generation_config_json(model.config)}};
  }
  files["tokenizer.json"] = model.tokenizer_json;
  for (const auto& [name, text] : files) {
    MC_TRY_VOID(write_text(folder / name, text), "the model");
  }
  return write_weights(folder, model, shard_bytes_max);
}

bool adds_to_residual(const std::string& name) {
  return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
}

// generation_config.json takes precedence for the tokens that end an answer.
std::vector<int64_t> ends_of(const std::string& generation_config, const Config& config) {
  const auto json = nlohmann::json::parse(generation_config, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("eos_token_id")) return config.ends;
  std::vector<int64_t> ends;
  const auto& ids = json["eos_token_id"];
  for (const auto& id : ids.is_array() ? ids : nlohmann::json::array({ids})) {
    if (id.is_number_integer()) ends.push_back(id.get<int64_t>());
  }
  return ends;
}

// The files that other programs read beside the weights; tokenizer.json is a member of Model.
constexpr const char* kKeptFiles[] = {"config.json",
                                      "generation_config.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "chat_template.jinja",
                                      "vocab.json",
                                      "merges.txt"};

Result<std::map<std::string, std::string>> read_kept_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code failure;
  for (const char* name : kKeptFiles) {
    if (!fs::exists(folder / name, failure)) continue;
    MC_TRY(files[name], read_file(folder / name, kTokenizerBytesMax), "load the model");
  }
  return files;
}

// A probe text that no template contains, to find the token after an answer.
constexpr std::string_view kProbe = "musacoder-probe";

// Adds the token with which the template ends an answer, if the model's files do not name it;
// without it, an answer would never end.
Status complete_ends(Model& model) {
  const std::vector<Message> messages = {{"user", "u"}, {"assistant", std::string(kProbe)}};
  const auto whole = model.chat.render(messages, ChatEnd::kWhole);
  if (!whole) return whole.error();
  const size_t answer = whole->rfind(kProbe);
  std::vector<int32_t> tail;
  if (answer != std::string::npos) {
    tail = model.tokenizer.encode(whole->substr(answer + kProbe.size()));
  }
  std::vector<int64_t>& ends = model.config.ends;
  for (const int32_t id : tail) {
    if (std::find(ends.begin(), ends.end(), id) != ends.end()) return ok();
  }
  // Control tokens are written in angle brackets by all supported tokenizers.
  if (tail.empty() || !model.tokenizer.decode(std::span(tail).first(1)).starts_with("<")) {
    return invalid("the chat template ends an answer with none of the model's end tokens " +
                   std::string("(eos_token_id), so a trained model would never stop"));
  }
  ends.push_back(tail.front());
  return ok();
}

}  // namespace

Result<Model> load_model(const fs::path& folder) {
  MC_TRY_VOID(check_is_model(folder), "load the model");
  MC_TRY(auto files, read_kept_files(folder), folder.string());
  MC_TRY(Config config, parse_config(files["config.json"]), folder.string());
  MC_TRY(std::string json, read_file(folder / "tokenizer.json", kTokenizerBytesMax),
         "load the model");
  MC_TRY(Tokenizer tokenizer, Tokenizer::parse(json), (folder / "tokenizer.json").string());
  MC_TRY(Weights weights, load_weights(folder, config), folder.string());
  if (tokenizer.size() > config.vocab) {
    return invalid(folder.string() + ": the tokenizer has " + std::to_string(tokenizer.size()) +
                   " tokens, the model " + std::to_string(config.vocab));
  }
  config.ends = ends_of(files["generation_config.json"], config);
  config.dtype = weights.dtype;
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  MC_TRY(Chat chat, chat_of(files, tokenizer), folder.string());
  Model model{std::move(config), std::move(weights.flat), std::move(tokenizer),
              std::move(json),   std::move(chat),         std::move(files)};
  if (const auto status = complete_ends(model); !status) {
    model.chat = Chat(with_context(status.error(), folder.string()));
  }
  return model;
}

Result<std::vector<int32_t>> tokens_of(const Model& model, std::span<const Message> messages,
                                       ChatEnd end) {
  MC_TRY(const std::string text, model.chat.render(messages, end), "a conversation");
  std::vector<int32_t> tokens = model.tokenizer.encode(text);
  if (tokens.empty()) return invalid("the chat template or the tokenizer leaves no token of it");
  return tokens;
}

Status save_model(const fs::path& folder, const Model& model, int64_t shard_bytes_max) {
  MC_CHECK(model.flat.numel() == layout_of(model.config).total);
  return publish_folder(
      folder, [&](const fs::path& fresh) { return write_folder(fresh, model, shard_bytes_max); });
}

at::Tensor random_weights(const Config& config, uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const Layout layout = layout_of(config);
  at::Tensor flat = at::empty({layout.total}, at::kFloat);
  for (const Slice& slice : layout.slices) {
    const double factor =
        adds_to_residual(slice.name) ? 1 / std::sqrt(2 * static_cast<double>(config.layers)) : 1;
    flat.narrow(0, slice.offset, slice.count).normal_(0, kDeviation * factor, generator);
  }
  flat.narrow(0, layout.matrices, layout.total - layout.matrices).fill_(1);
  for (const Slice& slice : layout.slices) {
    if (slice.name.ends_with(".bias")) flat.narrow(0, slice.offset, slice.count).zero_();
  }
  return flat;
}

TensorBytes bytes_of(const at::Tensor& tensor) {
  MC_CHECK(tensor.is_cpu() && tensor.is_contiguous());
  const at::ScalarType type = tensor.scalar_type();
  MC_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
  return {type == at::kFloat ? "F32" : (type == at::kHalf ? "F16" : "BF16"),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

}  // namespace mc::model
