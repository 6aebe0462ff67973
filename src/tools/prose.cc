#include "src/tools/prose.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/core/small_letters.h"
#include "src/core/words.h"
#include "src/explain/text.h"

namespace posenc::detail::prose {
namespace {

// Whether the comma at `at` groups a number's digits: "4,096", and not "8, 512".
bool groups_digits(std::string_view text, std::size_t at) {
  constexpr std::size_t group = 3;
  if (at == 0 || at + group >= text.size() || text[at] != ',' || !is_digit(text[at - 1]))
    return false;
  const std::string_view behind = text.substr(at + 1);
  return std::ranges::all_of(behind.substr(0, group), is_digit) &&
         (behind.size() == group || !is_digit(behind[group]));
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view between = " \t\r\n,;()[]{}\"'`*|", around = ".:!?<>_~/";
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(between, at);
    if (first == text.npos) break;
    at = std::min(text.find_first_of(between, first), text.size());
    while (groups_digits(text, at)) at = std::min(text.find_first_of(between, at + 1), text.size());
    // Chinese stands without blanks beside numbers and names.
    const auto is_foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
    for (std::size_t n = first + 1; n < at; ++n)
      if (is_foreign(text[n]) != is_foreign(text[n - 1])) at = n;
    std::string_view word = text.substr(first, at - first);
    // Signs alone are what such a model writes.
    if (word.find_first_not_of("!?@") == word.npos) {
      words.push_back(word);
      continue;
    }
    while (word.size() > 1 && around.contains(word.back())) word.remove_suffix(1);
    while (word.size() > 1 && around.contains(word.front()) && word.front() != '>')
      word.remove_prefix(1);
    if (!word.ends_with("_penalty")) words.push_back(word);  // a setting, and no complaint
  }
  return words;
}

bool begins_with_one(std::string_view word, std::string_view stems) {
  return std::ranges::any_of(split(stems),
                             [&](std::string_view stem) { return word.starts_with(stem); });
}

bool is_one(std::string_view word, std::string_view words) {
  return std::ranges::any_of(split(words), [&](std::string_view one) {
    if (!one.ends_with('*')) return word == one;
    one.remove_suffix(1);
    return one.starts_with('*') ? word.contains(one.substr(1)) : word.starts_with(one);
  });
}
bool followed_by(Words words, std::string_view first, std::string_view second, std::size_t within) {
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (!contains_word(first, words[n])) continue;
    for (std::size_t k = n + 1; k < std::min(words.size(), n + 1 + within); ++k)
      if (begins_with_one(words[k], second)) return true;
  }
  return false;
}

std::optional<Count> count_of(std::string_view grouped_word) {
  std::string whole_word(grouped_word);
  std::erase(whole_word, ',');
  std::string_view word = whole_word;
  while (!word.empty() && (word.front() == '>' || word.front() == '~' || word.front() == '='))
    word.remove_prefix(1);
  const std::size_t digits = std::min(word.find_first_not_of("0123456789."), word.size());
  if (digits == 0 || digits > 9 || word.front() == '.') return std::nullopt;
  std::string_view unit = word.substr(digits);
  if (unit.starts_with('-')) unit.remove_prefix(1);  // 8192-token prompts
  const std::string_view number = word.substr(0, digits);
  double value = 0, place = 1;
  bool point = false;
  for (const char c : number) {
    if (c == '.' && point) return std::nullopt;  // a version
    if (c == '.') {
      point = true;
      continue;
    }
    value = 10 * value + (c - '0');
    if (point) place *= 10;
  }
  value /= place;
  const bool thousands = unit == "k" || unit.starts_with("k+") || unit.starts_with("ktok") ||
                         unit.starts_with("k-") || unit.starts_with("kctx");
  const bool millions = unit == "m" || unit.starts_with("m-tok");
  const bool plain = unit.empty() || unit == "+" || unit.starts_with("tok") ||
                     unit.starts_with("ctx") || unit == "th" || unit == "rd" || unit == "nd" ||
                     unit == "st";
  if (!(thousands || millions || (plain && !point))) return std::nullopt;
  // 4k is 4,096 where it is a power of two, as lengths are.
  if (thousands) {
    const auto whole = std::llround(value);
    const bool power =
        static_cast<double>(whole) == value && whole > 0 && (whole & (whole - 1)) == 0;
    value *= power ? 1024 : 1000;
  }
  if (millions) value *= 1e6;
  return Count{std::llround(value), thousands || millions};
}

bool is_unit(std::string_view word) {
  return begins_with_one(word, "token context ctx tok window 个token 词元");
}

bool is_other_unit(std::string_view word) {
  return begins_with_one(word,
                         "char word second sec minute min hour gb mb gib mib vram ram layer step "
                         "epoch times time% % param head user request line file page token/s "
                         "tokens/s tok/s t/s ms message turn image frame fps px pixel gpu day week "
                         "try tries attempt dimension dim channel resolution video picture "
                         "concurrent sample iteration byte dollar update error");
}

}  // namespace posenc::detail::prose
