// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/numbers.h"
#include "cli/python.h"
#include "cli/suggest.h"
#include "core/file.h"
#include "core/layout.h"
#include "forge/run.h"
#include "store/store.h"

namespace mc::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kBalanced = "balanced";
constexpr double kVariantsShare = 0.25;  // With --all-kinds: a row takes some five kernels more.
constexpr size_t kRowsBytesMax = size_t{256} << 20;

struct ForgeArguments {
  std::vector<std::string> families = {"elementwise", "reduction"};
  std::vector<std::string> operators;
  std::vector<std::string> types = {forge::to_string(forge::Type::kFloat32)};
  bool has_all_kinds = false;
  std::string publish;  // A folder in the layout of a Hugging Face data set, or "".
  forge::RunOptions options;
};

Status read_families(const ForgeArguments& arguments, const forge::Library& library,
                     std::set<std::string>& families) {
  const std::set<std::string> known = library.families();
  families.clear();
  for (const std::string& name : arguments.families) {
    if (known.contains(name)) {
      families.insert(name);
    } else if (name == "all") {
      families = known;
    } else {
      return invalid(
          fmt::format("no family {}: there are {} and all", name, fmt::join(known, ", ")));
    }
  }
  return ok();
}

Status read_operators(const ForgeArguments& arguments, const forge::Library& library,
                      std::set<std::string>& operators) {
  operators = {arguments.operators.begin(), arguments.operators.end()};
  std::vector<std::string> known;
  for (const forge::Operator& one : library.operators) known.push_back(one.name);
  for (const std::string& name : operators) {
    if (library.find(name) != nullptr) continue;
    const auto meant = nearest(name, known);
    return invalid("no operator " + name +
                   (meant ? "; did you mean " + *meant + "?"
                          : ": there are " + fmt::format("{}", fmt::join(known, ", "))));
  }
  return ok();
}

Status read_types(const ForgeArguments& arguments, std::set<forge::Type>& types) {
  types.clear();
  for (const std::string& name : arguments.types) {
    const auto type = forge::type_of(name);
    if (!type || forge::is_whole(*type)) {
      return invalid(fmt::format("no type {}: there are float32, float16 and bfloat16", name));
    }
    types.insert(*type);
  }
  return ok();
}

// The families of each task, determined from the operators that PyTorch dispatches
// (python/harness/importer).
Result<std::map<std::string, std::vector<std::string>>> dispatched_families(
    const std::vector<store::TaskRecord>& tasks, const Layout& layout) {
  MC_TRY(const auto folder, TemporaryDirectory::create("mix"), "--mix");
  std::string lines;
  for (const store::TaskRecord& task : tasks) lines += Json{{"code", task.code}}.dump() + "\n";
  const auto source = folder.path() / "tasks.jsonl", rows = folder.path() / "rows.jsonl";
  MC_TRY_VOID(write_file_atomically(source, lines), "--mix");
  MC_TRY_VOID(run_module(layout, "harness.importer",
                         {"--sandbox-lib", layout.library("libmc_sandbox.so").string(), "operators",
                          "--out", rows.string(), "--", source.string()}),
              "--mix");
  MC_TRY(const std::string text, read_file(rows, kRowsBytesMax), "--mix");
  std::map<std::string, std::vector<std::string>> families;
  std::istringstream stream(text);
  size_t at = 0;
  for (std::string line; std::getline(stream, line) && at < tasks.size(); ++at) {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("families")) continue;
    for (const auto& [family, n] : row["families"].items())
      families[tasks[at].id].push_back(family);
  }
  return families;
}

// The weights from the pass rates of a bench run, counting first turns only.
Result<forge::Weights> read_mix(const std::string& mix, const std::set<std::string>& families,
                                const Layout& layout) {
  if (mix == kBalanced) return forge::equal_weights(families);
  MC_TRY(store::RunFolder folder, store::open_run_to_read(mix), "--mix");
  MC_TRY(const std::vector<store::TaskRecord> tasks, folder.run.tasks(), "--mix");
  MC_TRY(const std::vector<store::Judgement> judgements, folder.run.judgements(), "--mix");
  std::map<std::string, std::vector<std::string>> named;
  for (const store::TaskRecord& task : tasks) {
    if (!task.families.empty()) named[task.id] = task.families;
  }
  if (named.empty()) {
    MC_TRY(named, dispatched_families(tasks, layout), "--mix");
  }
  std::map<std::string, forge::PassRate> rates;
  for (const store::Judgement& one : judgements) {
    if (one.key.turn != 0 || !one.reward) continue;
    const bool has_passed = std::holds_alternative<task::Passed>(one.verdict.outcome);
    for (const std::string& family : named[one.key.id]) {
      ++rates[family].judged;
      rates[family].passed += has_passed ? 1 : 0;
    }
  }
  if (rates.empty()) {
    return invalid("--mix: " + mix + " has no verdicts of first turns");
  }
  forge::Weights weights = forge::weights_of(rates, families);
  for (const auto& [family, weight] : weights) {
    const forge::PassRate rate = rates[family];
    std::cerr << fmt::format("musacoder: {}: {} of {} passed, weight {:.3f}\n", family, rate.passed,
                             rate.judged, weight);
  }
  return weights;
}

class Ticker {
 public:
  void show(const forge::Progress& progress) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(5)) return;
    last_ = now;
    const double minutes = std::chrono::duration<double>(now - start_).count() / 60;
    std::cerr << fmt::format(
        "musacoder: {} tasks, {} solutions, {} samples so far, those that are more than is kept "
        "included; {:.0f} solutions a minute\n",
        progress.tasks, progress.solutions, progress.rows, progress.solutions / minutes);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

Status run_forge(ForgeArguments& arguments) {
  forge::RunOptions& options = arguments.options;
  MC_TRY(const Layout layout, find_layout(), "forge");
  MC_TRY(const forge::Library library, forge::load_library(layout.share("data/forge")), "forge");
  options.library = &library;
  MC_TRY_VOID(read_families(arguments, library, options.settings.graph.families), "--families");
  MC_TRY_VOID(read_operators(arguments, library, options.settings.graph.operators), "--operators");
  MC_TRY_VOID(read_types(arguments, options.settings.graph.types), "--types");
  const bool is_full = options.settings.graph.style == forge::Style::kFull;
  if (arguments.has_all_kinds) {
    options.settings.bugs_share = options.settings.lessons_share = 1;
    if (is_full) options.settings.variants_share = kVariantsShare;
  }
  if (options.settings.variants_share > 0 && !is_full) {
    return invalid("--variants-share: variants need --style full");
  }
  if (!options.mix.empty()) {
    MC_TRY(options.settings.weights, read_mix(options.mix, options.settings.graph.families, layout),
           "forge");
  }
  print_when_ended("musacoder: interrupted; the same command goes on from here");
  Ticker ticker;
  MC_TRY(const forge::Counts counts,
         forge::run(options, print_step, [&](const forge::Progress& made) { ticker.show(made); }),
         "forge");
  print_when_ended("");
  for (const auto& [name, count] : counts) std::cout << fmt::format("{:<40} {}\n", name, count);
  if (arguments.publish.empty()) return ok();
  return run_report_module("report.publish",
                           {options.out.string(), "--out", arguments.publish, "--musacoder",
                            std::filesystem::read_symlink("/proc/self/exe").string()},
                           "the folder to publish");
}

}  // namespace

void add_forge(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ForgeArguments>();
  forge::RunOptions& options = arguments->options;
  CLI::App* command =
      app.add_subcommand("forge", "Make tasks with verified kernels: data to train on");
  command->add_option("--tasks,-n", options.settings.tasks, "How many tasks")
      ->check(whole_range(1, 10'000'000));
  command
      ->add_option("--samples", options.samples,
                   "In place of --tasks (default: that): samples for supervised training")
      ->check(whole_range(1, 100'000'000));
  command->add_option("--out,-o", options.out, "Folder; a run that was stopped goes on there")
      ->required()
      ->check(kOutputFolder);
  command->add_option("--seed", options.settings.seed, "The same seed gives the same bytes")
      ->check(kNotNegative);
  command->add_option("--jobs,-j", options.jobs, "Verifiers at once")->check(whole_range(1, 64));
  command->option_defaults()->group("What is made");
  command
      ->add_option("--families", arguments->families,
                   "elementwise, broadcast, reduction, … (docs/forge.md), or all")
      ->delimiter(',');
  command->add_option("--operators", arguments->operators, "Only these (default: all)")
      ->delimiter(',');
  command->add_option("--depth", options.settings.graph.depth, "Operators of a task, at most")
      ->check(whole_range(1, 16));
  command
      ->add_option("--types", arguments->types,
                   "float32, float16, bfloat16; the family integer has its own")
      ->delimiter(',');
  using forge::Size;
  add_choice(*command, "--size", options.settings.graph.size,
             {{"small", Size::kSmall}, {"native", Size::kNative}, {"large", Size::kLarge}},
             "Of the tasks that are written; the CPU verifies small ones");
  command
      ->add_option("--views-share", options.settings.graph.views_share,
                   "Of the tasks, those with an input that is not contiguous")
      ->check(number_range(0.0, 1.0));
  command
      ->add_option("--solutions", options.settings.solutions_max,
                   "Of a task, at most; 1 makes most tasks a minute")
      ->check(whole_range(1, static_cast<int>(forge::kSolutionsMax)));
  add_choice(*command, "--style", options.settings.graph.style,
             {{"compact", forge::Style::kCompact}, {"full", forge::Style::kFull}},
             "compact, for tiny models, or full");
  using forge::Dialects;
  add_choice(*command, "--dialect", options.dialects,
             {{"both", Dialects::kBoth},
              {to_string(task::Dialect::kCuda), Dialects::kCuda},
              {to_string(task::Dialect::kMusa), Dialects::kMusa}},
             "cuda, musa, or both, with samples that port one to the other (docs/musa.md)");
  command->add_option("--test-share", options.settings.test_share, "Of the structures, held out")
      ->check(number_range(0.0, 0.9));
  command
      ->add_option("--bugs-share", options.settings.bugs_share,
                   "Of the tasks, those with samples that review and repair kernels with bugs")
      ->check(number_range(0.0, 1.0));
  command->add_flag_callback(
      "--bugs", [&options] { options.settings.bugs_share = 1; }, "The same as --bugs-share 1");
  command
      ->add_option("--lessons-share", options.settings.lessons_share,
                   "Of the tasks, those with a question beside")
      ->check(number_range(0.0, 1.0));
  command
      ->add_option("--variants-share", options.settings.variants_share,
                   "Of the tasks, those with kernels rewritten several times as one JSON object; "
                   "needs --style full")
      ->check(number_range(0.0, 1.0));
  command->add_flag("--all-kinds", arguments->has_all_kinds,
                    "Samples of all kinds: --bugs, --lessons-share 1, in full style "
                    "--variants-share 0.25");
  command->add_flag("--unit-tests", options.settings.unit_tests,
                    "Also unit_tests.jsonl: small inputs of each task with the outputs they have");
  command->add_option("--timings", options.timings,
                      "A run of bench that measured answers: slow ones are rewritten to fast ones");
  command->add_option("--mix", options.mix,
                      "A run of bench: more of the families that it fails; or balanced");
  command
      ->add_option("--publish", arguments->publish,
                   "Also a folder for Hugging Face, without what MC_KERNELBENCH overlaps with")
      ->check(kOutputFolder);
  command->option_defaults()->group("Checks of the data");
  command->add_option("--audit-share", options.audit_share, "Of the solutions, judged by eval too")
      ->check(number_range(0.0, 1.0));
  command->footer(
      "Examples:\n"
      "  musacoder forge --tasks 100 --out rows\n"
      "  musacoder forge --samples 5000 --families all --all-kinds --out rows");
  command->callback([arguments, command, &exit_code] {
    if (command->count("--tasks") > 0 && command->count("--samples") > 0) {
      exit_code =
          report_error({ErrorCode::kInvalidInput, "forge: give one of --tasks and --samples"});
      return;
    }
    exit_code = code_of(run_forge(*arguments));
  });
}

}  // namespace mc::cli
