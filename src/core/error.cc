#include "posenc/error.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "src/core/edit_distance.h"
#include "src/core/utf8.h"

namespace posenc {
namespace detail {

// One row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (letter == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace detail

std::string printable(std::string_view text, std::size_t longest) {
  const auto is_plain = [](char byte) { return byte >= 0x20 && byte < 0x7F; };
  std::string shown;
  while (!text.empty()) {
    // Most texts are plain ASCII, and are taken in long pieces.
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    if (shown.size() + plain > longest)
      return shown.append(text.substr(0, longest - shown.size())) + "...";
    shown.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t length = detail::character_length(text);
    const std::string_view next = length == 0 ? "\uFFFD"
                                  : detail::is_control(text.substr(0, length))
                                      ? "?"
                                      : text.substr(0, length);
    if (shown.size() + next.size() > longest) return shown + "...";
    shown += next;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return shown;
}

std::unexpected<Error> fail(std::string_view where, std::string_view rule, std::string_view got,
                            std::string_view cure) {
  constexpr std::size_t longest = 1000;  // a list of what there is
  return std::unexpected(Error{printable(where, longest), printable(rule, longest),
                               printable(got, longest / 4), printable(cure, longest)});
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t longest_word = 64;  // a hostile word is not worth comparing
  std::string_view nearest;
  if (word.size() > longest_word) return nearest;
  std::size_t best = word.size() / 3 + 2;
  for (const std::string_view candidate : known) {
    const std::size_t distance = detail::edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest(word, known);
  if (!near.empty()) return "did you mean '" + std::string(near) + "'?";
  std::string list = "one of:";
  for (const std::string_view candidate : known) list += ' ' + std::string(candidate);
  return list;
}

}  // namespace posenc
