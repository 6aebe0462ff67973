// Engines, programs and their versions among a person's words.
#include <algorithm>
#include <string>

#include "posenc/engines.h"
#include "src/core/small_letters.h"
#include "src/core/words.h"
#include "src/explain/text.h"
#include "src/tools/programs.h"
#include "src/tools/prose.h"

namespace posenc::detail::prose {

std::string version_of_word(std::string_view word, bool behind_build) {
  constexpr std::size_t most_parts = 3, most_digits = 6;
  if (word.size() > 4 && word.size() <= most_digits + 1 && word.front() == 'b' &&
      std::ranges::all_of(word.substr(1), is_digit))
    return std::string(word);
  if (behind_build && word.size() >= 4 && word.size() <= most_digits &&
      std::ranges::all_of(word, is_digit))
    return "b" + std::string(word);
  if (word.starts_with('v')) word.remove_prefix(1);
  std::size_t end = 0, parts = 0;
  while (end < word.size() && is_digit(word[end])) {
    const std::size_t first = end;
    while (end < word.size() && is_digit(word[end])) ++end;
    if (++parts > most_parts || end - first > most_digits) return "";
    if (end + 1 < word.size() && word[end] == '.' && is_digit(word[end + 1])) ++end;
  }
  const std::string_view suffix = word.substr(end);
  const bool ends = suffix.empty() || begins_with_one(suffix, ".post post rc .dev dev .rc + a b");
  return parts > 1 && ends ? std::string(word.substr(0, end)) : "";
}

namespace {

// What stands behind a name as its version: "vllm 0.6.1", "vllm version 0.6.1", "build 3015".
std::string version_behind(Words words, std::size_t name) {
  const std::size_t sign = words[name].find_last_of("@=");
  if (sign != words[name].npos) return version_of_word(words[name].substr(sign + 1), false);
  if (name + 1 >= words.size()) return "";
  const bool announced = contains_word("version v build release", words[name + 1]);
  const std::size_t at = name + (announced ? 2 : 1);
  return at < words.size() ? version_of_word(words[at], words[name + 1] == "build") : "";
}

// Whether the engine that word `n` names is the one that answers rightly.
bool is_right(Words words, std::size_t n) {
  constexpr std::string_view right =
                                 "works work worked working right fine ok correct good well "
                                 "perfect correctly",
                             no = "not no never stopped without nor";
  // "does not work in vllm" praises nothing.
  const auto says = [&](std::size_t at) {
    if (at >= words.size() || !contains_word(right, words[at])) return false;
    const std::size_t first = at >= 4 ? at - 4 : 0;
    return std::ranges::none_of(words.subspan(first, at - first), [&](std::string_view word) {
      return contains_word(no, word) || word.ends_with("n't");
    });
  };
  // "LM Studio easily reaches 11K without the same issue"
  constexpr std::size_t near = 9, behind = 3;
  for (std::size_t k = n + 1; k < words.size() && k < n + near; ++k)
    if (words[k] == "without")
      for (std::size_t w = k + 1; w < words.size() && w <= k + behind; ++w)
        if (contains_word("issue issues problem problems trouble", words[w])) return true;
  if (n + 1 < words.size() && contains_word("works work worked", words[n + 1]) && says(n + 1))
    return true;
  if (n + 2 < words.size() && contains_word("is was are", words[n + 1]) && says(n + 2)) return true;
  if (n == 0) return false;
  if (words[n - 1] == "unlike" || words[n - 1] == "than") return true;
  const bool within = contains_word("in with on under using by", words[n - 1]);
  return within && ((n >= 2 && says(n - 2)) || (n >= 3 && says(n - 3)));
}

// Programs by words that sentences have as well, or months, or songs.
bool is_common_word(std::string_view name) {
  return contains_word("jan tune swift burn candle dynamo trl mlc", name);
}

// The name of an engine, as lists have it.
std::string engine_of_word(Words words, std::size_t n) {
  std::string name(words[n].substr(0, words[n].find_first_of("@=")));
  if (name == "lm" && n + 1 < words.size() && words[n + 1] == "studio") return "lmstudio";
  if (name == "llamacpp") return "llama.cpp";
  if (name == "mlx") return "mlx-lm";
  if (name == "trt-llm" || name == "tensorrtllm") return "tensorrt-llm";
  if (name == "kobold") return "koboldcpp";
  if (name == "oobabooga") return "text-generation-webui";
  if (name == "exllama") return "";                      // of 2023, and no version of it is known
  if (name == "huggingface" || name == "hf") return "";  // where files come from
  if (const std::string_view within = engine_within(name);
      !within.empty() && name != "koboldcpp" && name != "lms")
    name = within;
  if (is_common_word(name) && n > 0 &&
      !contains_word("in with by using on of from", words[n - 1]) &&
      version_behind(words, n).empty())
    return "";
  return name;
}

}  // namespace

void read_engines(Words words, Symptom& out) {
  struct Named {
    std::string name, id;
    bool right = false;
  };
  std::vector<Named> all;
  for (std::size_t n = 0; n < words.size(); ++n) {
    std::string name = engine_of_word(words, n);
    const bool known = name.size() > 2 && is_letter(name.front()) && find_engine(name);
    if (!known) name = program_without_profile(name);
    if (name.empty()) continue;
    std::string id = name;
    if (const std::string version = version_behind(words, n);
        !version.empty() && (!known || find_engine(name + "@" + version)))
      id += "@" + version;
    const bool right = is_right(words, n);
    const auto same = std::ranges::find(all, name, &Named::name);
    if (same == all.end()) {
      all.push_back({name, id, right});
    } else {
      if (id.size() > same->id.size()) same->id = id;
      same->right = same->right && right;
    }
  }
  const auto is_wrong = [](const Named& one) { return !one.right; };
  if (std::ranges::any_of(all, is_wrong))
    std::erase_if(all, [](const Named& one) { return one.right; });
  if (all.size() > 1)
    std::erase_if(all, [](const Named& one) { return one.name == "transformers"; });
  for (Named& one : all) out.engines.push_back(std::move(one.id));
}

std::vector<std::string> read_versions(Words words) {
  std::vector<std::string> all;
  for (std::size_t n = 0; n < words.size(); ++n) {
    const std::string version = version_behind(words, n);
    if (version.empty()) continue;
    const std::string id = engine_of_word(words, n) + "@" + version;
    if (id.size() > version.size() + 3 && find_engine(id)) all.push_back(id);
  }
  return all;
}

}  // namespace posenc::detail::prose
