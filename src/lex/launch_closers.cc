// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  One walk over the tokens with a stack of open launches.  A run of three or
// more `>` that `(` follows, at the bracket depth of the innermost open launch, ends with its
// closer.  The exception is a run that closes exactly the templates that were opened since, as in
// k<<<1, f<A<B<int>>>(2)>>>(x): it is the closer only if no better one comes before the statement
// ends.  Each directive is separate: brackets and launches do not cross its borders.
#include "lex/launch_closers.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mc::lex {
namespace {

// A run of `>` tokens with only blanks between them, and whether `(` follows it.
struct Run {
  std::vector<std::size_t> positions;  // Indices of the `>` tokens.
  bool before_parenthesis = false;
};

class LaunchMatcher {
 public:
  LaunchMatcher(std::string_view source, const std::vector<Token>& tokens)
      : source_(source), tokens_(tokens) {}

  // Finds the closers.  For each one, closers[index of its first `>`] is the index of its last `>`;
  // all other elements are 0.
  std::vector<std::size_t> run() {
    closers_.assign(tokens_.size(), 0);
    std::size_t i = 0;
    while (i < tokens_.size()) {
      enter_region(tokens_[i].in_directive);
      i = is_trivia(tokens_[i]) ? i + 1 : visit(i);
    }
    end_region(directive_);
    end_region(text_);
    return std::move(closers_);
  }

 private:
  struct Launch {
    int depth = 0;                      // The bracket depth at its `<<<`.
    std::size_t num_angles = 0;         // Open templates at that depth.
    std::vector<std::size_t> doubtful;  // A run that may only have closed templates.
  };
  struct Region {
    int depth = 0;
    std::vector<Launch> launches;
    bool after_identifier = false;
  };

  Region& region() { return in_directive_ ? directive_ : text_; }

  void enter_region(bool in_directive) {
    if (in_directive_ && !in_directive) {
      end_region(directive_);
      directive_ = Region{};
    }
    in_directive_ = in_directive;
  }

  void end_region(Region& ended) {
    while (!ended.launches.empty()) settle(ended);
  }

  // Ends the innermost launch without a clear closer; a doubtful run becomes its closer.
  void settle(Region& ended) {
    if (!ended.launches.back().doubtful.empty()) close_with(ended.launches.back().doubtful);
    ended.launches.pop_back();
  }

  void close_with(const std::vector<std::size_t>& positions) {
    MC_CHECK(positions.size() >= 3);
    closers_[positions[positions.size() - 3]] = positions.back();
  }

  // Handles the token at `i`.  Returns the index of the next token to handle.
  std::size_t visit(std::size_t i) {
    Region& here = region();
    const Token& token = tokens_[i];
    const char c = source_[token.offset];
    const bool after_identifier = here.after_identifier;
    here.after_identifier = token.kind == Kind::kIdentifier;
    if (token.kind == Kind::kLaunchOpen) {
      here.launches.push_back({here.depth, 0, {}});
    } else if (token.kind == Kind::kPunctuator) {
      if (c == '(' || c == '[' || c == '{') ++here.depth;
      if (c == ')' || c == ']' || c == '}') leave_bracket(here);
      if (c == ';') end_statement(here);
      if (c == '<' && token.size == 1 && after_identifier) open_angle(here);
      if (c == '>' && token.size == 1) return visit_run(here, i);
    }
    return i + 1;
  }

  void leave_bracket(Region& here) {
    --here.depth;
    while (!here.launches.empty() && here.launches.back().depth > here.depth) settle(here);
  }

  void end_statement(Region& here) {
    while (!here.launches.empty() && here.launches.back().depth == here.depth) settle(here);
  }

  void open_angle(Region& here) {
    if (!here.launches.empty() && here.launches.back().depth == here.depth) {
      ++here.launches.back().num_angles;
    }
  }

  std::size_t visit_run(Region& here, std::size_t i) {
    const Run found = run_at(i);
    MC_CHECK(!found.positions.empty() && found.positions.front() == i);
    const std::size_t size = found.positions.size();
    if (!here.launches.empty() && here.launches.back().depth == here.depth) {
      Launch& launch = here.launches.back();
      const bool closes_templates_only = launch.num_angles == size && launch.doubtful.empty();
      if (size < 3 || !found.before_parenthesis) {
        launch.num_angles -= std::min(launch.num_angles, size);
      } else if (closes_templates_only) {
        launch.doubtful = found.positions;
        launch.num_angles = 0;
      } else {
        close_with(found.positions);
        here.launches.pop_back();
      }
    }
    return found.positions.back() + 1;
  }

  bool is_angle(std::size_t i) const {
    return tokens_[i].kind == Kind::kPunctuator && tokens_[i].size == 1 &&
           source_[tokens_[i].offset] == '>';
  }

  bool is_blank(std::size_t i) const {
    return tokens_[i].kind == Kind::kWhitespace &&
           text_of(source_, tokens_[i]).find_first_not_of(" \t") == std::string_view::npos;
  }

  bool is_in_region(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].in_directive == in_directive_;
  }

  Run run_at(std::size_t i) const {
    Run found;
    std::size_t next = i;
    while (is_in_region(next) && (is_angle(next) || is_blank(next))) {
      if (is_angle(next)) found.positions.push_back(next);
      ++next;
    }
    while (is_in_region(next) && is_trivia(tokens_[next])) ++next;
    found.before_parenthesis = is_in_region(next) && source_[tokens_[next].offset] == '(' &&
                               tokens_[next].kind == Kind::kPunctuator;
    return found;
  }

  std::string_view source_;
  const std::vector<Token>& tokens_;
  std::vector<std::size_t> closers_;
  bool in_directive_ = false;
  Region text_;
  Region directive_;
};

}  // namespace

std::vector<std::size_t> launch_closers(std::string_view source, const std::vector<Token>& tokens) {
  return LaunchMatcher(source, tokens).run();
}

}  // namespace mc::lex
