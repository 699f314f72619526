// SPDX-License-Identifier: Apache-2.0
#include "cuda/libraries.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

namespace mc::device {
namespace {

constexpr size_t kObjectsMax = 1u << 16;
constexpr size_t kHandlesMax = 64;  // Each handle takes device memory and is kept.
constexpr uint64_t kAlgorithmsKept = 4096;

using Entry = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                      uint64_t, uint64_t, uint64_t, double, double);

// Integers and pointers have their own registers and stack slots, in order, and so have floats and
// doubles: a function ignores arguments for which it has no parameters.
int invoke(void* entry, const uint64_t* w, const double* r) {
  return reinterpret_cast<Entry>(entry)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9],
                                        w[10], w[11], w[12], w[13], w[14], w[15], w[16], w[17],
                                        w[18], w[19], w[20], w[21], w[22], w[23], r[0], r[1]);
}

std::string_view name_of(uint32_t function) { return kLibraryFunctions[function].name; }

// The related function's name, with `other` in the place of `word`, such as "Destroy" for "Create".
const char* relative(uint32_t function, std::string_view word, std::string_view other,
                     std::string& name) {
  name = name_of(function);
  const size_t at = name.find(word);
  if (at == std::string::npos) return nullptr;
  name.replace(at, word.size(), other);
  return name.c_str();
}

enum class Family : uint8_t { kBlas, kBlasLt, kDnn };

Family family_of(uint32_t function) {
  if (name_of(function).starts_with("cudnn")) return Family::kDnn;
  return name_of(function).starts_with("cublasLt") ? Family::kBlasLt : Family::kBlas;
}

// A cuBLAS handle is also valid for cuBLASLt.
bool takes(Family function, Family handle) {
  return function == handle || (function == Family::kBlasLt && handle == Family::kBlas);
}

}  // namespace

// The arguments of one call in the form that the library takes.
class Libraries::Arguments {
 public:
  Arguments(Libraries& libraries, uint32_t function, const std::vector<uint64_t>& given)
      : libraries_(libraries), function_(function), given_(given) {}

  // False if the arguments are malformed.
  bool read() {
    for (const char* mark = kLibraryFunctions[function_].marks; *mark != 0; ++mark) {
      const bool has_letter = std::strchr("onxaq", *mark) != nullptr;
      if (!take(*mark, has_letter ? mark[1] : 0)) return false;
      mark += has_letter ? 1 : 0;
    }
    return next_ == given_.size();
  }

  int invoke(void* entry) const { return device::invoke(entry, words_, reals_); }

  // Call this after the function, with its status.
  void conclude(int status, std::vector<uint64_t>& reply) {
    if (handle_ != nullptr && status == 0) note_setting();
    if (ended_ != 0 && status == 0) libraries_.objects_.erase(ended_);
    if (made_ != 0 && status == 0) {
      libraries_.objects_[made_] = {function_, made_kind_, made_pointer_};
    }
    reply.assign(1, static_cast<uint64_t>(static_cast<int64_t>(status)));
    for (Result& result : results_) {
      if (status == 0 && result.are_heuristics) replace_algorithms_by_numbers(result);
      reply.insert(reply.end(), result.data.begin(), result.data.end());
    }
  }

 private:
  struct Result {
    std::vector<uint64_t> data;  // Never resized: the library has its address.
    bool are_heuristics = false;
  };
  struct Scalar {
    alignas(kScalarBytes) char bytes[kScalarBytes];
  };

  bool next(uint64_t& value) {
    if (next_ >= given_.size()) return false;
    value = given_[next_++];
    return true;
  }

  // The next bytes of the command.
  bool next_bytes(size_t bytes, const void*& data) {
    const size_t words = words_of(bytes);
    if (words > given_.size() - next_) return false;
    data = given_.data() + next_;
    next_ += words;
    return true;
  }

  bool add(uint64_t word) {
    if (num_words_ >= kLibraryWordsMax) return false;
    words_[num_words_++] = word;
    return true;
  }
  bool add(const void* pointer) { return add(reinterpret_cast<uint64_t>(pointer)); }

  bool add_result(size_t bytes, bool are_heuristics = false) {
    results_.push_back({std::vector<uint64_t>(words_of(bytes)), are_heuristics});
    return add(results_.back().data.data());
  }

  bool is_address(uint64_t address) const {
    return address == 0 || libraries_.context_.is_device_range(address, 1);
  }

  bool take_handle(uint64_t number) {
    const auto found = libraries_.handles_.find(number);
    if (found == libraries_.handles_.end() ||
        !takes(family_of(function_), family_of(found->second.maker))) {
      return false;
    }
    handle_ = &found->second;
    // The old stream may be destroyed.
    if (is_set_stream()) return add(handle_->pointer);
    // The handle's stream is used again, so timing must include it.
    CUstream stream = nullptr;
    return libraries_.context_.stream_of(handle_->stream, stream) && add(handle_->pointer);
  }

  bool take_object(uint64_t number, char kind, void*& pointer) const {
    pointer = nullptr;
    if (number == 0) return true;
    const auto found = libraries_.objects_.find(number);
    if (found == libraries_.objects_.end() || found->second.kind != kind) return false;
    pointer = found->second.pointer;
    return true;
  }

  bool take_scalar() {
    uint64_t word = 0;
    const void* data = nullptr;
    if (!next(word)) return false;
    if (word == kScalarIsNull) return add(uint64_t{0});
    if (word == kScalarFollows) {
      if (!next_bytes(kScalarBytes, data)) return false;
      std::memcpy(scalars_.emplace_back().bytes, data, kScalarBytes);
      return add(scalars_.back().bytes);
    }
    // cuBLASLt has its own pointer mode, as an attribute.
    return handle_ != nullptr && handle_->is_on_device && family_of(function_) == Family::kBlas &&
           is_address(word) && add(word);
  }

  // Reads an element count from an earlier argument; false if it is above `most`.
  bool count_at(size_t index, uint64_t& count, uint64_t most = kLibraryElementsMax) const {
    if (index >= num_words_) return false;
    count = words_[index];
    return count <= most;
  }

  bool take_descriptor(uint64_t& element) const {
    void* pointer = nullptr;
    if (!take_object(element, kGraphKind, pointer)) return false;
    element = reinterpret_cast<uint64_t>(pointer);
    return true;
  }

  bool take_dnn_handle(uint64_t& element) const {
    const auto found = libraries_.handles_.find(element);
    if (found == libraries_.handles_.end() || family_of(found->second.maker) != Family::kDnn) {
      return false;
    }
    element = reinterpret_cast<uint64_t>(found->second.pointer);
    return true;
  }

  // Reads an attribute's elements, and replaces the numbers of objects by the objects.
  bool take_elements(uint32_t kind, uint64_t count) {
    const size_t bytes = attribute_bytes(kind);
    const void* data = nullptr;
    if (bytes == 0 || count > kLibraryElementsMax || !next_bytes(count * bytes, data)) return false;
    std::vector<uint64_t>& elements = elements_.emplace_back(words_of(count * bytes) + 1);
    std::memcpy(elements.data(), data, count * bytes);
    for (uint64_t i = 0; i < count; ++i) {
      if (kind == kAttributeAddress && !is_address(elements[i])) return false;
      if (kind == kAttributeDescriptor && !take_descriptor(elements[i])) return false;
      if (kind == kAttributeHandle && !take_dnn_handle(elements[i])) return false;
    }
    return add(elements.data());
  }

  bool take(char mark, char letter) {
    uint64_t word = 0, count = 0;
    const void* data = nullptr;
    void* pointer = nullptr;
    CUstream stream = nullptr;
    switch (mark) {
      case 'i':
        return next(word) && word <= ~0u && add(word);
      case 'l':
        return next(word) && add(word);
      case 'f':
      case 'd':
        if (num_reals_ >= kLibraryRealsMax || !next(word)) return false;
        std::memcpy(&reals_[num_reals_++], &word, sizeof word);
        return true;
      case 't':
        stream_ = 0;
        if (!next(word) || word > ~0u) return false;
        stream_ = static_cast<uint32_t>(word);
        return libraries_.context_.stream_of(stream_, stream) && add(stream);
      case 'p':
        return next(word) && is_address(word) && add(word);
      case 's':
        return take_scalar();
      case 'h':
        return next(word) && take_handle(word);
      case 'o':
        if (num_words_ == 0 && next_ < given_.size() && given_[next_] == 0) return false;
        return next(word) && take_object(word, letter, pointer) && add(pointer);
      case 'x':
        if (!next(word) || word == 0 || !take_object(word, letter, pointer)) return false;
        ended_ = word;
        return add(pointer);
      case 'n':
        if (!next(word) || libraries_.objects_.contains(word) || word == 0 ||
            libraries_.objects_.size() >= kObjectsMax) {
          return false;
        }
        made_ = word;
        made_kind_ = letter;
        return add(&made_pointer_);
      case 'b':
        // The next argument passes the same count to the function.
        return next(count) && count <= kLibraryElementsMax && next_bytes(count, data) &&
               next_ < given_.size() && given_[next_] == count && add(data);
      case 'a': {
        uint64_t declared = 0;
        return next(count) &&
               count_at(static_cast<size_t>(letter - '0'), declared, kLibraryArrayMax) &&
               count == declared && next_bytes(count * 4, data) && add(data);
      }
      case 'r':
        return add_result(4);
      case 'R':
        return add_result(8);
      case 'O':
        if (!next(word) || word > 1) return false;
        return word == 0 ? add(uint64_t{0}) : add_result(8);
      case 'q':
        return count_at(static_cast<size_t>(letter - '0'), count) && add_result(count * 4);
      case 'e':
        return count_at(num_words_ - 1, count) &&
               add_result(count * kHeuristicBytes, /*are_heuristics=*/true);
      case 'A':
        return next(word) && take_algorithm(word);
      case 'V':
        return next(word) && count_at(num_words_ - 1, count) && word == count &&
               take_elements(static_cast<uint32_t>(words_[num_words_ - 2]), count);
      case 'W':
        return next(word) && take_wanted(word);
      default:
        return false;
    }
  }

  bool take_wanted(uint64_t given) {
    uint64_t count = 0;
    if (!count_at(num_words_ - 2, count) || (given != 0 && given != count)) return false;
    const auto kind = static_cast<uint32_t>(words_[num_words_ - 3]);
    if (given == 0) return add(uint64_t{0});
    if (kind == kAttributeDescriptor) return take_elements(kind, count);
    const bool is_plain = kind != kAttributeHandle && kind != kAttributeAddress;
    return is_plain && attribute_bytes(kind) > 0 && add_result(count * attribute_bytes(kind));
  }

  // Their numbers begin at 1; the oldest are forgotten.
  bool take_algorithm(uint64_t number) {
    if (number == 0) return add(uint64_t{0});
    const uint64_t made = libraries_.num_algorithms_;
    if (number > made || made - number >= kAlgorithmsKept) return false;
    elements_.emplace_back(kAlgorithmBytes / 8);
    const Algorithm& kept = libraries_.algorithms_[(number - 1) % kAlgorithmsKept];
    std::ranges::copy(kept, elements_.back().begin());
    return add(elements_.back().data());
  }

  void replace_algorithms_by_numbers(Result& result) {
    libraries_.algorithms_.resize(kAlgorithmsKept);
    for (size_t at = 0; at < result.data.size(); at += kHeuristicBytes / 8) {
      Algorithm& kept = libraries_.algorithms_[libraries_.num_algorithms_++ % kAlgorithmsKept];
      std::copy_n(result.data.begin() + static_cast<std::ptrdiff_t>(at), kept.size(), kept.begin());
      std::fill_n(result.data.begin() + static_cast<std::ptrdiff_t>(at), kept.size(), 0);
      result.data[at] = libraries_.num_algorithms_;
    }
  }

  bool is_set_stream() const {
    return name_of(function_).find("SetStream") != std::string_view::npos;
  }

  void note_setting() {
    if (is_set_stream()) handle_->stream = stream_;
    if (name_of(function_).starts_with("cublasSetPointerMode")) {
      handle_->is_on_device = words_[1] != 0;
    }
  }

  static constexpr char kGraphKind = 'G';  // cudnnBackendCreateDescriptor's.

  Libraries& libraries_;
  uint32_t function_;
  const std::vector<uint64_t>& given_;
  size_t next_ = 0;
  uint64_t words_[kLibraryWordsMax] = {};
  double reals_[kLibraryRealsMax] = {};
  size_t num_words_ = 0;
  size_t num_reals_ = 0;
  Handle* handle_ = nullptr;
  uint32_t stream_ = 0;
  uint64_t ended_ = 0;
  uint64_t made_ = 0;  // The number of the new object.
  char made_kind_ = 0;
  void* made_pointer_ = nullptr;
  std::deque<std::vector<uint64_t>> elements_;
  std::deque<Scalar> scalars_;
  std::deque<Result> results_;
};

int Libraries::make_handle(uint32_t function, void*& pointer) {
  if (const auto kept = kept_.find(function); kept != kept_.end()) {
    pointer = kept->second;
    kept_.erase(kept);
    return 0;
  }
  const double reals[kLibraryRealsMax] = {};
  const uint64_t words[kLibraryWordsMax] = {reinterpret_cast<uint64_t>(&pointer)};
  return invoke(entries_[function], words, reals);
}

bool Libraries::call(uint32_t function, const std::vector<uint64_t>& words,
                     std::vector<uint64_t>& reply) {
  if (function >= kNumLibraryFunctions) return false;
  const std::string_view marks = kLibraryFunctions[function].marks;
  if (marks == "X") {
    const auto found = words.size() == 1 ? handles_.find(words[0]) : handles_.end();
    if (found == handles_.end()) return false;
    // It ends with the candidate: what ran last may need it.
    reply = {0};
    return true;
  }
  void*& entry = entries_[function];
  if (entry == nullptr) entry = find_library_function(kLibraryFunctions[function].name);
  if (entry == nullptr) {
    reply = {kNotSupported};
    return true;
  }
  if (marks == "H") {
    Handle handle{.maker = function};
    if (handles_.size() >= kHandlesMax || !words.empty()) return false;
    const int status = make_handle(function, handle.pointer);
    reply = {static_cast<uint64_t>(static_cast<int64_t>(status)), next_};
    if (status == 0) handles_[next_++] = handle;
    return true;
  }
  // A recurrent layer's descriptor refers to the dropout's, which so ends with the candidate.
  if (marks == "xU") {
    const auto found = words.size() == 1 ? objects_.find(words[0]) : objects_.end();
    const bool may_end =
        found != objects_.end() && found->second.kind == 'U' && ended_.size() < kObjectsMax;
    if (!may_end) return false;
    ended_.push_back(found->second);
    objects_.erase(found);
    reply = {0};
    return true;
  }
  Arguments arguments(*this, function, words);
  if (!arguments.read()) return false;
  arguments.conclude(arguments.invoke(entry), reply);
  return true;
}

bool Libraries::reset() {
  const double reals[kLibraryRealsMax] = {};
  bool is_whole = true;
  std::string name;
  const auto also = [&](const char* function, uint64_t first, uint64_t second) {
    void* entry = function == nullptr ? nullptr : find_library_function(function);
    const uint64_t words[kLibraryWordsMax] = {first, second};
    is_whole = entry != nullptr && invoke(entry, words, reals) == 0 && is_whole;
  };
  for (const auto& [number, object] : objects_) {
    if (object.kind == 'U') {
      ended_.push_back(object);
    } else {
      also(relative(object.maker, "Create", "Destroy", name),
           reinterpret_cast<uint64_t>(object.pointer), 0);
    }
  }
  for (const Object& object : ended_) {
    also(relative(object.maker, "Create", "Destroy", name),
         reinterpret_cast<uint64_t>(object.pointer), 0);
  }
  ended_.clear();
  for (const auto& [number, handle] : handles_) {
    const auto pointer = reinterpret_cast<uint64_t>(handle.pointer);
    if (family_of(handle.maker) != Family::kBlasLt) {
      also(relative(handle.maker, "Create", "SetStream", name), pointer, 0);
    }
    if (family_of(handle.maker) == Family::kBlas) {
      also("cublasSetMathMode", pointer, 0);
      also("cublasSetPointerMode_v2", pointer, 0);
      also("cublasSetAtomicsMode", pointer, 0);
    }
    kept_.emplace(handle.maker, handle.pointer);
  }
  objects_.clear();
  handles_.clear();
  num_algorithms_ = 0;
  next_ = 1;
  return is_whole;
}

}  // namespace mc::device
