// What a person's sentences are read by: words, stems, phrases, numbers of tokens. Each reader
// takes what it finds into a symptom (symptom.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/tools/symptom.h"

namespace posenc::detail::prose {

using Words = std::span<const std::string_view>;

// Little words that sentences are made of, and names, flags and messages hardly.
inline constexpr std::string_view little_words =
    "the a an is are was it this that these those to of in into on with when but not and for if my "
    "i we you how why does do can cannot be as at by from or only after then than so any most its "
    "there no has have";

// Words of small letters, without the signs around them; digits stay grouped ("4,096").
std::vector<std::string_view> words_of(std::string_view text);

bool begins_with_one(std::string_view word, std::string_view stems);
// Whether a word is one of a list, in which * stands for what is before or behind.
bool is_one(std::string_view word, std::string_view words);
// Whether a word of `second` stands within so many words behind one of `first`.
bool followed_by(Words words, std::string_view first, std::string_view second, std::size_t within);

// A count as people write it: "4096", "4,096", "8k", "32K", "1m".
struct Count {
  std::int64_t value = 0;
  bool thousands = false;  // written with a k or an m
};
std::optional<Count> count_of(std::string_view grouped_word);
bool is_unit(std::string_view word);        // tokens, context
bool is_other_unit(std::string_view word);  // seconds, GB, dollars

// Where it begins, and how long the text is; by `seen`, which is read before.
void read_lengths(Words words, Symptom& out);
// The length that settings among the words give: "num_ctx=32768", "max-model-len 32768".
void read_settings(Words words, Symptom& out);
// Sides of pictures: "2048x6144", "1920*1080".
void read_sizes(Words words, Symptom& out);
// Slots of a server, and a length beside that of the model which is so many times as much.
void read_slots(Words words, Symptom& out);
// Makers of pictures and videos by name: what they were trained on, and the frames spoken of.
void read_makers(Words words, Symptom& out);
// Models whose positions are rows of a learned table, by name.
void read_tables(Words words, Symptom& out);

// Engines with their versions: "vllm@0.15.1" of "vllm 0.15.1".
std::vector<std::string> read_versions(Words words);

// Causes that the words name themselves: a program, what it is asked for, and what it does.
void read_named_causes(Words words, std::string_view text, Symptom& out);

// "0.6.1" of "v0.6.1" or "0.6.1.post1", "b3015", "3015" behind "build"; "": it is none.
std::string version_of_word(std::string_view word, bool behind_build);
// Engines and programs, each with the version that stands behind its name. Of several that which
// answers rightly is what the others are compared with.
void read_engines(Words words, Symptom& out);

}  // namespace posenc::detail::prose
