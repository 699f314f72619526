// SPDX-License-Identifier: Apache-2.0
#ifndef MC_DEVICE_CUDA_IMAGE_FILE_H_
#define MC_DEVICE_CUDA_IMAGE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mc::device {

// A file whose images may be loaded, mapped read-only: fat binaries of CUDA, bundles of MUSA.
class ImageFile {
 public:
  // Returns null if the file cannot be mapped.
  static std::unique_ptr<ImageFile> open(const std::string& path);
  ~ImageFile();
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;
  // The image at the offset, or null. For a bundle it is the code for the architecture, such as
  // "mp_22".
  const void* image_at(uint64_t offset, std::string_view architecture) const;

 private:
  ImageFile(const char* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  const char* data_;
  uint64_t bytes_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_IMAGE_FILE_H_
