// SPDX-License-Identifier: Apache-2.0
#include "reward/hints.h"

#include <csignal>
#include <span>

namespace mc::reward {
namespace {

struct Hint {
  std::string_view name;
  std::string_view text;
};

constexpr Hint kKernelHints[] = {
    {"out_of_bounds_read",
     "an index runs past the end of its array, or the pointer is null or of the host: compare the "
     "index with the true size, also in the last block and for sizes that are no multiple of the "
     "block or vector width."},
    {"out_of_bounds_write",
     "an index runs past the end of its array, or the pointer is null or of the host: guard the "
     "store, also in the last block and for sizes that are no multiple of the block or vector "
     "width."},
    {"host_crash",
     "no kernel did this: code on the host, the candidate's own or PyTorch's that it called, used "
     "an invalid address or all of its stack."},
    {"configuration",
     "an autotuner takes the configuration that is fastest on its device, so each of them must be "
     "right at every size."},
    {"misaligned",
     "a vector access (float4 and the like) needs an address that is a multiple of its size; rows "
     "of odd length start at unaligned addresses."},
    {"shared_race",
     "two threads use the same shared memory without a __syncthreads() between them, at least one "
     "of them writing."},
    {"global_race",
     "two threads write the same global memory without an atomic, or one reads what another "
     "writes in the same launch."},
    {"uninitialised_shared",
     "shared memory is read before any thread wrote it: write every element that is read, also "
     "those past the end of the data, then synchronise."},
    {"stream_race",
     "work on one stream uses memory that work on another one writes, and nothing orders them: "
     "wait "
     "by an event (cudaStreamWaitEvent, wait_stream in PyTorch), or use the current stream alone."},
    {"host_race",
     "the host goes on behind a launch: wait (cudaDeviceSynchronize) before it touches managed "
     "memory that the kernel uses."},
    {"host_access",
     "memory of cudaMalloc is the device's alone: copy it to the host (cudaMemcpy) first."},
    {"uninitialised_copy",
     "bytes are copied to the host that nothing wrote, and what the program prints follows from "
     "them: round the grid up, so that each element has a thread."},
    {"uninitialised_global",
     "global memory is read that nothing wrote since it was allocated (torch.empty, cudaMalloc), "
     "and results follow from it: clear it first (torch.zeros, cudaMemset), write every element "
     "that is read, or leave out those past the end of the data."},
    {"divergent_barrier",
     "some threads of the block returned or branched away before a __syncthreads() that others "
     "reached: keep barriers outside of thread-dependent branches and early returns."},
    {"deadlock",
     "threads wait for something that cannot happen: a warp operation whose mask names lanes that "
     "do not take part, or a flag that nobody sets."},
    {"step_limit",
     "the kernel was ended after its budget of steps: a loop whose condition stays true, a flag "
     "that no thread sets, or far more work than the task needs."},
    {"device_assert", "an assert or trap in the kernel fired."},
    {"sanitizer", "run compute-sanitizer on the kernel: it reports an error in it."},
    {"launch_error",
     "the launch itself was refused: at most 1024 threads a block (64 in z), at most 65535 blocks "
     "in y and z, no zero dimension, at most 48 KiB of shared memory unless the kernel's "
     "attribute MaxDynamicSharedMemorySize raised it."},
};

constexpr Hint kExtractionHints[] = {
    {"no_code", "answer with one fenced Python block that holds the whole module."},
    {"empty", "answer with one fenced Python block that holds the whole module."},
    {"no_model_new", "the module must define the class ModelNew at its top level."},
    {"unfinished_reasoning", "close the reasoning, then give the module in a fenced block."},
    {"syntax_error", "the module must be complete and valid Python."},
    {"too_large", "keep the answer short: the module with its kernels, nothing generated."},
};

constexpr Hint kOutputHints[] = {
    {"shape", "allocate the output with the reference's shape, computed from the inputs' sizes."},
    {"dtype", "return the reference's dtype."},
    {"structure", "return what the reference returns: the same nesting of tensors."},
    {"missing", "an output that the reference returns is not there."},
    {"exception",
     "the candidate raises an error at sizes that it was not asked for: compute sizes from the "
     "inputs, and drop checks that fix them."},
    {"nonfinite",
     "NaN or infinity stands where the reference has a number, or the other way round: look for "
     "overflow (subtract the maximum before exp), division by zero, and elements that are never "
     "written (fresh memory holds NaN, zeros or large numbers by turns)."},
};

// The keys are parts of the message.
constexpr Hint kCompileHints[] = {
    {"DeprecatedTypeProperties",
     "AT_DISPATCH macros take x.scalar_type(); x.type() is no longer accepted."},
    {"includes)",
     "the error arises in a header, because of what stands before its #include: look for a missing "
     "semicolon or brace, or a macro that redefines a common word."},
    {"undefined reference",
     "a function is declared and defined nowhere, or with other parameter types than declared."},
};

std::string_view find(std::span<const Hint> hints, std::string_view name) {
  for (const Hint& hint : hints) {
    if (hint.name == name) return hint.text;
  }
  return "";
}

}  // namespace

std::string_view kernel_hint(std::string_view kind) { return find(kKernelHints, kind); }

std::string_view extraction_hint(std::string_view reason) { return find(kExtractionHints, reason); }

std::string_view illegal_hint(std::string_view when, std::string_view policy) {
  const bool may_compute = !policy.starts_with("musacoder/");
  if (when == "timing") {
    return may_compute ? "each call of forward must do all of its work, on its own inputs, before "
                         "what follows on the same stream."
                       : "each call of forward must do all of its work, on its own inputs and in "
                         "the candidate's own kernels, before what follows on the same stream.";
  }
  return may_compute ? "each call of forward must launch a kernel of the candidate's own, and may "
                       "do nothing else that the rule above names."
                     : "all arithmetic must be in the candidate's own kernels; of PyTorch, "
                       "forward may use only allocation, views and copies.";
}

std::string_view output_hint(std::string_view problem) { return find(kOutputHints, problem); }

std::string_view compile_hint(std::string_view message) {
  for (const Hint& hint : kCompileHints) {
    if (message.find(hint.name) != std::string_view::npos) return hint.text;
  }
  return "";
}

std::string_view signal_hint(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
      return "host code used an invalid address, for example a null pointer or an index past the "
             "end of an array.";
    case SIGABRT:
      return "host code called abort, or threw where nothing catches.";
    case SIGFPE:
      return "an integer was divided by zero.";
    case SIGILL:
      return "the program ran into an instruction that marks unreachable code.";
    default:
      return "";
  }
}

}  // namespace mc::reward
