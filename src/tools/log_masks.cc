// Attention masks in what people print: one that numbers the texts of a pack, and one of another
// length than its tokens.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

bool any_has(std::span<const std::string> lines, std::string_view word) {
  return std::ranges::any_of(lines, [&](const std::string& one) { return one.contains(word); });
}

// The mask that picks the tokens which get M-RoPE's positions, and the tokens.
std::optional<Finding> mask_and_ids(std::string_view line, std::span<const std::string> before) {
  const auto mask = number_after(line, "The shape of the mask ["),
             ids = number_after(line, "of the indexed tensor [");
  const bool of_positions = any_has(before, "get_rope_index") || any_has(before, "position");
  if (!mask || !ids || !of_positions || std::max(*mask, *ids) > 0x1p50) return std::nullopt;
  const std::string entries = grouped(std::llround(*mask)), tokens = grouped(std::llround(*ids));
  return Finding{.code = "mrope_mask",
                 .expected = tokens,
                 .found = entries,
                 .message = "the attention mask has " + entries + " entries, and input_ids have " +
                            tokens +
                            " tokens: the one was cut, padded or joined to an answer, and the "
                            "other not",
                 .cure =
                     "hand over the attention_mask that came with these input_ids, and cut or "
                     "pad the two together"};
}

// The first row of whole numbers behind a bracket; empty where anything else stands in it.
std::vector<int> row_of(std::string_view line) {
  std::vector<int> row;
  const std::size_t opens = line.find('['), first = line.find_first_not_of("[ ", opens);
  if (opens == line.npos || first == line.npos) return row;
  bool within = false;  // of a number
  for (const char c : line.substr(first)) {
    if (c == ']') return row;
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && c != ',' && c != ' ') return {};
    constexpr int most = 100'000;
    if (is_digit && !within)
      row.push_back(c - '0');
    else if (is_digit && row.back() < most)
      row.back() = 10 * row.back() + (c - '0');
    within = is_digit;
  }
  return {};
}

// Texts that are packed are numbered 1, 2, … one behind the other, and padding is 0.
int texts_packed(const std::vector<int>& row) {
  int last = 0;
  for (const int one : row) {
    if (one != 0 && one != last && one != last + 1) return 0;
    last = std::max(last, one);
  }
  return last;
}

std::optional<Finding> packed_mask(std::string_view line, std::span<const std::string> before) {
  const bool named = line.contains("mask"), alone = !line.contains("ids");
  const bool named_above = before.size() > 1 && before[before.size() - 2].contains("mask");
  if (!named && !(named_above && alone)) return std::nullopt;
  const std::vector<int> row = row_of(line);
  constexpr std::size_t least = 4;
  const int texts = texts_packed(row);
  if (row.size() < least || texts < 2) return std::nullopt;
  return Finding{
      .code = "packed_mask",
      .severity = Severity::warning,
      .found = "1 to " + std::to_string(texts),
      .message = "the mask numbers the " + std::to_string(texts) +
                 " texts of a pack: code that takes a token for one where the mask is 1 "
                 "(get_rope_index of Qwen-VL, position_ids from a cumulative sum) gives the first "
                 "text its positions, and those behind it wrong ones",
      .cure =
          "make the positions of each text by itself, with a mask of 0 and 1, and join them; "
          "or train without packing (LLaMA-Factory: neat_packing: false, or a newer one); "
          "posenc check-positions looks at the ids that come out"};
}

// The bounds of packed texts that reach as many times too far as positions have rows.
std::optional<Finding> rows_as_texts(std::string_view line, std::span<const std::string> before,
                                     std::string_view behind) {
  if (!line.contains("cu_seqlens") && !line.contains("cu_seq_lens")) return std::nullopt;
  const std::vector<int> bounds = row_of(line);
  if (bounds.size() < 4 || bounds[0] != 0) return std::nullopt;
  const int tokens = bounds[1];
  for (std::size_t i = 1; i < bounds.size(); ++i)
    if (bounds[i] != tokens * static_cast<int>(i)) return std::nullopt;
  const auto rows = static_cast<int>(bounds.size()) - 1;
  constexpr std::size_t near = 400;
  const std::string size = "[" + std::to_string(tokens) + ",",
                    ids = "[" + std::to_string(rows) + ", 1, " + std::to_string(tokens) + "]";
  const std::string_view next = behind.substr(0, near);
  const bool fits = any_has(before, "torch.size(" + size) || any_has(before, ids) ||
                    next.contains("torch.Size(" + size) || next.contains(ids);
  if (!fits) return std::nullopt;
  return Finding{
      .code = "packing_mistaken",
      .severity = Severity::error,
      .expected = grouped(tokens),
      .found = grouped(bounds.back()),
      .message = "cu_seqlens reach " + std::to_string(rows) + " times as far as the " +
                 grouped(tokens) + " tokens: the " + std::to_string(rows) +
                 " rows of M-RoPE's positions are taken for as many packed texts, and the kernel "
                 "reads beyond its tensors",
      .cure = "pip install -U transformers (5.4 or later), or attn_implementation='sdpa'"};
}

}  // namespace

std::optional<Finding> mask_told(std::string_view line, std::span<const std::string> before,
                                 std::string_view behind) {
  if (line.contains("The shape of the mask [")) return mask_and_ids(line, before);
  if (auto rows = rows_as_texts(line, before, behind)) return rows;
  return packed_mask(line, before);
}

}  // namespace posenc::detail
