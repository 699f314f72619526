// SPDX-License-Identifier: Apache-2.0
#include "forge/words.h"

#include <cctype>
#include <set>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

using Forms = std::vector<const char*>;

const std::map<std::string, Forms, std::less<>>& grammar() {
  static const std::map<std::string, Forms, std::less<>> kGrammar = {
      // ---- Steps of reasoning ------------------------------------------------------------------
      {"operators",
       {"The module has {count} operators: {chain}.", "It computes {chain}; operators: {count}.",
        "Operators in order ({count}): {chain}.", "The forward pass is {chain}, {count} in all.",
        "There are {count} steps, which are {chain}.",
        "Decomposed, the module is {chain} (steps: {count})."}},
      {"kernels",
       {"The number of kernels is {kernels}.", "Kernels: {kernels}.",
        "This takes {kernels} launches.", "It is cut into {kernels} kernels.",
        "Launches that are needed: {kernels}.", "The plan has {kernels} kernels."}},
      {"stage",
       {"Kernel {k} computes {chain} and writes {value}.",
        "In kernel {k}: {chain}, stored as {value}.",
        "{value} is written by kernel {k}, which does {chain}.",
        "Kernel {k} is for {chain}; its result is {value}.",
        "The work of kernel {k} is {chain}, and {value} is its output.",
        "{chain} are fused in kernel {k}, so only {value} goes to memory."}},
      {"formula",
       {"Step {k}, {op}: {formula}.", "{op} (step {k}) is {formula}.",
        "The formula of step {k}, which is {op}, is {formula}.",
        "In step {k}, {op} means {formula}.", "Step {k} computes {formula}, that is {op}.",
        "For {op} in step {k}: {formula}."}},
      {"stable",
       {"Exponentials and squares are taken of differences, so nothing overflows or cancels.",
        "The largest value or the mean is subtracted first, which keeps the numbers small.",
        "Differences come before exponentials and squares: this is the stable form.",
        "Without the subtraction large inputs would overflow or cancel.",
        "Subtracting first avoids infinities and lost digits.",
        "It is computed of differences, because the plain form is not stable."}},
      {"tensor",
       {"{name} has shape {shape} = [{sizes}], {count} elements.",
        "The shape of {name} is {shape} = [{sizes}]; it has {count} elements.",
        "{name}: {shape} = [{sizes}], that is {count} elements.",
        "{count} elements are in {name}, whose shape is {shape} = [{sizes}].",
        "With shape {shape} = [{sizes}], {name} has {count} elements.",
        "{name} holds {count} elements in shape {shape} = [{sizes}]."}},
      {"extent",
       {"The extent {extent} is {size}.", "{extent} = {size}.", "{extent} comes to {size}.",
        "From the sizes follows {extent} = {size}.", "An axis has {extent} = {size} places.",
        "The size of one axis is {extent} = {size}."}},
      {"step_shape",
       {"Step {k} gives {shape} = [{sizes}].", "After step {k} the shape is {shape} = [{sizes}].",
        "The result of step {k} is {shape} = [{sizes}].",
        "{shape} = [{sizes}] is what step {k} makes.",
        "Step {k} has an output of shape {shape} = [{sizes}].",
        "The shape behind step {k}: {shape} = [{sizes}]."}},
      {"mapping",
       {"Kernel {k}: {how}.", "In kernel {k}, {how}.",
        "The work of kernel {k} is shared so: {how}.", "Mapping of kernel {k}: {how}.",
        "For kernel {k}, {how}.", "Threads of kernel {k}: {how}."}},
      {"run",
       {"In kernel {k}, {name} is {value}.", "Kernel {k} is called with {name} = {value}.",
        "{name} = {value} in kernel {k}.", "The {name} of kernel {k} is {value}.",
        "Kernel {k} has {name} = {value} places to cover.",
        "For kernel {k} the sizes give {name} = {value}."}},
      {"block",
       {"A block of kernel {k} has {threads} threads, {warps} warps.",
        "Kernel {k} runs {threads} threads a block: {warps} warps.",
        "Each block of kernel {k} is {warps} warps, or {threads} threads.",
        "Blocks of kernel {k} have {threads} threads ({warps} warps).",
        "{threads} threads make a block of kernel {k}, so {warps} warps.",
        "The block size of kernel {k} is {threads}, which is {warps} warps."}},
      {"strides",
       {"{name} has strides [{strides}], so element [{index}] is at offset {offset}.",
        "With strides [{strides}], element [{index}] of {name} is at {offset}.",
        "Element [{index}] of {name} is {offset} places from its start; strides [{strides}].",
        "The strides of {name} are [{strides}]: [{index}] is at offset {offset}.",
        "Offset {offset} is element [{index}] of {name}, by strides [{strides}].",
        "In {name}, with strides [{strides}], [{index}] means offset {offset}."}},
      {"largest",
       {"The largest tensor has {count} elements, below 2^31, so int is enough for offsets.",
        "Offsets fit into int: no tensor has more than {count} elements, which is less than 2^31.",
        "No offset reaches 2^31, since the largest tensor has {count} elements.",
        "With {count} elements at most in a tensor, 32-bit offsets are enough: 2^31 is more.",
        "int holds all offsets, which are below {count} and so below 2^31.",
        "Since {count} elements are the most that a tensor has, int is safe up to 2^31."}},
      {"tail",
       {"{name} = {value} is {full} times {block} and {rest} more, so the bound is checked.",
        "{value} = {full} * {block} + {rest}, so {name} needs a check at its end.",
        "{full} full blocks of {block} leave {rest} of {name} = {value}: accesses are guarded.",
        "Of {name} = {value}, {rest} are left behind {full} blocks of {block}; a check covers "
        "them.",
        "Dividing {name} = {value} by {block} gives {full} and leaves {rest}: check the bound.",
        "The tail of {name} = {value} has {rest} places after {full} blocks of {block}."}},
      {"types",
       {"Values are {type}, and sums are kept in {sums}.",
        "Elements have type {type}; accumulators are {sums}.",
        "Accumulation is in {sums}, memory holds {type}.",
        "Every value is stored as {type}, and {sums} is the type of sums.",
        "Types: {type} in memory, {sums} for sums.",
        "The tensors are {type}, the accumulators {sums}."}},
      {"contiguous",
       {"All tensors are contiguous.", "Every tensor is contiguous in memory.",
        "The layout of all tensors is contiguous.", "Memory is contiguous throughout.",
        "No tensor has gaps: each is contiguous.", "Layout: contiguous, without exception."}},
      {"view",
       {"{name} is a view with strides [{strides}]; all other tensors are contiguous.",
        "All tensors but {name} are contiguous: it is a view, with strides [{strides}].",
        "The view {name} has strides [{strides}], the other tensors are contiguous.",
        "Not contiguous is {name} alone, a view with strides [{strides}].",
        "Layout: {name} is read by strides [{strides}], what else there is is contiguous.",
        "With strides [{strides}], {name} is a view; the rest is contiguous."}},
      {"aligned",
       {"PyTorch's allocations are aligned, so vectors of four are aligned where their index is a "
        "multiple of four; the rest is done one by one.",
        "Vector accesses are aligned, since allocations are and indices step by four; a scalar "
        "tail "
        "follows.",
        "Groups of four start at aligned addresses, and what is left over is handled alone.",
        "Alignment holds for whole groups of four; the tail is scalar.",
        "Vectors of four need aligned addresses, which allocations give; the tail has none.",
        "Since allocations are aligned, groups of four are too, and a scalar loop does the rest."}},
      {"traps",
       {"Mistakes that fit this kernel ({count} kinds): {kinds}.",
        "{count} kinds of mistakes are possible here: {kinds}.",
        "To rule out, {count} in all: {kinds}.", "Checks before answering ({count}): {kinds}.",
        "What could go wrong has {count} names: {kinds}.",
        "Known traps, {count} of them: {kinds}."}},
      // ---- Performance -------------------------------------------------------------------------
      {"traffic",
       {"Kernel {k} reads {read} bytes and writes {written}.",
        "In kernel {k}, {read} bytes are read and {written} are written.",
        "Traffic of kernel {k}: {read} bytes in, {written} bytes out.",
        "Kernel {k} moves {read} bytes from memory and {written} to it.",
        "{read} bytes in and {written} out are the traffic of kernel {k}.",
        "Memory traffic of kernel {k} is {read} bytes of loads and {written} of stores."}},
      {"total",
       {"All kernels together move {bytes} bytes; inputs, parameters and outputs are {needed}.",
        "{bytes} bytes are moved in all, where {needed} would do.",
        "The least possible traffic is {needed} bytes, and this solution moves {bytes}.",
        "In total {bytes} bytes are moved; a single fused kernel would move {needed}.",
        "Of {bytes} moved bytes, {needed} cannot be avoided.",
        "Traffic: {bytes} bytes; lower bound: {needed} bytes."}},
      {"intensity",
       {"Kernel {k} does {flops} operations for {bytes} bytes: {ratio} a byte, so it is {bound}.",
        "{flops} operations over {bytes} bytes make {ratio} a byte: kernel {k} is {bound}.",
        "With {ratio} operations a byte ({flops} / {bytes}), kernel {k} is {bound}.",
        "Kernel {k} is {bound}, since {flops} / {bytes} = {ratio} operations a byte.",
        "The intensity of kernel {k} is {flops} / {bytes} = {ratio}, which makes it {bound}.",
        "At {flops} operations and {bytes} bytes, kernel {k} has intensity {ratio} and is "
        "{bound}."}},
      {"feature",
       {"Kernel {k} shows {feature}.", "The technique of kernel {k} is {feature}.",
        "In kernel {k} the optimisation is {feature}.", "{feature} is used in kernel {k}.",
        "Kernel {k} relies on {feature}.", "What speeds kernel {k} up is {feature}."}},
      {"options",
       {"Other forms of kernel {k} that fit: {features}.", "Kernel {k} could also use {features}.",
        "To try for kernel {k}: {features}.",
        "Not used in kernel {k}, though possible: {features}.",
        "Alternatives for kernel {k} are {features}.",
        "For kernel {k}, {features} would fit too."}},
      {"right",
       {"The kernel is right; what follows is about speed.",
        "No bug was found, so speed is the topic.",
        "It is correct. Its performance:", "The answer passes; its cost is this.",
        "Correctness is fine, and performance is as follows.",
        "There is nothing to repair; here is an analysis of its speed."}},
      // ---- Profiles ----------------------------------------------------------------------------
      {"registers",
       {"{kernel} uses {registers} registers a thread and {shared} bytes of shared memory.",
        "ptxas gives {kernel} {registers} registers and {shared} bytes of shared memory.",
        "Resources of {kernel}: {registers} registers a thread, {shared} bytes shared.",
        "With {registers} registers a thread and {shared} shared bytes, {kernel} is built.",
        "{kernel} needs {shared} bytes of shared memory and {registers} registers a thread.",
        "Per thread {kernel} takes {registers} registers; its block has {shared} shared bytes."}},
      {"spills",
       {"{kernel} spills {stores} bytes to local memory and loads {loads} back.",
        "Spills of {kernel}: {stores} bytes stored, {loads} bytes loaded.",
        "Local memory takes {stores} bytes of spill stores and {loads} of loads in {kernel}.",
        "For {kernel}, spill stores are {stores} bytes and spill loads {loads}.",
        "ptxas reports {stores} bytes of spill stores and {loads} of spill loads for {kernel}.",
        "{kernel} has {stores} bytes of spilled stores, {loads} of spilled loads."}},
      {"occupancy",
       {"With {threads} threads a block, {blocks} blocks fit on a multiprocessor: {percent} % of "
        "its "
        "warps; the limit is {limit}.",
        "{blocks} blocks of {threads} threads are resident, {percent} % occupancy, limited by "
        "{limit}.",
        "Occupancy is {percent} %: {blocks} blocks of {threads} threads, bounded by {limit}.",
        "The limit is {limit}, so {blocks} blocks of {threads} threads run at once: {percent} %.",
        "A multiprocessor holds {blocks} blocks ({threads} threads each), {percent} % of its "
        "warps, "
        "because of {limit}.",
        "Limited by {limit}, {percent} % of the warps are used: {blocks} blocks of {threads}."}},
      // ---- Questions ---------------------------------------------------------------------------
      {"ask_grid",
       {"How many blocks of {threads} threads cover {n} elements, and how many threads are idle?",
        "{n} elements, one a thread, {threads} threads a block: how large is the grid, and what is "
        "idle?",
        "Give the grid size for {n} elements at {threads} threads a block, and the idle threads.",
        "A kernel has one thread an element and blocks of {threads}. For {n} elements: blocks, "
        "idle "
        "threads?",
        "Which grid covers n = {n} with blocks of {threads}, and how many threads do nothing?",
        "Compute blocks and idle threads: n = {n}, block = {threads}."}},
      {"tell_grid",
       {"{blocks} blocks, and {idle} threads are idle.",
        "The grid has {blocks} blocks; idle: {idle}.",
        "It takes {blocks} blocks, with {idle} threads left over.",
        "Blocks: {blocks}. Idle threads: {idle}.",
        "Rounded up, that is {blocks} blocks, of which {idle} threads have no element.",
        "{blocks} blocks are needed and {idle} threads do nothing."}},
      {"ask_occupancy",
       {"On sm_90, how many blocks of {threads} threads with {registers} registers a thread and "
        "{shared} "
        "bytes of shared memory fit on a multiprocessor?",
        "A kernel for sm_90 has {threads} threads a block, {registers} registers a thread and "
        "{shared} "
        "shared bytes. What is its occupancy?",
        "What limits the occupancy on sm_90 of blocks of {threads} threads, {registers} registers "
        "each, "
        "{shared} bytes of shared memory?",
        "Compute the resident blocks on sm_90: {threads} threads, {registers} registers, {shared} "
        "bytes "
        "shared.",
        "sm_90, block {threads}, {registers} registers a thread, {shared} bytes of shared memory: "
        "which "
        "occupancy?",
        "How full is a multiprocessor of sm_90 with blocks of {threads} threads, {registers} "
        "registers a "
        "thread, {shared} bytes shared?"}},
      {"ask_sectors",
       {"The lanes of a warp read floats that are {stride} elements apart, from an aligned "
        "address. How "
        "many 32-byte sectors are touched?",
        "Lane t reads x[{stride} * t] of float. Into how many sectors of 32 bytes does the warp "
        "reach?",
        "How many 32-byte sectors does a warp's load touch at a stride of {stride} floats?",
        "Warp load, float, stride {stride}, aligned: sectors of 32 bytes?",
        "A warp loads every {stride}th float. Count the 32-byte sectors.",
        "With stride {stride} between lanes, how many sectors of 32 bytes does a float load "
        "need?"}},
      {"tell_sectors",
       {"{sectors} sectors, of which {percent} % of the bytes are used.",
        "It touches {sectors} sectors and uses {percent} % of what is moved.",
        "{sectors} sectors; {percent} % of the moved bytes are wanted.",
        "Sectors: {sectors}. Used share: {percent} %.",
        "The load needs {sectors} sectors, so {percent} % of the traffic is useful.",
        "{percent} % of the bytes are used, in {sectors} sectors."}},
      {"ask_banks",
       {"Lanes of a warp access shared memory at a stride of {stride} words. How many ways is the "
        "bank "
        "conflict?",
        "s[{stride} * t] of float for t in a warp: which bank conflict?",
        "Shared memory has 32 banks of 4 bytes. Which conflict has a stride of {stride} floats?",
        "How often is a shared load replayed when lanes are {stride} words apart?",
        "Stride {stride} words in shared memory: is there a bank conflict?",
        "What bank conflict does a word stride of {stride} cause?"}},
      {"tell_banks",
       {"{ways} lanes share a bank: the conflict is {ways}-way.", "It is {ways}-way.",
        "The access is served in {ways} passes, a {ways}-way conflict.",
        "{ways}-way, where 1 is none.", "Each bank has {ways} of the lanes, so {ways} passes.",
        "Ways of conflict: {ways}."}},
      {"ask_offset",
       {"What is the offset of element [{index}] in a contiguous tensor of shape [{sizes}]?",
        "A contiguous tensor has shape [{sizes}]. Where is [{index}]?",
        "Shape [{sizes}], contiguous: the linear index of [{index}]?",
        "Give the flat index of [{index}] for sizes [{sizes}].",
        "In row-major order with sizes [{sizes}], which offset has [{index}]?",
        "Compute strides and offset: sizes [{sizes}], index [{index}]."}},
      {"tell_offset",
       {"The strides are [{strides}], so the offset is {offset}.",
        "Strides [{strides}], offset {offset}.", "It is at {offset}, by strides [{strides}].",
        "Offset {offset}: the strides are [{strides}].",
        "By strides [{strides}] that is place {offset}.",
        "{offset}, since the strides are [{strides}]."}},
      {"ask_time",
       {"A kernel moves {bytes} bytes at {rate} GB/s. What is its least time?",
        "At {rate} GB/s, how long do {bytes} bytes take?",
        "Memory runs at {rate} GB/s and {bytes} bytes are moved: lower bound of the time?",
        "Which time bounds a kernel from below that moves {bytes} bytes, at {rate} GB/s?",
        "{bytes} bytes, {rate} GB/s: microseconds at least?",
        "Give the bandwidth bound for {bytes} bytes at {rate} GB/s."}},
      {"tell_time",
       {"{us} microseconds.", "At least {us} us.", "The bound is {us} us.",
        "No less than {us} microseconds.", "It takes {us} us or more.",
        "{us} us, if nothing else is slower."}},
      {"ask_convolution",
       {"What is the output extent of a convolution with input {size}, kernel {kernel}, stride "
        "{stride}, "
        "padding {padding}, dilation {dilation}?",
        "Convolution: size {size}, kernel {kernel}, stride {stride}, padding {padding}, dilation "
        "{dilation}. How many outputs along the axis?",
        "An axis of {size} is convolved by {kernel} taps (stride {stride}, padding {padding}, "
        "dilation "
        "{dilation}). Its new extent?",
        "Give the extent after kernel {kernel}, stride {stride}, padding {padding}, dilation "
        "{dilation} on "
        "{size}.",
        "How long is the output of a convolution on {size} places with kernel {kernel}, stride "
        "{stride}, "
        "padding {padding} and dilation {dilation}?",
        "size {size}, kernel {kernel}, stride {stride}, padding {padding}, dilation {dilation}: "
        "output?"}},
      {"tell_convolution",
       {"({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / {stride} + 1 = {out}.",
        "By ({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / {stride} + 1 it is {out}.",
        "{out}, which is ({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / {stride} + "
        "1.",
        "The extent is {out} = ({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / "
        "{stride} + 1.",
        "It becomes {out}: ({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / {stride} + "
        "1.",
        "Rounded down, ({size} + 2 * {padding} - {dilation} * ({kernel} - 1) - 1) / {stride} + 1 "
        "is {out}."}},
      {"ask_overflow",
       {"Is int enough for the offsets of a tensor of shape [{sizes}]?",
        "Shape [{sizes}]: do 32-bit offsets overflow?",
        "A kernel computes offsets in int for sizes [{sizes}]. Is that safe?",
        "Must offsets be 64-bit for a tensor of sizes [{sizes}]?",
        "Sizes [{sizes}], offsets in int: right or wrong?",
        "Which integer type do offsets into [{sizes}] need?"}},
      {"tell_overflow",
       {"It has {count} elements and the limit of int is 2147483647: {type}.",
        "{count} elements against 2147483647: {type}.", "{type}, since there are {count} elements.",
        "With {count} elements the type is {type}.", "Offsets go up to {count}, so {type}.",
        "The count is {count}; use {type}."}},
  };
  return kGrammar;
}

// Slots that hold one number in every sentence.
bool holds_number(const std::string& slot) {
  static const std::set<std::string> kSlots = {
      "count", "k",      "kernels", "threads", "warps",   "offset", "blocks",   "idle",
      "full",  "block",  "rest",    "read",    "written", "bytes",  "needed",   "flops",
      "ways",  "stores", "loads",   "percent", "sectors", "shared", "registers"};
  return kSlots.contains(slot);
}

// The slots of a form that match the whole line, or nothing.  A slot takes as little as it can.
bool match(std::string_view form, std::string_view line, Slots& slots) {
  const size_t open = form.find('{');
  if (open == std::string_view::npos) return form == line;
  if (line.substr(0, open) != form.substr(0, open)) return false;
  const size_t close = form.find('}', open);
  const std::string name(form.substr(open + 1, close - open - 1));
  const std::string_view rest = form.substr(close + 1);
  line.remove_prefix(open);
  if (const auto known = slots.find(name); known != slots.end()) {
    return line.starts_with(known->second) && match(rest, line.substr(known->second.size()), slots);
  }
  const bool is_number = holds_number(name);
  // The sizes of a single number are an empty list.
  for (size_t size = name == "sizes" ? 0 : 1; size <= line.size(); ++size) {
    if (is_number && std::isdigit(static_cast<unsigned char>(line[size - 1])) == 0) break;
    Slots tried = slots;
    tried[name] = std::string(line.substr(0, size));
    if (!match(rest, line.substr(size), tried)) continue;
    slots = std::move(tried);
    return true;
  }
  return false;
}

}  // namespace

std::string phrased(std::string_view sentence, const Slots& slots, Random& random) {
  const auto found = grammar().find(sentence);
  MC_CHECK(found != grammar().end());
  std::string text = random.pick(found->second);
  for (const auto& [name, value] : slots) {
    text = substituted(std::move(text), "{" + name + "}", value);
  }
  return text;
}

std::vector<Fact> parsed(std::string_view line) {
  std::vector<Fact> facts;
  for (const auto& [name, forms] : grammar()) {
    for (const char* form : forms) {
      Slots slots;
      if (match(form, line, slots)) facts.push_back({name, std::move(slots)});
    }
  }
  return facts;
}

std::vector<std::string> sentences() {
  std::vector<std::string> names;
  for (const auto& [name, forms] : grammar()) names.push_back(name);
  return names;
}

std::vector<std::string> forms_of(std::string_view sentence) {
  MC_CHECK(grammar().contains(sentence));
  const Forms& forms = grammar().find(sentence)->second;
  return {forms.begin(), forms.end()};
}

}  // namespace mc::forge
