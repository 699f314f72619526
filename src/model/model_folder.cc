// SPDX-License-Identifier: Apache-2.0
#include "model/model_folder.h"

#include <algorithm>
#include <cmath>
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
#include "model/chat.h"
#include "model/decoder.h"
#include "model/publish.h"

namespace mc::model {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConfigBytesMax = 4 << 20;
constexpr size_t kTokenizerBytesMax = 256 << 20;
constexpr double kDeviation = 0.02;

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidInput, what}; }

Status check_is_model(const fs::path& folder) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure)) {
    return wrong(folder.string() + " is not a folder; a model is one with config.json, " +
                 "model.safetensors and tokenizer.json");
  }
  for (const char* name : {"config.json", "tokenizer.json"}) {
    if (!fs::exists(folder / name, failure)) {
      return wrong(folder.string() + " is no model: it has no " + name);
    }
  }
  if (!fs::exists(folder / "model.safetensors", failure) &&
      !fs::exists(folder / "model.safetensors.index.json", failure)) {
    return wrong(folder.string() + " is no model: it has no model.safetensors");
  }
  return ok();
}

Result<at::ScalarType> float_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  if (dtype == "F64") return at::kDouble;
  return wrong("its dtype " + dtype + " is not supported; F32, BF16, F16 and F64 are");
}

Status copy_tensor(const Slice& slice, const TensorBytes& bytes, const at::Tensor& flat) {
  if (bytes.shape != slice.shape) return wrong("its shape is not that of config.json");
  MC_TRY(const at::ScalarType type, float_type(bytes.dtype), "");
  // A tensor that starts at an odd address is copied first.
  std::vector<std::byte> aligned(bytes.bytes.begin(), bytes.bytes.end());
  flat.narrow(0, slice.offset, slice.count)
      .copy_(at::from_blob(aligned.data(), {slice.count}, at::TensorOptions(type)));
  return ok();
}

// What a file may hold beside the parameters without meaning anything.
bool stands_for_nothing(const std::string& name, const Config& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tied && name == "lm_head.weight");
}

Result<at::Tensor> load_weights(const fs::path& folder, const Config& config) {
  MC_TRY(const auto files, open_model_files(folder), "load the weights");
  std::map<std::string, const TensorBytes*> tensors;
  for (const TensorFile& file : files) {
    for (const auto& [name, bytes] : file.tensors()) tensors[name] = &bytes;
  }
  const Layout layout = layout_of(config);
  std::set<std::string> known;
  for (const Slice& slice : layout.slices) {
    if (!tensors.contains(slice.name)) return wrong("the weights lack " + slice.name);
    known.insert(slice.name);
  }
  for (const auto& [name, bytes] : tensors) {
    if (!known.contains(name) && !stands_for_nothing(name, config)) {
      return wrong("the weights hold " + name + ", which this decoder does not have");
    }
  }
  const at::Tensor flat = at::empty({layout.total}, at::kFloat);
  for (const Slice& slice : layout.slices) {
    MC_TRY_VOID(copy_tensor(slice, *tensors[slice.name], flat), slice.name);
  }
  return flat;
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

Status write_weights(const fs::path& path, const Model& model) {
  std::map<std::string, TensorBytes> tensors;
  for (const Slice& slice : layout_of(model.config).slices) {
    TensorBytes bytes = bytes_of(model.flat.narrow(0, slice.offset, slice.count));
    bytes.shape = slice.shape;
    tensors[slice.name] = std::move(bytes);
  }
  return write_tensors(path, tensors, {{"format", "pt"}});
}

Status write_folder(const fs::path& folder, const Model& model) {
  MC_TRY_VOID(write_text(folder / "config.json", config_json(model.config)), "the model");
  MC_TRY_VOID(write_text(folder / "tokenizer.json", model.tokenizer_json), "the model");
  MC_TRY_VOID(write_text(folder / "tokenizer_config.json", tokenizer_config_json()), "the model");
  MC_TRY_VOID(write_text(folder / "generation_config.json", generation_config_json(model.config)),
              "the model");
  return write_weights(folder / "model.safetensors", model);
}

bool adds_to_residual(const std::string& name) {
  return name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
}

// generation_config.json has the last word on what ends an answer.
std::vector<int64_t> ends_of(const fs::path& folder, const Config& config) {
  const auto text = read_file(folder / "generation_config.json", kConfigBytesMax);
  if (!text) return config.ends;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("eos_token_id")) return config.ends;
  std::vector<int64_t> ends;
  const auto& ids = json["eos_token_id"];
  for (const auto& id : ids.is_array() ? ids : nlohmann::json::array({ids})) {
    if (id.is_number_integer()) ends.push_back(id.get<int64_t>());
  }
  return ends;
}

}  // namespace

Result<Model> load_model(const fs::path& folder) {
  MC_TRY_VOID(check_is_model(folder), "load the model");
  MC_TRY(const std::string config_text, read_file(folder / "config.json", kConfigBytesMax),
         "load the model");
  MC_TRY(Config config, parse_config(config_text), folder.string());
  MC_TRY(std::string json, read_file(folder / "tokenizer.json", kTokenizerBytesMax),
         "load the model");
  MC_TRY(Tokenizer tokenizer, Tokenizer::parse(json), (folder / "tokenizer.json").string());
  MC_TRY(at::Tensor flat, load_weights(folder, config), folder.string());
  if (tokenizer.size() > config.vocab) {
    return wrong(folder.string() + ": the tokenizer has " + std::to_string(tokenizer.size()) +
                 " tokens, the model " + std::to_string(config.vocab));
  }
  config.ends = ends_of(folder, config);
  if (const auto end = tokenizer.id_of(kTurnEnd);
      end && std::find(config.ends.begin(), config.ends.end(), *end) == config.ends.end()) {
    config.ends.push_back(*end);
  }
  return Model{std::move(config), std::move(flat), std::move(tokenizer), std::move(json)};
}

Status save_model(const fs::path& folder, const Model& model) {
  return publish_folder(folder, [&](const fs::path& fresh) { return write_folder(fresh, model); });
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
  return flat;
}

TensorBytes bytes_of(const at::Tensor& tensor) {
  MC_CHECK(tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == at::kFloat);
  return {"F32",
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()),
           static_cast<size_t>(tensor.numel()) * sizeof(float)}};
}

}  // namespace mc::model
