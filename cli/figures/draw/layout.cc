#include "cli/figures/draw/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "cli/pages/terminal.h"

namespace posenc::cli {
namespace {

constexpr double edge = 9;        // around everything
constexpr double gap = 14;        // between panels, beside their words
constexpr double tick_room = 15;  // numbers below an axis
constexpr double label_room = 16;
constexpr double tick_length = 3;
constexpr double bar_width = 9;
constexpr double legend_gap = 5;

void reach(Scale& scale, double value) {
  if (std::isnan(value) || (scale.log && value <= 0)) return;
  scale.least = std::min(scale.least, value);
  scale.most = std::max(scale.most, value);
}

// The range that the axis asks for, or that of the data with a little room for lines.
Scale range_of(const Axis& axis, std::span<const double> data, bool room) {
  Scale scale{1e300, -1e300, axis.log, axis.down, {}};
  for (const double value : data) reach(scale, value);
  if (scale.least > scale.most) scale.least = axis.log ? 1 : 0, scale.most = axis.log ? 10 : 1;
  if (room) {
    const double span = axis.log ? std::log10(scale.most / scale.least) : scale.most - scale.least;
    const double more = span == 0 ? 0.5 : 0.04 * span;
    scale.least = axis.log ? scale.least / std::pow(10, more) : scale.least - more;
    scale.most = axis.log ? scale.most * std::pow(10, more) : scale.most + more;
  }
  if (!std::isnan(axis.least)) scale.least = axis.least;
  if (!std::isnan(axis.most)) scale.most = axis.most;
  return scale;
}

std::pair<Scale, Scale> scales_of(const Panel& panel) {
  if (panel.matrix) {
    const Matrix& m = *panel.matrix;
    const double ends_x[] = {m.first_x - 0.5, m.first_x + static_cast<double>(m.columns) - 0.5};
    const double ends_y[] = {m.first_y - 0.5, m.first_y + static_cast<double>(m.rows) - 0.5};
    return {range_of(panel.x, ends_x, false), range_of(panel.y, ends_y, false)};
  }
  std::vector<double> x, y;
  for (const Series& series : panel.series) {
    x.insert(x.end(), series.x.begin(), series.x.end());
    y.insert(y.end(), series.y.begin(), series.y.end());
  }
  for (const Rule& rule : panel.rules) (rule.vertical ? x : y).push_back(rule.at);
  return {range_of(panel.x, x, false), range_of(panel.y, y, true)};
}

void widen(Scale& scale, const Scale& other) {
  scale.least = std::min(scale.least, other.least);
  scale.most = std::max(scale.most, other.most);
}

double widest(const Ticks& ticks) {
  double width = 0;
  for (const auto& [at, text] : ticks) width = std::max(width, text_width(text, TextSize::tick));
  return width;
}

Bar bar_of(const ColourScale& scale) {
  Bar bar{scale, {}, ticks_of(scale.least, scale.most, false, scale.most > scale.least ? 6 : 1)};
  if (scale.classes)
    std::erase_if(bar.ticks, [](const auto& t) { return t.first != std::round(t.first); });
  return bar;
}

std::string cut_to(std::string_view text, double room, double size) {
  std::string out(text);
  while (text_width(out, size) > room && out.size() > 4) {
    // Whole characters go; the dots stand for them.
    std::size_t end = out.ends_with("…") ? out.size() - 3 : out.size();
    do end--;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80);
    out = out.substr(0, end) + "…";
  }
  return out;
}

double bar_room(const Bar& bar) {
  return bar_width + 8 + widest(bar.ticks) + (bar.scale.label.empty() ? 0 : label_room);
}

void place_bar(Bar& bar, double left, double bottom, double top, double pixels) {
  bar.box = {left, bottom, left + bar_width, top};
  // A bar is read beside a tall picture as well as by itself.
  const double spare = std::max(0.0, bar.box.height() - 200);
  bar.box.bottom += spare / 2;
  bar.box.top -= spare / 2;
  for (double* side : {&bar.box.left, &bar.box.right, &bar.box.bottom, &bar.box.top})
    *side = std::round(*side * pixels) / pixels;
  const Box& box = bar.box;
  const ColourScale& scale = bar.scale;
  for (const auto& [at, text] : bar.ticks) {
    const double share = (at - scale.least) / (scale.most - scale.least);
    bar.numbers.push_back({box.right + 4, box.bottom + share * box.height(), text, TextSize::tick});
  }
  bar.label = {box.right + 4 + widest(bar.ticks) + 7, (box.bottom + box.top) / 2, scale.label};
  bar.label.align = "center";
  bar.label.upright = true;
}

double title_lines(const Figure& figure) { return figure.title.empty() ? 0 : 19; }

// In rows from `top` down; returns where the last one ends.
double place_legend(const Figure& figure, double width, double top, Layout& out) {
  double x = edge, y = top;
  for (const Panel& panel : figure.panels)
    for (const Series& series : panel.series) {
      if (series.name.empty() || !series.in_legend) continue;
      if (std::any_of(out.legend.begin(), out.legend.end(),
                      [&](const LegendEntry& entry) { return entry.series->name == series.name; }))
        continue;
      const double wide =
          legend_sample + legend_gap + text_width(series.name, TextSize::legend) + 14;
      if (out.legend.empty()) y -= 9;
      if (x > edge && x + wide > width - edge) {
        x = edge;
        y -= 13;
      }
      out.legend.push_back(
          {&series,
           x,
           y,
           {x + legend_sample + legend_gap, y,
            cut_to(series.name, width - 2 * edge - 30, TextSize::legend), TextSize::legend}});
      x += wide;
    }
  return out.legend.empty() ? top : y - 9;
}

PlacedWords rule_words(const Rule& rule, const PlacedPanel& placed) {
  // Of several upright names the last stands to the right of its line, clear of the others.
  const std::vector<Rule>& rules = placed.panel->rules;
  const bool last = rule.vertical && &rule == &rules.back() && rules.size() > 1 &&
                    rules[rules.size() - 2].vertical;
  const double offset = 6;
  const Scale& scale = rule.vertical ? placed.x : placed.y;
  const auto place = [&](double v) { return scale.log ? std::log10(v) : v; };
  double share = (place(rule.at) - place(scale.least)) / (place(scale.most) - place(scale.least));
  if (scale.down) share = 1 - share;
  const Box& box = placed.box;
  const Colour dim{0x55, 0x55, 0x55};
  if (rule.vertical)
    return {.x = box.left + share * box.width() + (last ? offset : -offset),
            .y = box.bottom + 0.36 * box.height(),
            .text = rule.text,
            .size = TextSize::note,
            .colour = dim,
            .upright = true};
  return {.x = box.left + 4,
          .y = box.bottom + share * box.height() + offset,
          .text = rule.text,
          .size = TextSize::note,
          .colour = dim};
}

void place_words(PlacedPanel& placed) {
  const Panel& panel = *placed.panel;
  const Box& box = placed.box;
  placed.words.push_back({box.left, box.top + 7,
                          cut_to(panel.title, box.width() + 10, TextSize::panel), TextSize::panel});
  if (placed.x_words)
    placed.words.push_back({.x = (box.left + box.right) / 2,
                            .y = box.bottom - tick_length - tick_room - 5,
                            .text = panel.x.label,
                            .align = "center"});
  if (placed.y_words)
    placed.words.push_back({.x = box.left - tick_length - 4 - widest(placed.y.ticks) - 9,
                            .y = (box.bottom + box.top) / 2,
                            .text = panel.y.label,
                            .align = "center",
                            .upright = true});
  for (const Rule& rule : panel.rules) placed.words.push_back(rule_words(rule, placed));
}

void make_square(Box& box, const Scale& x, const Scale& y) {
  const double unit = std::min(box.width() / (x.most - x.least), box.height() / (y.most - y.least));
  const double spare_x = box.width() - unit * (x.most - x.least);
  const double spare_y = box.height() - unit * (y.most - y.least);
  box = {box.left + spare_x / 2, box.bottom + spare_y, box.right - spare_x / 2, box.top};
}

}  // namespace

double text_width(std::string_view utf8, double size) {
  double em = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // inside a character
    constexpr std::string_view narrow = " ,.;:'!|()[]/\\-ijltfrI";
    if (narrow.contains(c)) {
      em += 0.36;
    } else if (c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '@' || c == '%') {
      em += 0.95;
    } else {
      em += c >= 'A' && c <= 'Z' ? 0.70 : byte >= 0x80 ? 0.72 : 0.61;
    }
  }
  return em * size;
}

std::string power_text(int exponent) {
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(exponent))) text += digits[digit - '0'];
  return text;
}

std::string tick_text(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  std::string text;
  if (size >= 1e15 || size < 1e-4) {
    const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
    const double mantissa = size / std::pow(10, exponent);
    if (std::abs(mantissa - 1) > 1e-9) text = fmt::format("{:.3g}·", mantissa);
    text += power_text(exponent);
  } else if (size >= 1e5 && std::fmod(size, 1e4) == 0) {
    constexpr const char* units[] = {"k", "M", "G", "T"};
    int unit = 0;
    double rest = size / 1e3;
    for (; rest >= 1000; unit++) rest /= 1e3;
    text = fmt::format("{:.6g}{}", rest, units[unit]);
  } else if (size >= 1000 && size == std::floor(size)) {
    text = grouped(static_cast<std::int64_t>(size));
  } else {
    text = fmt::format("{:.6g}", size);
  }
  return (value < 0 ? "−" : "") + text;
}

Ticks ticks_of(double least, double most, bool log, int most_ticks) {
  Ticks out;
  if (log && most / least >= 10) {
    const int first = static_cast<int>(std::ceil(std::log10(least) - 1e-9));
    const int last = static_cast<int>(std::floor(std::log10(most) + 1e-9));
    const int step = std::max(1, (last - first) / std::max(1, most_ticks) + 1);
    // One way of writing along an axis: powers, or 1k and 10k beside 100k.
    const auto text = [&](int power) {
      const double value = std::pow(10, power);
      if (least < 1e-4) return power_text(power);
      if (last >= 5 && power >= 3 && power < 5) return tick_text(value / 1000) + "k";
      return tick_text(value);
    };
    for (int power = first; power <= last; power += (last - first + 1 <= most_ticks ? 1 : step))
      out.emplace_back(std::pow(10, power), text(power));
    return out;
  }
  const double rough = (most - least) / std::max(1, most_ticks);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 5.0})
    if (nice * power >= rough * (1 - 1e-9)) {
      step = nice * power;
      break;
    }
  const double first = std::ceil(least / step - 1e-9);
  for (int i = 0; (first + i) * step <= most + 1e-9 * step; i++) {
    const double tick = (first + i) * step;
    out.emplace_back(tick, tick_text(tick));
  }
  return out;
}

Layout layout(const Figure& figure, double height, double pixels) {
  Layout out;
  out.height = height;
  const auto across = static_cast<std::size_t>(std::max<std::int64_t>(1, figure.columns));
  const std::size_t rows = (figure.panels.size() + across - 1) / across;
  bool shared_bar = false, any_title = false;
  for (const Panel& panel : figure.panels) {
    shared_bar |= panel.matrix && !panel.scale;
    any_title |= !panel.title.empty();
    auto [x, y] = scales_of(panel);
    PlacedPanel placed;
    placed.panel = &panel;
    placed.x = std::move(x);
    placed.y = std::move(y);
    out.panels.push_back(std::move(placed));
  }
  if (figure.shared_axes) {
    // The words at the outer panels hold for all panels of that axis.
    for (PlacedPanel& a : out.panels)
      for (const PlacedPanel& b : out.panels) {
        if (a.panel->x.column == b.panel->x.column) widen(a.x, b.x);
        if (a.panel->y.column == b.panel->y.column) widen(a.y, b.y);
      }
  }
  out.title = {edge, height - edge - 5, cut_to(figure.title, out.width - 2 * edge, TextSize::title),
               TextSize::title};
  const double top = place_legend(figure, out.width, height - edge - title_lines(figure), out) - 2;

  // Numbers beside the axes need room, and how many there are depends on the room left.
  double right = out.width - edge - 6;
  if (shared_bar) {
    out.bar = bar_of(figure.scale);
    right -= bar_room(out.bar);
  }
  const double panel_title = any_title ? 15 : 4;
  const auto has_words = [&](std::size_t i, bool of_x) {
    if (!figure.shared_axes) return true;
    // The last panel of a column may stand above an empty place.
    if (of_x) return i + across >= out.panels.size();
    return i % across == 0 || figure.panels[i].y.column != figure.panels[i - 1].y.column;
  };
  const double rough_height =
      (top - edge) / static_cast<double>(std::max<std::size_t>(1, rows)) - panel_title - 25;
  std::vector<double> left_room(across, 4), right_room(across, 0);
  for (std::size_t i = 0; i < out.panels.size(); i++) {
    PlacedPanel& placed = out.panels[i];
    const Axis& axis = placed.panel->y;
    if (placed.panel->matrix && placed.panel->scale) {
      placed.bar = bar_of(*placed.panel->scale);
      right_room[i % across] = std::max(right_room[i % across], bar_room(placed.bar));
    }
    placed.y.ticks = !axis.ticks.empty()
                         ? axis.ticks
                         : ticks_of(placed.y.least, placed.y.most, placed.y.log,
                                    std::clamp(static_cast<int>(rough_height / 22), 2, 9));
    placed.y_words = has_words(i, false);
    placed.x_words = has_words(i, true);
    if (!placed.y_words) continue;
    double& room = left_room[i % across];
    room = std::max(
        room, widest(placed.y.ticks) + tick_length + 4 + (axis.label.empty() ? 0 : label_room));
  }
  double words = 0;
  for (const double room : left_room) words += room;
  for (const double room : right_room) words += room;
  const double panel_width =
      (right - edge - words - gap * static_cast<double>(across - 1)) / static_cast<double>(across);

  const double x_room = tick_room + label_room + tick_length;
  const double x_room_inner = figure.shared_axes ? 6 : x_room + 2;
  const auto row_count = static_cast<double>(std::max<std::size_t>(1, rows));
  const double panel_height =
      (top - edge + 4 - x_room - (row_count - 1) * x_room_inner - row_count * panel_title) /
      row_count;
  for (std::size_t i = 0; i < out.panels.size(); i++) {
    PlacedPanel& placed = out.panels[i];
    Box& box = placed.box;
    box.left = edge;
    for (std::size_t c = 0; c <= i % across; c++)
      box.left += left_room[c] + (c > 0 ? panel_width + right_room[c - 1] + gap : 0);
    box.right = box.left + panel_width;
    const std::size_t row = i / across;
    box.top =
        top - panel_title - static_cast<double>(row) * (panel_height + x_room_inner + panel_title);
    box.bottom = box.top - panel_height;
    if (figure.square) make_square(box, placed.x, placed.y);
    if (placed.panel->matrix)
      for (double* side : {&box.left, &box.right, &box.bottom, &box.top})
        *side = std::round(*side * pixels) / pixels;
    if (placed.panel->matrix && placed.panel->scale)
      place_bar(placed.bar, box.right + 8, box.bottom, box.top, pixels);
    const Axis& axis = placed.panel->x;
    placed.x.ticks = axis.ticks;
    // Fewer and fewer until the numbers stand clear of each other.
    for (int most = 10; placed.x.ticks.empty() && most >= 1; most--) {
      Ticks tried = ticks_of(placed.x.least, placed.x.most, placed.x.log, most);
      if (most > 1 && static_cast<double>(tried.size()) * (widest(tried) + 9) > box.width())
        continue;
      placed.x.ticks = std::move(tried);
    }
    place_words(placed);
  }
  if (shared_bar) {
    double left = 0;
    for (const PlacedPanel& placed : out.panels) left = std::max(left, placed.box.right + 8);
    place_bar(out.bar, left, out.panels.back().box.bottom, out.panels.front().box.top, pixels);
  }
  return out;
}

}  // namespace posenc::cli
