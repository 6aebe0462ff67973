// A picture as data: what a kind computes, what gnuplot draws and what --csv writes.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace posenc::cli {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

constexpr double from_data = std::numeric_limits<double>::quiet_NaN();

struct Axis {
  std::string label = {};
  std::string column = {};                     // in the CSV, with the unit: "position_tokens"
  double least = from_data, most = from_data;  // what is shown
  bool log = false;
  bool down = false;                                       // the least is at the top
  std::vector<std::pair<double, std::string>> ticks = {};  // none: chosen from the range
};

// steps: level around each x, which lie equally far apart; an arrow goes from the origin to its
// point.
enum class Mark { line, steps, points, arrows, dots };

struct Series {
  std::string name = {};  // in the legend and the CSV
  bool in_legend = true;
  Colour colour = {};
  Mark mark = Mark::line;
  double width = 1.3;  // points (1/72 inch)
  bool dashed = false;
  std::vector<double> x = {}, y = {};  // NaN: a gap

  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

// Values on a grid; the cell of row r and column c has its centre at (first_x + c, first_y + r).
// NaN: nothing there.
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};  // row-major
  double first_x = 0, first_y = 0;
};

// A line across the panel, with its name at the end.
struct Rule {
  double at = 0;
  std::string text = {};
  bool vertical = false;
};

struct Note {
  double x = 0, y = 0;
  std::string text = {};
  Colour colour = {};
  bool centred = true;  // else it begins at x
};

// The colours of matrices. Beyond the ends the end's colour holds.
struct ColourScale {
  std::string label = {}, column = {};
  double least = 0, most = 1;
  bool diverging = false;  // orange below 0, blue above; else light to dark
  bool classes = false;    // of whole numbers that name things: each a line's colour
};

struct Panel {
  std::string title = {};
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::optional<Matrix> matrix = {};
  std::optional<ColourScale> scale =
      {};  // the matrix's own, with a bar of its own; none: the figure's
  std::vector<Rule> rules = {};
  std::vector<Note> notes = {};
};

struct Figure {
  std::string title = {};
  std::string caption = {};  // a sentence or two: what is to be seen
  std::vector<Panel> panels = {};
  std::int64_t columns = 1;  // panels beside each other
  bool shared_axes = false;  // the same axes everywhere: their words stand at the outer panels
  bool square = false;       // one unit is as long on both axes
  ColourScale scale = {};    // of all matrices that have none of their own
  double height = 300;       // points, of a picture 504 points (7 inches) wide
  std::string moving = {};   // an .svg that the kind writes itself, since gnuplot's stand still
};

}  // namespace posenc::cli
