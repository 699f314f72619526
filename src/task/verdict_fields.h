// SPDX-License-Identifier: Apache-2.0
//
// The fields of a verdict's structs, in the order in which they are written.  One list serves both
// directions: `fields(visitor, value)` shows the visitor every member by name.
#ifndef MC_TASK_VERDICT_FIELDS_H_
#define MC_TASK_VERDICT_FIELDS_H_

#include <cstdint>

#include "task/verdict.h"

namespace mc::task {

// A member that a 53-bit reader would round; written as a string of decimal digits.
struct WideRef {
  uint64_t& value;
};

template <typename V>
void fields(V& v, SourceLocation& x) {
  v("source", x.source);
  v("line", x.line);
  v("column", x.column);
  v("excerpt", x.excerpt);
}
template <typename V>
void fields(V& v, Diagnostic& x) {
  v("severity", x.severity);
  v("message", x.message);
  v("location", x.location);
}
template <typename V>
void fields(V& v, RuleFinding& x) {
  v("rule", x.rule);
  v("message", x.message);
  v("location", x.location);
}
template <typename V>
void fields(V& v, KernelFinding& x) {
  v("kind", x.kind);
  v("kernel", x.kernel);
  v("block", x.block);
  v("thread", x.thread);
  v("detail", x.detail);
  v("location", x.location);
  v("other", x.other);
}
template <typename V>
void fields(V& v, Mismatch& x) {
  v("index", x.index);
  v("expected", x.expected);
  v("got", x.got);
}
template <typename V>
void fields(V& v, OutputCheck& x) {
  v("path", x.path);
  v("problem", x.problem);
  v("detail", x.detail);
  v("num_elements", x.num_elements);
  v("num_wrong", x.num_wrong);
  v("error_max", x.error_max);
  v("error_tolerance", x.error_tolerance);
  v("first_mismatches", x.first_mismatches);
  v("histogram", x.histogram);
  v("diagnosis", x.diagnosis);
}
template <typename V>
void fields(V& v, Trial& x) {
  v("index", x.index);
  v("shape", x.shape);
  v("distribution", x.distribution);
  v("constants", x.constants);
  v("inputs_digest", x.inputs_digest);
  v("passed", x.passed);
  v("checks", x.checks);
  v("findings", x.findings);
  v("inputs_mutated", x.inputs_mutated);
}
template <typename V>
void fields(V& v, Exception& x) {
  v("type", x.type);
  v("message", x.message);
  v("location", x.location);
  v("frames", x.frames);
}
template <typename V>
void fields(V& v, Estimate& x) {
  v("median", x.median);
  v("low", x.low);
  v("high", x.high);
}
template <typename V>
void fields(V& v, KernelTime& x) {
  v("name", x.name);
  v("owner", x.owner);
  v("launches", x.launches);
  v("time_us", x.time_us);
  v("share", x.share);
  v("grid", x.grid);
  v("block", x.block);
  v("registers", x.registers);
  v("spill_bytes", x.spill_bytes);
  v("shared_bytes", x.shared_bytes);
  v("occupancy", x.occupancy);
}
template <typename V>
void fields(V& v, Floor& x) {
  v("time_us", x.time_us);
  v("bound", x.bound);
  v("bytes", x.bytes);
  v("operations", x.operations);
  v("bandwidth_gbs", x.bandwidth_gbs);
  v("peak_tflops", x.peak_tflops);
}
template <typename V>
void fields(V& v, Clocks& x) {
  v("sm_mhz_min", x.sm_mhz_min);
  v("sm_mhz_max", x.sm_mhz_max);
  v("memory_mhz", x.memory_mhz);
  v("throttling", x.throttling);
}
template <typename V>
void fields(V& v, Timing& x) {
  v("mode", x.mode);
  v("cache", x.cache);
  v("batches", x.batches);
  v("calls", x.calls);
  v("calls_verified", x.calls_verified);
  v("tf32", x.tf32);
  v("notes", x.notes);
  v("clocks", x.clocks);
}
template <typename V>
void fields(V& v, Performance& x) {
  v("speedup_eager", x.speedup_eager);
  v("speedup_compile", x.speedup_compile);
  v("time_us", x.time_us);
  v("time_eager_us", x.time_eager_us);
  v("time_compile_us", x.time_compile_us);
  v("timing", x.timing);
  v("own_share", x.own_share);
  v("memory_bytes", x.memory_bytes);
  v("memory_eager_bytes", x.memory_eager_bytes);
  v("kernels", x.kernels);
  v("floor", x.floor);
}
template <typename V>
void fields(V& v, Unextractable& x) {
  v("reason", x.reason);
  v("detail", x.detail);
  v("location", x.location);
}
template <typename V>
void fields(V& v, Illegal& x) {
  v("when", x.when);
  v("findings", x.findings);
}
template <typename V>
void fields(V& v, CompileFailed& x) {
  v("diagnostics", x.diagnostics);
}
template <typename V>
void fields(V& v, Crashed& x) {
  v("stage", x.stage);
  v("exception", x.exception);
  v("signal", x.signal);
  v("exit_code", x.exit_code);
  v("findings", x.findings);
  v("trials", x.trials);
}
template <typename V>
void fields(V& v, TimedOut& x) {
  v("stage", x.stage);
  v("limit_s", x.limit_s);
  v("findings", x.findings);
}
template <typename V>
void fields(V& v, OutOfMemory& x) {
  v("stage", x.stage);
  v("limit_bytes", x.limit_bytes);
}
template <typename V>
void fields(V& v, Wrong& x) {
  v("q", x.q);
  v("specialised", x.specialised);
  v("trials", x.trials);
}
template <typename V>
void fields(V& v, Passed& x) {
  v("trials", x.trials);
  v("performance", x.performance);
  v("generality", x.generality);
}
template <typename V>
void fields(V& v, Unsupported& x) {
  v("constructs", x.constructs);
}
template <typename V>
void fields(V& v, Infra& x) {
  v("message", x.message);
}
template <typename V>
void fields(V& v, StageTime& x) {
  v("stage", x.stage);
  v("ms", x.ms);
}
template <typename V>
void fields(V& v, Reduction& x) {
  v("native", x.native);
  v("used", x.used);
  v("reason", x.reason);
}
template <typename V>
void fields(V& v, Audit& x) {
  v("check", x.check);
  v("result", x.result);
  v("detail", x.detail);
}
template <typename V>
void fields(V& v, StateMatch& x) {
  v("missing", x.missing);
  v("unmatched", x.unmatched);
  v("own", x.own);
}
template <typename V>
void fields(V& v, Telemetry& x) {
  v("stages", x.stages);
  v("protections_off", x.protections_off);
  v("aten_ops", x.aten_ops);
  v("reduction", x.reduction);
  v("pytorch", x.pytorch);
  v("memory_peak_bytes", x.memory_peak_bytes);
  v("compile_cached", x.compile_cached);
  v("compile_cpu_s", x.compile_cpu_s);
  v("full_headers", x.full_headers);
  v("output_tail", x.output_tail);
  v("audits", x.audits);
  v("state", x.state);
  v("fixed_sizes", x.fixed_sizes);
}
template <typename V>
void fields(V& v, TaskGrade& x) {
  v("grade", x.grade);
  v("reasons", x.reasons);
}
template <typename V>
void fields(V& v, Protocol& x) {
  v("policy", x.policy);
  v("dialect", x.dialect);
  v("musa_architecture", x.musa_architecture);
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
  v("telemetry", x.telemetry);
}

}  // namespace mc::task

#endif  // MC_TASK_VERDICT_FIELDS_H_
