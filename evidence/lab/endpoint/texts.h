// Texts whose tokens depend on what stands far before them: a passage, other sentences, and the
// passage again, which a model copies as well as its rotation lets it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/lab/model/tokenizer.h"

namespace posenc::lab {

// A text with a passage that comes again `distance` tokens behind its first place.
struct ChosenText {
  std::string text = {};                  // without the token that begins every text
  std::vector<std::int32_t> tokens = {};  // with it, where the model has one
  std::int64_t distance = 0;
};

// Of sentences drawn by `seed`, some `distance` + 32 tokens long. `tokenizer` null: tokens are drawn
// among the first half of `vocabulary`, and the text is empty.
ChosenText chosen_text(const Tokenizer* tokenizer, std::int64_t vocabulary, std::uint64_t seed,
                       std::int64_t distance);

// Tokens to repeat: under any rotation, with any window and any ids, what follows a token that is
// repeated is what follows it alone, since all keys and values of a layer are alike.
std::vector<std::int32_t> repeated_tokens(const Tokenizer* tokenizer, std::int64_t vocabulary,
                                          std::uint64_t seed, std::int64_t count);

}  // namespace posenc::lab
