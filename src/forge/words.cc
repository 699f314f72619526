// SPDX-License-Identifier: Apache-2.0
#include "forge/words.h"

#include <cctype>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

using Forms = std::vector<const char*>;

const std::map<std::string, Forms, std::less<>>& grammar() {
  static const std::map<std::string, Forms, std::less<>> kGrammar = {
      // ---- Steps of reasoning ------------------------------------------------------------------
      {"fusion",
       {"Rejected: a kernel for each of the {count} operators, so {count} launches and {bytes} "
        "bytes "
        "of {values} elements written and read back. Launches here: {kernels}.",
        "One kernel an operator would be {count} launches, and {values} elements would go through "
        "memory twice, {bytes} bytes; fused: {kernels}.",
        "Without fusion it takes {count} launches and {bytes} bytes for {values} elements that are "
        "stored and loaded again; with it, {kernels}.",
        "Launches: {kernels} in place of {count}, which also saves {bytes} bytes of traffic for "
        "{values} elements between operators.",
        "{count} separate operators would write {values} elements and read them back ({bytes} "
        "bytes "
        "in {count} launches), so they are fused: launches {kernels}.",
        "Not operator by operator: that costs {bytes} bytes for {values} elements, out and in, and "
        "{count} launches against {kernels}."}},
      {"separate",
       {"Launches in all: {kernels}.", "Number of launches: {kernels}.",
        "Launches, one behind the other: {kernels}.", "Kernels that the host starts: {kernels}.",
        "The count of launches is {kernels}.", "Launched in sequence: {kernels}."}},
      {"kernel",
       {"Kernel {k}, {kernel}: {chain}, by {plan}; {blocks} blocks of {threads} threads.",
        "{kernel} is kernel {k} and computes {chain}. It takes {plan}: a grid of {blocks}, blocks "
        "of "
        "{threads}.",
        "For {chain} there is {kernel} (kernel {k}), launched with {blocks} blocks of {threads}: "
        "{plan}.",
        "Kernel {k} does {chain} in {kernel}: {plan}, that is {blocks} x {threads} threads.",
        "Use {plan} to compute {chain}. This is kernel {k}, {kernel}, of {blocks} blocks and "
        "{threads} "
        "threads each.",
        "{blocks} blocks of {threads} threads run {kernel}, kernel {k}: {chain}, with {plan}."}},
      {"spare",
       {"{all} threads, {busy} with work; `{check}` stops {idle} of kernel {k}.",
        "In kernel {k} the check `{check}` holds back {idle} of {all} threads and lets {busy} "
        "work.",
        "Of {all} threads of kernel {k}, {busy} work and {idle} fail `{check}`.",
        "{idle} of the {all} threads of kernel {k} are past the end: `{check}` leaves {busy}.",
        "Kernel {k} needs {busy} threads and gets {all}, so `{check}` has {idle} to stop.",
        "`{check}` in kernel {k}: {busy} threads go on, {idle} of {all} do not."}},
      {"exact",
       {"All {all} threads of kernel {k} have work here; `{check}` is for other sizes.",
        "The sizes fill kernel {k} exactly, {all} threads; `{check}` stays, since others do not.",
        "No thread of the {all} of kernel {k} is spare, yet other sizes need `{check}`.",
        "Kernel {k}: {all} threads, none idle. Sizes may change, so `{check}` is kept.",
        "With these sizes `{check}` stops none of the {all} threads of kernel {k}.",
        "{all} threads and as much work for kernel {k}; `{check}` matters at other sizes."}},
      {"example",
       {"Thread {thread} of block {block} in kernel {k} has {name} = {place}.",
        "For instance in kernel {k}: block {block}, thread {thread}, {name} = {place}.",
        "In kernel {k}, {name} = {place} belongs to thread {thread} of block {block}.",
        "To check kernel {k}: at block {block} and thread {thread}, {name} is {place}.",
        "{name} is {place} for thread {thread} in block {block} of kernel {k}.",
        "Block {block}, thread {thread} of kernel {k} begins with {name} = {place}."}},
      {"barriers",
       {"A block of kernel {k} passes {barriers} barriers.",
        "Barriers that each block of kernel {k} passes: {barriers}.",
        "__syncthreads() runs {barriers} times in a block of kernel {k}, never in a divergent "
        "branch.",
        "Every thread of a block of kernel {k} meets {barriers} barriers.",
        "Kernel {k} synchronises a block {barriers} times.",
        "Per block kernel {k} has {barriers} barriers to pass."}},
      {"shared_bytes",
       {"A block of kernel {k} takes {bytes} bytes of shared memory.",
        "Kernel {k} has {bytes} bytes of shared memory a block.",
        "Shared memory of kernel {k}: {bytes} bytes a block.",
        "{bytes} bytes of shared memory are needed for each block of kernel {k}.",
        "Each block of kernel {k} keeps {bytes} bytes in shared memory.",
        "In shared memory a block of kernel {k} holds {bytes} bytes."}},
      {"reads",
       {"Each element of {name} is loaded {count}x in kernel {k}.",
        "Kernel {k} loads {name} {count}x.", "Passes of kernel {k} over {name}: {count}.",
        "{name} comes from memory {count}x in kernel {k}.",
        "Loads of an element of {name} in kernel {k}: {count}.",
        "In kernel {k} every element of {name} is fetched {count}x."}},
      // Figures in which a rejected plan costs more.
      {"less_barriers",
       {"Rejected for kernel {k}: {other}. A block would pass {theirs} barriers, and passes "
        "{ours}.",
        "Kernel {k} is not {other}, which has {theirs} barriers a block against {ours}.",
        "{other} in kernel {k} would mean {theirs} barriers a block in place of {ours}.",
        "Barriers decide kernel {k}: {ours} a block, but {theirs} with {other}.",
        "With {other}, kernel {k} would wait at {theirs} barriers a block; it has {ours}.",
        "For kernel {k} barriers a block are {ours}; {theirs} would be the price of {other}."}},
      {"less_launches",
       {"Rejected for kernel {k}: {other}. It launches {theirs} and this {ours}.",
        "Kernel {k} is not {other}, whose launches are {theirs} against {ours}.",
        "{other} would turn kernel {k} into {theirs} launches; here {ours} will do.",
        "Launches decide kernel {k}: {ours}, but {theirs} with {other}.",
        "With {other}, kernel {k} would be launched as {theirs}, not {ours}.",
        "For kernel {k} launches are {ours}; {theirs} would be the price of {other}."}},
      {"less_loaded",
       {"Rejected for kernel {k}: {other}. Its threads load {theirs} bytes, these {ours}.",
        "Kernel {k} is not {other}, which loads {theirs} bytes where {ours} are enough.",
        "{other} would load {theirs} bytes in kernel {k}; this loads {ours}.",
        "Loads decide kernel {k}: {ours} bytes, but {theirs} with {other}.",
        "With {other}, kernel {k} would ask memory for {theirs} bytes in place of {ours}.",
        "For kernel {k} loads are {ours} bytes; {theirs} would be the price of {other}."}},
      {"less_sectors",
       {"Rejected for kernel {k}: {other}. A load of its first warp touches {theirs} sectors of 32 "
        "bytes, here {ours}.",
        "Kernel {k} is not {other}: {theirs} sectors for a warp's load against {ours}.",
        "{other} would scatter a warp's load in kernel {k} over {theirs} sectors; here it is "
        "{ours}.",
        "Coalescing decides kernel {k}: {ours} sectors a load of the first warp, but {theirs} with "
        "{other}.",
        "With {other}, a warp of kernel {k} would fetch {theirs} sectors a load, not {ours}.",
        "For kernel {k} the first warp's load takes {ours} sectors; {theirs} would be the price of "
        "{other}."}},
      {"more_busy",
       {"Rejected for kernel {k}: {other}. Only {theirs} threads would have work, here {ours}.",
        "Kernel {k} is not {other}, which keeps {theirs} threads busy against {ours}.",
        "{other} would leave kernel {k} with {theirs} threads at work; here they are {ours}.",
        "Parallelism decides kernel {k}: {ours} threads with work, but {theirs} with {other}.",
        "With {other}, kernel {k} would occupy {theirs} threads in place of {ours}.",
        "For kernel {k} threads with work are {ours}; {theirs} is all that {other} gives."}},
      {"fewer_blocks",
       {"Rejected for kernel {k}: {other}. That is {theirs} blocks to schedule, this {ours}.",
        "Kernel {k} is not {other}, which launches {theirs} blocks against {ours}.",
        "{other} would cut kernel {k} into {theirs} blocks; here they are {ours}.",
        "The grid decides kernel {k}: {ours} blocks, but {theirs} with {other}.",
        "With {other}, kernel {k} would start {theirs} blocks in place of {ours}.",
        "For kernel {k} blocks are {ours}; {theirs} would be the price of {other}."}},
      // Figures in which the chosen plan costs more.
      {"price_barriers",
       {"The price of kernel {k}: {ours} barriers a block, where {other} has {theirs}.",
        "In return kernel {k} waits at {ours} barriers a block; {other} would at {theirs}.",
        "{other} would spare barriers in kernel {k}: {theirs} in place of {ours} a block.",
        "Kernel {k} pays with {ours} barriers a block against {theirs} of {other}.",
        "Against it speak {ours} barriers a block in kernel {k}; {other} passes {theirs}.",
        "Barriers a block of kernel {k} rise to {ours}, from {theirs} of {other}."}},
      {"price_busy",
       {"The price of kernel {k}: {ours} threads with work, where {other} has {theirs}.",
        "In return kernel {k} keeps {ours} threads busy; {other} would keep {theirs}.",
        "{other} would give kernel {k} more parallelism: {theirs} threads in place of {ours}.",
        "Kernel {k} pays with {ours} working threads against {theirs} of {other}.",
        "Against it speaks that {ours} threads work in kernel {k}; with {other} {theirs} would.",
        "Threads with work in kernel {k} fall to {ours}, from {theirs} of {other}."}},
      // ---- Reviews and diagnoses
      {"no_bug",
       {"No bug.", "There is no bug.", "I find no bug.", "Nothing to fix: no bug.",
        "This answer has no bug.", "No fault was found."}},
      {"failed",
       {"The run ended so: {effect}.", "What was observed: {effect}.", "The verdict is {effect}.",
        "The candidate failed, {effect}.", "Symptom: {effect}.", "The judge reports {effect}."}},
      {"stream",
       {"Launches use the current stream, and each is checked: {count}.",
        "Checks behind launches: {count}, all on the current stream.",
        "On the current stream are {count} launches, each followed by its check.",
        "{count} launches, {count} launch checks, one stream: the current one.",
        "Errors of all {count} launches are caught, and all are on the current stream.",
        "No launch is unchecked ({count} in all), and the stream is PyTorch's."}},
      {"formula",
       {"{op} is {formula}.", "For {op}: {formula}.", "Formula of {op}: {formula}.",
        "{op} means {formula}.", "What {op} computes: {formula}.",
        "By definition {op} is {formula}."}},
      {"run",
       {"In kernel {k}, {name} has the value {value}.",
        "Kernel {k} is called with {name} = {value}.", "{name} = {value} in kernel {k}.",
        "For {name}, kernel {k} gets {value}.", "Among the sizes of kernel {k}: {name} = {value}.",
        "For kernel {k} the sizes give {name} = {value}."}},
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
      {"types",
       {"Values are {type} in memory and {sums} in registers.",
        "Elements have type {type}; kernels compute in {sums}.",
        "Memory holds {type}, arithmetic is in {sums}.",
        "Every value is stored as {type} and computed in {sums}.",
        "Types: {type} in memory, {sums} in between.",
        "The tensors are {type}; each load converts to {sums}."}},
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

}  // namespace

std::string phrased(std::string_view sentence, const Slots& slots, Random& random) {
  const auto found = grammar().find(sentence);
  MC_CHECK(found != grammar().end());
  std::string text = random.pick(found->second);
  for (const auto& [name, value] : slots) {
    text = substituted(std::move(text), "{" + name + "}", value);
  }
  // A plan may begin a sentence.
  text.front() = text.starts_with("a ") || text.starts_with("one ") ||
                         text.starts_with("blocks ") || text.starts_with("vectors ")
                     ? static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())))
                     : text.front();
  return text;
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
