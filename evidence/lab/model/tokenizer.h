// Text as a model's tokens: byte-level BPE (GPT-2's), with the vocabulary, the merges and the way
// of cutting text into words that a GGUF file or tokenizer.json names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "posenc/files.h"

namespace posenc::detail {
struct Json;
}

namespace posenc::lab {

// How text is cut before pairs are merged; no merge reaches across a cut.
enum class Cut {
  gpt2,    // words with the blank before them, numbers, punctuation, blanks
  smollm,  // every digit by itself, the rest as gpt2
  llama3,  // numbers of three digits at most, words with whatever sign stands before them
  qwen2,   // the same, every digit by itself
};
std::vector<std::string_view> cut(std::string_view utf8, Cut how);

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(Tokenizer&&) =
      default;  // the map's keys are views of the texts, which a copy would not have
  Tokenizer& operator=(Tokenizer&&) = default;

  // Errors: no such vocabulary in the file, another kind of tokenizer (SentencePiece), a way of
  // cutting that is not one of the three.
  static Expected<Tokenizer> from(const Gguf& gguf, std::string_view where);
  static Expected<Tokenizer> from(const detail::Json& tokenizer_json, std::string_view where);
  // Of a GGUF file, or of a folder its tokenizer.json. Errors: also those of MappedFile and of the
  // parsers.
  static Expected<Tokenizer> read(const std::string& path);

  // As llama.cpp's: control tokens in the text are text. Begins with the file's first token, where
  // it asks for one.
  std::vector<std::int32_t> encode(std::string_view utf8) const;
  std::string text_of(std::int32_t token) const;
  std::int64_t size() const { return static_cast<std::int64_t>(texts_.size()); }

 private:
  struct Merge {
    std::int32_t rank, made;
  };
  static std::uint64_t pair(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  void fill(std::vector<std::string> texts, std::span<const std::string> merges);
  void merge(std::string_view word, std::vector<std::int32_t>& out) const;

  Cut cut_ = Cut::gpt2;
  bool whole_words_ = false;  // a word of the vocabulary is taken whole, whatever its merges say
  std::optional<std::int32_t> first_;  // begins every text
  std::vector<std::string> texts_;     // [token], bytes
  // [256]; −1: the vocabulary lacks it (some control characters), and text loses it.
  std::vector<std::int32_t> of_byte_;
  std::unordered_map<std::string_view, std::int32_t> token_of_;  // over texts_
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace posenc::lab
