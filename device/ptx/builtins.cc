// SPDX-License-Identifier: Apache-2.0
//
// Functions that CUDA's runtime gives to kernels: vprintf, __assertfail, malloc and free.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "ptx/finding_log.h"
#include "ptx/global_memory.h"
#include "ptx/machine.h"

namespace mc::ptx {
namespace {

constexpr size_t kStringMax = 4096;

// One call, by one thread.
class Builtin {
 public:
  Builtin(Block& block, const Warp& warp, const Step* step, int thread, const uint8_t* arguments)
      : block_(block), warp_(warp), step_(step), thread_(thread), arguments_(arguments) {}

  uint64_t run() {
    const auto& functions = block_.program->module->functions;
    const std::string& name = functions[static_cast<size_t>(step_->immediate)].name;
    if (name == "vprintf") return print();
    if (name == "malloc") return allocate();
    if (name == "free") return release();
    return fail_assertion();
  }

 private:
  uint64_t argument(size_t index) const {
    uint64_t value = 0;
    std::memcpy(&value, arguments_ + 8 * index, sizeof value);
    return value;
  }

  // The bytes at a generic address; null if they are outside of memory.
  const uint8_t* bytes_at(uint64_t address, size_t size) const {
    const uint64_t offset = address & ((uint64_t{1} << kWindowShift) - 1);
    switch (address >> kWindowShift) {
      case kLocalWindow >> kWindowShift:
        if (offset + size > block_.local_stride) return nullptr;
        return block_.local + static_cast<size_t>(thread_) * block_.local_stride + offset;
      case kSharedWindow >> kWindowShift:
        return offset + size > block_.shared_bytes ? nullptr : block_.shared + offset;
      default:
        return block_.launch->memory->host(address, size);
    }
  }

  bool read(uint64_t address, void* to, size_t size) {
    const uint8_t* from = bytes_at(address, size);
    if (from == nullptr) {
      report_access(block_, warp_, step_, false, thread_, Space::kGlobal, address,
                    static_cast<int>(size));
      return false;
    }
    std::memcpy(to, from, size);
    return true;
  }

  std::string text(uint64_t address) {
    std::string text;
    for (char c = 1; text.size() < kStringMax;) {
      if (!read(address + text.size(), &c, 1) || c == 0) break;
      text += c;
    }
    return text;
  }

  uint64_t print() {
    const std::string format = text(argument(0));
    uint64_t next = argument(1), count = 0;
    std::string out;
    for (size_t at = 0; at < format.size() && !block_.stopped;) {
      if (format[at] != '%') {
        out += format[at++];
        continue;
      }
      const size_t end = format.find_first_of("diuoxXcsfFeEgGaAp%", at + 1);
      if (end == std::string::npos) break;
      print_one(format.substr(at, end + 1 - at), next, out);
      at = end + 1;
      ++count;
    }
    if (!block_.stopped) block_.launch->log->print(out);
    return count;
  }

  // One conversion, with its argument at `next`, which moves on.
  void print_one(const std::string& form, uint64_t& next, std::string& out) {
    const char kind = form.back();
    if (kind == '%') {
      out += '%';
      return;
    }
    const bool is_long = form.find('l') != std::string::npos;
    const bool is_number = std::strchr("diuoxXc", kind) != nullptr;
    const size_t size = is_number && !is_long ? 4 : 8;
    next = (next + size - 1) / size * size;
    uint64_t bits = 0;
    if (!read(next, &bits, size)) return;
    next += size;
    out += formatted(plain_form(form), kind, size, bits);
  }

  // Flags, width and precision, without the size, which is ours. Numbers have up to three digits,
  // as the host would make a field of any width.
  static std::string plain_form(const std::string& form) {
    std::string plain = "%";
    int digits = 0;
    for (size_t k = 1; k + 1 < form.size() && plain.size() < 16; ++k) {
      const bool is_digit = form[k] >= '0' && form[k] <= '9';
      digits = is_digit ? digits + 1 : 0;
      if (std::strchr("-+ #.", form[k]) != nullptr || (is_digit && digits <= 3)) plain += form[k];
    }
    return plain;
  }

  std::string formatted(const std::string& plain, char kind, size_t size, uint64_t bits) {
    if (kind == 's') return text(bits);
    char buffer[512] = "";
    std::string form = plain;
    if (std::strchr("fFeEgGaA", kind) != nullptr) {
      double value = 0;
      std::memcpy(&value, &bits, sizeof value);
      form += kind;
      std::snprintf(buffer, sizeof buffer, form.c_str(), value);
    } else if (kind == 'c') {
      return std::string(1, static_cast<char>(bits));
    } else if (kind == 'd' || kind == 'i') {
      const int64_t value = size == 4 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
      form += "lld";
      std::snprintf(buffer, sizeof buffer, form.c_str(), static_cast<long long>(value));
    } else {
      form += kind == 'p' ? "#llx" : std::string("ll") + kind;
      std::snprintf(buffer, sizeof buffer, form.c_str(), static_cast<unsigned long long>(bits));
    }
    return buffer;
  }

  uint64_t fail_assertion() {
    const std::string message = text(argument(0)), function = text(argument(3));
    const std::string detail = "the assertion \"" + message + "\" of " + function + " fails";
    report(block_, warp_, step_, FindingKind::kAssertion, thread_, detail.c_str());
    return 0;
  }

  // Null if the heap of the launch is used up, as on a GPU.
  uint64_t allocate() {
    const uint64_t size = argument(0);
    int64_t& left = block_.launch->heap_left;
    if (size == 0 || left < 0 || size > static_cast<uint64_t>(left)) return 0;
    Result<uint64_t> address = block_.launch->memory->allocate(size, "malloc");
    if (!address) return 0;
    left -= static_cast<int64_t>(size) + 512;
    block_.launch->memory->find(*address)->is_heap = true;
    forget_accesses(*address, size);
    return *address;
  }

  // The heap orders the last owner's accesses before the next owner's.
  void forget_accesses(uint64_t address, uint64_t size) {
    // Allocations begin and end between lines of the shadow.
    const int shift = block_.program->granule_shift + kLineShift;
    const uint64_t first = (address - kGlobalBase) >> shift;
    std::fill_n(block_.global_shadow.lines + first, (size >> shift) + 1, Line{});
  }

  uint64_t release() {
    const uint64_t address = argument(0);
    const Allocation* allocation = block_.launch->memory->find(address);
    if (address == 0) return 0;
    if (allocation == nullptr || allocation->begin != address || !allocation->is_heap) {
      report(block_, warp_, step_, FindingKind::kBadCall, thread_,
             "free of an address that malloc did not give");
      return 0;
    }
    block_.launch->heap_left += static_cast<int64_t>(allocation->end - allocation->begin) + 512;
    block_.launch->memory->release(address);
    return 0;
  }

  Block& block_;
  const Warp& warp_;
  const Step* step_;
  const int thread_;
  const uint8_t* arguments_;
};

}  // namespace

uint64_t call_builtin(Block& block, const Warp& warp, const Step* step, int thread,
                      const uint8_t* arguments) {
  return Builtin(block, warp, step, thread, arguments).run();
}

}  // namespace mc::ptx
