// Where everything of a figure stands, in points from the lower left corner.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/figures/draw/figure.h"

namespace posenc::cli {

struct TextSize {
  static constexpr double title = 11, panel = 9, label = 9, tick = 8, legend = 8.5, note = 7.5;
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
};

struct PlacedPanel {
  const Panel* panel = nullptr;
  Box box = {};
  Scale x = {}, y = {};
  bool x_words = true, y_words = true;  // ticks' numbers and the label are written
  double y_label_at = 0, x_label_at = 0;
  Bar bar = {};  // of a scale of its own
};

struct LegendEntry {
  const Series* series = nullptr;
  double x = 0, y = 0;  // where the sample begins
};
inline constexpr double legend_sample = 20, legend_gap = 5;

struct Layout {
  double width = 504, height = 300;
  double title_at = 0;
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
