#include "src/tools/log_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace of_numbers {
namespace {

// Whole numbers that stand alone: no dates, versions, line numbers of a source, fractions.
std::vector<double> lengths_in(std::string_view line) {
  constexpr double least = 64, most = 1e9;
  std::vector<double> numbers;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < line.size();) {
    if (!is_digit(line[i])) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    double number = 0;
    while (i < line.size() &&
           (is_digit(line[i]) ||
            ((line[i] == ',' || line[i] == '_') && i + 3 < line.size() && is_digit(line[i + 1]) &&
             is_digit(line[i + 2]) && is_digit(line[i + 3]) &&
             (i + 4 == line.size() || !is_digit(line[i + 4]))))) {
      if (is_digit(line[i])) number = 10 * number + (line[i] - '0');
      ++i;
    }
    const char before = start > 0 ? line[start - 1] : ' ', behind = i < line.size() ? line[i] : ' ';
    const char next = i + 1 < line.size() ? line[i + 1] : ' ';
    const bool alone =
        std::string_view(" =([{'\"`><,|").contains(before) ||
        (before == ':' && start > 1 && line[start - 2] != 'y' && !is_digit(line[start - 2]));
    const bool ends = std::string_view(" )]}'\"`,;<>|").contains(behind) ||
                      ((behind == '.' || behind == ':') &&
                       (std::string_view(" '\"").contains(next) || i + 1 == line.size()));
    // "Error code: 400", "status 429"
    const std::string_view in_front = line.substr(0, start);
    const bool is_status = number >= 400 && number < 600 &&
                           (in_front.ends_with("code: ") || in_front.ends_with("status ") ||
                            in_front.ends_with("status: ") || in_front.ends_with("code\": ") ||
                            in_front.ends_with("http "));
    if (alone && ends && !is_status && number >= least && number <= most) numbers.push_back(number);
  }
  return numbers;
}

std::string told_length(double number) { return grouped(std::llround(number)); }

const LayerGroup* first_text(const Model& model) {
  for (const LayerGroup& group : model.groups)
    if (!is_tower(group.stack) && group.geometry.head_dim > 0) return &group;
  return nullptr;
}

}  // namespace
}  // namespace of_numbers

using of_numbers::told_length, of_numbers::first_text;

std::optional<Finding> compared_lengths(std::string_view line) {
  constexpr std::size_t longest = 400;
  const std::string text = in_small_letters(line.substr(0, longest));
  if (contains_any(text,
                   {"memory", " gib", " mib", " gb", " mb", "bytes", "vocab", "num_seqs", "seed",
                    "port ", "timeout", "width", "height", "pixel", "num_blocks", "stepping",
                    "\xe2\x86\x92", "->"}))  // an arrow is a change, no comparison
    return std::nullopt;
  // "--max-client-batch-size 64" is set, and compared with nothing.
  for (std::size_t at = text.find(" --"); at != text.npos; at = text.find(" --", at + 1)) {
    const std::size_t value = text.find_first_of(" =", at + 3);
    if (value + 1 < text.size() && is_digit(text[value + 1])) return std::nullopt;
  }
  std::vector<double> numbers = of_numbers::lengths_in(text);
  const bool of_index =
      contains_any(text, {"out of bounds", "out of range", "out-of-bounds", "outofbounds"}) ||
      (text.contains("index") && contains_any(text, {">=", "must be less than", "exceeds"}));
  const std::size_t told = numbers.size();
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  if (of_index) {
    // "index 40960 is out of bounds for dimension 0 with size 40960"
    if (told < 2 || numbers.size() > 2) return std::nullopt;
    const std::string rows = told_length(numbers.front());
    return Finding{.code = "table_end",
                   .severity = Severity::warning,
                   .expected = {},
                   .found = rows + " tokens",
                   .message = "an index is beyond the " + rows +
                              " entries of its table: where these are positions, the text has "
                              "grown past them; where they are the vocabulary, a token is unknown",
                   .cure = "compare " + rows +
                           " with max_position_embeddings and vocab_size of the config.json: "
                           "posenc doctor FILE LOG does"};
  }
  // A limit, and what was left below it: "truncating from 50000 to 40956 of 40960".
  constexpr double nearby = 64;
  if (numbers.size() == 3 && numbers[1] - numbers[0] <= nearby) numbers.erase(numbers.begin());
  const bool of_length = contains_any(text, {"token", "prompt", "context", "length", "seq",
                                             "position", "rope", "ctx", "max_len", "model_len"});
  const bool compares = contains_any(text, {"exceed",
                                            "greater than",
                                            "larger than",
                                            "longer than",
                                            "more than",
                                            "beyond",
                                            " > ",
                                            "must be <",
                                            "must be less",
                                            "must not be",
                                            "less than or equal",
                                            "at most",
                                            "too long",
                                            "too large",
                                            "too many",
                                            "over the",
                                            "cannot be",
                                            "truncat",
                                            "does not fit",
                                            "up to",
                                            "only support"});
  // A warning that all of the model is not used says the opposite.
  const bool is_shorter =
      !text.contains("must") && !text.contains("exceed") &&
      contains_any(text, {"smaller than", "shorter than", "less than the", " < "});
  // Tokens of a minute are a quota's.
  const bool of_quota = contains_any(text, {"rate limit", "per minute", "per day", "quota"});
  if (!of_length || !compares || is_shorter || of_quota || numbers.size() != 2) return std::nullopt;
  return Finding{.code = "request_too_long",
                 .severity = Severity::warning,
                 .expected = told_length(numbers.front()),
                 .found = told_length(numbers.back()),
                 .message = "the line holds " + told_length(numbers.back()) +
                            " tokens against a limit of " + told_length(numbers.front()),
                 .cure = "shorten the text, the answer counted in"};
}

std::string size_of_model(const Model& model, double number) {
  const auto is = [&](std::int64_t size) {
    return size > 0 && number == static_cast<double>(size);
  };
  if (is(model.context)) return "this model's max_position_embeddings";
  for (const LayerGroup& group : model.groups) {
    if (is_tower(group.stack)) continue;
    if (const Rope* rope = rope_of(group)) {
      if (const auto original = number_of(rope->scaling, "original_max_position_embeddings");
          original && *original == number)
        return "the trained length of its scaling (original_max_position_embeddings)";
      if (rope->rotary_dim && is(*rope->rotary_dim)) return "the part of each head that rotates";
    }
    if (group.window && is(*group.window)) return "its sliding window";
    if (is(group.geometry.head_dim)) return "its head_dim";
    if (is(group.geometry.head_dim / 2) && rope_of(group)) return "half of its head_dim";
  }
  if (is(reach(model))) return "what its scaling reaches";
  return "";
}

void name_numbers(const Model& model, Finding& finding) {
  const auto number = [](const std::string& text) { return number_after(text, "").value_or(0); };
  const double a = number(finding.expected), b = number(finding.found);
  const double least = a > 0 && b > 0 ? std::min(a, b) : std::max(a, b), most = std::max(a, b);
  if (finding.code == "lengths_differ" && least == static_cast<double>(model.context) &&
      most > least) {
    finding.severity = Severity::error;
    finding.code = "table_end";
    finding.position = model.context;
    finding.message = told_length(least) +
                      " is this model's max_position_embeddings, for which a table of cos and sin, "
                      "a mask or a cache was made, and the text has " +
                      told_length(most) + " tokens";
    finding.cure = "cut the text to " + std::to_string(model.context) +
                   " tokens, answer counted in, or posenc extend MODEL --to " +
                   std::to_string(std::llround(most));
    return;
  }
  if (finding.code != "lengths_differ" && finding.code != "channels_differ") return;
  // A window's slots, and a few tokens that came on top.
  constexpr double few = 64;
  for (const LayerGroup& group : model.groups) {
    const double window = group.window ? static_cast<double>(*group.window) : 0;
    if (is_tower(group.stack) || window < 128 || most <= window || most - window > few ||
        least > few)
      continue;
    finding.message = told_length(most) + " is the sliding window of this model, " +
                      told_length(window) + ", and " + told_length(most - window) +
                      " tokens more: its cache is a ring buffer, and was cut or joined as if it "
                      "were flat";
    finding.cure =
        "update the program; until then no prompt cache and no drafts for models with sliding "
        "layers";
    return;
  }
  for (const double one : {least, most}) {
    const std::string what = size_of_model(model, one);
    if (!what.empty() && !finding.message.contains(what))
      finding.message += "; " + told_length(one) + " is " + what;
  }
}

std::optional<Finding> heads_of_view(const Model& model, std::string_view shape, double size) {
  std::size_t at = 0;
  const std::vector<double> axes = numbers_between(shape, at, "[", ']');
  const LayerGroup* group = first_text(model);
  if (!group || axes.size() < 3 || size < 1) return std::nullopt;
  const auto width = static_cast<double>(group->geometry.head_dim);
  const auto heads = static_cast<double>(group->geometry.heads),
             kv_heads = static_cast<double>(group->geometry.kv_heads);
  double all = 1;
  for (const double axis : axes) all *= std::max(axis, 1.0);
  if (all == size) return std::nullopt;
  if (axes.back() != width && std::ranges::find(axes, heads) != axes.end() &&
      all / axes.back() * width == size)
    return Finding{.code = "heads",
                   .expected = number_text(width),
                   .found = number_text(axes.back()),
                   .message = "the program takes heads of " + number_text(axes.back()) +
                              " channels, and this model's have " + number_text(width) +
                              " (head_dim): it divides hidden_size by the heads, and cos and sin "
                              "are for the wrong width as well",
                   .cure = "update the program: it must read head_dim of the config.json"};
  if (axes.back() == width && heads != kv_heads && std::ranges::find(axes, heads) != axes.end() &&
      all / heads * kv_heads == size)
    return Finding{.code = "kv_heads",
                   .expected = number_text(kv_heads),
                   .found = number_text(heads),
                   .message = "keys and values of this model have " + number_text(kv_heads) +
                              " heads, and the program takes " + number_text(heads) +
                              ", those of the queries: it knows no grouped queries",
                   .cure = "update the program: it must read num_key_value_heads"};
  return std::nullopt;
}

}  // namespace posenc::detail
