// Lengths, sizes and settings among a person's words.
#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <vector>

#include "src/core/words.h"
#include "src/tools/prose.h"

namespace posenc::detail::prose {
namespace {

// Whether a bare number is no length: a year, a graphics card, or what follows "build", "port"….
bool is_no_length(std::int64_t value, std::string_view before) {
  constexpr std::int64_t first_year = 1990, last_year = 2047;
  constexpr std::array<std::int64_t, 12> cards = {1080, 2080, 3060, 3070, 3080, 3090,
                                                  4060, 4070, 4080, 4090, 5080, 5090};
  return (value >= first_year && value <= last_year) ||
         std::ranges::find(cards, value) != cards.end() ||
         begins_with_one(before,
                         "build step epoch port pr request commit issue update version iteration "
                         "http status code error batch gpu seed line page");
}

// "max_tokens 40960", "response length is set to 8192".
void read_answer(Words words, Symptom& out) {
  constexpr std::string_view names =
      "max_tokens max_new_tokens max_response_length max_completion_length max_output_tokens "
      "max_completion_tokens num_predict n_predict";
  constexpr std::size_t near = 4;
  for (std::size_t n = 0; n < words.size() && out.answer == 0; ++n) {
    const std::size_t sign = words[n].find_first_of("=:");
    const bool named = contains_word(names, words[n].substr(0, sign));
    const bool told = n + 1 < words.size() && words[n + 1] == "length" &&
                      contains_word("response completion answer", words[n]);
    if (!named && !told) continue;
    if (named && sign != words[n].npos)
      if (const auto count = count_of(words[n].substr(sign + 1))) out.answer = count->value;
    for (std::size_t k = n + (told ? 2 : 1);
         k < words.size() && k <= n + near + 1 && out.answer == 0; ++k) {
      if (const auto count = count_of(words[k]))
        out.answer = count->value;
      else if (!contains_word("is was set to of at as", words[k]))
        break;
    }
  }
}

}  // namespace

void read_lengths(Words words, Symptom& out) {
  constexpr std::string_view begins =
      "after beyond past over exceed exceeds exceeding exceeded above than > >= until up reaches "
      "reach reaching reached crosses hits hit at around about approximately roughly outside "
      "passes surpasses from longer larger bigger near close";
  constexpr std::string_view weak =
      "until up at around about approximately roughly from than near close";
  constexpr std::string_view of_texts =
      "token context prompt input length sequence seq text ctx position";
  for (std::size_t n = 0; n < words.size(); ++n) {
    const auto count = count_of(words[n]);
    if (!count) continue;
    const std::string_view before = n > 0 ? words[n - 1] : "",
                           unit = n + 1 < words.size() ? words[n + 1] : "";
    const std::int64_t value = count->value;
    if (begins_with_one(unit, "frame")) {
      if (out.frames == 0) out.frames = value;
      continue;
    }
    // A flag's, or of other things.
    if (before.starts_with('-') || is_other_unit(unit)) continue;
    const bool counted = is_unit(unit) || words[n].contains("tok") || words[n].contains("ctx");
    bool told = words[n].starts_with('>'), strong = told;
    const std::size_t first = n >= 4 ? n - 4 : 0;
    const auto is_less = [](std::string_view word) {
      return contains_word("less under below shorter fewer within", word);
    };
    const bool within = std::ranges::any_of(words.subspan(first, n - first), is_less);
    for (const std::string_view sign : {"超过", "超出", "大于", "达到"})
      strong = strong || before.ends_with(sign);
    told = told || strong;
    for (std::size_t k = first; k < n && !within; ++k)
      if (contains_word(begins, words[k])) {
        told = true;
        strong = strong || !contains_word(weak, words[k]);
      }
    constexpr std::int64_t least = 100, most = 20'000'000;
    if (value < least || value > most || within) continue;
    if (!counted && !count->thousands) {
      // "past 4096": the sentence says no other thing, or speaks of texts just there.
      const std::size_t last = std::min(words.size(), n + 3), near = n >= 3 ? n - 3 : 0;
      const bool speaks = std::ranges::any_of(words.subspan(near, last - near), [&](auto word) {
        return begins_with_one(word, of_texts);
      });
      const bool alone = unit.empty() || contains_word(little_words, unit) ||
                         contains_word("vllm sglang ollama llama.cpp", unit);
      if (!strong || value < 512 || is_no_length(value, before) || !(speaks || alone)) continue;
    }
    if (told && (strong || out.seen != Seen::nothing)) {
      if (out.from == 0) out.from = value;
    } else if (counted || count->thousands) {
      if (out.length == 0) out.length = value;  // of several the first, which a title has
    }
  }
}

void read_settings(Words words, Symptom& out) {
  constexpr std::string_view names =
      "num_ctx n_ctx ctx-size --ctx-size context_length --context-length max-model-len "
      "--max-model-len max_model_len max_seq_len ollama_context_length";
  for (std::size_t n = 0; n < words.size(); ++n) {
    const std::size_t sign = words[n].find_first_of("=:");
    if (!contains_word(names, words[n].substr(0, sign))) continue;
    for (const std::string_view value :
         {sign == words[n].npos ? std::string_view() : words[n].substr(sign + 1),
          n + 1 < words.size() ? words[n + 1] : std::string_view(),
          n + 2 < words.size() ? words[n + 2] : std::string_view()})
      if (const auto count = count_of(value); count && out.set_to == 0) out.set_to = count->value;
  }
  // "set the context size to 345000"
  for (std::size_t n = 0; n + 3 < words.size(); ++n)
    if (words[n] == "context" && contains_word("size length window", words[n + 1]) &&
        words[n + 2] == "to")
      if (const auto count = count_of(words[n + 3]); count && out.set_to == 0)
        out.set_to = count->value;
  read_answer(words, out);
}

void read_slots(Words words, Symptom& out) {
  constexpr std::int64_t most_slots = 64, least = 1024;
  std::vector<std::int64_t> lengths;
  for (std::size_t n = 0; n < words.size(); ++n) {
    const std::string_view before = n > 0 ? words[n - 1] : "",
                           behind = n + 1 < words.size() ? words[n + 1] : "";
    const std::size_t sign = words[n].find('=');
    const auto count = count_of(sign == words[n].npos ? words[n] : words[n].substr(sign + 1));
    if (!count) continue;
    const std::string_view name = sign == words[n].npos ? before : words[n].substr(0, sign);
    const bool of_slots = contains_word("--parallel parallel -np n_parallel num_parallel", name) ||
                          (sign == words[n].npos && begins_with_one(behind, "slot"));
    if (of_slots && count->value > 1 && count->value <= most_slots)
      out.slots = count->value;
    else if (count->value >= least)
      lengths.push_back(count->value);
  }
  for (const std::int64_t sum : lengths)
    if (out.slots > 0 && sum % out.slots == 0 &&
        std::ranges::find(lengths, sum / out.slots) != lengths.end())
      out.sum_of_slots = sum;
}

void read_sizes(Words words, Symptom& out) {
  // "2K resolution"
  for (std::size_t n = 0; n + 1 < words.size(); ++n)
    if (const auto side = count_of(words[n]);
        side && side->thousands && side->value <= 16'384 &&
        contains_word("resolution image picture", words[n + 1])) {
      out.width = out.height = side->value;
      return;
    }
  for (const std::string_view word : words) {
    const std::size_t sign = word.find_first_of("x*");
    if (sign == word.npos || sign == 0) continue;
    const auto one = count_of(word.substr(0, sign)), other = count_of(word.substr(sign + 1));
    if (!one || !other || one->thousands || other->thousands) continue;
    constexpr std::int64_t least = 100, most = 100'000;
    if (std::min(one->value, other->value) < least || std::max(one->value, other->value) > most)
      continue;
    out.width = one->value, out.height = other->value;
    return;
  }
}

void read_makers(Words words, Symptom& out) {
  struct Maker {
    std::string_view words;
    std::int64_t frames = 0, side = 0;  // sides of pictures in pixels
  };
  constexpr Maker makers[] = {{"wan wan2* wanvideo*", 81},
                              {"*hunyuan*", 129},
                              {"cogvideo*", 49},
                              {"flux flux.1*", 0, 1448},
                              {"sd3*", 0, 1024}};
  for (const Maker& one : makers)
    if (std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, one.words); }))
      out.frames_of_model = one.frames, out.side_of_model = one.side;
  // "loops at 201": the number of what else is spoken of.
  constexpr std::int64_t most_frames = 1000;
  for (std::size_t n = 1; n < words.size() && out.frames_of_model > 0 && out.frames == 0; ++n)
    if (const auto count = count_of(words[n]);
        count && !count->thousands && count->value > out.frames_of_model &&
        count->value < most_frames && !(n + 1 < words.size() && is_other_unit(words[n + 1])) &&
        contains_word("at after beyond past over to of around length than is", words[n - 1]))
      out.frames = count->value;
}

void read_tables(Words words, Symptom& out) {
  struct Table {
    std::string_view words, model;
    std::int64_t rows;
  };
  constexpr Table tables[] = {
      {"clip-l clip-g openclip open_clip", "CLIP's text encoder", 77},
      {"whisper* faster-whisper whisperx", "Whisper's decoder", 448},
      {"bert bert-base* bert-large* *minilm* bge-small* bge-base* bge-large* e5-small* e5-base* "
       "e5-large* sentence-transformer* sentencetransformer* fastembed*",
       "BERT and what is built like it", 512}};
  // "Llama-2-7b-longlora-32k-ft"
  for (const std::string_view word : words)
    if (word.contains("longlora") || word.contains("longalpaca"))
      for (const auto part : std::views::split(word, '-'))
        if (const auto count = count_of(std::string_view(part)); count && count->thousands)
          out.trained_by_longlora = count->value;
  // Embedders of another build.
  if (std::ranges::any_of(words, [](std::string_view word) {
        return is_one(word, "modernbert* e5-mistral* bge-m3* nomic* jina*");
      }))
    return;
  for (const Table& one : tables)
    if (std::ranges::any_of(words, [&](std::string_view word) { return is_one(word, one.words); }))
      out.rows_of_model = one.rows, out.model = one.model;
}

}  // namespace posenc::detail::prose
