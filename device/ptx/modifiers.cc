// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// The modifiers that handlers implement, or that have no effect here (caches, scopes), each between
// blanks.
constexpr std::string_view kKnown =
    " L1 L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate "
    "L2 L2::128B L2::256B L2::64B L2::cache_hint L2::evict_first L2::evict_last "
    "L2::evict_normal L2::evict_unchanged NaN a acq_rel acquire add alias aligned all and "
    "any approx arrive async b b4e ballot bfly c ca cas cc cg clamp cluster col commit_group "
    "const cs cta cv d dec down ecl ecr eq equ exch f4e finite fractional ftz full ge geu gl "
    "global gpu gt gtu hi hs idx inc infinite l launch_dependents le leu lo load local ls lt "
    "ltu lu m16n16k16 m16n16k8 m16n8k128 m16n8k16 m16n8k256 m16n8k32 m16n8k4 m16n8k64 "
    "m16n8k8 m32n8k16 m8n32k16 m8n8 m8n8k128 m8n8k16 m8n8k32 m8n8k4 mask max min mma mmio "
    "nan nc ne neu noftz normal notanumber num number or param param::entry param::func popc "
    "proxy r range rc16 rc8 red relaxed release relu rm rmi rn rna rni row rp rpi rz rzi sat "
    "satfinite sc shared shared::cta shiftamt store subnormal sync sys to trans uni up v2 v4 "
    "v8 volatile wait wait_all wait_group warp wb weak wide wrap wt x1 x2 x4 xor ";

}  // namespace

bool is_known_modifier(std::string_view modifier) {
  const std::string word = " " + std::string(modifier) + " ";
  return kKnown.find(word) != std::string_view::npos || type_of(modifier) != Type::kNone;
}

}  // namespace mc::ptx
