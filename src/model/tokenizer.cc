// SPDX-License-Identifier: Apache-2.0
#include "model/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/utf8.h"
#include "model/added_tokens.h"
#include "model/bpe.h"
#include "model/pretokenize.h"

namespace mc::model {
namespace {

using Json = nlohmann::json;

constexpr size_t kFileBytesMax = 256 << 20;
constexpr int64_t kIdMax = 1 << 24;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool flag(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string type_of(const Json& json) { return json.is_object() ? text(json, "type") : "null"; }

// GPT-2's characters for bytes: a printable byte of Latin-1 is its own character; the others are
// U+0100 and following, in order.
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  int32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    utf8proc_uint8_t encoded[4];
    const auto size = utf8proc_encode_char(is_printable ? byte : next++, encoded);
    characters[byte].assign(reinterpret_cast<const char*>(encoded), static_cast<size_t>(size));
  }
  return characters;
}

std::string nfc(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (size < 0) return std::string(text);
  std::string normal(reinterpret_cast<const char*>(composed), static_cast<size_t>(size));
  std::free(composed);  // NOLINT: the library's own allocation.
  return normal;
}

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Ids = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

// The steps of "pre_tokenizer".
struct PreTokenizer {
  std::vector<Splitter> splitters;
  bool adds_space = false;  // True to add a space before the first piece of each part of the text.
};

Status add_splitter(PreTokenizer& steps, std::string_view pattern) {
  MC_TRY(Splitter splitter, Splitter::create(pattern, Splitter::Behavior::kIsolated),
         "pre_tokenizer");
  steps.splitters.push_back(std::move(splitter));
  return ok();
}

Status add_split(PreTokenizer& steps, const Json& step) {
  const Json pattern = step.value("pattern", Json());
  const std::string expression = pattern.is_object() ? text(pattern, "Regex") : "";
  if (expression.empty() || flag(step, "invert", false)) {
    return invalid("pre_tokenizer: Split is supported with a Regex that is not inverted");
  }
  const std::string behavior = text(step, "behavior");
  if (behavior == "Isolated") return add_splitter(steps, expression);
  if (behavior != "Removed") {
    return invalid("pre_tokenizer: Split with behavior \"" + behavior + "\" is not supported");
  }
  MC_TRY(Splitter splitter, Splitter::create(expression, Splitter::Behavior::kRemoved),
         "pre_tokenizer");
  steps.splitters.push_back(std::move(splitter));
  return ok();
}

Status add_step(PreTokenizer& steps, const Json& step) {
  const std::string type = type_of(step);
  if (type == "Split") return add_split(steps, step);
  if (type == "Digits") {
    return add_splitter(steps, flag(step, "individual_digits", false) ? "\\p{N}" : "\\p{N}+");
  }
  if (type != "ByteLevel") return invalid("pre_tokenizer: \"" + type + "\" is not supported");
  if (flag(step, "add_prefix_space", true)) {
    if (!steps.splitters.empty()) {
      return invalid("pre_tokenizer: add_prefix_space after another step is not supported");
    }
    steps.adds_space = true;
  }
  return flag(step, "use_regex", true) ? add_splitter(steps, kGpt2Pattern) : ok();
}

Result<PreTokenizer> parse_pre_tokenizer(const Json& json) {
  const Json list = type_of(json) == "Sequence" ? json.value("pretokenizers", Json()) : json;
  PreTokenizer steps;
  bool has_bytes = false;
  for (const Json& step : list.is_array() ? list : Json::array({list})) {
    if (has_bytes) return invalid("pre_tokenizer: a step after ByteLevel is not supported");
    MC_TRY_VOID(add_step(steps, step), "read the tokenizer");
    has_bytes = type_of(step) == "ByteLevel";
  }
  if (!has_bytes) return invalid("pre_tokenizer: only tokenizers with ByteLevel are supported");
  return steps;
}

Status check_model(const Json& model) {
  if (type_of(model) != "BPE") {
    return invalid("a tokenizer of kind \"" + type_of(model) +
                   "\" is not supported; byte-level BPE is");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text(model, key).empty())
      return invalid(std::string("model: ") + key + " is not supported");
  }
  for (const char* key : {"byte_fallback", "fuse_unk"}) {
    if (flag(model, key, false)) return invalid(std::string("model: ") + key + " is not supported");
  }
  if (model.contains("dropout") && model["dropout"].is_number()) {
    return invalid("model: dropout is not supported");
  }
  return ok();
}

Result<int32_t> parse_id(const Json& json) {
  if (!json.is_number_integer() || json.get<int64_t>() < 0 || json.get<int64_t>() > kIdMax) {
    return invalid("an id is not a number from 0 to " + std::to_string(kIdMax));
  }
  return static_cast<int32_t>(json.get<int64_t>());
}

Result<Ids> parse_vocabulary(const Json& json) {
  if (!json.is_object()) return invalid("model: there is no vocab");
  Ids ids;
  ids.reserve(json.size());
  for (const auto& [token, id] : json.items()) {
    MC_TRY(ids[token], parse_id(id), "vocab");
  }
  return ids;
}

// The two tokens of a merge rule, from ["a", "b"], or from "a b" in older files.
std::pair<std::string, std::string> parse_pair(const Json& json) {
  if (json.is_array() && json.size() == 2 && json[0].is_string() && json[1].is_string()) {
    return {json[0].get<std::string>(), json[1].get<std::string>()};
  }
  if (!json.is_string()) return {};
  const std::string pair = json.get<std::string>();
  const size_t space = pair.find(' ');
  if (space == std::string::npos) return {};
  return {pair.substr(0, space), pair.substr(space + 1)};
}

Result<Merges> parse_merges(const Json& json, const Ids& ids) {
  if (!json.is_array()) return invalid("model: there are no merges");
  Merges merges;
  merges.reserve(json.size());
  int32_t rank = 0;
  for (const Json& entry : json) {
    const auto [left, right] = parse_pair(entry);
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto id = ids.find(left + right);
    if (left_id == ids.end() || right_id == ids.end() || id == ids.end()) {
      return invalid("model: merge " + std::to_string(rank) + ", " + entry.dump() +
                     ", is of tokens that the vocabulary does not hold");
    }
    merges[merge_key(left_id->second, right_id->second)] = {rank++, id->second};
  }
  return merges;
}

Result<AddedToken> parse_added_token(const Json& json) {
  if (!json.is_object()) return invalid("an entry is no object");
  AddedToken token;
  MC_TRY(token.id, parse_id(json.value("id", Json())), "an entry");
  token.content = text(json, "content");
  token.single_word = flag(json, "single_word", false);
  token.strip_left = flag(json, "lstrip", false);
  token.strip_right = flag(json, "rstrip", false);
  return token;
}

// True if the normalizer is NFC, at the top level or inside a Sequence.
Result<bool> asks_for_nfc(const Json& json) {
  const std::string type = type_of(json);
  if (type == "null") return false;
  if (type == "NFC") return true;
  if (type == "Sequence" && json.value("normalizers", Json()).is_array()) {
    bool asked = false;
    for (const Json& step : json["normalizers"]) {
      MC_TRY(const bool asks, asks_for_nfc(step), "normalizer");
      asked = asked || asks;
    }
    return asked;
  }
  return invalid("normalizer \"" + type + "\" is not supported; NFC is");
}

}  // namespace

struct Tokenizer::State {
  bool is_nfc = false;
  // True if a pre-token that is in the vocabulary becomes its own token without merges.
  bool ignores_merges = false;
  PreTokenizer steps;
  Ids ids;
  Merges merges;
  std::array<std::string, 256> characters = byte_characters();
  std::array<int32_t, 256> byte_ids{};  // -1 for a byte without a token, if there is no unk_token.
  std::vector<AddedToken> raw_tokens;   // Tokens to find before NFC.
  std::vector<AddedToken> normal_tokens;  // Tokens to find after NFC.
  Ids added;
  std::vector<std::string> bytes;  // The bytes of each id.

  Status parse(const Json& json);
  Status parse_added(const Json& json);
  void fill_bytes();
  void encode_plain(std::string_view text, std::vector<int32_t>& out) const;
  void encode_piece(std::string_view piece, std::vector<int32_t>& out) const;
};

Status Tokenizer::State::parse(const Json& json) {
  if (!json.is_object() || !json.contains("model")) return invalid("is no tokenizer.json");
  const Json& model = json["model"];
  MC_TRY_VOID(check_model(model), "read the tokenizer");
  MC_TRY(is_nfc, asks_for_nfc(json.value("normalizer", Json())), "read the tokenizer");
  MC_TRY(steps, parse_pre_tokenizer(json.value("pre_tokenizer", Json())), "read the tokenizer");
  MC_TRY(ids, parse_vocabulary(model.value("vocab", Json())), "read the tokenizer");
  MC_TRY(merges, parse_merges(model.value("merges", Json()), ids), "read the tokenizer");
  ignores_merges = flag(model, "ignore_merges", false);
  const auto unknown = ids.find(text(model, "unk_token"));
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(characters[byte]);
    byte_ids[byte] = found != ids.end()     ? found->second
                     : unknown != ids.end() ? unknown->second
                                            : -1;
  }
  MC_TRY_VOID(parse_added(json.value("added_tokens", Json::array())), "read the tokenizer");
  fill_bytes();
  return ok();
}

Status Tokenizer::State::parse_added(const Json& json) {
  if (!json.is_array()) return invalid("added_tokens is no list");
  for (const Json& entry : json) {
    MC_TRY(AddedToken token, parse_added_token(entry), "added_tokens");
    if (token.content.empty()) continue;
    added[token.content] = token.id;
    const bool is_normal = flag(entry, "normalized", false);
    if (is_normal && is_nfc) token.content = nfc(token.content);
    (is_normal ? normal_tokens : raw_tokens).push_back(std::move(token));
  }
  return ok();
}

void Tokenizer::State::fill_bytes() {
  std::unordered_map<std::string_view, char> byte_of;
  for (int byte = 0; byte < 256; ++byte) byte_of[characters[byte]] = static_cast<char>(byte);
  int32_t last = -1;
  for (const auto* map : {&ids, &added}) {
    for (const auto& [token, id] : *map) last = std::max(last, id);
  }
  bytes.resize(static_cast<size_t>(last) + 1);
  for (const auto& [token, id] : ids) {
    for (size_t i = 0; i < token.size();) {
      // The characters for bytes have one or two bytes in UTF-8; other characters are copied.
      const size_t size = std::min<size_t>(
          static_cast<size_t>(std::max<int>(utf8proc_utf8class[static_cast<uint8_t>(token[i])], 1)),
          token.size() - i);
      const auto found = byte_of.find(std::string_view(token).substr(i, size));
      if (found != byte_of.end()) {
        bytes[static_cast<size_t>(id)] += found->second;
      } else {
        bytes[static_cast<size_t>(id)] += token.substr(i, size);
      }
      i += size;
    }
  }
  for (const auto& [token, id] : added) bytes[static_cast<size_t>(id)] = token;
}

void Tokenizer::State::encode_piece(std::string_view piece, std::vector<int32_t>& out) const {
  if (ignores_merges) {
    std::string token;
    for (const char byte : piece) token += characters[static_cast<uint8_t>(byte)];
    const auto whole = ids.find(token);
    if (whole != ids.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  std::vector<int32_t> symbols;
  symbols.reserve(piece.size());
  for (const char byte : piece) {
    const int32_t id = byte_ids[static_cast<uint8_t>(byte)];
    if (id >= 0) symbols.push_back(id);
  }
  const std::vector<int32_t> merged = merge_all(merges, std::move(symbols));
  out.insert(out.end(), merged.begin(), merged.end());
}

void Tokenizer::State::encode_plain(std::string_view plain, std::vector<int32_t>& out) const {
  std::string spaced;
  if (steps.adds_space && !plain.starts_with(' ')) {
    spaced = " " + std::string(plain);
    plain = spaced;
  }
  std::vector<std::string_view> pieces = {plain};
  for (const Splitter& splitter : steps.splitters) {
    std::vector<std::string_view> smaller;
    for (const std::string_view piece : pieces) splitter.split(piece, smaller);
    pieces = std::move(smaller);
  }
  for (const std::string_view piece : pieces) encode_piece(piece, out);
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&& other) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&& other) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  MC_TRY(const std::string json, read_file(path, kFileBytesMax), "load the tokenizer");
  MC_TRY(Tokenizer tokenizer, parse(json), path.string());
  return tokenizer;
}

Result<Tokenizer> Tokenizer::parse(std::string_view json) {
  auto state = std::make_unique<State>();
  MC_TRY_VOID(state->parse(Json::parse(json, nullptr, /*allow_exceptions=*/false)), "tokenizer");
  return Tokenizer(std::move(state));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  const std::string valid = valid_utf8(text);
  std::vector<int32_t> ids;
  for (const TextPart& part : cut_added_tokens(state_->raw_tokens, valid)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    const std::string normal = state_->is_nfc ? nfc(part.text) : std::string(part.text);
    for (const TextPart& inner : cut_added_tokens(state_->normal_tokens, normal)) {
      if (inner.id >= 0) {
        ids.push_back(inner.id);
      } else {
        state_->encode_plain(inner.text, ids);
      }
    }
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id >= 0 && static_cast<size_t>(id) < state_->bytes.size()) text += state_->bytes[id];
  }
  return text;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  for (const Ids* map : {&state_->added, &state_->ids}) {
    const auto found = map->find(token);
    if (found != map->end()) return found->second;
  }
  return std::nullopt;
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(state_->bytes.size()); }

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t num_bytes = first_character(text.substr(i)).num_bytes;
    if (num_bytes > 0) {
      valid += text.substr(i, num_bytes);
      i += num_bytes;
      continue;
    }
    valid += kReplacement;
    ++i;  // The continuation bytes of a truncated character belong to the same run.
    while (i < text.size() && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80) ++i;
  }
  return valid;
}

}  // namespace mc::model
