// SPDX-License-Identifier: Apache-2.0
#include "forge/mutate.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "core/check.h"

namespace mc::forge {
namespace {

constexpr const char* kCompile = "compile";
constexpr const char* kCrash = "runtime";
constexpr const char* kWrong = "wrong";

class Planner {
 public:
  Planner(const TaskGraph& graph, const Solution& solution)
      : graph_(graph), solution_(solution), name_(solution.name) {
    const Value& out = graph.nodes.front().head == nullptr
                           ? graph.values.front()
                           : graph.values.at(static_cast<size_t>(graph.nodes.front().output));
    columns_ = graph.dims.at(static_cast<size_t>(out.dims.back())).size;
    rows_ = 1;
    for (size_t i = 0; i + 1 < out.dims.size(); ++i) {
      rows_ *= graph.dims.at(static_cast<size_t>(out.dims[i])).size;
    }
    inner_ = graph.dims.back().size;
  }

  std::vector<Bug> run() {
    for (const Site& site : solution_.sites) plan(site);
    plan_text();
    return std::move(bugs_);
  }

 private:
  std::string_view text_of(const Site& site) const {
    return std::string_view(solution_.cuda).substr(site.offset, site.size);
  }

  void add(const Site& site, const char* kind, const char* expected, std::string text,
           std::string cause, std::string fix) {
    bugs_.push_back({kind, expected, std::move(cause), std::move(fix), site.offset, site.size,
                     std::move(text)});
  }

  void plan(const Site& site) {
    const std::string_view kind = site.kind;
    if (kind == "guard") return guard(site);
    if (kind == "bound") return bound(site);
    if (kind == "index") return index(site);
    if (kind == "identity") return identity(site);
    if (kind == "sync" || kind == "last_sync") return sync(site);
    if (kind == "grid") return grid(site);
    if (kind == "tree") return tree(site);
    if (kind == "shuffle") return shuffle(site);
    if (kind == "operator") return missing_operator(site);
    if (kind == "literal") return wrong_literal(site);
    if (kind == "combine") return lost_sum(site);
    if (kind == "shift") return unstable(site);
    if (kind == "tail") return missing_tail(site);
    if (kind == "output") return output(site);
  }

  bool is(std::string_view name) const { return name_ == name; }
  bool is_rowwise() const { return name_.starts_with("row_"); }
  bool is_matmul() const { return name_.starts_with("matmul"); }

  // Threads that a launch starts beyond its work, at the task's sizes: where there are none, a
  // missing check only shows at other sizes, whose trials count too.
  void guard(const Site& site) {
    const std::string check(text_of(site));
    if (is("matmul_register")) return;
    add(site, "missing_check", kCrash, "",
        "Threads beyond the end are not stopped, so they read and write outside of the tensors.",
        "Put the check " + check.substr(0, check.size() - 1) + " back.");
    if (check != "if (i < n) " && check != "if (r < n) ") return;
    const bool is_met = is("thread") ? rows_ * columns_ % 256 != 0 : rows_ % 64 != 0;
    add(site, "off_by_one", is_met ? kCrash : kWrong, substituted(check, "<", "<="),
        "The check lets one index too many pass, which lies outside of the tensor.",
        "Use < instead of <=.");
    if (!is_met) bugs_.pop_back();  // Seen at other sizes only, in ways that depend on them.
  }

  void bound(const Site& site) {
    const std::string check(text_of(site));
    if (check == "j < m") {
      // One column more is the next row's first; only the last row leaves the tensor.
      add(site, "off_by_one", kCrash, "j <= m",
          "The loop runs over one column too many: that is the next row's first element, and "
          "outside of the tensor in the last row.",
          "Use j < m.");
      add(site, "short_loop", kWrong, "j < m - 1", "The loop leaves out the row's last column.",
          "Use j < m.");
    }
    if (check == "c < l" && !is("matmul_tile")) {
      add(site, "short_loop", kWrong, "c < l - 1", "The loop leaves out the last term of each sum.",
          "Use c < l.");
    }
    if (check == "i < n" && is("stride")) {
      add(site, "off_by_one", kCrash, "i <= n",
          "The loop's last index lies one element outside of the tensor.", "Use i < n.");
    }
  }

  void index(const Site& site) {
    if (!is_rowwise() || text_of(site) != "r * m + j") return;
    if (columns_ > 2 * rows_) {
      add(site, "wrong_stride", kCrash, "j * m + r",
          "Row and column are swapped in the index, which leaves the tensor where there are more "
          "columns than rows.",
          "Use r * m + j.");
    }
    if (columns_ > 1) {
      add(site, "wrong_stride", kWrong, "r * (m - 1) + j",
          "The row's stride is one too small, so rows overlap.", "Use r * m + j.");
    }
  }

  void identity(const Site& site) {
    const std::string_view value = text_of(site);
    if (value == "0.0f") {
      add(site, "wrong_identity", kWrong, "1.0f", "The sum starts with 1 and not with 0.",
          "Start with 0.0f.");
      return;
    }
    const bool feeds_exponentials = graph_.row() != nullptr && graph_.row()->row->passes.size() > 1;
    if (feeds_exponentials) return;  // Any shift gives the same result until it overflows.
    if (!graph_.before_row().empty()) return;  // Values may have one sign only.
    add(site, "wrong_identity", kWrong, "0.0f",
        "The extremum starts with 0, which is wrong for rows that lie on the other side of it.",
        fmt::format("Start with {}.", value));
  }

  void sync(const Site& site) {
    if (site.kind == "last_sync") return;
    if (is_matmul() && inner_ <= 16) return;
    if (is("row_block") && columns_ < 64) return;
    add(site, "missing_sync", kWrong, "",
        "Without __syncthreads() threads read shared memory that others have not written yet, or "
        "overwrite what others still read: a race.",
        "Put __syncthreads() back.");
  }

  void grid(const Site& site) {
    const std::string blocks(text_of(site));
    const size_t slash = blocks.rfind('/');
    const int threads = std::stoi(blocks.substr(slash + 2));
    const size_t count_end = blocks.find(" + ");
    const std::string work = blocks.substr(1, count_end - 1);
    int total = rows_ * columns_;
    if (work == "m") total = columns_;
    if (work == "n" && is_rowwise()) total = rows_;
    if (total % threads == 0) return;
    add(site, "short_grid", kWrong,
        work.find('*') == std::string::npos ? fmt::format("{} / {}", work, threads)
                                            : fmt::format("({}) / {}", work, threads),
        "The number of blocks is rounded down, so the last elements are not computed, and for "
        "small tensors no kernel runs at all.",
        fmt::format("Round up: {}.", blocks));
  }

  void tree(const Site& site) {
    if (columns_ < 70) return;  // The upper half holds what does not matter.
    add(site, "short_tree", kWrong, "32",
        "The tree starts with half of the partial results and loses the other half.",
        "Start with half of the block's threads: w = 64.");
  }

  void shuffle(const Site& site) {
    add(site, "short_shuffle", kWrong, "8",
        "The first step of the shuffle is missing, so half of the warp's lanes do not count.",
        "Start with w = 16.");
  }

  void missing_operator(const Site& site) {
    add(site, "missing_operator", kWrong, "",
        fmt::format("A step of the reference is missing: {}", text_of(site)),
        "Put the step back in its place.");
    Bug& bug = bugs_.back();
    while (!bug.cause.empty() && (bug.cause.back() == '\n' || bug.cause.back() == ';')) {
      bug.cause.pop_back();
    }
    bug.cause += '.';
    // The whole line goes: with the blanks before it.
    while (bug.offset > 0 && solution_.cuda[bug.offset - 1] == ' ') {
      --bug.offset;
      ++bug.size;
    }
  }

  void wrong_literal(const Site& site) {
    const std::string right(text_of(site));
    if (right.empty()) return;
    const std::string wrong = right.starts_with("0.0") ? "0.5f"
                              : right.starts_with("-") ? "-0.125f"
                                                       : fmt::format("1{}", right);
    add(site, "wrong_constant", kWrong, wrong,
        fmt::format("The constant is {} and not {}.", wrong, right), fmt::format("Use {}.", right));
  }

  void lost_sum(const Site& site) {
    // With one element for each thread there is nothing to lose.
    if ((is("row_warp") && columns_ <= 32) || (is("row_block") && columns_ <= 128)) return;
    const std::string line(text_of(site));
    const size_t plus = line.find(" += ");
    if (plus == std::string::npos) return;
    add(site, "lost_sum", kWrong, line.substr(0, plus) + " = " + line.substr(plus + 4),
        "The loop overwrites its sum instead of adding to it.", "Use +=.");
  }

  void unstable(const Site& site) {
    if (graph_.row() == nullptr || !graph_.before_row().empty()) return;
    add(site, "unstable", kWrong, "v",
        "The maximum is not subtracted in this exponential, so it does not fit the other one and "
        "overflows for large values.",
        "Use expf(v - a).");
  }

  void missing_tail(const Site& site) {
    add(site, "missing_tail", kWrong, "",
        "The elements behind the last whole group of four are not computed.",
        "Handle them one by one.");
  }

  void output(const Site& site) {
    const std::string_view made = text_of(site);
    if (made == "torch::empty_like(x)" && is("thread") && !graph_.has(Side::kResidual)) {
      add(site, "in_place", kWrong, "x", "The kernel writes over its input.",
          "Allocate the output: torch::empty_like(x).");
    }
    if (made.starts_with("torch::empty({n}")) {
      add(site, "wrong_shape", kWrong, "torch::empty({n, 1}, x.options())",
          "The output has an axis too many.", "Use torch::empty({n}, x.options()).");
    }
    if (made.starts_with("torch::empty({n, m}")) {
      add(site, "wrong_shape", kWrong, "torch::empty({m, n}, x.options())",
          "The output's axes are swapped.", "Use torch::empty({n, m}, x.options()).");
    }
  }

  // What does not compile.
  void plan_text() {
    const std::string_view text = solution_.cuda;
    const auto edit = [&](std::string_view from, const char* to, const char* kind,
                          const char* cause, const char* fix) {
      const size_t at = text.find(from);
      if (at == std::string_view::npos) return;
      bugs_.push_back({kind, kCompile, cause, fix, at, from.size(), to});
    };
    edit("return o;", "return o", "missing_semicolon", "A semicolon is missing after return o.",
         "Write return o;");
    edit("fmaxf(", "fmaxff(", "unknown_function", "There is no function fmaxff.", "Use fmaxf.");
    edit("expf(", "exp_f(", "unknown_function", "There is no function exp_f.", "Use expf.");
    edit("float v = ", "float value = ", "undeclared", "The variable v is used but not declared.",
         "Declare it: float v.");
    edit("data_ptr<float>()", "data_ptr<float>", "missing_call",
         "The parentheses of a call are missing after data_ptr<float>.",
         "Write data_ptr<float>().");
  }

  const TaskGraph& graph_;
  const Solution& solution_;
  std::string_view name_;
  int rows_ = 1, columns_ = 1, inner_ = 1;
  std::vector<Bug> bugs_;
};

}  // namespace

std::vector<Bug> bugs_of(const TaskGraph& graph, const Solution& solution) {
  return Planner(graph, solution).run();
}

bool overlap(const Bug& one, const Bug& other) {
  return one.offset < other.offset + other.size + 1 && other.offset < one.offset + one.size + 1;
}

std::string with_bugs(const Solution& solution, std::vector<Bug> bugs) {
  std::ranges::sort(bugs, std::greater(), &Bug::offset);
  std::string text = solution.cuda;
  for (const Bug& bug : bugs) {
    MC_CHECK(bug.offset + bug.size <= text.size());
    text.replace(bug.offset, bug.size, bug.text);
  }
  return text;
}

}  // namespace mc::forge
