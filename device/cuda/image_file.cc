// SPDX-License-Identifier: Apache-2.0
#include "cuda/image_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "cuda/offload_bundle.h"

namespace mc::device {
namespace {

constexpr uint32_t kFatbinMagic = 0xBA55ED50;

}  // namespace

std::unique_ptr<ImageFile> ImageFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  void* data = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
    data =
        mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  close(descriptor);
  if (data == MAP_FAILED) return nullptr;
  return std::unique_ptr<ImageFile>(
      new ImageFile(static_cast<const char*>(data), static_cast<uint64_t>(status.st_size)));
}

ImageFile::~ImageFile() { munmap(const_cast<char*>(data_), bytes_); }

const void* ImageFile::image_at(uint64_t offset, std::string_view architecture) const {
  struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes;  // After the header.
  } header;
  if (offset % 8 != 0 || offset > bytes_ || bytes_ - offset < sizeof header) return nullptr;
  std::memcpy(&header, data_ + offset, sizeof header);
  const uint64_t left = bytes_ - offset;
  if (const std::string_view bytes(data_ + offset, left); is_offload_bundle(bytes)) {
    const std::string_view code = code_in_bundle(bytes, architecture);
    return code.empty() ? nullptr : code.data();
  }
  if (header.magic != kFatbinMagic) return nullptr;
  if (header.header_bytes > left || header.bytes > left - header.header_bytes) return nullptr;
  return data_ + offset;
}

}  // namespace mc::device
