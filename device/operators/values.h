// SPDX-License-Identifier: Apache-2.0
//
// The serialised form of an operator call and of its results (operators.h has their order).
//
// Both sides are on one machine, so numbers have their form in memory.  The reader of a call trusts
// nothing: it throws if the data is too short or malformed.
#ifndef MC_DEVICE_OPERATORS_VALUES_H_
#define MC_DEVICE_OPERATORS_VALUES_H_

#include <c10/util/Exception.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mc::operators {

// How a call ended.
enum class End : uint8_t {
  kFailed,
  kDone,
  kUnsupported,  // PyTorch has no such operator for the CPU.
};

enum class Tag : uint8_t {
  kNone,
  kBool,
  kInt,
  kDouble,
  kComplex,
  kString,
  kDevice,      // Without an index: the device process has one device.
  kGenerator,   // Seed and offset.
  kTensor,      // On the device.
  kHostTensor,  // A tensor on the host, with its bytes.
  kInts,        // The lists begin with their number of items.
  kDoubles,
  kBools,
  kTensors,
  kOptionalTensors,
  kScalars,
  kSame,     // A result that is a tensor of the call.
  kResized,  // Like kSame, but resized, in new memory.
  kView,     // A result that is a view of a tensor of the call.
  kNew,      // A new result, which waits in the device process.
};

class Writer {
 public:
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* data, size_t bytes) {
    const char* begin = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), begin, begin + bytes);
  }
  void put_text(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    put_bytes(text.data(), text.size());
  }
  template <class List>
  void put_list(const List& list) {
    put(static_cast<uint32_t>(list.size()));
    for (const auto& item : list) put(static_cast<int64_t>(item));
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

class Reader {
 public:
  Reader(const void* data, size_t bytes) : at_(static_cast<const char*>(data)), left_(bytes) {}

  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, get_bytes(sizeof value), sizeof value);
    return value;
  }
  const char* get_bytes(size_t bytes) {
    TORCH_CHECK(bytes <= left_, "a message about an operator is too short");
    const char* begin = at_;
    at_ += bytes;
    left_ -= bytes;
    return begin;
  }
  std::string get_text() {
    const auto size = get<uint32_t>();
    return {get_bytes(size), size};
  }
  std::vector<int64_t> get_list() {
    const auto size = get<uint32_t>();
    TORCH_CHECK(size <= left_ / sizeof(int64_t), "a message about an operator is too short");
    std::vector<int64_t> list(size);
    for (int64_t& item : list) item = get<int64_t>();
    return list;
  }
  size_t left() const { return left_; }

 private:
  const char* at_;
  size_t left_;
};

}  // namespace mc::operators

#endif  // MC_DEVICE_OPERATORS_VALUES_H_
