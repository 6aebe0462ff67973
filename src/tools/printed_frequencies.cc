// Frequencies as something prints them: which numbers of a text they are, and how exact each is.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "posenc/doctor.h"
#include "src/core/small_letters.h"
#include "src/core/trimmed.h"
#include "src/core/try.h"
#include "src/text/json.h"
#include "src/tools/doctor_parts.h"

namespace posenc {
namespace {

using detail::is_digit;
using detail::is_letter;

// The end of an index such as [3], which numbers a prompt (In [3]:, Out[3]:, [3]:) or an element
// (layers[0]); `at` where none stands there.
std::size_t bracketed_index(std::string_view text, std::size_t at) {
  if (text[at] != '[') return at;
  const std::size_t end = text.find_first_not_of("0123456789", at + 1);
  if (end == text.npos || end == at + 1 || text[end] != ']') return at;
  const char before = at > 0 ? text[at - 1] : '\n';
  const bool element = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                       before == '_' || before == ')' || before == ']';
  const bool prompt = end + 1 < text.size() && text[end + 1] == ':';
  return element || prompt ? end + 1 : at;
}

// The end of a line that sets one number under another name than a frequency's, such as
// "attention_factor: 1.0"; `at` where a line begins otherwise.
std::size_t lone_setting(std::string_view text, std::size_t at) {
  if (at > 0 && text[at - 1] != '\n') return at;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  const std::string_view line = text.substr(at, end - at);
  const std::size_t sign = line.find_first_of(":=");
  if (sign == line.npos) return at;
  const std::string_view name = detail::trimmed(line.substr(0, sign)),
                         value = detail::trimmed(line.substr(sign + 1));
  const auto is_of_name = [](char c) { return is_letter(c) || c == '_' || c == '.'; };
  const bool is_one = !name.empty() && !name.contains("freq") &&
                      std::ranges::all_of(name, is_of_name) && !value.empty() &&
                      value.find_first_not_of("0123456789.eE+-") == value.npos;
  return is_one ? end : at;
}

struct PrintedNumber {
  std::size_t end;  // behind its digits
  std::optional<double> value;
  double resolution;  // half of its last digit
};

// The number whose first digit stands at `at`.
PrintedNumber printed_number(std::string_view text, std::size_t at) {
  std::size_t end = at;
  std::int64_t digits_behind = 0, exponent = 0;
  bool point = false;
  while (end < text.size() && (is_digit(text[end]) || (text[end] == '.' && !point))) {
    if (point) ++digits_behind;
    point = point || text[end] == '.';
    ++end;
  }
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t of_power = end + 1;
    const bool negative = text[of_power] == '-';
    if (text[of_power] == '-' || text[of_power] == '+') ++of_power;
    const std::size_t first = of_power;
    while (of_power < text.size() && is_digit(text[of_power]) && of_power < first + 4)
      exponent = 10 * exponent + (text[of_power++] - '0');
    if (of_power > first) {
      if (negative) exponent = -exponent;
      end = of_power;
    }
  }
  const auto json = detail::parse_json(
      std::string(text.substr(at, end - at)) + (text[end - 1] == '.' ? "0" : ""), "number");
  const double* real = json ? json->get<double>() : nullptr;
  const std::int64_t* whole = json ? json->get<std::int64_t>() : nullptr;
  return {end,
          real    ? std::optional(*real)
          : whole ? std::optional(static_cast<double>(*whole))
                  : std::nullopt,
          0.5 * std::pow(10.0, static_cast<double>(exponent - digits_behind))};
}

// "1" among fractions is as exact as these: a program leaves out the digits that are 0.
void resolve_whole_numbers(const std::vector<double>& numbers, std::vector<double>& resolution) {
  constexpr double of_whole = 0.5;
  double finest = of_whole;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (resolution[i] < of_whole && numbers[i] > 0)
      finest = std::min(finest, resolution[i] / numbers[i]);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (resolution[i] == of_whole)
      resolution[i] = std::min(of_whole, 2 * finest * std::max(1.0, numbers[i]));
}

// The first list of numbers in brackets, where there is one: what stands before it, or between two
// of them, is a heading. Else the lines that are no heading: "inv_freq of layer 0" above a column.
std::string lines_of_numbers(std::string_view text) {
  constexpr std::ptrdiff_t few = 4;
  int tries = 64;  // each reads on to its end
  for (std::size_t open = text.find('['); open != text.npos && tries > 0;
       open = text.find('[', open + 1), --tries) {
    int depth = 0;
    std::size_t end = open;
    for (; end < text.size(); ++end) {
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
      if (depth == 0) break;
    }
    const std::string_view list = text.substr(open, end - open);
    const bool plain = std::ranges::count(list, ',') >= few || std::ranges::count(list, ' ') >= few;
    const std::size_t digit = list.find_first_of("0123456789"),
                      none = std::min(list.find("nan"), list.find("inf")),
                      first = std::min(digit, none == 1 ? none : list.npos);
    const bool of_letters = first != list.npos && first > 0 && is_letter(list[first - 1]);
    if (plain && first != list.npos && !of_letters) return std::string(list);
  }
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto letters = std::ranges::count_if(line, is_letter);
    constexpr std::ptrdiff_t longest_unit = 4;  // e-05, rad
    const bool heading = letters > longest_unit && line.find_first_of("=[:") == line.npos;
    if (!heading) out += std::string(line) + "\n";
  }
  return out;
}

// "nan" and "inf" as programs print them in a list; nothing where another word stands.
std::optional<PrintedNumber> printed_no_number(std::string_view text, std::size_t at) {
  constexpr std::size_t length = 3;
  const std::string word = detail::small_letters(text.substr(at, length));
  const auto is_of_word = [&](std::size_t i) { return i < text.size() && is_letter(text[i]); };
  if ((word != "nan" && word != "inf") || (at > 0 && is_of_word(at - 1)) || is_of_word(at + length))
    return std::nullopt;
  return PrintedNumber{at + length,
                       word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                     : std::numeric_limits<double>::infinity(),
                       0};
}

// Whether a minus stands before the number at `at` and behind no other: "-1.0000e+00".
bool is_negative(std::string_view text, std::size_t at) {
  return at > 0 && text[at - 1] == '-' &&
         (at == 1 || std::string_view(" ,[(\n\t").contains(text[at - 2]));
}

// The numbers of a text, and half of the last digit of each.
Expected<void> read_numbers(std::string_view text, std::vector<double>& numbers,
                            std::vector<double>* resolution) {
  constexpr std::size_t most = 65536;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '#' && (i == 0 || text[i - 1] == '\n')) {  // what somebody wrote above them
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (const std::size_t behind = std::max(bracketed_index(text, i), lone_setting(text, i));
        behind > i) {
      i = behind;
      continue;
    }
    const bool begins =
        is_digit(text[i]) &&
        (i == 0 || !(is_letter(text[i - 1]) || is_digit(text[i - 1]) || text[i - 1] == '_' ||
                     text[i - 1] == ':' || text[i - 1] == '.'));
    const auto none = text.starts_with('[') ? printed_no_number(text, i) : std::nullopt;
    if (!begins && !none) {
      ++i;
      continue;
    }
    const bool negative = is_negative(text, i);
    const PrintedNumber number = none ? *none : printed_number(text, i);
    i = number.end;
    if (!number.value) continue;
    if (numbers.size() == most)
      return fail("inv_freq", "at most 65,536 numbers are read", "more", "give one layer's");
    numbers.push_back(negative ? -*number.value : *number.value);
    if (resolution) resolution->push_back(number.resolution);
  }
  return {};
}

}  // namespace

Expected<std::vector<double>> read_printed_frequencies(std::string_view text,
                                                       std::vector<double>* resolution) {
  std::vector<double> numbers;
  if (resolution) resolution->clear();
  const bool named = text.contains("freq");
  const std::string alone = lines_of_numbers(text);
  text = alone;
  POSENC_CHECK(read_numbers(text, numbers, resolution));
  if (resolution) resolve_whole_numbers(numbers, *resolution);
  const auto fractions = std::ranges::count_if(numbers, [](double x) { return x < 1; });
  // A buffer that was never filled holds one number throughout.
  constexpr std::size_t many = 8;
  const bool rises = std::ranges::is_sorted(numbers),  // 1/inv_freq, or one number throughout
      holds_none = !std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); });
  const bool unfilled = numbers.size() >= many && named && (rises || holds_none);
  if (numbers.size() < 4 || (2 * fractions < std::ssize(numbers) && !unfilled))
    return fail("inv_freq", "must be four frequencies or more, most of them below 1",
                std::to_string(numbers.size()) + " numbers",
                "print model.model.rotary_emb.inv_freq");
  return numbers;
}

namespace detail {

std::int64_t numbers_before_gap(std::string_view text) {
  const std::string alone = lines_of_numbers(text);
  const std::size_t gap = alone.find("..");
  std::vector<double> numbers;
  if (gap == alone.npos || !read_numbers(std::string_view(alone).substr(0, gap), numbers, nullptr))
    return 0;
  return std::ssize(numbers);
}

}  // namespace detail

}  // namespace posenc
