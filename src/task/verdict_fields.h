// SPDX-License-Identifier: Apache-2.0
//
// The fields of a verdict's structs, in the order in which they are written.  One list serves
// reading, writing and the random verdicts of tests: `fields(visitor, value)` passes every member
// to the visitor with its name.
#ifndef MC_TASK_VERDICT_FIELDS_H_
#define MC_TASK_VERDICT_FIELDS_H_

#include <cstdint>
#include <type_traits>

#include "task/verdict.h"

namespace mc::task {

// An integer that a reader with 53 bits would round; written as a string of decimal digits.
struct WideRef {
  uint64_t& value;
};

// MC_FIELDS(Struct, members...) defines fields() for a struct whose members are all written under
// their own names.  A list with too few or too many members does not compile.
#define MC_PARENTHESES_ ()
#define MC_RESCAN_1_(...) __VA_ARGS__
#define MC_RESCAN_2_(...) MC_RESCAN_1_(MC_RESCAN_1_(MC_RESCAN_1_(MC_RESCAN_1_(__VA_ARGS__))))
#define MC_RESCAN_(...) MC_RESCAN_2_(MC_RESCAN_2_(MC_RESCAN_2_(MC_RESCAN_2_(__VA_ARGS__))))
#define MC_EACH_FIELD_(name, ...) \
  v(#name, x.name);               \
  __VA_OPT__(MC_NEXT_FIELD_ MC_PARENTHESES_(__VA_ARGS__))
#define MC_NEXT_FIELD_() MC_EACH_FIELD_
#define MC_FIELDS(Struct, ...)                \
  template <typename V>                       \
  void fields(V& v, Struct& x) {              \
    [[maybe_unused]] auto& [__VA_ARGS__] = x; \
    MC_RESCAN_(MC_EACH_FIELD_(__VA_ARGS__))   \
  }                                           \
  static_assert(std::is_aggregate_v<Struct>)

MC_FIELDS(SourceLocation, source, line, column, excerpt);
MC_FIELDS(Diagnostic, severity, message, location);
MC_FIELDS(RuleFinding, rule, message, location);
MC_FIELDS(KernelFinding, kind, kernel, block, thread, detail, location, other);
MC_FIELDS(Mismatch, index, expected, got);
MC_FIELDS(OutputCheck, path, problem, detail, num_elements, num_wrong, error_max, error_tolerance,
          first_mismatches, histogram, diagnosis);
MC_FIELDS(Trial, index, shape, distribution, constants, inputs_digest, passed, checks, findings,
          inputs_mutated, sectors);
MC_FIELDS(Exception, type, message, location, frames);
MC_FIELDS(Estimate, median, low, high);
MC_FIELDS(KernelTime, name, owner, launches, time_us, share, grid, block, registers, spill_bytes,
          shared_bytes, occupancy);
MC_FIELDS(Floor, time_us, bound, bytes, operations, bandwidth_gbs, peak_tflops);
MC_FIELDS(Clocks, sm_mhz_min, sm_mhz_max, memory_mhz, throttling);
MC_FIELDS(Timing, mode, cache, batches, calls, calls_verified, tf32, notes, clocks);
MC_FIELDS(Performance, speedup_eager, speedup_compile, time_us, time_eager_us, time_compile_us,
          timing, own_share, memory_bytes, memory_eager_bytes, kernels, floor);
MC_FIELDS(Unextractable, reason, detail, location);
MC_FIELDS(Illegal, when, findings);
MC_FIELDS(CompileFailed, diagnostics);
MC_FIELDS(Crashed, stage, exception, signal, exit_code, findings, trials);
MC_FIELDS(TimedOut, stage, limit_s, findings);
MC_FIELDS(OutOfMemory, stage, limit_bytes);
MC_FIELDS(Wrong, q, specialised, trials);
MC_FIELDS(Passed, trials, performance, generality);
MC_FIELDS(Unsupported, constructs);
MC_FIELDS(Infra, message);
MC_FIELDS(StageTime, stage, ms);
MC_FIELDS(Reduction, native, used, reason);
MC_FIELDS(Audit, check, result, detail);
MC_FIELDS(RaceCheck, state, device, reason, seconds);
MC_FIELDS(StateMatch, missing, unmatched, own);
MC_FIELDS(Telemetry, stages, protections_off, aten_ops, reduction, pytorch, memory_peak_bytes,
          compile_cached, compile_cpu_s, full_headers, output_tail, audits, race_check, state,
          fixed_sizes);
MC_FIELDS(TaskGrade, grade, reasons);

template <typename V>
void fields(V& v, Protocol& x) {
  v("policy", x.policy);
  v("dialect", x.dialect);
  v("musa_architecture", x.musa_architecture);
  v("language", x.language);
  v("trials", x.correctness.trials);
  v("inputs", x.correctness.inputs);
  v("shapes", x.correctness.shapes);
  v("require_general", x.correctness.require_general);
  v("mode", x.correctness.mode);
  v("precision", x.correctness.precision);
  v("tolerance_fp32", x.correctness.tolerance_fp32);
  v("tolerance_half", x.correctness.tolerance_half);
  v("timing", x.timing);
  v("baseline", x.baseline);
  v("compile_mode", x.compile_mode);
  v("tf32", x.tf32);
  v("strict", x.strict);
  v("race_check", x.race_check);
  v("device", x.device);
}
template <typename V>
void fields(V& v, Verdict& x) {
  v("task", x.task);
  v("candidate", x.candidate);
  v("candidate_hash", x.candidate_hash);
  v("backend", x.backend);
  WideRef seed{x.seed};
  v("seed", seed);
  v("protocol", x.protocol);
  v("task_grade", x.task_grade);
  v("outcome", x.outcome);
  v("not_tried", x.not_tried);
  v("telemetry", x.telemetry);
}

#undef MC_FIELDS
#undef MC_NEXT_FIELD_
#undef MC_EACH_FIELD_
#undef MC_RESCAN_
#undef MC_RESCAN_2_
#undef MC_RESCAN_1_
#undef MC_PARENTHESES_

}  // namespace mc::task

#endif  // MC_TASK_VERDICT_FIELDS_H_
