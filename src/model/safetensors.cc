// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "model/publish.h"

namespace mc::model {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
static_assert(std::endian::native == std::endian::little);

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // The maximum of the format.
constexpr size_t kIndexBytesMax = 64 << 20;
constexpr size_t kAlignment = 8;

struct Dtype {
  std::string_view name;
  int64_t size;
};
constexpr std::array kDtypes = {
    Dtype{"F64", 8}, Dtype{"F32", 4}, Dtype{"BF16", 2}, Dtype{"F16", 2},     Dtype{"I64", 8},
    Dtype{"U64", 8}, Dtype{"I32", 4}, Dtype{"U32", 4},  Dtype{"I16", 2},     Dtype{"U16", 2},
    Dtype{"I8", 1},  Dtype{"U8", 1},  Dtype{"BOOL", 1}, Dtype{"F8_E4M3", 1}, Dtype{"F8_E5M2", 1}};

Result<uint64_t> natural(const Json& json) {
  if (!json.is_number_unsigned()) return invalid("a size or offset is not a natural number");
  return json.get<uint64_t>();
}

// The product, or an error on overflow, which a hostile shape may cause.
Result<uint64_t> byte_count(const std::vector<int64_t>& shape, int64_t item_size) {
  uint64_t count = static_cast<uint64_t>(item_size);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count)) {
      return invalid("its shape is too large");
    }
  }
  return count;
}

Result<std::vector<int64_t>> parse_shape(const Json& json) {
  if (!json.is_array()) return invalid("it has no \"shape\"");
  std::vector<int64_t> shape;
  for (const Json& extent : json) {
    MC_TRY(const uint64_t value, natural(extent), "its shape");
    if (value > INT64_MAX) return invalid("its shape is too large");
    shape.push_back(static_cast<int64_t>(value));
  }
  return shape;
}

Result<TensorBytes> parse_tensor(const Json& json, std::span<const std::byte> data) {
  if (!json.is_object()) return invalid("its entry is no object");
  const Json dtype = json.value("dtype", Json());
  const int64_t item_size = dtype.is_string() ? dtype_size(dtype.get<std::string>()) : 0;
  if (item_size == 0) return invalid("its dtype " + dtype.dump() + " is unknown");
  MC_TRY(std::vector<int64_t> shape, parse_shape(json.value("shape", Json())), "");
  const Json offsets = json.value("data_offsets", Json());
  if (!offsets.is_array() || offsets.size() != 2) return invalid("it has no \"data_offsets\"");
  MC_TRY(const uint64_t begin, natural(offsets[0]), "its offsets");
  MC_TRY(const uint64_t end, natural(offsets[1]), "its offsets");
  if (begin > end || end > data.size()) return invalid("its offsets lie outside the file");
  MC_TRY(const uint64_t expected, byte_count(shape, item_size), "its shape");
  if (end - begin != expected) return invalid("its shape and dtype do not fit its offsets");
  return TensorBytes{dtype.get<std::string>(), std::move(shape), data.subspan(begin, end - begin)};
}

// Checks that the tensors' bytes are contiguous, from the first byte of the data to the last.
Status check_contiguous(const std::map<std::string, TensorBytes>& tensors,
                        std::span<const std::byte> data) {
  std::vector<std::span<const std::byte>> parts;
  for (const auto& [name, tensor] : tensors) parts.push_back(tensor.bytes);
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.data() != b.data() ? a.data() < b.data() : a.size() < b.size();
  });
  const std::byte* next = data.data();
  for (const auto& part : parts) {
    if (part.data() != next) return invalid("the tensors overlap or leave a gap");
    next += part.size();
  }
  if (next != data.data() + data.size()) return invalid("the tensors do not fill the file");
  return ok();
}

std::string header_of(const std::map<std::string, TensorBytes>& tensors,
                      const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto size = byte_count(tensor.shape, dtype_size(tensor.dtype));
    MC_CHECK(size && *size == tensor.bytes.size());
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// The file names in the index.  A name with a folder is rejected: each file is beside the index.
Result<std::set<std::string>> files_of_index(const Json& weights) {
  std::set<std::string> files;
  for (const Json& file : weights) {
    if (!file.is_string()) return invalid("a file name is no text");
    const std::string name = file.get<std::string>();
    if (name.empty() || name.find('/') != std::string::npos || name.starts_with(".")) {
      return invalid("\"" + name + "\" is not the name of a file in this folder");
    }
    files.insert(name);
  }
  return files;
}

Result<std::vector<TensorFile>> open_shards(const fs::path& folder, const std::string& text) {
  const Json index = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json weights = index.is_object() ? index.value("weight_map", Json()) : Json();
  if (!weights.is_object() || weights.empty()) return invalid("it has no \"weight_map\"");
  MC_TRY(const auto names, files_of_index(weights), "\"weight_map\"");
  std::map<std::string, size_t> numbers;
  std::vector<TensorFile> files;
  for (const std::string& name : names) {
    MC_TRY(TensorFile file, TensorFile::open(folder / name), "a file of the index");
    numbers[name] = files.size();
    files.push_back(std::move(file));
  }
  for (const auto& [tensor, file] : weights.items()) {
    if (!files[numbers[file.get<std::string>()]].tensors().contains(tensor)) {
      return invalid(file.get<std::string>() + " has no tensor " + tensor);
    }
  }
  return files;
}

}  // namespace

int64_t dtype_size(std::string_view dtype) {
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                   [&](const Dtype& known) { return known.name == dtype; });
  return found == kDtypes.end() ? 0 : found->size;
}

Result<TensorFile> TensorFile::open(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.is_open() || ::fstat(fd.get(), &info) != 0) {
    return system_error(ErrorCode::kNotFound, "cannot read " + path.string());
  }
  if (!S_ISREG(info.st_mode) || static_cast<size_t>(info.st_size) < kLengthBytes) {
    return invalid(path.string() + ": is no safetensors file");
  }
  MC_TRY(Mapping mapping, Mapping::create(fd, static_cast<size_t>(info.st_size)), path.string());
  TensorFile file(std::move(mapping));
  MC_TRY_VOID(file.parse(), path.string());
  return file;
}

Status TensorFile::parse() {
  const std::span<const std::byte> all = mapping_.bytes();
  uint64_t length = 0;
  std::memcpy(&length, all.data(), sizeof length);
  if (length > kHeaderBytesMax || length > all.size() - kLengthBytes) {
    return invalid("is no safetensors file, or is cut short: its header would have " +
                   std::to_string(length) + " bytes");
  }
  const auto* text = reinterpret_cast<const char*>(all.data()) + kLengthBytes;
  const Json header = Json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return invalid("is no safetensors file: its header is no JSON object");
  const std::span<const std::byte> data = all.subspan(kLengthBytes + length);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    MC_TRY(tensors_[name], parse_tensor(entry, data), "tensor \"" + name + "\"");
  }
  return check_contiguous(tensors_, data);
}

Result<std::vector<TensorFile>> open_model_files(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  std::error_code failure;
  if (fs::exists(index, failure)) {
    MC_TRY(const std::string text, read_file(index, kIndexBytesMax), "open the model");
    MC_TRY(auto files, open_shards(folder, text), index.string());
    return files;
  }
  MC_TRY(TensorFile file, TensorFile::open(folder / "model.safetensors"), "open the model");
  std::vector<TensorFile> files;
  files.push_back(std::move(file));
  return files;
}

Status write_tensors(const fs::path& path, const std::map<std::string, TensorBytes>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  const std::string header = header_of(tensors, metadata);
  const uint64_t length = header.size();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), sizeof length},
                                         header};
  for (const auto& [name, tensor] : tensors) {
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  return write_file_synced(path, parts);
}

}  // namespace mc::model
