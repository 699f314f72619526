// SPDX-License-Identifier: Apache-2.0
// Executes inline PTX for one thread.
//
// Registers are 64-bit words that hold the bits of their values, in the low bits.  An instruction's
// last type says how its operands are read.  Loads, stores, atomics, barriers and warp operations
// go through the worker, with all checks, as those of compiled code do.  Addresses of shared memory
// may be the 32-bit ones that __cvta_generic_to_shared gives.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "mc_emu/errors.h"
#include "mc_emu/half_bits.h"
#include "runtime/coordinates.h"
#include "runtime/ptx.h"
#include "runtime/runtime.h"
#include "runtime/worker.h"

namespace mc::emu {
namespace {

using mc_emu::Bf16;
using mc_emu::decode;
using mc_emu::encode;
using mc_emu::float_of;
using mc_emu::Fp16;
using mc_emu::integer_of;
using mc_emu::real_of_integer;
using mc_emu::round_to_integral;
using mc_emu::Rounding;
using mc_emu::sum_odd;
using ptx::Argument;
using ptx::Instruction;
using ptx::Program;
using ptx::Type;
using Kind = Argument::Kind;

constexpr int kStepsMax = 1 << 20;  // The steps of one statement; more is a loop without an end.
constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

struct Word128 {
  uint64_t low = 0, high = 0;
};

template <class To, class From>
To bits_of(From value) {
  To result{};
  std::memcpy(&result, &value, std::min(sizeof result, sizeof value));
  return result;
}

uint64_t mask_of(size_t size) { return size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1; }

int64_t extended(uint64_t bits, size_t size) {
  const int shift = 64 - 8 * static_cast<int>(size);
  return shift <= 0 ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << shift) >> shift;
}

double real_of(uint64_t bits, Type type) {
  switch (type) {
    case Type::kF64:
      return bits_of<double>(bits);
    case Type::kF16:
      return decode<Fp16>(static_cast<uint16_t>(bits));
    case Type::kBf16:
      return decode<Bf16>(static_cast<uint16_t>(bits));
    default:
      return bits_of<float>(static_cast<uint32_t>(bits));
  }
}

uint64_t bits_of_real(double value, Type type, Rounding mode = Rounding::kNearest) {
  switch (type) {
    case Type::kF64:
      return bits_of<uint64_t>(value);
    case Type::kF16:
      return encode<Fp16>(value, mode);
    case Type::kBf16:
      return encode<Bf16>(value, mode);
    default:
      return bits_of<uint32_t>(float_of(value, mode));
  }
}

Type half_of(Type pair) { return pair == Type::kF16x2 ? Type::kF16 : Type::kBf16; }
bool is_pair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

Rounding rounding_of(const Instruction& i) {
  if (i.has("rz") || i.has("rzi")) return Rounding::kZero;
  if (i.has("rp") || i.has("rpi")) return Rounding::kUp;
  if (i.has("rm") || i.has("rmi")) return Rounding::kDown;
  return Rounding::kNearest;
}

// A real number in the ordinary arithmetic of `type`; f32 is computed in double where one rounding
// at the end gives the same, and by the C library's float functions where it does not.
double fused(double a, double b, double c, Type type) {
  if (type == Type::kF64) return std::fma(a, b, c);
  if (type == Type::kF32) {
    return std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c));
  }
  return sum_odd(a * b, c);
}

}  // namespace

// --- Shared memory's window of 32-bit addresses.

namespace {
constexpr uintptr_t kStaticWindow = 0x100000;
constexpr uintptr_t kDynamicWindow = 0x800000;
constexpr uintptr_t kWindowBytes = 0x700000;
}  // namespace

uintptr_t Worker::shared_window_of(uintptr_t address) const {
  if (address - static_begin_ < static_bytes_) return kStaticWindow + (address - static_begin_);
  if (address - reinterpret_cast<uintptr_t>(dynamic_pages_) < kDynamicPagesBytes) {
    return kDynamicWindow + (address - dynamic_begin_);
  }
  return address;
}

uintptr_t Worker::shared_address_of(uintptr_t window) const {
  if (window - kStaticWindow < kWindowBytes) return static_begin_ + (window - kStaticWindow);
  if (window - (kDynamicWindow - kWindowBytes / 2) < kWindowBytes) {
    return dynamic_begin_ + (window - kDynamicWindow);
  }
  return window;
}

// --- Asynchronous copies: done when they are waited for, at the latest when the thread ends.

void Worker::begin_copy(uintptr_t to, uintptr_t from, uint32_t size, uint32_t zeros, uintptr_t pc) {
  AsyncCopies& copies = block_.copies[current_];
  copies.items.push_back({to, from, size, zeros, copies.group, pc});
}

void Worker::commit_copies() { ++block_.copies[current_].group; }

void Worker::wait_for_copies(uint32_t groups_left) {
  const auto found = block_.copies.find(current_);
  if (found == block_.copies.end()) return;
  AsyncCopies& copies = found->second;
  const uint32_t done_below =
      groups_left == kEveryGroup ? ~0u : copies.group - std::min(groups_left, copies.group);
  size_t kept = 0;
  for (size_t i = 0; i < copies.items.size(); ++i) {
    const AsyncCopy copy = copies.items[i];
    if (copy.group >= done_below) {
      copies.items[kept++] = copy;
      continue;
    }
    if (copy.size != 0) check_access(copy.from, copy.size, 0, copy.pc);
    check_access(copy.to, copy.size + copy.zeros, kWrite, copy.pc);
    commit_pending_write();
    std::memcpy(reinterpret_cast<void*>(copy.to), reinterpret_cast<const void*>(copy.from),
                copy.size);
    std::memset(reinterpret_cast<char*>(copy.to) + copy.size, 0, copy.zeros);
  }
  copies.items.resize(kept);
}

// --- Values of all lanes.

void Worker::gather(const void* own, size_t size, void* all, int line, uintptr_t pc) {
  if (warp_size() != 32) mc_emu_unsupported("matrix operations in warps of 128 threads");
  auto& slots = gathered_[static_cast<size_t>(warp_of(current_))];
  const auto* bytes = static_cast<const unsigned char*>(own);
  slots.resize(32 * size);
  std::memcpy(slots.data() + static_cast<size_t>(lane_of(current_)) * size, bytes, size);
  warp_collective(kMcEmuWarpSync, kAllLanes, 0, 0, 32, line, pc);
  std::memcpy(all, slots.data(), 32 * size);
  warp_collective(kMcEmuWarpSync, kAllLanes, 0, 0, 32, line, pc);
}

namespace {

// One statement in progress.
class Execution {
 public:
  Execution(Worker& worker, const Program& program, const McEmuPtxOperand* operands, int count,
            int line, uintptr_t pc)
      : worker_(worker), program_(program), line_(line), pc_(pc) {
    registers_.resize(static_cast<size_t>(program.num_registers));
    for (int i = 0; i < count; ++i) registers_[i].low = operands[i].value;
    for (int i = 0; i < count; ++i) registers_[i].high = operands[i].high;
  }

  void run() {
    if (!program_.problem.empty()) refuse(program_.problem);
    int steps = 0;
    for (next_ = 0; next_ < program_.instructions.size();) {
      const Instruction& i = program_.instructions[next_++];
      if (++steps > kStepsMax) refuse("a loop in inline PTX");
      if (i.predicate >= 0 && (registers_[i.predicate].low != 0) == i.is_predicate_negated)
        continue;
      execute(i);
    }
  }

  const Word128& value(int i) const { return registers_[static_cast<size_t>(i)]; }

 private:
  [[noreturn]] void refuse(const std::string& what) {
    worker_.fail("unsupported", cudaErrorNotSupported, pc_, ("inline PTX: " + what).c_str());
  }
  [[noreturn]] void refuse(const Instruction& i) { refuse(i.text); }

  // --- Operands.

  const Argument& argument(const Instruction& i, size_t k) {
    if (k >= i.arguments.size()) refuse(i);
    return i.arguments[k];
  }
  Word128 wide(const Argument& a, Type type) {
    switch (a.kind) {
      case Kind::kRegister:
        return registers_[static_cast<size_t>(a.index)];
      case Kind::kImmediate:
        if (a.name == "f64" && type == Type::kF32) {
          return {bits_of<uint32_t>(static_cast<float>(bits_of<double>(a.value)))};
        }
        if (a.name == "f32" && type == Type::kF64) {
          return {bits_of<uint64_t>(static_cast<double>(bits_of<float>(a.value)))};
        }
        return {static_cast<uint64_t>(a.value)};
      case Kind::kSpecial:
        return {special(a.name)};
      case Kind::kVector: {  // A move packs its parts.
        const size_t size = ptx::size_of(type) / std::max<size_t>(a.parts.size(), 1);
        uint64_t packed = 0;
        for (size_t k = 0; k < a.parts.size(); ++k) {
          packed |= (wide(a.parts[k], type).low & mask_of(size)) << (8 * size * k);
        }
        return {packed};
      }
      default:
        refuse(current_ != nullptr ? current_->text : "an operand");
    }
  }
  uint64_t bits(const Instruction& i, size_t k, Type type) {
    if (k >= i.arguments.size()) refuse(i);
    uint64_t value = wide(i.arguments[k], type).low;
    if (i.arguments[k].is_negated) value = value == 0;
    return value & mask_of(std::max<size_t>(ptx::size_of(type), 1));
  }
  uint64_t bits(const Instruction& i, size_t k) { return bits(i, k, i.type()); }
  int64_t integer(const Instruction& i, size_t k, Type type) {
    const uint64_t value = bits(i, k, type);
    return ptx::is_signed(type) ? extended(value, ptx::size_of(type)) : static_cast<int64_t>(value);
  }
  double real(const Instruction& i, size_t k) { return real_of(bits(i, k), i.type()); }

  void set(const Argument& a, uint64_t value, Type type) {
    if (a.kind == Kind::kSink) return;
    if (a.kind == Kind::kVector) {
      const size_t size = ptx::size_of(type) / std::max<size_t>(a.parts.size(), 1);
      for (size_t k = 0; k < a.parts.size(); ++k) {
        set_register(a.parts[k], value >> (8 * size * k) & mask_of(size));
      }
      return;
    }
    set_register(a, value & mask_of(std::max<size_t>(ptx::size_of(type), 1)));
  }
  void set_register(const Argument& a, uint64_t value) {
    if (a.kind == Kind::kSink) return;
    if (a.kind != Kind::kRegister) refuse(current_->text);
    registers_[static_cast<size_t>(a.index)] = {value, 0};
  }
  void set(const Instruction& i, uint64_t value) {
    if (i.arguments.empty()) refuse(i);
    set(argument(i, 0), value, i.type());
  }
  // The result of f32 and f64 arithmetic, with .sat and .ftz.
  void set_real(const Instruction& i, double value) {
    if (i.has("sat")) value = value > 0 ? std::min(value, 1.0) : 0.0;
    set(i, bits_of_real(value, i.type(), rounding_of(i)));
  }

  uint64_t special(const std::string& name) {
    const Coordinates t = mc_emu_thread_index, b = mc_emu_block_index;
    const Coordinates d = mc_emu_block_dim, g = mc_emu_grid_dim;
    const auto part = [&](const Coordinates& c) -> uint64_t {
      return name.ends_with(".x")   ? c.x
             : name.ends_with(".y") ? c.y
             : name.ends_with(".z") ? c.z
                                    : 0;
    };
    const uint32_t rank = (t.z * d.y + t.y) * d.x + t.x, lane = rank % 32;
    if (name.starts_with("tid.")) return part(t);
    if (name.starts_with("ntid.")) return part(d);
    if (name.starts_with("ctaid.")) return part(b);
    if (name.starts_with("nctaid.")) return part(g);
    if (name.starts_with("cluster_ctaid.") || name.starts_with("cluster_ctarank")) return 0;
    if (name.starts_with("cluster_nctaid.") || name.starts_with("cluster_nctarank")) return 1;
    if (name.starts_with("clusterid.")) return part(b);
    if (name.starts_with("nclusterid.")) return part(g);
    if (name == "laneid") return lane;
    if (name == "warpid") return rank / 32;
    if (name == "nwarpid") return (d.x * d.y * d.z + 31) / 32;
    if (name == "smid") return (b.x + b.y + b.z) % kMultiprocessorsShown;
    if (name == "nsmid") return kMultiprocessorsShown;
    if (name == "gridid") return 0;
    if (name == "clock" || name == "clock64") return mc_emu_clock();
    if (name == "clock_hi") return mc_emu_clock() >> 32;
    if (name == "globaltimer" || name == "globaltimer_lo") return mc_emu_nanoseconds();
    if (name == "globaltimer_hi") return mc_emu_nanoseconds() >> 32;
    if (name == "lanemask_eq") return uint64_t{1} << lane;
    if (name == "lanemask_lt") return (uint64_t{1} << lane) - 1;
    if (name == "lanemask_le") return (uint64_t{2} << lane) - 1;
    if (name == "lanemask_gt") return kAllLanes & ~((uint64_t{2} << lane) - 1);
    if (name == "lanemask_ge") return kAllLanes & ~((uint64_t{1} << lane) - 1);
    if (name == "dynamic_smem_size") return worker_.dynamic_shared_bytes();
    refuse("the special register " + name);
  }

  // --- Instructions.

  void execute(const Instruction& i) {
    current_ = &i;
    const bool done = move(i) || memory(i) || atomic(i) || logic(i) || arithmetic(i) ||
                      transcendental(i) || comparison(i) || synchronisation(i) || warp(i) ||
                      matrix(i);
    if (!done) refuse(i);
  }

  bool move(const Instruction& i) {
    const std::string& n = i.name;
    if (n == "mov") {
      if (i.arguments.size() < 2) refuse(i);
      if (i.type() == Type::kB128) refuse(i);
      set(i, wide(i.arguments[1], i.type()).low);
    } else if (n == "cvta") {
      const uint64_t address = bits(i, 1, Type::kU64);
      const bool is_shared = i.has("shared");
      set(i, !is_shared    ? address
             : i.has("to") ? worker_.shared_window_of(address)
                           : worker_.shared_address_of(address));
    } else if (n == "cvt") {
      convert(i);
    } else if (n == "isspacep") {
      const bool is_shared = worker_.shared_window_of(bits(i, 1, Type::kU64)) < kDynamicWindow * 2;
      set(argument(i, 0), i.has("shared") ? is_shared : !is_shared, Type::kPred);
    } else if (n == "bra") {
      if (i.arguments.empty()) refuse(i);
      for (const auto& [label, at] : program_.labels) {
        if (label != argument(i, 0).name) continue;
        next_ = at;
        return true;
      }
      refuse(i);
    } else if (n == "createpolicy") {
      set(argument(i, 0), 0, Type::kB64);
    } else {
      return is_hint(n);
    }
    return true;
  }

  // Hints change nothing.
  static bool is_hint(const std::string& name) {
    return name == "prefetch" || name == "prefetchu" || name == "applypriority" ||
           name == "griddepcontrol" || name == "setmaxnreg" || name == "pmevent" ||
           name == "discard";
  }

  void convert(const Instruction& i) {
    if (i.types.size() != 2) refuse(i);
    const Type to = i.types[0], from = i.types[1];
    const Rounding mode = rounding_of(i);
    if (is_pair(to)) {  // A pair of f32: the first becomes the upper half.
      if (from != Type::kF32) refuse(i);
      uint64_t packed = 0;
      for (size_t k = 1; k <= 2; ++k) {
        double value = real_of(bits(i, k, from), from);
        if (i.has("relu")) value = value > 0 ? value : 0;
        packed |= bits_of_real(value, half_of(to), mode) << (k == 1 ? 16 : 0);
      }
      return set(argument(i, 0), packed, to);
    }
    if (to == Type::kTf32) {
      const uint32_t word = static_cast<uint32_t>(bits(i, 1, from));
      return set(argument(i, 0), (word + 0x1000u) & ~0x1FFFu, to);
    }
    if (ptx::is_real(from)) {
      double value = real_of(bits(i, 1, from), from);
      const bool to_integral =
          i.has("rni") || i.has("rzi") || i.has("rpi") || i.has("rmi") || !ptx::is_real(to);
      if (!ptx::is_real(to)) {
        return set(argument(i, 0), static_cast<uint64_t>(integer_from(value, from, to, mode)), to);
      }
      if (to_integral) value = round_to_integral(value, mode);
      if (i.has("sat")) value = value > 0 ? std::min(value, 1.0) : 0.0;
      return set(argument(i, 0), bits_of_real(value, to, mode), to);
    }
    const int64_t value = integer(i, 1, from);
    if (!ptx::is_real(to)) {
      return set(argument(i, 0),
                 static_cast<uint64_t>(i.has("sat") ? clamped(value, from, to) : value), to);
    }
    const bool is_signed = ptx::is_signed(from);
    uint64_t out = 0;
    if (to == Type::kF64) {
      out = bits_of<uint64_t>(is_signed
                                  ? real_of_integer<double>(value, mode)
                                  : real_of_integer<double>(static_cast<uint64_t>(value), mode));
    } else if (to == Type::kF32) {
      out =
          bits_of<uint32_t>(is_signed ? real_of_integer<float>(value, mode)
                                      : real_of_integer<float>(static_cast<uint64_t>(value), mode));
    } else if (to == Type::kF16) {
      out =
          is_signed ? encode<Fp16>(value, mode) : encode<Fp16>(static_cast<uint64_t>(value), mode);
    } else {
      out =
          is_signed ? encode<Bf16>(value, mode) : encode<Bf16>(static_cast<uint64_t>(value), mode);
    }
    set(argument(i, 0), out, to);
  }

  static int64_t integer_from(double value, Type from, Type to, Rounding mode) {
    const bool is_wide = from == Type::kF64;
    switch (to) {
      case Type::kS64:
        return is_wide ? integer_of<int64_t>(value, mode)
                       : integer_of<int64_t>(static_cast<float>(value), mode);
      case Type::kU64:
        return static_cast<int64_t>(is_wide
                                        ? integer_of<uint64_t>(value, mode)
                                        : integer_of<uint64_t>(static_cast<float>(value), mode));
      case Type::kS32:
        return is_wide ? integer_of<int32_t>(value, mode)
                       : integer_of<int32_t>(static_cast<float>(value), mode);
      case Type::kU32:
        return is_wide ? integer_of<uint32_t>(value, mode)
                       : integer_of<uint32_t>(static_cast<float>(value), mode);
      default: {
        const int64_t whole = integer_of<int32_t>(static_cast<float>(value), mode);
        return clamped(whole, Type::kS64, to);
      }
    }
  }

  static int64_t clamped(int64_t value, Type from, Type to) {
    const int bits = 8 * static_cast<int>(ptx::size_of(to));
    if (!ptx::is_signed(from) && value < 0) {  // A u64 above 2^63.
      return bits == 64 && !ptx::is_signed(to)
                 ? value
                 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits + ptx::is_signed(to)));
    }
    const int64_t most =
        bits == 64 ? INT64_MAX : (int64_t{1} << (bits - (ptx::is_signed(to) ? 1 : 0))) - 1;
    const int64_t least = ptx::is_signed(to) ? -most - 1 : 0;
    return std::clamp(value, least, most);
  }

  // --- Memory.

  uintptr_t address(const Instruction& i, size_t k) {
    if (k >= i.arguments.size() || i.arguments[k].kind != Kind::kAddress) refuse(i);
    const Argument& a = i.arguments[k];
    uint64_t base = a.index >= 0 ? registers_[static_cast<size_t>(a.index)].low : 0;
    if (a.other >= 0) base += registers_[static_cast<size_t>(a.other)].low;
    const uintptr_t at = static_cast<uintptr_t>(base + static_cast<uint64_t>(a.value));
    return worker_.shared_address_of(at);
  }

  void check(uintptr_t at, size_t size, uint16_t flags) {
    if (at % size != 0) {
      worker_.fail("misaligned", cudaErrorMisalignedAddress, pc_,
                   "the address of an access is not a multiple of its size");
    }
    worker_.check_access(at, size, flags, pc_);
  }

  bool memory(const Instruction& i) {
    const bool is_load = i.name == "ld" || i.name == "ldu";
    if (i.name == "cp") return copy(i);
    if (!is_load && i.name != "st") return false;
    if (i.has("param") || i.has("local")) refuse(i);
    const size_t size = ptx::size_of(i.type());
    const Argument& list = argument(i, is_load ? 0 : 1);
    const uintptr_t at = address(i, is_load ? 1 : 0);
    const bool is_vector = list.kind == Kind::kVector;
    const size_t count = is_vector ? list.parts.size() : 1;
    const bool is_ordered = i.has("volatile") || i.has("relaxed") || i.has("acquire") ||
                            i.has("release") || i.has("mmio");
    if (at % (size * count) != 0) check(at, size * count, 0);
    if (is_ordered) worker_.count_busy_access();
    const uint16_t order = is_ordered ? kVolatile : 0;
    if (i.has("release")) worker_.note_fence(FenceScope::kDevice);
    if (is_ordered && !is_load) worker_.note_volatile(at, true);
    for (size_t k = 0; k < count; ++k) {
      const Argument& part = is_vector ? list.parts[k] : list;
      auto* place = reinterpret_cast<void*>(at + k * size);
      Word128 value;
      if (is_load) {
        check(at + k * size, size, order);
        std::memcpy(&value, place, size);
        if (ptx::is_signed(i.type())) value.low = static_cast<uint64_t>(extended(value.low, size));
        if (part.kind == Kind::kSink) continue;
        if (part.kind != Kind::kRegister) refuse(i);
        registers_[static_cast<size_t>(part.index)] = value;
      } else {
        value = wide(part, i.type());
        check(at + k * size, size, kWrite | order);
        std::memcpy(place, &value, size);
      }
    }
    if (is_ordered && is_load) worker_.note_volatile(at, false);
    return true;
  }

  bool copy(const Instruction& i) {
    if (!i.has("async") || i.has("bulk") || i.has("mbarrier")) return false;
    if (i.has("commit_group")) {
      worker_.commit_copies();
    } else if (i.has("wait_all")) {
      worker_.wait_for_copies(Worker::kEveryGroup);
    } else if (i.has("wait_group")) {
      worker_.wait_for_copies(static_cast<uint32_t>(bits(i, 0, Type::kU32)));
    } else {
      const uint32_t size = static_cast<uint32_t>(bits(i, 2, Type::kU32));
      uint32_t taken = size;
      if (i.arguments.size() > 3 && !i.has("L2::cache_hint")) {
        taken = std::min(size, static_cast<uint32_t>(bits(i, 3, Type::kU32)));
      }
      if (size != 4 && size != 8 && size != 16) refuse(i);
      const uintptr_t to = address(i, 0), from = address(i, 1);
      if (to % size != 0 || from % size != 0) check(to % size != 0 ? to : from, size, 0);
      worker_.begin_copy(to, from, taken, size - taken, pc_);
    }
    return true;
  }

  bool atomic(const Instruction& i) {
    const bool is_reduction = i.name == "red";
    if (i.name != "atom" && !is_reduction) return false;
    const Type type = i.type();
    const size_t first = is_reduction ? 0 : 1;
    const uintptr_t at = address(i, first);
    const bool is_exchange = i.has("exch") || i.has("cas");
    if (i.has("release") || i.has("acq_rel")) worker_.note_fence(FenceScope::kDevice);
    mc_emu_atomic(reinterpret_cast<void*>(at), ptx::size_of(type),
                  is_exchange ? kMcEmuAtomicExchange : kMcEmuAtomicUpdate);
    const uint64_t operand = bits(i, first + 1), other = i.has("cas") ? bits(i, first + 2) : 0;
    const auto update = [&](uint64_t old) { return updated(i, old, operand, other); };
    uint64_t before = 0;
    if (ptx::size_of(type) == 8) {
      before = exchange<uint64_t>(at, update);
    } else if (ptx::size_of(type) == 4) {
      before = exchange<uint32_t>(at, update);
    } else if (ptx::size_of(type) == 2) {
      before = exchange<uint16_t>(at, update);
    } else {
      refuse(i);
    }
    if (!is_reduction) set(i, before);
    return true;
  }

  template <class Word, class F>
  static uint64_t exchange(uintptr_t at, F update) {
    auto* word = reinterpret_cast<Word*>(at);
    Word before = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(word, &before, static_cast<Word>(update(before)), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
    return before;
  }

  uint64_t updated(const Instruction& i, uint64_t old, uint64_t operand, uint64_t other) {
    const Type type = i.type();
    if (i.has("exch")) return operand;
    if (i.has("cas")) return old == operand ? other : old;
    if (i.has("and")) return old & operand;
    if (i.has("or")) return old | operand;
    if (i.has("xor")) return old ^ operand;
    if (i.has("inc")) return old >= operand ? 0 : old + 1;
    if (i.has("dec")) return old == 0 || old > operand ? operand : old - 1;
    if (i.has("add") && is_pair(type)) return by_halves(old, operand, 0, type, "add");
    if (i.has("add") && ptx::is_real(type)) {
      return bits_of_real(real_of(old, type) + real_of(operand, type), type);
    }
    if (i.has("add")) return old + operand;
    const size_t size = ptx::size_of(type);
    const bool is_less =
        ptx::is_signed(type) ? extended(operand, size) < extended(old, size) : operand < old;
    if (i.has("min")) return is_less ? operand : old;
    if (i.has("max")) return is_less ? old : operand;
    refuse(i);
  }

  // --- Integers and bits.

  bool logic(const Instruction& i) {
    const std::string& n = i.name;
    const Type type = i.type();
    const int width = 8 * static_cast<int>(std::max<size_t>(ptx::size_of(type), 1));
    if (n == "and") {
      set(i, bits(i, 1) & bits(i, 2));
    } else if (n == "or") {
      set(i, bits(i, 1) | bits(i, 2));
    } else if (n == "xor") {
      set(i, bits(i, 1) ^ bits(i, 2));
    } else if (n == "not") {
      set(i, type == Type::kPred ? bits(i, 1) == 0 : ~bits(i, 1));
    } else if (n == "cnot") {
      set(i, bits(i, 1) == 0);
    } else if (n == "shl") {
      const uint64_t by = bits(i, 2, Type::kU32);
      set(i, by >= static_cast<uint64_t>(width) ? 0 : bits(i, 1) << by);
    } else if (n == "shr") {
      const int by = static_cast<int>(std::min<uint64_t>(bits(i, 2, Type::kU32), width));
      if (ptx::is_signed(type)) {
        set(i, static_cast<uint64_t>(integer(i, 1, type) >> std::min(by, width - 1)));
      } else {
        set(i, by >= width ? 0 : bits(i, 1) >> by);
      }
    } else if (n == "shf") {
      funnel(i);
    } else if (n == "lop3") {
      const uint64_t a = bits(i, 1), b = bits(i, 2), c = bits(i, 3), table = bits(i, 4, Type::kU32);
      uint64_t out = 0;
      for (int k = 0; k < 8; ++k) {
        if ((table >> k & 1) == 0) continue;
        out |= ((k & 4) != 0 ? a : ~a) & ((k & 2) != 0 ? b : ~b) & ((k & 1) != 0 ? c : ~c);
      }
      set(i, out);
    } else if (n == "prmt") {
      permute(i);
    } else if (n == "bfe") {
      const int position = static_cast<int>(bits(i, 2, Type::kU8)),
                length = static_cast<int>(bits(i, 3, Type::kU8));
      uint64_t field = position >= width ? 0 : bits(i, 1) >> position;
      if (ptx::is_signed(type)) {
        const int top = std::min(position + length - 1, width - 1);
        const bool sign = length > 0 && (bits(i, 1) >> top & 1) != 0;
        const int kept = std::max(0, std::min(length, width - position));
        field = kept >= 64 ? field : field & ((uint64_t{1} << kept) - 1);
        if (sign && kept < 64) field |= ~uint64_t{0} << kept;
      } else if (length < 64) {
        field &= (uint64_t{1} << length) - 1;
      }
      set(i, field);
    } else if (n == "bfi") {
      const int position = static_cast<int>(bits(i, 3, Type::kU8)),
                length = static_cast<int>(bits(i, 4, Type::kU8));
      uint64_t field = length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1;
      field = position >= 64 ? 0 : field << position;
      const uint64_t moved = position >= 64 ? 0 : bits(i, 1) << position;
      set(i, (moved & field) | (bits(i, 2) & ~field));
    } else if (n == "popc") {
      set(argument(i, 0), static_cast<uint64_t>(std::popcount(bits(i, 1))), Type::kU32);
    } else if (n == "clz") {
      set(argument(i, 0), static_cast<uint64_t>(std::countl_zero(bits(i, 1)) - (64 - width)),
          Type::kU32);
    } else if (n == "bfind") {
      uint64_t value = bits(i, 1);
      if (ptx::is_signed(type) && integer(i, 1, type) < 0)
        value = ~value & mask_of(ptx::size_of(type));
      const int top = 63 - std::countl_zero(value);
      const int shown = i.has("shiftamt") && top >= 0 ? width - 1 - top : top;
      set(argument(i, 0), static_cast<uint64_t>(static_cast<int64_t>(shown)), Type::kU32);
    } else if (n == "brev") {
      uint64_t out = 0;
      for (int k = 0; k < width; ++k) out |= (bits(i, 1) >> k & 1) << (width - 1 - k);
      set(i, out);
    } else if (n == "selp") {
      set(i, bits(i, 3, Type::kPred) != 0 ? bits(i, 1) : bits(i, 2));
    } else {
      return false;
    }
    return true;
  }

  void funnel(const Instruction& i) {
    const uint64_t pair = bits(i, 2, Type::kB32) << 32 | bits(i, 1, Type::kB32);
    uint64_t by = bits(i, 3, Type::kU32);
    by = i.has("wrap") ? by & 31 : std::min<uint64_t>(by, 32);
    set(i, i.has("l") ? (pair << by) >> 32 : pair >> by);
  }

  void permute(const Instruction& i) {
    if (i.parts.size() > 1) refuse(i);  // A mode: forward four extract, and its kin.
    const uint64_t pair = bits(i, 2) << 32 | bits(i, 1), selector = bits(i, 3);
    uint64_t out = 0;
    for (int k = 0; k < 4; ++k) {
      const uint64_t nibble = selector >> (4 * k) & 15;
      uint64_t byte = pair >> (8 * (nibble & 7)) & 255;
      if ((nibble & 8) != 0) byte = (byte & 128) != 0 ? 255 : 0;
      out |= byte << (8 * k);
    }
    set(i, out);
  }

  // --- Arithmetic.

  bool arithmetic(const Instruction& i) {
    const Type type = i.type();
    static constexpr std::string_view kNames[] = {"add",  "sub",  "mul",   "mad",   "fma", "div",
                                                  "min",  "max",  "neg",   "abs",   "rem", "addc",
                                                  "subc", "madc", "mul24", "mad24", "sad", "dp4a"};
    if (std::find(std::begin(kNames), std::end(kNames), i.name) == std::end(kNames)) return false;
    if (i.name == "dp4a") return dot(i);
    if (is_pair(type)) {
      const size_t count = i.arguments.size();
      set(i, by_halves(bits(i, 1), count > 2 ? bits(i, 2) : 0, count > 3 ? bits(i, 3) : 0, type,
                       i.name));
    } else if (ptx::is_real(type)) {
      set_real(i, real_arithmetic(i, i.name, real(i, 1), i.arguments.size() > 2 ? real(i, 2) : 0,
                                  i.arguments.size() > 3 ? real(i, 3) : 0, type));
    } else {
      integer_arithmetic(i);
    }
    return true;
  }

  uint64_t by_halves(uint64_t a, uint64_t b, uint64_t c, Type pair, const std::string& name) {
    const Type type = half_of(pair);
    uint64_t out = 0;
    for (int shift = 0; shift <= 16; shift += 16) {
      const auto part = [&](uint64_t word) { return real_of(word >> shift & 0xFFFF, type); };
      const double value = real_arithmetic(*current_, name, part(a), part(b), part(c), type);
      out |= bits_of_real(value, type) << shift;
    }
    return out;
  }

  double real_arithmetic(const Instruction& i, const std::string& name, double a, double b,
                         double c, Type type) {
    if (name == "add") return type == Type::kF32 ? sum_odd(a, b) : a + b;
    if (name == "sub") return type == Type::kF32 ? sum_odd(a, -b) : a - b;
    if (name == "mul") return a * b;
    if (name == "fma" || name == "mad") return fused(a, b, c, type);
    if (name == "div") return a / b;
    if (name == "neg") return -a;
    if (name == "abs") return std::fabs(a);
    if (name == "min" || name == "max") {
      if (i.has("NaN") && (a != a || b != b)) return std::nan("");
      return name == "min" ? std::fmin(a, b) : std::fmax(a, b);
    }
    refuse(i);
  }

  void integer_arithmetic(const Instruction& i) {
    using Wide = mc_emu::Int128;
    const Type type = i.type();
    const size_t size = ptx::size_of(type);
    const auto value = [&](size_t k) {
      return ptx::is_signed(type) ? static_cast<Wide>(integer(i, k, type))
                                  : static_cast<Wide>(bits(i, k, type));
    };
    const std::string& n = i.name;
    if (n == "neg") return set(i, static_cast<uint64_t>(-value(1)));
    if (n == "abs") return set(i, static_cast<uint64_t>(value(1) < 0 ? -value(1) : value(1)));
    if (n == "add" || n == "sub" || n == "addc" || n == "subc") {
      const bool is_sum = n.starts_with("add"), takes_carry = n.size() == 4;
      const mc_emu::UInt128 a = bits(i, 1), b = is_sum ? bits(i, 2) : ~bits(i, 2) & mask_of(size);
      const mc_emu::UInt128 sum = a + b + (takes_carry ? carry_ : is_sum ? 0 : 1);
      if (i.has("cc")) carry_ = static_cast<unsigned>(sum >> (8 * size) & 1);
      if (i.has("sat")) {
        return set(i,
                   static_cast<uint64_t>(std::clamp<Wide>(
                       is_sum ? value(1) + value(2) : value(1) - value(2), INT32_MIN, INT32_MAX)));
      }
      return set(i, static_cast<uint64_t>(sum));
    }
    if (n == "min") return set(i, static_cast<uint64_t>(std::min(value(1), value(2))));
    if (n == "max") return set(i, static_cast<uint64_t>(std::max(value(1), value(2))));
    if (n == "sad") {
      const Wide d = value(1) - value(2);
      return set(i, static_cast<uint64_t>(value(3) + (d < 0 ? -d : d)));
    }
    if (n == "div" || n == "rem") {
      if (value(2) == 0) return set(i, ~uint64_t{0});  // CUDA gives all ones.
      return set(i, static_cast<uint64_t>(n == "div" ? value(1) / value(2) : value(1) % value(2)));
    }
    if (n == "madc" || n == "mul24" || n == "mad24" || i.has("cc")) refuse(i);
    const Wide product = value(1) * value(2);
    const Wide part = i.has("hi") ? product >> (8 * size) : product;
    const Type result = i.has("wide") ? wider(type) : type;
    const Wide more = n == "mad"
                          ? (ptx::is_signed(result) ? static_cast<Wide>(integer(i, 3, result))
                                                    : static_cast<Wide>(bits(i, 3, result)))
                          : 0;
    set(argument(i, 0), static_cast<uint64_t>(part + more), result);
  }

  static Type wider(Type type) {
    switch (type) {
      case Type::kU16:
        return Type::kU32;
      case Type::kS16:
        return Type::kS32;
      case Type::kU32:
        return Type::kU64;
      default:
        return Type::kS64;
    }
  }

  bool dot(const Instruction& i) {
    if (i.types.size() != 2) refuse(i);
    int64_t sum = integer(i, 3, Type::kS32);
    for (int k = 0; k < 4; ++k) {
      const auto part = [&](size_t argument, Type type) {
        const uint64_t byte = bits(i, argument, Type::kB32) >> (8 * k) & 255;
        return type == Type::kS32 ? extended(byte, 1) : static_cast<int64_t>(byte);
      };
      sum += part(1, i.types[0]) * part(2, i.types[1]);
    }
    set(argument(i, 0), static_cast<uint64_t>(sum), Type::kB32);
    return true;
  }

  bool transcendental(const Instruction& i) {
    static const std::map<std::string, double (*)(double), std::less<>> kFunctions = {
        {"ex2", [](double x) { return std::exp2(x); }},
        {"lg2", [](double x) { return std::log2(x); }},
        {"rcp", [](double x) { return 1.0 / x; }},
        {"sqrt", [](double x) { return std::sqrt(x); }},
        {"rsqrt", [](double x) { return 1.0 / std::sqrt(x); }},
        {"sin", [](double x) { return std::sin(x); }},
        {"cos", [](double x) { return std::cos(x); }},
        {"tanh", [](double x) { return std::tanh(x); }}};
    const auto found = kFunctions.find(i.name);
    if (found == kFunctions.end()) return false;
    const Type type = i.type();
    if (is_pair(type)) {
      uint64_t out = 0;
      for (int shift = 0; shift <= 16; shift += 16) {
        const double x = real_of(bits(i, 1) >> shift & 0xFFFF, half_of(type));
        out |= bits_of_real(found->second(x), half_of(type)) << shift;
      }
      set(i, out);
    } else {
      set_real(i, found->second(real(i, 1)));
    }
    return true;
  }

  bool comparison(const Instruction& i) {
    if (i.name != "setp" && i.name != "set") return false;
    const Type type = i.type();
    bool result = compare(i, i.parts.empty() ? "" : i.parts[0], type);
    if (i.name == "set") {
      const Type to = i.types.size() > 1 ? i.types[i.types.size() - 2] : Type::kU32;
      const uint64_t yes = to == Type::kF32 ? bits_of<uint32_t>(1.0f) : mask_of(ptx::size_of(to));
      set(argument(i, 0), result ? yes : 0, to);
      return true;
    }
    bool opposite = !result;
    if (i.arguments.size() > 3) {
      const bool more = bits(i, 3, Type::kPred) != 0;
      const auto combine = [&](bool x) {
        return i.has("and") ? x && more : i.has("or") ? x || more : x != more;
      };
      result = combine(result);
      opposite = combine(opposite);
    }
    set(argument(i, 0), result, Type::kPred);
    if (argument(i, 0).other >= 0) {
      registers_[static_cast<size_t>(argument(i, 0).other)] = {opposite, 0};
    }
    return true;
  }

  bool compare(const Instruction& i, const std::string& how, Type type) {
    if (ptx::is_real(type)) {
      const double a = real(i, 1), b = real(i, 2);
      const bool has_nan = a != a || b != b;
      if (how == "num") return !has_nan;
      if (how == "nan") return has_nan;
      if (how.size() == 3 && how.ends_with('u'))
        return has_nan || ordered(i, how.substr(0, 2), a, b);
      return !has_nan && ordered(i, how, a, b);
    }
    if (ptx::is_signed(type)) return ordered(i, how, integer(i, 1, type), integer(i, 2, type));
    return ordered(i, how, bits(i, 1), bits(i, 2));
  }

  template <class T>
  bool ordered(const Instruction& i, const std::string& how, T a, T b) {
    if (how == "eq") return a == b;
    if (how == "ne") return a != b;
    if (how == "lt" || how == "lo") return a < b;
    if (how == "le" || how == "ls") return a <= b;
    if (how == "gt" || how == "hi") return a > b;
    if (how == "ge" || how == "hs") return a >= b;
    refuse(i);
  }

  // --- Other threads.

  bool synchronisation(const Instruction& i) {
    const std::string& n = i.name;
    if (n == "membar" || n == "fence") {
      if (i.has("proxy")) return true;
      worker_.note_fence(i.has("cta") ? FenceScope::kBlock : FenceScope::kDevice);
    } else if (n == "bar" || n == "barrier") {
      if (i.has("warp")) {
        collective(kMcEmuWarpSync, static_cast<uint32_t>(bits(i, 0, Type::kU32)), 0, 0);
        return true;
      }
      const Coordinates d = mc_emu_block_dim;
      const bool names_all =
          i.arguments.size() < 2 || bits(i, 1, Type::kU32) == uint64_t{d.x} * d.y * d.z;
      if (i.has("red") || i.has("arrive") || i.has("cluster") || !names_all) refuse(i);
      if (!i.arguments.empty() && bits(i, 0, Type::kU32) != 0) refuse(i);
      worker_.barrier(kMcEmuBarrierCount, 0, line_, pc_);
    } else if (n == "nanosleep") {
      worker_.yield();
    } else if (n == "trap" || n == "brkpt") {
      worker_.fail("device_assert", cudaErrorLaunchFailure, pc_, "trap");
    } else {
      return false;
    }
    return true;
  }

  uint64_t collective(int kind, uint32_t mask, uint64_t value, int argument, int width = 32) {
    return worker_.warp_collective(kind, mask, value, argument, width, line_, pc_);
  }

  bool warp(const Instruction& i) {
    const std::string& n = i.name;
    if (n == "shfl") return shuffle(i);
    const auto mask = [&](size_t k) { return static_cast<uint32_t>(bits(i, k, Type::kU32)); };
    if (n == "activemask") {
      set(i, worker_.active_mask(kMcEmuWarpSync, line_, pc_));
    } else if (n == "vote") {
      if (!i.has("sync")) refuse(i);
      const uint32_t members = mask(2);
      const bool vote = bits(i, 1, Type::kPred) != 0;
      const auto yes = static_cast<uint32_t>(collective(kMcEmuWarpBallot, members, vote, 0));
      const auto no = ~yes & members;
      if (i.has("ballot")) {
        set(argument(i, 0), yes, Type::kB32);
      } else {
        const bool all_equal = yes == 0 || no == 0;
        set(argument(i, 0),
            i.has("any")   ? yes != 0
            : i.has("all") ? no == 0
                           : all_equal,
            Type::kPred);
      }
    } else if (n == "match") {
      const bool all = i.has("all");
      const uint64_t same =
          collective(all ? kMcEmuWarpMatchAll : kMcEmuWarpMatchAny, mask(2), bits(i, 1), 0);
      set(argument(i, 0), same, Type::kB32);
      if (argument(i, 0).other >= 0)
        registers_[static_cast<size_t>(argument(i, 0).other)] = {same != 0, 0};
    } else if (n == "redux") {
      const Type type = i.type();
      if (ptx::is_real(type)) refuse(i);
      const bool is_signed = ptx::is_signed(type);
      const int kind = i.has("add")   ? kMcEmuWarpAddUnsigned
                       : i.has("min") ? (is_signed ? kMcEmuWarpMinSigned : kMcEmuWarpMinUnsigned)
                       : i.has("max") ? (is_signed ? kMcEmuWarpMaxSigned : kMcEmuWarpMaxUnsigned)
                       : i.has("and") ? kMcEmuWarpAnd
                       : i.has("or")  ? kMcEmuWarpOr
                                      : kMcEmuWarpExclusiveOr;
      set(i, collective(kind, mask(2), bits(i, 1), 0));
    } else if (n == "elect") {
      const auto members = static_cast<uint32_t>(collective(kMcEmuWarpBallot, mask(1), 1, 0));
      const auto leader = static_cast<uint64_t>(std::countr_zero(members));
      if (argument(i, 0).kind != Kind::kSink) set(argument(i, 0), leader, Type::kB32);
      if (argument(i, 0).other >= 0) {
        registers_[static_cast<size_t>(argument(i, 0).other)] = {special("laneid") == leader, 0};
      }
    } else {
      return false;
    }
    return true;
  }

  // The form shfl.sync.mode.b32 d|p, a, b, c, members: c holds the clamp and the segments' mask.
  bool shuffle(const Instruction& i) {
    if (!i.has("sync") || i.arguments.size() < 5) refuse(i);
    const int lane = static_cast<int>(special("laneid"));
    const int by = static_cast<int>(bits(i, 2, Type::kU32) & 31);
    const int clamp = static_cast<int>(bits(i, 3, Type::kU32));
    const int segment = clamp >> 8 & 31;
    const int last = (lane & segment) | ((clamp & 31) & ~segment), first = lane & segment;
    int source = lane;
    bool is_inside = false;
    if (i.has("up")) {
      source = lane - by, is_inside = source >= last;
    } else if (i.has("down")) {
      source = lane + by, is_inside = source <= last;
    } else if (i.has("bfly")) {
      source = lane ^ by, is_inside = source <= last;
    } else {
      source = first | (by & ~segment), is_inside = source <= last;
    }
    if (!is_inside) source = lane;
    const uint64_t value = collective(
        kMcEmuWarpIndex, static_cast<uint32_t>(bits(i, 4, Type::kU32)), bits(i, 1), source);
    set(i, value);
    if (argument(i, 0).other >= 0) {
      registers_[static_cast<size_t>(argument(i, 0).other)] = {is_inside, 0};
    }
    return true;
  }

  // --- Matrices: tiles of 8 x 8 over a warp, in the layouts of the PTX manual.

  bool matrix(const Instruction& i) {
    if (i.name == "ldmatrix" || i.name == "stmatrix") return move_matrix(i);
    if (i.name != "mma" || !i.has("sync") || i.has("sp")) return false;
    return multiply(i);
  }

  // Registers of a vector argument, or of a single one.
  static std::vector<const Argument*> parts_of(const Argument& a) {
    std::vector<const Argument*> parts;
    if (a.kind != Kind::kVector) return {&a};
    for (const Argument& part : a.parts) parts.push_back(&part);
    return parts;
  }

  bool move_matrix(const Instruction& i) {
    if (!i.has("m8n8") || i.type() != Type::kB16) refuse(i);
    const bool is_load = i.name == "ldmatrix", is_transposed = i.has("trans");
    const uint64_t own = address(i, is_load ? 1 : 0);
    uint64_t rows[32];
    worker_.gather(&own, sizeof own, rows, line_, pc_);
    const auto parts = parts_of(argument(i, is_load ? 0 : 1));
    const size_t lane = special("laneid");
    for (size_t m = 0; m < parts.size(); ++m) {
      uint32_t word = is_load ? 0 : static_cast<uint32_t>(wide(*parts[m], Type::kB32).low);
      for (size_t k = 0; k < 2; ++k) {
        const size_t row = is_transposed ? lane % 4 * 2 + k : lane / 4;
        const size_t column = is_transposed ? lane / 4 : lane % 4 * 2 + k;
        const uintptr_t at = rows[m * 8 + row] + column * 2;
        auto* element = reinterpret_cast<uint16_t*>(at);
        check(at, 2, is_load ? 0 : kWrite);
        if (is_load) {
          word |= static_cast<uint32_t>(*element) << (16 * k);
        } else {
          *element = static_cast<uint16_t>(word >> (16 * k));
        }
      }
      if (is_load) set_register(*parts[m], word);
    }
    return true;
  }

  // D = A B + C for m16n8 tiles.  A lane holds, of the rows g and g + 8 of A and of the column g of
  // B (g = lane / 4), the elements that its registers follow each other with; see the PTX manual.
  bool multiply(const Instruction& i) {
    if (!i.has("row") || !i.has("col") || i.types.size() != 4 || i.arguments.size() != 4) refuse(i);
    const Type of_d = i.types[0], of_a = i.types[1], of_b = i.types[2], of_c = i.types[3];
    const size_t depth = depth_of(i);
    const bool packs = of_d == Type::kF16, packs_c = of_c == Type::kF16;
    const size_t element = of_a == Type::kTf32 ? 4 : ptx::size_of(of_a);
    const auto a_parts = parts_of(i.arguments[1]), b_parts = parts_of(i.arguments[2]);
    const auto c_parts = parts_of(i.arguments[3]), d_parts = parts_of(argument(i, 0));
    const size_t per_word = 4 / std::max<size_t>(element, 1);
    const bool is_known = element > 0 && element <= 4 && of_a != Type::kF64 &&
                          a_parts.size() * 4 / element == 16 * depth / 32 &&
                          b_parts.size() * 4 / element == 8 * depth / 32;
    if (!is_known) refuse(i);
    struct Words {
      uint32_t a[4] = {}, b[2] = {};
    } own, all[32];
    if (a_parts.size() > 4 || b_parts.size() > 2 || d_parts.size() < (packs ? 2 : 4) ||
        c_parts.size() < (packs_c ? 2 : 4)) {
      refuse(i);
    }
    for (size_t k = 0; k < a_parts.size(); ++k)
      own.a[k] = static_cast<uint32_t>(wide(*a_parts[k], Type::kB32).low);
    for (size_t k = 0; k < b_parts.size(); ++k)
      own.b[k] = static_cast<uint32_t>(wide(*b_parts[k], Type::kB32).low);
    worker_.gather(&own, sizeof own, all, line_, pc_);

    const auto value_of = [&](uint32_t word, size_t part, Type type) -> double {
      const uint64_t bits = word >> (8 * element * part) & mask_of(element);
      if (type == Type::kTf32) return bits_of<float>(static_cast<uint32_t>(bits) & ~0x1FFFu);
      if (ptx::is_real(type)) return real_of(bits, type);
      return ptx::is_signed(type) ? static_cast<double>(extended(bits, element))
                                  : static_cast<double>(bits);
    };
    // Element (row, k) of A: in the lane of group row % 8, register (row >= 8) + 2 * (k / span).
    const size_t span = 4 * per_word;  // Columns of A that one register covers over four lanes.
    const auto at_a = [&](size_t row, size_t k) {
      const Words& words = all[row % 8 * 4 + k % span / per_word];
      return value_of(words.a[(row >= 8 ? 1 : 0) + 2 * (k / span)], k % per_word, of_a);
    };
    const auto at_b = [&](size_t k, size_t column) {
      const Words& words = all[column * 4 + k % span / per_word];
      return value_of(words.b[k / span], k % per_word, of_b);
    };
    const size_t lane = special("laneid");
    uint64_t packed[2] = {};
    for (size_t e = 0; e < 4; ++e) {
      const size_t row = lane / 4 + (e >= 2 ? 8 : 0), column = lane % 4 * 2 + e % 2;
      const uint64_t word = wide(*c_parts[packs_c ? e / 2 : e], of_c).low;
      const uint64_t bits = packs_c ? word >> (16 * (e % 2)) & 0xFFFF : word & 0xFFFFFFFF;
      double sum =
          ptx::is_real(of_c) ? real_of(bits, of_c) : static_cast<double>(extended(bits, 4));
      for (size_t k = 0; k < depth; ++k) sum += at_a(row, k) * at_b(k, column);
      if (packs) {
        packed[e / 2] |= bits_of_real(sum, of_d) << (16 * (e % 2));
      } else if (ptx::is_real(of_d)) {
        set_register(*d_parts[e], bits_of_real(sum, of_d));
      } else {
        set_register(*d_parts[e], static_cast<uint32_t>(static_cast<int64_t>(sum)));
      }
    }
    if (packs) {
      for (size_t k = 0; k < 2; ++k) set_register(*d_parts[k], packed[k]);
    }
    return true;
  }

  size_t depth_of(const Instruction& i) {
    for (const std::string& part : i.parts) {
      if (part.starts_with("m16n8k")) return static_cast<size_t>(std::atoi(part.c_str() + 6));
    }
    refuse(i);
  }

  static constexpr uint64_t kMultiprocessorsShown = 108;

  Worker& worker_;
  const Program& program_;
  int line_;
  uintptr_t pc_;
  std::vector<Word128> registers_;
  size_t next_ = 0;
  unsigned carry_ = 0;
  const Instruction* current_ = nullptr;
};

// The program of a text, parsed once for each OS thread.  Texts are literals of loaded modules.
const Program& program_of(const char* text, int count, bool is_basic) {
  thread_local std::map<const char*, Program>* const programs = new std::map<const char*, Program>;
  const auto found = programs->find(text);
  if (found != programs->end()) return found->second;
  return programs->emplace(text, ptx::parse(text, count, is_basic)).first->second;
}

}  // namespace

void Worker::run_ptx(const char* text, McEmuPtxOperand* operands, int count, bool is_basic,
                     int line, uintptr_t pc) {
  commit_pending_write();
  Execution execution(*this, program_of(text, count, is_basic), operands, count, line, pc);
  execution.run();
  for (int i = 0; i < count; ++i) {
    operands[i].value = execution.value(i).low;
    operands[i].high = execution.value(i).high;
  }
}

}  // namespace mc::emu
