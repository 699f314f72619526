// SPDX-License-Identifier: Apache-2.0
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

PlainHandlers plain_handlers() {
  PlainHandlers handlers{};
  add_flow(handlers);
  add_meetings(handlers);
  add_copies(handlers);
  add_bits(handlers);
  add_memory(handlers);
  add_fragments(handlers);
  add_counts(handlers);
  return handlers;
}

}  // namespace

extern const Variant kVariant{kLanes,      find_arithmetic, find_convert,     find_load, find_store,
                              find_atomic, find_matrix,     plain_handlers(), work};

}  // namespace mc::ptx::MC_PTX_VARIANT
