// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "model/model_folder.h"
#include "model/publish.h"
#include "model/safetensors.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kStateBytesMax = 64 << 20;
constexpr size_t kKept = 2;
constexpr std::string_view kPrefix = "step-";

// The order is oldest first, because the numbers have a fixed width.
std::vector<fs::path> checkpoints_of(const fs::path& run) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", failure)) {
    if (entry.path().filename().string().starts_with(kPrefix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string state_json(const RunState& state) {
  Json json = {{"step", state.step},
               {"tokens", state.tokens},
               {"elapsed_s", state.elapsed_s},
               {"epoch", state.position.epoch},
               {"next", state.position.next}};
  if (!state.more.empty()) json["more"] = state.more;
  return json.dump(2) + "\n";
}

Result<RunState> parse_state(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const char* key : {"step", "tokens", "epoch", "next"}) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer()) {
      return invalid(std::string("state.json has no \"") + key + "\"");
    }
  }
  if (!json.contains("elapsed_s") || !json["elapsed_s"].is_number()) {
    return invalid("state.json has no time");
  }
  RunState state;
  state.step = json["step"].get<int64_t>();
  state.tokens = json["tokens"].get<int64_t>();
  state.elapsed_s = json["elapsed_s"].get<double>();
  state.position = {json["epoch"].get<int64_t>(), json["next"].get<int64_t>()};
  if (json.contains("more") && json["more"].is_string()) state.more = json["more"];
  return state;
}

Status copy_into(const model::TensorFile& file, const char* name, const at::Tensor& to) {
  const auto found = file.tensors().find(name);
  const at::Tensor host = to.to(at::kCPU).contiguous();
  const model::TensorBytes expected = model::bytes_of(host);
  const size_t size = expected.bytes.size();
  if (found == file.tensors().end() || found->second.dtype != expected.dtype ||
      found->second.bytes.size() != size) {
    return invalid(std::string("it has no \"") + name + "\" of this model's size");
  }
  std::memcpy(host.mutable_data_ptr(), found->second.bytes.data(), size);
  to.copy_(host);
  return ok();
}

}  // namespace

Result<store::RunFolder> open_run(const fs::path& run, const std::string& kind,
                                  const std::string& settings, Existing existing) {
  std::error_code failure;
  const bool is_there = fs::exists(run / store::kStoreName, failure);
  if (is_there && existing == Existing::kRefuse) {
    return invalid(run.string() + " holds a run already; --resume goes on with it");
  }
  if (!is_there && fs::exists(run / "checkpoints", failure)) {
    return invalid(run.string() + " holds checkpoints without their store; give another --out");
  }
  return store::open_run(run, {.name = kind, .kind = kind, .settings = settings});
}

Status save_checkpoint(const fs::path& run, const RunState& state, const RunTensors& tensors) {
  MC_CHECK(state.step >= 0 && tensors.first.numel() == tensors.master.numel() &&
           tensors.second.numel() == tensors.master.numel());
  const fs::path path = run / "checkpoints" / fmt::format("{}{:08}", kPrefix, state.step);
  const at::Tensor master = tensors.master.to(at::kCPU);
  const at::Tensor first = tensors.first.to(at::kCPU);
  const at::Tensor second = tensors.second.to(at::kCPU);
  const at::Tensor generator =
      tensors.generator.defined() ? tensors.generator.to(at::kCPU) : at::Tensor();
  std::map<std::string, model::TensorBytes> all_tensors = {
      {"master", model::bytes_of(master)},
      {"first_moment", model::bytes_of(first)},
      {"second_moment", model::bytes_of(second)}};
  if (generator.defined()) all_tensors["generator"] = model::bytes_of(generator);
  const auto write = [&](const fs::path& fresh) -> Status {
    const std::string json = state_json(state);
    const std::string_view text = json;
    MC_TRY_VOID(model::write_file_synced(fresh / "state.json", {&text, 1}), "its state");
    return model::write_tensors(fresh / "state.safetensors", all_tensors, {});
  };
  MC_TRY_VOID(model::publish_folder(path, write), "save a checkpoint");
  std::vector<fs::path> all = checkpoints_of(run);
  std::error_code failure;
  for (size_t i = 0; i + kKept < all.size(); ++i) fs::remove_all(all[i], failure);
  return ok();
}

Result<RunState> load_checkpoint(const fs::path& run, const RunTensors& tensors) {
  const std::vector<fs::path> all = checkpoints_of(run);
  if (all.empty()) {
    return Error{ErrorCode::kNotFound, "there is no checkpoint in " + run.string()};
  }
  const fs::path& path = all.back();
  MC_TRY(const std::string text, read_file(path / "state.json", kStateBytesMax), path.string());
  MC_TRY(RunState state, parse_state(text), path.string());
  MC_TRY(const model::TensorFile file, model::TensorFile::open(path / "state.safetensors"),
         "load a checkpoint");
  MC_TRY_VOID(copy_into(file, "master", tensors.master), path.string());
  MC_TRY_VOID(copy_into(file, "first_moment", tensors.first), path.string());
  MC_TRY_VOID(copy_into(file, "second_moment", tensors.second), path.string());
  if (tensors.generator.defined()) {
    MC_TRY_VOID(copy_into(file, "generator", tensors.generator), path.string());
  }
  return state;
}

}  // namespace mc::train
