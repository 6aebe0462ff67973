// Where everything of a figure stands, in points from the lower left corner. script.cc, which tells
// gnuplot, decides on no place and no size of its own.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/figures/draw/colours.h"
#include "cli/figures/draw/figure.h"

namespace posenc::cli {

struct TextSize {
  static constexpr double title = 11, panel = 9, label = 9, tick = 8, legend = 8.5, note = 7.5;
};

inline constexpr double figure_width = 504;  // of every picture

// Words where they stand, cut to the room that they have.
struct PlacedWords {
  double x = 0, y = 0;
  std::string text = {};
  double size = TextSize::label;
  const char* align = "left";
  Colour colour = ink;
  bool upright = false;  // turned by 90°
};

// About how wide gnuplot sets it in DejaVu Sans.
double text_width(std::string_view utf8, double size);

struct Box {
  double left = 0, bottom = 0, right = 0, top = 0;
  double width() const { return right - left; }
  double height() const { return top - bottom; }
};

using Ticks = std::vector<std::pair<double, std::string>>;

// An axis with its range and ticks settled; on a log axis the numbers are still the data's.
struct Scale {
  double least = 0, most = 1;
  bool log = false, down = false;
  Ticks ticks = {};
};

// Of colours; without a width where there is none.
struct Bar {
  ColourScale scale = {};
  Box box = {};
  Ticks ticks = {};
  std::vector<PlacedWords> numbers = {};  // of the ticks
  PlacedWords label = {};
};
inline constexpr double bar_tick = 2.5;

struct PlacedPanel {
  const Panel* panel = nullptr;
  Box box = {};
  Scale x = {}, y = {};
  bool x_words = true, y_words = true;  // ticks' numbers and the label are written
  std::vector<PlacedWords> words = {};  // the title, the axes' labels, the rules' names
  Bar bar = {};                         // of a scale of its own
};

struct LegendEntry {
  const Series* series = nullptr;
  double x = 0, y = 0;  // where the sample begins
  PlacedWords name = {};
};
inline constexpr double legend_sample = 20;

struct Layout {
  double width = figure_width, height = 300;
  PlacedWords title = {};
  std::vector<PlacedPanel> panels = {};
  std::vector<LegendEntry> legend = {};
  Bar bar = {};  // of the figure's scale
};

// `pixels`: a point's; boxes of matrices begin and end on whole pixels.
Layout layout(const Figure& figure, double height, double pixels);

// 1-2-5 steps, or powers of ten; at most about `most_ticks`.
Ticks ticks_of(double least, double most, bool log, int most_ticks);
std::string tick_text(double value);   // "−0.5", "1,000", "1M"
std::string power_text(int exponent);  // "10⁻⁶"

}  // namespace posenc::cli
