// SPDX-License-Identifier: Apache-2.0
//
// Files of tensors in the safetensors format: 8 bytes of little-endian length, a JSON header of
// that length, then the tensors' bytes.  https://huggingface.co/docs/safetensors
//
// A file may come from an untrusted source.  The reader rejects a header that is too long or not
// JSON, an unknown dtype, a shape that does not match its offsets, and offsets that leave a gap,
// overlap or do not end at the end of the file.  The bytes are memory-mapped: if another process
// shortens the file, this process crashes.
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

// The name of the dtype in the format: "F32", "BF16", "I64", ...
struct TensorBytes {
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

// The size of one element; 0 for an unknown dtype.
int64_t dtype_size(std::string_view dtype);

class TensorFile {
 public:
  // kNotFound, kIo, or kInvalidInput, which describes what is wrong with the file.
  static Result<TensorFile> open(const std::filesystem::path& path);
  // The bytes are valid as long as this object.
  const std::map<std::string, TensorBytes>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  explicit TensorFile(Mapping mapping) : mapping_(std::move(mapping)) {}
  Status parse();

  Mapping mapping_;
  std::map<std::string, TensorBytes> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Opens the files of a model folder: model.safetensors, or those that model.safetensors.index.json
// names. Each tensor of the index must be in the file that the index names for it.
Result<std::vector<TensorFile>> open_model_files(const std::filesystem::path& folder);

// Writes the file and waits until it is on disk.  After a failure (a full disk), the file does not
// exist.
Status write_tensors(const std::filesystem::path& path,
                     const std::map<std::string, TensorBytes>& tensors,
                     const std::map<std::string, std::string>& metadata);

}  // namespace mc::model

#endif  // MC_MODEL_SAFETENSORS_H_
