// SPDX-License-Identifier: Apache-2.0
#include "model/added_tokens.h"

#include <cstddef>

#include <utf8proc.h>

#include "core/utf8.h"

namespace mc::model {
namespace {

// The index of the first byte of the character that ends before `offset`.  REQUIRES: offset > 0.
size_t previous_character(std::string_view text, size_t offset) {
  do {
    --offset;
  } while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80);
  return offset;
}

bool is_word(int32_t point) {
  switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

bool is_space(int32_t point) {
  if (point >= 0x09 && point <= 0x0D) return true;
  if (point == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(point);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

const AddedToken* longest_at(const std::vector<AddedToken>& tokens, std::string_view text,
                             size_t offset) {
  const AddedToken* longest = nullptr;
  for (const AddedToken& token : tokens) {
    if (token.content[0] == text[offset] && text.substr(offset).starts_with(token.content) &&
        (longest == nullptr || token.content.size() > longest->content.size())) {
      longest = &token;
    }
  }
  return longest;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && is_word(first_character(text.substr(previous_character(text, begin))).code))
    return false;
  return end >= text.size() || !is_word(first_character(text.substr(end)).code);
}

size_t skip_spaces_left(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const size_t previous = previous_character(text, begin);
    if (!is_space(first_character(text.substr(previous)).code)) break;
    begin = previous;
  }
  return begin;
}

size_t skip_spaces_right(std::string_view text, size_t end) {
  while (end < text.size() && is_space(first_character(text.substr(end)).code)) {
    do {
      ++end;
    } while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  }
  return end;
}

}  // namespace

std::vector<TextPart> cut_added_tokens(const std::vector<AddedToken>& tokens,
                                       std::string_view text) {
  bool starts[256] = {};
  for (const AddedToken& token : tokens) {
    starts[static_cast<unsigned char>(token.content[0])] = true;
  }
  std::vector<TextPart> parts;
  size_t done = 0;  // The text before this index is already in a part.
  for (size_t i = 0; i < text.size();) {
    const AddedToken* token =
        starts[static_cast<unsigned char>(text[i])] ? longest_at(tokens, text, i) : nullptr;
    if (token == nullptr) {
      ++i;
      continue;
    }
    size_t begin = i;
    size_t end = i + token->content.size();
    i = end;
    if (begin < done || (token->single_word && !stands_alone(text, begin, end))) continue;
    if (token->strip_left) begin = skip_spaces_left(text, begin, done);
    if (token->strip_right) end = skip_spaces_right(text, end);
    if (begin > done) parts.push_back({-1, text.substr(done, begin - done)});
    parts.push_back({token->id, text.substr(begin, end - begin)});
    done = end;
  }
  if (done < text.size()) parts.push_back({-1, text.substr(done)});
  return parts;
}

}  // namespace mc::model
