// SPDX-License-Identifier: Apache-2.0
//
// Files of tensors in the safetensors format: 8 bytes of little-endian length, a JSON header of
// that length, then the tensors' bytes.  https://huggingface.co/docs/safetensors
//
// A file may come from anyone.  Reading refuses a header that is too long or not JSON, a dtype that
// is unknown, a shape whose bytes are not those of its offsets, and offsets that leave a gap,
// overlap or do not end where the file does.  The bytes are mapped, not read: a file that another
// process shortens meanwhile ends this one.
//
//   MC_TRY(TensorFile file, TensorFile::open(path), "load the model");
//   for (const auto& [name, tensor] : file.tensors()) use(tensor.bytes);
#ifndef MC_MODEL_SAFETENSORS_H_
#define MC_MODEL_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "core/result.h"

namespace mc::model {

// The format's own names: "F32", "BF16", "I64", ...
struct TensorBytes {
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// 0 for a name that is no dtype.
int64_t dtype_size(std::string_view dtype);

class TensorFile {
 public:
  // kNotFound, kIo, or kInvalidInput with what is wrong with the file.
  static Result<TensorFile> open(const std::filesystem::path& path);
  // Valid as long as this object.
  const std::map<std::string, TensorBytes>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  explicit TensorFile(Mapping mapping) : mapping_(std::move(mapping)) {}
  Status parse();

  Mapping mapping_;
  std::map<std::string, TensorBytes> tensors_;
  std::map<std::string, std::string> metadata_;
};

// The files of a model folder: model.safetensors, or those that model.safetensors.index.json names.
// Each tensor of the index must be in the file that it names there.
Result<std::vector<TensorFile>> open_model_files(const std::filesystem::path& folder);

// Writes the file and waits until it is on the disk.  A failure (a full disk) leaves no file.
Status write_tensors(const std::filesystem::path& path,
                     const std::map<std::string, TensorBytes>& tensors,
                     const std::map<std::string, std::string>& metadata);

}  // namespace mc::model

#endif  // MC_MODEL_SAFETENSORS_H_
