// SPDX-License-Identifier: Apache-2.0
#ifndef MC_DEVICE_CUDA_IMAGE_FILE_H_
#define MC_DEVICE_CUDA_IMAGE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

namespace mc::device {

// A file whose fat binaries may be loaded, mapped read-only.
class ImageFile {
 public:
  // Null where it cannot be mapped.
  static std::unique_ptr<ImageFile> open(const std::string& path);
  ~ImageFile();
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  // The fat binary at the offset; null where there is none.
  const void* image_at(uint64_t offset) const;

 private:
  ImageFile(const char* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  const char* data_;
  uint64_t bytes_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_IMAGE_FILE_H_
