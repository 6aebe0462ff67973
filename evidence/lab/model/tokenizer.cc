#include "evidence/lab/model/tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <queue>
#include <tuple>
#include <utility>

#include "evidence/lab/model/source.h"
#include "src/core/try.h"
#include "src/text/json.h"

namespace posenc::lab {
namespace {

// --- cutting -------------------------------------------------------------------------------------

enum class Kind : std::uint8_t { letter, number, blank, other };

struct Letter {
  std::size_t at;  // its first byte
  char32_t code;
  Kind kind;
};

Kind kind_of(char32_t code) {
  if ((code >= '\t' && code <= '\r') || code == 0x85) return Kind::blank;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return Kind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return Kind::number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return Kind::blank;
    default: return Kind::other;
  }
}

// A byte that is no UTF-8 counts as a sign of its own.
std::vector<Letter> letters_of(std::string_view utf8) {
  std::vector<Letter> letters;
  letters.reserve(utf8.size());
  for (std::size_t at = 0; at < utf8.size();) {
    utf8proc_int32_t code = 0;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(utf8.data() + at);
    const auto left = static_cast<utf8proc_ssize_t>(utf8.size() - at);
    const utf8proc_ssize_t size = utf8proc_iterate(bytes, left, &code);
    if (size <= 0)
      letters.push_back({at, 0xFFFD, Kind::other});
    else
      letters.push_back({at, static_cast<char32_t>(code), kind_of(static_cast<char32_t>(code))});
    at += static_cast<std::size_t>(std::max<utf8proc_ssize_t>(size, 1));
  }
  return letters;
}

// Letters [first, last) of a text, seen as if nothing stood around them; each alternative of the
// regular expressions is a function that gives where its match from `at` ends, or `at` where it has
// none.
class Excerpt {
 public:
  Excerpt(const std::vector<Letter>& letters, std::size_t first, std::size_t last)
      : letters_(letters), at_(first), last_(last) {}

  template <class Word>
  void each(Word&& word, Cut how) {
    while (at_ < last_) {
      const std::size_t end = how == Cut::llama3  ? llama3(3)
                              : how == Cut::qwen2 ? llama3(1)
                                                  : gpt2();
      word(at_, end);
      at_ = end;
    }
  }

 private:
  bool is(std::size_t at, Kind kind) const { return at < last_ && letters_[at].kind == kind; }
  bool is(std::size_t at, char32_t code) const { return at < last_ && letters_[at].code == code; }
  bool breaks(std::size_t at) const { return is(at, U'\n') || is(at, U'\r'); }
  std::size_t past(std::size_t at, Kind kind, std::size_t most = -1) const {
    const std::size_t first = at;
    while (is(at, kind) && at - first < most) ++at;
    return at;
  }

  // 's 't 're 've 'm 'll 'd
  std::size_t contraction(bool any_case) const {
    if (!is(at_, U'\'')) return at_;
    const auto ends = [&](std::u32string_view text) {
      for (std::size_t i = 0; i < text.size(); ++i)
        if (!is(at_ + 1 + i, text[i]) && !(any_case && is(at_ + 1 + i, text[i] - U'a' + U'A')))
          return false;
      return true;
    };
    for (const std::u32string_view text : {U"s", U"t", U"re", U"ve", U"m", U"ll", U"d"})
      if (ends(text)) return at_ + 1 + text.size();
    return at_;
  }
  std::size_t run_behind_a_blank(Kind kind) const {
    const std::size_t first = at_ + (is(at_, U' ') ? 1 : 0), end = past(first, kind);
    return end > first ? end : at_;
  }
  // The last blank of a run goes with the word behind it.
  std::size_t blanks() const {
    const std::size_t end = past(at_, Kind::blank);
    return end == last_ || end - at_ < 2 ? end : end - 1;
  }

  std::size_t gpt2() const {
    for (const std::size_t end :
         {contraction(false), run_behind_a_blank(Kind::letter), run_behind_a_blank(Kind::number),
          run_behind_a_blank(Kind::other)})
      if (end > at_) return end;
    return blanks();
  }

  // Numbers of `digits` at most.
  std::size_t llama3(std::size_t digits) const {
    if (const std::size_t end = contraction(true); end > at_) return end;
    const bool sign = !breaks(at_) && !is(at_, Kind::letter) && !is(at_, Kind::number);
    const std::size_t word = at_ + (sign ? 1 : 0);
    if (const std::size_t end = past(word, Kind::letter); end > word) return end;
    if (const std::size_t end = past(at_, Kind::number, digits); end > at_) return end;
    if (std::size_t end = run_behind_a_blank(Kind::other); end > at_) {
      while (breaks(end)) ++end;
      return end;
    }
    std::size_t end = past(at_, Kind::blank);
    while (end > at_ && !breaks(end - 1)) --end;
    return end > at_ ? end : blanks();
  }

  const std::vector<Letter>& letters_;
  std::size_t at_, last_;
};

// --- reading a file ------------------------------------------------------------------------------

// GPT-2 writes its vocabulary in printable letters: those of Latin-1 stand for themselves, the
// other 68 bytes for the letters from U+0100 on.
std::array<char32_t, 256> printed_bytes() {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    letters[byte] = printable ? byte : next++;
  }
  return letters;
}

// The bytes that a word of the vocabulary stands for; letters that stand for none (in control
// tokens) as they are.
std::string bytes_of(std::string_view printed) {
  static const auto byte_of = [] {
    std::unordered_map<char32_t, char> made;
    const std::array<char32_t, 256> letters = printed_bytes();
    for (std::size_t byte = 0; byte < 256; ++byte) made[letters[byte]] = static_cast<char>(byte);
    return made;
  }();
  std::string bytes;
  const std::vector<Letter> letters = letters_of(printed);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto found = byte_of.find(letters[i].code);
    const std::size_t end = i + 1 < letters.size() ? letters[i + 1].at : printed.size();
    if (found != byte_of.end())
      bytes += found->second;
    else
      bytes += printed.substr(letters[i].at, end - letters[i].at);
  }
  return bytes;
}

Expected<const GgufStrings*> strings(const Gguf& gguf, std::string_view key,
                                     std::string_view where) {
  const GgufValue* value = gguf.find(key);
  const auto* list = value == nullptr ? nullptr : std::get_if<GgufStrings>(value);
  if (list != nullptr) return list;
  return fail(std::string(where) + ": " + std::string(key), "must be the tokenizer's list of texts",
              value == nullptr ? "nothing" : "another value",
              "give a GGUF that brings its tokenizer along, as llama.cpp's converter writes it");
}

std::string text_or(const Gguf& gguf, std::string_view key, std::string_view otherwise) {
  const GgufValue* value = gguf.find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text != nullptr ? *text : std::string(otherwise);
}

Expected<Cut> cut_of(std::string_view name, std::string_view where) {
  if (name == "smollm") return Cut::smollm;
  if (name == "gpt-2" || name == "gpt2") return Cut::gpt2;
  if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") return Cut::llama3;
  if (name == "qwen2") return Cut::qwen2;
  return fail(std::string(where) + ": tokenizer.ggml.pre",
              "must be gpt-2, smollm, llama-bpe or qwen2", name,
              "posenc lab knows no other way of cutting text yet");
}

std::string word_of(const detail::Json& json, std::string_view key) {
  const detail::Json* value = json.find(key);
  const auto* text = value ? value->get<std::string>() : nullptr;
  return text ? *text : "";
}

// As tokenizer.json says it: ByteLevel alone is GPT-2's, digits cut off before it are SmolLM's, and
// a regular expression with numbers of three digits is Llama 3's, of one Qwen 2's.
template <class Refuse>
Expected<Cut> cut_of(const detail::Json* before, const Refuse& refuse) {
  std::vector<const detail::Json*> steps;
  if (before && word_of(*before, "type") == "Sequence") {
    const detail::Json* list = before->find("pretokenizers");
    if (const auto* all = list ? list->get<detail::Json::Array>() : nullptr)
      for (const detail::Json& one : *all) steps.push_back(&one);
  } else if (before) {
    steps.push_back(before);
  }
  std::string kinds;
  for (const detail::Json* step : steps) {
    const std::string kind = word_of(*step, "type");
    const detail::Json *pattern = step->find("pattern"), *each = step->find("individual_digits");
    const std::string regex = pattern ? word_of(*pattern, "Regex") : "";
    if (kind == "Split" && regex.contains("\\p{N}{1,3}"))
      kinds += "threes ";
    else if (kind == "Split" && regex.contains("|\\p{N}|"))
      kinds += "ones ";
    else if (kind == "Digits" && each && each->text() == "true")
      kinds += "digits ";
    else
      kinds += kind + " ";
  }
  if (kinds == "ByteLevel ") return Cut::gpt2;
  if (kinds == "digits ByteLevel ") return Cut::smollm;
  if (kinds == "threes ByteLevel ") return Cut::llama3;
  if (kinds == "ones ByteLevel ") return Cut::qwen2;
  return refuse("pre_tokenizer", "must cut text as GPT-2, SmolLM, Llama 3 or Qwen 2 do",
                kinds.empty() ? "none" : kinds);
}

// The token that the template of a single text begins with.
std::optional<std::int32_t> first_of(
    const detail::Json& json, const std::unordered_map<std::string_view, std::int32_t>& tokens) {
  const detail::Json* after = json.find("post_processor");
  std::vector<const detail::Json*> steps;
  if (const detail::Json* list = after ? after->find("processors") : nullptr) {
    if (const auto* all = list->get<detail::Json::Array>())
      for (const detail::Json& one : *all) steps.push_back(&one);
  } else if (after) {
    steps.push_back(after);
  }
  for (const detail::Json* step : steps) {
    const detail::Json* single = step->find("single");
    const auto* parts = single ? single->get<detail::Json::Array>() : nullptr;
    if (!parts || parts->empty()) continue;
    const detail::Json* special = parts->front().find("SpecialToken");
    const auto found = special ? tokens.find(word_of(*special, "id")) : tokens.end();
    if (found != tokens.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> cut(std::string_view utf8, Cut how) {
  const std::vector<Letter> letters = letters_of(utf8);
  std::vector<std::string_view> words;
  const auto word = [&](std::size_t first, std::size_t end) {
    const std::size_t from = letters[first].at,
                      to = end < letters.size() ? letters[end].at : utf8.size();
    words.push_back(utf8.substr(from, to - from));
  };
  std::size_t from = 0;
  for (std::size_t i = 0; how == Cut::smollm && i < letters.size(); ++i) {
    if (letters[i].kind != Kind::number) continue;
    Excerpt(letters, from, i).each(word, how);
    word(i, i + 1);
    from = i + 1;
  }
  Excerpt(letters, from, letters.size()).each(word, how);
  return words;
}

// Merges are "left right", as GPT-2's list has them.
void Tokenizer::fill(std::vector<std::string> texts, std::span<const std::string> merges) {
  texts_ = std::move(texts);
  for (std::size_t i = 0; i < texts_.size(); ++i)
    token_of_.emplace(texts_[i], static_cast<std::int32_t>(i));
  const auto token = [&](std::string_view bytes) {
    const auto found = token_of_.find(bytes);
    return found == token_of_.end() ? -1 : found->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    const auto letter = static_cast<char>(byte);
    of_byte_.push_back(token({&letter, 1}));
  }
  std::int32_t rank = 0;
  for (const std::string_view line : merges) {
    const std::size_t blank = line.find(' ', 1);
    if (blank == std::string_view::npos) continue;
    const std::string left = bytes_of(line.substr(0, blank)),
                      right = bytes_of(line.substr(blank + 1));
    const std::int32_t a = token(left), b = token(right), whole = token(left + right);
    if (a >= 0 && b >= 0 && whole >= 0) merges_.emplace(pair(a, b), Merge{rank, whole});
    ++rank;
  }
}

Expected<Tokenizer> Tokenizer::from(const Gguf& gguf, std::string_view where) {
  if (const std::string kind = text_or(gguf, "tokenizer.ggml.model", "none"); kind != "gpt2")
    return fail(std::string(where) + ": tokenizer.ggml.model", "must be gpt2, a byte-level BPE",
                kind, "SentencePiece (Llama 2, Gemma) is not read yet");
  POSENC_TRY(words, strings(gguf, "tokenizer.ggml.tokens", where));
  POSENC_TRY(merges, strings(gguf, "tokenizer.ggml.merges", where));
  POSENC_TRY(how, cut_of(text_or(gguf, "tokenizer.ggml.pre", "default"), where));
  Tokenizer made;
  made.cut_ = how;
  made.whole_words_ = how == Cut::llama3;
  std::vector<std::string> texts;
  for (const std::string_view word : words->texts()) texts.push_back(bytes_of(word));
  const std::vector<std::string_view> lines = merges->texts();
  made.fill(std::move(texts), std::vector<std::string>(lines.begin(), lines.end()));
  const GgufValue* asks = gguf.find("tokenizer.ggml.add_bos_token");
  const GgufValue* first = gguf.find("tokenizer.ggml.bos_token_id");
  const bool wants = asks != nullptr ? asks == nullptr || std::get_if<bool>(asks) == nullptr ||
                                           std::get<bool>(*asks)
                                     : how == Cut::llama3;
  const auto* id = first == nullptr ? nullptr : std::get_if<std::uint64_t>(first);
  if (wants && id != nullptr && *id < made.texts_.size())
    made.first_ = static_cast<std::int32_t>(*id);
  return made;
}

Expected<Tokenizer> Tokenizer::from(const detail::Json& json, std::string_view where) {
  const auto refuse = [&](std::string_view key, std::string_view rule, std::string got) {
    return fail(std::string(where) + ": " + std::string(key), rule, std::move(got),
                "give a GGUF of the model, as llama.cpp's converter writes it");
  };
  const detail::Json *model = json.find("model"), *type = model ? model->find("type") : nullptr,
                     *vocab = model ? model->find("vocab") : nullptr,
                     *merges = model ? model->find("merges") : nullptr;
  const auto* words = vocab ? vocab->get<detail::Json::Object>() : nullptr;
  const auto* pairs = merges ? merges->get<detail::Json::Array>() : nullptr;
  if (!words || !pairs || (type && type->text() != "\"BPE\""))
    return refuse("model", "must be a byte-level BPE with vocab and merges",
                  type && type->text() != "\"BPE\"" ? type->text()
                  : words                           ? "no merges"
                                                    : "no vocab");
  POSENC_TRY(how, cut_of(json.find("pre_tokenizer"), refuse));
  Tokenizer made;
  made.cut_ = how;
  const detail::Json* ignore = model->find("ignore_merges");
  made.whole_words_ = ignore && ignore->text() == "true";
  std::vector<std::string> texts;
  const auto put = [&](std::string text, const detail::Json& id) {
    constexpr std::int64_t most = 1 << 22;
    const auto* number = id.get<std::int64_t>();
    if (!number || *number < 0 || *number > most) return;
    const auto at = static_cast<std::size_t>(*number);
    if (at >= texts.size()) texts.resize(at + 1);
    texts[at] = std::move(text);
  };
  for (const detail::JsonMember& word : *words) put(bytes_of(word.key), word.value);
  if (const detail::Json* added = json.find("added_tokens"))
    if (const auto* list = added->get<detail::Json::Array>())
      for (const detail::Json& one : *list)
        if (const detail::Json *content = one.find("content"), *id = one.find("id"); content && id)
          if (const auto* text = content->get<std::string>()) put(*text, *id);
  std::vector<std::string> lines;
  for (const detail::Json& merge : *pairs) {
    const auto* both = merge.get<detail::Json::Array>();
    const auto* line = merge.get<std::string>();
    const auto* left = both && both->size() == 2 ? (*both)[0].get<std::string>() : nullptr;
    const auto* right = both && both->size() == 2 ? (*both)[1].get<std::string>() : nullptr;
    if (line)
      lines.push_back(*line);
    else if (left && right)
      lines.push_back(*left + " " + *right);
  }
  made.fill(std::move(texts), lines);
  made.first_ = first_of(json, made.token_of_);
  return made;
}

Expected<Tokenizer> Tokenizer::read(const std::string& path) {
  if (is_folder(path)) {
    constexpr std::string_view name = "tokenizer.json";
    POSENC_TRY(text, text_in_folder(path, name));
    POSENC_TRY(json, detail::parse_json(text, name));
    return from(json, path + "/" + std::string(name));
  }
  POSENC_TRY(file, MappedFile::open(path));
  POSENC_TRY(gguf, parse_gguf(file.bytes(), path));
  return from(gguf, path);
}

std::string Tokenizer::text_of(std::int32_t token) const {
  return token < 0 || token >= size() ? "" : texts_[static_cast<std::size_t>(token)];
}

// The pair of lowest rank is merged first, of equal ones the leftmost: a heap of pairs over a
// linked list of tokens.
void Tokenizer::merge(std::string_view word, std::vector<std::int32_t>& out) const {
  struct Link {
    std::int32_t token;
    int before, after;
  };
  const int size = static_cast<int>(word.size());
  std::vector<Link> links;
  for (int i = 0; i < size; ++i)
    links.push_back({of_byte_[static_cast<unsigned char>(word[static_cast<std::size_t>(i)])], i - 1,
                     i + 1 < size ? i + 1 : -1});
  struct Step {
    std::int32_t rank;
    int left, right;
    std::int32_t left_token, right_token, made;
    bool operator>(const Step& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };
  std::priority_queue<Step, std::vector<Step>, std::greater<>> steps;
  const auto at = [&](int i) -> Link& { return links[static_cast<std::size_t>(i)]; };
  const auto propose = [&](int left, int right) {
    if (left < 0 || right < 0) return;
    const auto found = merges_.find(pair(at(left).token, at(right).token));
    if (found == merges_.end()) return;
    steps.push(
        {found->second.rank, left, right, at(left).token, at(right).token, found->second.made});
  };
  for (int i = 0; i + 1 < size; ++i) propose(i, i + 1);
  while (!steps.empty()) {
    const Step step = steps.top();
    steps.pop();
    // What has been merged since is another token, or none.
    if (at(step.left).token != step.left_token || at(step.right).token != step.right_token ||
        at(step.left).after != step.right)
      continue;
    at(step.left).token = step.made;
    at(step.right).token = -1;
    at(step.left).after = at(step.right).after;
    if (at(step.left).after >= 0) at(at(step.left).after).before = step.left;
    propose(at(step.left).before, step.left);
    propose(step.left, at(step.left).after);
  }
  for (int i = size > 0 ? 0 : -1; i >= 0; i = at(i).after)
    if (at(i).token >= 0) out.push_back(at(i).token);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8) const {
  std::vector<std::int32_t> tokens;
  if (first_) tokens.push_back(*first_);
  for (const std::string_view word : cut(utf8, cut_)) {
    const auto whole = whole_words_ ? token_of_.find(word) : token_of_.end();
    if (whole != token_of_.end())
      tokens.push_back(whole->second);
    else
      merge(word, tokens);
  }
  return tokens;
}

}  // namespace posenc::lab
