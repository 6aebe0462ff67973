#include "cli/pages/braille_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace posenc::cli {
namespace {

constexpr std::size_t widest = 50, height = 8;    // characters
constexpr int up = 4 * static_cast<int>(height);  // braille dots

// What stands to the left of the plot, and room to its right for "131,072 context, passed at pair
// 39".
constexpr std::size_t label_columns = 8, note_columns = 36;

// A dot's bit in its braille character, [row from the top][column].
constexpr unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

using Cells = std::array<std::array<unsigned char, widest>, height>;  // dots set in each character

std::string braille(unsigned char dots) {
  const unsigned code = 0x2800u + dots;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

std::string power(int exponent) {
  constexpr const char* units[] = {"", "k", "M", "G", "T"};
  if (exponent < 0 || exponent > 14) return fmt::format("1e{}", exponent);
  return fmt::format("{}{}", std::pow(10, exponent % 3), units[exponent / 3]);
}

struct Axis {
  double least, most;  // log10 of wavelengths at the bottom and the top
  int dot(double wavelength) const {
    const double at = (std::log10(wavelength) - least) / (most - least);
    return std::clamp(static_cast<int>(at * up), 0, up - 1);
  }
  std::size_t row(double wavelength) const {
    return height - 1 - static_cast<std::size_t>(dot(wavelength) / 4);
  }
};

void draw(Cells& cells, std::size_t x, int dot) {
  const int from_top = up - 1 - dot;
  cells[static_cast<std::size_t>(from_top / 4)][x / 2] |= bits[from_top % 4][x % 2];
}

}  // namespace

std::vector<std::string> wavelength_sketch(std::span<const PairFact> pairs,
                                           std::span<const Mark> marks, const Terminal& term) {
  Axis axis{1e300, -1e300};
  const auto reach = [&axis](double wavelength) {
    if (!std::isfinite(wavelength) || wavelength <= 0) return;
    axis.least = std::min(axis.least, std::log10(wavelength));
    axis.most = std::max(axis.most, std::log10(wavelength));
  };
  const auto unscaled = [](const PairFact& pair) {
    return 2 * std::acos(-1.0) / std::abs(pair.unscaled);
  };
  bool scaled = false;
  for (const PairFact& pair : pairs) {
    reach(pair.wavelength);
    reach(unscaled(pair));
    scaled |= pair.frequency != pair.unscaled;
  }
  if (axis.least > axis.most) return {};
  for (const Mark& mark : marks) reach(static_cast<double>(mark.length));
  axis.most += 0.02 * (axis.most - axis.least) + 0.01;

  const std::size_t width = std::min(widest, page_width() - label_columns - note_columns);
  Cells now{}, before{};
  for (std::size_t x = 0; x < 2 * width; x++) {
    const std::size_t i = x * pairs.size() / (2 * width);
    if (pairs[i].frequency != 0) draw(now, x, axis.dot(pairs[i].wavelength));
    if (scaled && pairs[i].unscaled != 0) draw(before, x, axis.dot(unscaled(pairs[i])));
  }

  // The lines' names stand to their right, with the first pair too slow to turn once within them.
  std::array<std::string, height> notes;
  std::array<bool, height> lines{};
  for (const auto& [length, what] : marks) {
    const auto longest = static_cast<double>(length);
    const std::size_t row = axis.row(longest);
    const auto slow = std::find_if(pairs.begin(), pairs.end(), [&](const PairFact& pair) {
      return pair.frequency != 0 && pair.wavelength > longest;
    });
    std::string note = fmt::format("{} {}", grouped(length), what);
    if (slow != pairs.end()) note += fmt::format(", passed at pair {}", slow->pair);
    lines[row] = true;
    notes[row] += (notes[row].empty() ? "" : "; ") + note;
  }

  const bool slower = std::ranges::all_of(pairs, [](const PairFact& pair) {
    return std::abs(pair.frequency) <= std::abs(pair.unscaled);
  });
  std::vector<std::string> out = {term.dim(
      std::string(label_columns, ' ') +
      cut(std::string("positions for a full turn") + (!scaled  ? ""
                                                      : slower ? "; lower: without scaling"
                                                               : "; two: with scaling, without"),
          page_width() - label_columns))};
  int labelled = 1 << 20;
  for (std::size_t row = 0; row < height; row++) {
    // A power of ten is written at the row it falls into.
    std::string label;
    const double step = (axis.most - axis.least) / height;
    const double top = axis.most - step * static_cast<double>(row);
    const int exponent = static_cast<int>(std::floor(top));
    if (exponent >= top - step && exponent < labelled) label = power(labelled = exponent);
    std::string text = fmt::format("{:>6} {}", label, term.unicode ? "│" : "|");
    for (std::size_t x = 0; x < width; x++) {
      const unsigned char dots = now[row][x], old = before[row][x];
      if (dots) {
        text += term.blue(term.unicode ? braille(dots) : "*");
      } else if (old) {
        text += term.dim(term.unicode ? braille(old) : ".");
      } else {
        text += lines[row] ? term.yellow(term.unicode ? "╌" : "-") : " ";
      }
    }
    if (!notes[row].empty())
      text += " " + term.yellow(cut(notes[row], page_width() - label_columns - width - 1));
    out.push_back(text);
  }
  const std::string last = std::to_string(pairs.back().pair);
  std::string foot = fmt::format("{:>6} {} pair 0 ", "", term.unicode ? "└" : "+");
  for (std::size_t x = 9 + last.size(); x < width; x++) foot += term.unicode ? "─" : "-";
  out.push_back(foot + " " + last);
  return out;
}

}  // namespace posenc::cli
