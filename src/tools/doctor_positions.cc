// Position ids as a program printed them: where they jump, and what stands on a grid.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/core/contains_any.h"
#include "src/explain/text.h"
#include "src/model/compare.h"
#include "src/tools/doctor_parts.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

using Ids = std::vector<std::int64_t>;

// The innermost lists of whole numbers; empty: there is anything else, or rows of two lengths.
std::vector<Ids> printed_rows(std::string_view text) {
  constexpr std::size_t most_rows = 64, most_ids = 1 << 14;
  std::vector<Ids> rows;
  while (true) {
    const std::size_t close = text.find(']');
    if (close == text.npos) return rows;
    const std::string_view before = text.substr(0, close);
    text.remove_prefix(close + 1);
    const std::size_t open = before.rfind('[');
    if (open == before.npos) continue;  // closes a list of lists
    Ids row;
    std::string_view inside = before.substr(open + 1);
    if (inside.find_first_not_of("0123456789, \n\r\t") != inside.npos) return {};
    while (!inside.empty()) {
      const std::size_t comma = std::min(inside.find(','), inside.size());
      if (const auto number = number_after(inside.substr(0, comma), ""); number && *number < 0x1p40)
        row.push_back(static_cast<std::int64_t>(*number));
      inside.remove_prefix(std::min(comma + 1, inside.size()));
    }
    if (row.size() < 4 || row.size() > most_ids || rows.size() == most_rows ||
        (!rows.empty() && rows.front().size() != row.size()))
      return {};
    rows.push_back(std::move(row));
  }
}

std::string typed(const std::vector<Ids>& rows) {
  constexpr std::size_t longest = 160;
  std::string text;
  for (const Ids& row : rows) {
    if (!text.empty()) text += ';';
    for (std::size_t i = 0; i < row.size(); ++i) text += (i ? "," : "") + std::to_string(row[i]);
    if (text.size() > longest) return "ids.npy";
  }
  return "'" + text + "'";
}

std::string of_tokens(std::size_t first, std::size_t end) {
  return end - first == 1 ? "token " + std::to_string(first)
                          : "tokens " + std::to_string(first) + "–" + std::to_string(end - 1);
}

// Three axes that part: the tokens of a picture, and where text goes on behind them.
std::string of_pictures(const std::vector<Ids>& rows) {
  const auto alike = [&](std::size_t i) {
    return rows[0][i] == rows[1][i] && rows[1][i] == rows[2][i];
  };
  const std::size_t count = rows[0].size();
  std::string text;
  for (std::size_t i = 0; i < count;) {
    if (alike(i)) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < count && !alike(end)) ++end;
    // The first token of a picture, and the last of a square one, stand alike on all axes.
    const std::int64_t begin = i > 0 && rows[0][i - 1] == rows[0][i] ? rows[0][i] : rows[1][i];
    if (i > 0 && rows[0][i - 1] == rows[0][i]) --i;
    std::int64_t frames = 0, tall = 0, wide = 0;
    for (std::size_t at = i; at < end; ++at) {
      frames = std::max(frames, rows[0][at] - begin + 1);
      tall = std::max(tall, rows[1][at] - begin + 1);
      wide = std::max(wide, rows[2][at] - begin + 1);
    }
    const auto tokens = static_cast<std::int64_t>(end - i);
    if (frames * tall * wide == tokens + 1 && end < count) ++end;
    text += (text.empty() ? "" : "; ") + of_tokens(i, end) + " stand on a grid of " +
            std::to_string(frames) + "×" + std::to_string(tall) + "×" + std::to_string(wide) +
            " from " + std::to_string(begin) + " on";
    if (end < count) text += ", and text goes on at " + std::to_string(rows[0][end]);
    i = end;
  }
  return text;
}

// Where a row does not go on by one.
std::string of_jumps(const Ids& row, std::string_view name) {
  constexpr int most = 3;
  std::string text;
  int found = 0;
  for (std::size_t i = 1; i < row.size() && found < most; ++i) {
    if (row[i] == row[i - 1] + 1) continue;
    text += (text.empty() ? std::string(name) + "token " : ", token ") + std::to_string(i) + " " +
            std::to_string(row[i - 1]) + " → " + std::to_string(row[i]);
    ++found;
  }
  return text;
}

// The steps between numbers of so many bits: 8 in bfloat16, 11 in float16.
std::int64_t step_at(std::int64_t id, int bits) {
  const int width = std::bit_width(static_cast<std::uint64_t>(id));
  return width > bits ? std::int64_t{1} << (width - bits) : 1;
}

// Positions that were numbers of 16 bits: beyond the first few all are multiples of a step, and some
// stand still.
std::optional<Finding> of_rounding(const std::vector<Ids>& rows) {
  for (const auto& [bits, dtype] : {std::pair{8, "bfloat16"}, std::pair{11, "float16"}}) {
    std::int64_t above = 0, still = 0, least = 0, most = 0;
    bool all = true;
    for (const Ids& row : rows)
      for (std::size_t i = 0; i < row.size() && all; ++i) {
        const std::int64_t step = row[i] > 0 ? step_at(row[i], bits) : 1;
        all = row[i] >= 0 && row[i] % step == 0;
        if (step == 1) continue;
        ++above;
        still += i > 0 && row[i] == row[i - 1];
        least = least == 0 ? row[i] : std::min(least, row[i]);
        most = std::max(most, row[i]);
      }
    constexpr std::int64_t enough = 8;
    if (!all || above < enough || 2 * still < above) continue;
    const auto steps = [&](std::int64_t id) {
      return "at " + grouped(id) + " by steps of " + std::to_string(step_at(id, bits));
    };
    return Finding{
        .code = "positions_rounded",
        .message = "the positions were rounded to " + std::string(dtype) + ": they go on " +
                   steps(least) +
                   (step_at(most, bits) > step_at(least, bits) ? ", " + steps(most) : "") +
                   ", so that neighbours share a rotation",
        .cure =
            "keep positions as integers, and make angles in float32 outside of autocast: "
            "torch.autocast(..., enabled=False) around inv_freq times positions"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> printed_positions(std::string_view text) {
  constexpr std::size_t longest = 1 << 17;
  if (text.size() > longest || !in_small_letters(text).contains("position")) return std::nullopt;
  const std::vector<Ids> rows = printed_rows(text);
  if (rows.empty()) return std::nullopt;
  if (auto rounded = of_rounding(rows)) return rounded;
  Finding out{.code = "positions_printed", .severity = Severity::note};
  if (rows.size() == 3) out.message = of_pictures(rows);
  if (!out.message.empty()) {
    out.cure =
        "a picture's tokens are those of its id, as many as its grid has, right behind the "
        "token that opens it: posenc check-positions " +
        typed(rows) + " --ids TOKENS --image_grid TxHxW compares them with the rule";
    return out;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string jumps =
        of_jumps(rows[i], rows.size() > 1 ? "row " + std::to_string(i) + ": " : "");
    if (!jumps.empty()) out.message += (out.message.empty() ? "" : "; ") + jumps;
    constexpr std::size_t enough = 200;
    if (out.message.size() > enough) break;
  }
  out.message = out.message.empty() ? "each row counts on by one" : "the ids jump: " + out.message;
  out.cure = "posenc check-positions " + typed(rows) +
             " --mask ROWS (padding) or --packed BOUNDS (packed texts) names the first token that "
             "is off, and the slip";
  return out;
}

}  // namespace posenc::detail
