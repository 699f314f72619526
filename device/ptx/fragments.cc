// SPDX-License-Identifier: Apache-2.0
//
// Matrix fragments for wmma. PTX does not define their layout in registers, so this one is the
// executor's choice. The slots of a fragment, lane after lane, hold the elements in the order of
// rows; a fragment with more slots than elements holds them several times.
#include "ptx/access.h"
#include "ptx/halves.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// A fragment as its step describes it.
struct Fragment {
  int rows = 0, columns = 0;
  Type type = Type::kNone;
  bool by_columns = false;
  uint32_t registers = 0;
  const uint32_t* offsets = nullptr;

  uint32_t bytes() const { return static_cast<uint32_t>(bytes_of(type)); }
  uint32_t per_register() const { return bytes() >= 4 ? 1 : 4 / bytes(); }
  uint32_t slots() const { return registers * per_register(); }
  uint32_t element(int lane, uint32_t slot) const {
    return (static_cast<uint32_t>(lane) * slots() + slot) % static_cast<uint32_t>(rows * columns);
  }
  uint8_t* slot(LaneWarp& w, int lane, uint32_t index) const {
    const uint32_t width = bytes() == 8 ? 8 : 4, per = per_register();
    return w.frame + offsets[index / per] + static_cast<uint32_t>(lane) * width +
           index % per * bytes();
  }
};

Fragment fragment_of(const Step* s) {
  Fragment fragment;
  fragment.rows = static_cast<int>(s->c & 0xFF);
  fragment.columns = static_cast<int>(s->c >> 8 & 0xFF);
  fragment.registers = s->c >> 16;
  fragment.type = static_cast<Type>(s->e & 0xFF);
  fragment.by_columns = (s->e & 0x100) != 0;
  fragment.offsets = s->list;
  return fragment;
}

// Writes the lanes' addresses of a slot to the row at d.
void place_addresses(LaneWarp& w, const Step* s, const Fragment& fragment, uint32_t slot) {
  const uint32_t first = static_cast<uint32_t>(lowest(w.active));
  const bool is_wide = (s->flags & kWideAddress) != 0;
  const uint64_t base = (is_wide ? w.at<uint64_t>(s->a)[first] : w.at<uint32_t>(s->a)[first]) +
                        static_cast<uint64_t>(s->immediate);
  const uint32_t across =
      static_cast<uint32_t>(fragment.by_columns ? fragment.rows : fragment.columns);
  const uint64_t stride = s->b != 0 ? w.at<uint32_t>(s->b)[first] : across;
  uint64_t* at = w.at<uint64_t>(s->d);
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t element = fragment.element(l, slot);
    const uint32_t row = element / static_cast<uint32_t>(fragment.columns);
    const uint32_t column = element % static_cast<uint32_t>(fragment.columns);
    const uint64_t index = fragment.by_columns ? column * stride + row : row * stride + column;
    at[l] = base + index * fragment.bytes();
  }
}

Space space_in(LaneWarp& w, const Step* s) {
  Mask same = 0;
  const Space space = space_of(s);
  return space == Space::kGeneric ? generic_space(w, {s->d, 0, true}, same) : space;
}

bool load_slot(LaneWarp& w, const Step* s, const Fragment& fragment, uint32_t slot) {
  const Operand64 from{s->d, 0, true};
  const Access access{fragment.bytes(), false};
  Near near;
  Far far;
  const bool is_near = space_in(w, s) == Space::kShared;
  if (is_near) {
    if (!resolve_near(w, s, access, from, near)) return false;
    check_read_near(w, s, access.bytes, near);
  } else {
    if (!resolve_far(w, s, access, from, Space::kGlobal, far)) return false;
    check_read_far(w, s, access.bytes, far);
  }
  for (int l = 0; l < kLanes; ++l) {
    const uint8_t* memory = is_near ? w.block->shared + near.at[l] : far.host(l);
    memcpy(fragment.slot(w, l, slot), memory, access.bytes);
  }
  return !w.block->stopped;
}

bool store_slot(LaneWarp& w, const Step* s, const Fragment& fragment, uint32_t slot) {
  const Operand64 to{s->d, 0, true};
  const Access access{fragment.bytes(), true};
  alignas(8) uint8_t values[kLanes * 8];
  for (uint32_t l = 0; l < kLanes; ++l) {
    memcpy(values + l * access.bytes, fragment.slot(w, static_cast<int>(l), slot), access.bytes);
  }
  if (space_in(w, s) == Space::kShared) {
    Near near;
    if (!resolve_near(w, s, access, to, near)) return false;
    store_near(w, s, access.bytes, near, values);
  } else {
    Far far;
    if (!resolve_far(w, s, access, to, Space::kGlobal, far)) return false;
    store_far(w, s, access.bytes, far, values);
  }
  return !w.block->stopped;
}

bool all_are_there(LaneWarp& w, const Step* s) {
  if (w.is_full()) return true;
  report(*w.block, w, s, FindingKind::kShuffleSource, w.thread(lowest(w.active)),
         "lanes of the warp are missing");
  return false;
}

const Step* load_fragment(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  const Fragment fragment = fragment_of(s);
  for (uint32_t slot = 0; slot < fragment.slots(); ++slot) {
    place_addresses(w, s, fragment, slot);
    if (!load_slot(w, s, fragment, slot)) return stop_warp(w);
  }
  return s + 1;
}

const Step* store_fragment(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  const Fragment fragment = fragment_of(s);
  for (uint32_t slot = 0; slot < fragment.slots(); ++slot) {
    place_addresses(w, s, fragment, slot);
    if (!store_slot(w, s, fragment, slot)) return stop_warp(w);
  }
  return s + 1;
}

double number_at(const uint8_t* memory, Type type) {
  uint64_t bits = 0;
  memcpy(&bits, memory, static_cast<size_t>(bytes_of(type)));
  switch (type) {
    case Type::kF16:
      return widen(F16{static_cast<uint16_t>(bits)});
    case Type::kBf16:
      return widen(Bf16{static_cast<uint16_t>(bits)});
    case Type::kTf32:
      return __builtin_bit_cast(float, static_cast<uint32_t>(bits) & 0xFFFFE000);
    case Type::kF32:
      return __builtin_bit_cast(float, static_cast<uint32_t>(bits));
    case Type::kF64:
      return __builtin_bit_cast(double, bits);
    case Type::kS8:
      return static_cast<int8_t>(bits);
    case Type::kS32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<double>(bits);
  }
}

void put_number(uint8_t* memory, Type type, double value, bool saturates) {
  if (type == Type::kF16) {
    const F16 half = narrow<F16>(static_cast<float>(value));
    memcpy(memory, &half, sizeof half);
  } else if (type == Type::kF32) {
    const float single = static_cast<float>(value);
    memcpy(memory, &single, sizeof single);
  } else if (type == Type::kF64) {
    memcpy(memory, &value, sizeof value);
  } else {
    const double most = INT32_MAX, least = INT32_MIN;
    const double inside = value > most ? most : value < least ? least : value;
    const int32_t word = static_cast<int32_t>(static_cast<int64_t>(saturates ? inside : value));
    memcpy(memory, &word, sizeof word);
  }
}

constexpr int kSideMax = 32;
using Numbers = double[kSideMax * kSideMax];

void read_fragment(LaneWarp& w, const Fragment& fragment, Numbers& numbers) {
  for (int l = 0; l < 32; ++l) {
    for (uint32_t slot = 0; slot < fragment.slots(); ++slot) {
      numbers[fragment.element(l, slot)] = number_at(fragment.slot(w, l, slot), fragment.type);
    }
  }
}

// The list: for each of d, a, b and c two words as of a load's c and e, then its registers.
const Step* multiply_fragments(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  Fragment fragments[4];
  const uint32_t* next = s->list;
  for (Fragment& fragment : fragments) {
    Step described = *s;
    described.c = next[0];
    described.e = next[1];
    described.list = next + 2;
    fragment = fragment_of(&described);
    next += 2 + fragment.registers;
  }
  const Fragment& d = fragments[0];
  const int inner = fragments[1].columns;
  static thread_local Numbers a, b, c;
  read_fragment(w, fragments[1], a);
  read_fragment(w, fragments[2], b);
  read_fragment(w, fragments[3], c);
  for (int row = 0; row < d.rows; ++row) {
    for (int column = 0; column < d.columns; ++column) {
      double sum = c[row * d.columns + column];
      for (int k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * d.columns + column];
      c[row * d.columns + column] = sum;
    }
  }
  for (int l = 0; l < 32; ++l) {
    for (uint32_t slot = 0; slot < d.slots(); ++slot) {
      put_number(d.slot(w, l, slot), d.type, c[d.element(l, slot)], s->flags & 1);
    }
  }
  return s + 1;
}

}  // namespace

void add_fragments(PlainHandlers& handlers) {
  handlers.load_fragment = load_fragment;
  handlers.store_fragment = store_fragment;
  handlers.multiply_fragments = multiply_fragments;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
