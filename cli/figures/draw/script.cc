#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/figures/draw/colours.h"
#include "cli/figures/draw/draw.h"
#include "cli/figures/draw/gnuplot.h"
#include "cli/figures/draw/layout.h"
#include "cli/figures/draw/shrink.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr Colour grid_line{0xe4, 0xe4, 0xe4}, rule_line{0x77, 0x77, 0x77};

std::string hex(const Colour& c) {
  return fmt::format("'#{:02x}{:02x}{:02x}'", c.red, c.green, c.blue);
}

// Numbers that gnuplot reads back as they are.
std::string number(double value) {
  return std::isnan(value) ? "NaN" : fmt::format("{:.10g}", value);
}

class Script {
 public:
  Script(const Figure& figure, Format format, const Size& size)
      : figure_(figure), format_(format), size_(size) {
    if (size_.width == 0) {
      const double dpi = format == Format::png ? 216 : 96;
      size_.width = static_cast<int>(std::lround(figure_width / 72 * dpi));
      size_.height = static_cast<int>(std::lround(figure.height / 72 * dpi));
    }
    scale_ = size_.width / figure_width;
    pixels_ = format == Format::png ? scale_ : 4;
    layout_ = layout(figure, size_.height / scale_, pixels_);
  }

  std::string written() {
    begin();
    title_and_legend();
    for (const PlacedPanel& placed : layout_.panels) panel(placed);
    for (const PlacedPanel& placed : layout_.panels) bar(placed.bar);
    bar(layout_.bar);
    line("unset multiplot");
    return std::move(text_);
  }

 private:
  void line(std::string_view words) {
    text_ += words;
    text_ += '\n';
  }
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
    text_ += '\n';
  }

  std::string across(double points) const { return number(points / layout_.width); }
  std::string up(double points) const { return number(points / layout_.height); }
  std::string font(double points) const { return fmt::format("'DejaVu Sans,{:.6g}'", points); }

  void write(const PlacedWords& words) {
    line("set label {} at screen {},{} {} {} font {} tc rgb {} front", in_quotes(words.text),
         across(words.x), up(words.y), words.align, words.upright ? "rotate by 90" : "norotate",
         font(words.size), hex(words.colour));
  }

  // Lengths in points: pngcairo counts font points of 1/96 inch to the pixel, svg pixels, pdf
  // points.
  void begin() {
    line("set encoding utf8");
    switch (format_) {
      case Format::png:
        line(
            "set terminal pngcairo noenhanced background '#ffffff' size {},{} fontscale {} "
            "linewidth {} pointscale {}",
            size_.width, size_.height, number(scale_ * 0.75), number(scale_), number(scale_));
        break;
      case Format::svg:
        line(
            "set terminal svg noenhanced background '#ffffff' size {},{} fixed fontscale {} "
            "linewidth {}",
            size_.width, size_.height, number(scale_), number(scale_));
        break;
      case Format::pdf:
        line(
            "set terminal pdfcairo noenhanced background '#ffffff' size {}in,{}in fontscale {} "
            "linewidth {} pointscale 1",
            number(size_.width / 96.0), number(size_.height / 96.0), number(scale_ * 0.5625),
            number(scale_ * 1.125));
        break;
    }
    line("set multiplot");
    line("unset key");
    line("set size 1,1");
    line("set origin 0,0");
  }

  void bounds(const Box& box) {
    line("set lmargin at screen {}", across(box.left));
    line("set rmargin at screen {}", across(box.right));
    line("set bmargin at screen {}", up(box.bottom));
    line("set tmargin at screen {}", up(box.top));
  }

  // A sheet as large as the picture, in points.
  void title_and_legend() {
    bounds({0, 0, layout_.width, layout_.height});
    line("unset border");
    line("unset tics");
    line("set xrange [0:{}]", number(layout_.width));
    line("set yrange [0:{}]", number(layout_.height));
    write(layout_.title);
    std::string plots = "plot NaN notitle";
    std::string blocks;
    std::size_t block = 0;
    for (const LegendEntry& entry : layout_.legend) {
      const Series& s = *entry.series;
      write(entry.name);
      const double to = entry.x + legend_sample;
      if (s.mark == Mark::points || s.mark == Mark::dots) {
        blocks += fmt::format("$l{} << EOD\n{} {}\nEOD\n", block, (entry.x + to) / 2, entry.y);
        plots += ", " + drawn(s, fmt::format("$l{}", block++));
      } else {
        line("set arrow from screen {},{} to screen {},{} nohead {}", across(entry.x), up(entry.y),
             across(to), up(entry.y), look_of(s));
      }
    }
    text_ += blocks;
    line(plots);
    line("unset label");
    line("unset arrow");
  }

  static std::string look_of(const Series& s) {
    return fmt::format("lw {} lc rgb {}{}", number(s.width), hex(s.colour),
                       s.dashed ? " dt (8,6)" : "");
  }

  // The corners of a stair: each tread reaches half way to the neighbours' x.
  static Series stairs(const Series& s) {
    Series out = s;
    out.x.clear();
    out.y.clear();
    const double half = s.x.size() > 1 ? (s.x[1] - s.x[0]) / 2 : 0.5;
    const auto corner = [&](double x, double y) { out.add(x, y); };
    for (std::size_t i = 0; i < s.x.size(); i++) {
      if (i > 0 && s.y[i] == s.y[i - 1]) continue;
      if (i > 0) corner(s.x[i] - half, s.y[i - 1]);
      corner(s.x[i] - half, s.y[i]);
    }
    if (!s.x.empty()) corner(s.x.back() + half, s.y.back());
    return out;
  }

  std::string drawn(const Series& s, const std::string& data) const {
    // A picture of SVG alone has no scale of its own for points.
    const double points = format_ == Format::svg ? scale_ : 1;
    const std::string look = look_of(s);
    switch (s.mark) {
      case Mark::line:
      case Mark::steps: return data + " using 1:2 with lines " + look + " notitle";
      case Mark::points:
        return data + fmt::format(" using 1:2 with points pt 7 ps {} lc rgb {} notitle",
                                  number(0.45 * points), hex(s.colour));
      case Mark::dots:
        return data + fmt::format(" using 1:2 with points pt 7 ps {} lc rgb {} notitle",
                                  number(0.25 * points), hex(s.colour));
      case Mark::arrows:
        return data + " using (0):(0):1:2 with vectors head filled size screen 0.008,20,60 " +
               look + " notitle";
    }
    return {};
  }

  void axis(char name, const Scale& scale, bool with_words) {
    line("set {}range [{}:{}]", name, number(scale.down ? scale.most : scale.least),
         number(scale.down ? scale.least : scale.most));
    line("{} logscale {}", scale.log ? "set" : "unset", name);
    std::string list;
    for (const auto& [at, label] : scale.ticks)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", in_quotes(with_words ? label : ""),
                          number(at));
    line("set {}tics out nomirror scale 0.5 offset {} font {} tc rgb {} ({})", name,
         name == 'x' ? "0,0.3" : "0.5,0", font(TextSize::tick), hex(ink), list);
  }

  void panel(const PlacedPanel& placed) {
    const Panel& panel = *placed.panel;
    const Box& box = placed.box;
    bounds(box);
    line("set border {} lw 0.6 lc rgb '#555555'", panel.matrix ? 15 : 3);
    axis('x', placed.x, placed.x_words);
    axis('y', placed.y, placed.y_words);
    if (panel.matrix) {
      line("unset grid");
    } else {
      line("set grid xtics ytics back lt 1 lw 0.5 lc rgb {}", hex(grid_line));
    }
    for (const PlacedWords& words : placed.words) write(words);
    for (const Rule& rule : panel.rules) draw_rule(rule);
    for (const Note& note : panel.notes)
      line("set label {} at first {},{} {} font {} tc rgb {} front", in_quotes(note.text),
           number(note.x), number(note.y), note.centred ? "center" : "left", font(TextSize::note),
           hex(note.colour));

    std::string plots = "plot NaN notitle";
    std::string image;
    if (panel.matrix) {
      const auto wide = std::max(2L, std::lround(box.width() * pixels_));
      const auto high = std::max(2L, std::lround(box.height() * pixels_));
      image = coloured(resampled(*panel.matrix, high, wide), panel.scale.value_or(figure_.scale));
      const Matrix& m = *panel.matrix;
      const double dx = static_cast<double>(m.columns) / static_cast<double>(wide);
      const double dy = static_cast<double>(m.rows) / static_cast<double>(high);
      plots = image_plot(wide, high, m.first_x - 0.5 + dx / 2, m.first_y - 0.5 + dy / 2, dx, dy);
    }
    const auto columns = static_cast<std::int64_t>(box.width() * pixels_);
    for (const Series& series : panel.series) {
      const std::string name = fmt::format("$d{}", blocks_++);
      line("{} << EOD", name);
      const Series s = series.mark == Mark::steps
                           ? stairs(series)
                           : thinned(series, columns, placed.x.least, placed.x.most, placed.x.log);
      for (std::size_t i = 0; i < s.x.size(); i++) line("{} {}", number(s.x[i]), number(s.y[i]));
      line("EOD");
      plots += ", " + drawn(s, name);
    }
    line(plots);
    text_ += image;
    line("unset label");
    line("unset arrow");
  }

  void draw_rule(const Rule& rule) {
    const std::string at = number(rule.at);
    const char* const from = rule.vertical ? "first {},graph 0" : "graph 0,first {}";
    const char* const to = rule.vertical ? "first {},graph 1" : "graph 1,first {}";
    line("set arrow from {} to {} nohead lw 0.8 dt (6,5) lc rgb {} back",
         fmt::format(fmt::runtime(from), at), fmt::format(fmt::runtime(to), at), hex(rule_line));
  }

  static std::string coloured(const Matrix& matrix, const ColourScale& scale) {
    std::string bytes;
    bytes.reserve(matrix.values.size() * 3);
    for (const double value : matrix.values) {
      const Colour c = colour_of(scale, value);
      for (const std::uint8_t part : {c.red, c.green, c.blue}) bytes += static_cast<char>(part);
    }
    return bytes;
  }

  static std::string image_plot(long wide, long high, double x, double y, double dx, double dy) {
    return fmt::format(
        "plot '-' binary array=({},{}) format='%uchar%uchar%uchar' origin=({},{}) dx={} dy={} "
        "using 1:2:3 with rgbimage notitle",
        wide, high, number(x), number(y), number(dx), number(dy));
  }

  void bar(const Bar& bar) {
    const ColourScale& scale = bar.scale;
    const Box& box = bar.box;
    if (box.width() <= 0) return;
    bounds(box);
    line("set border 15 lw 0.6 lc rgb '#555555'");
    line("unset tics");
    line("unset logscale");
    line("set xrange [0:2]");
    line("set yrange [{}:{}]", number(scale.least), number(scale.most));
    for (const PlacedWords& number_of : bar.numbers) {
      write(number_of);
      line("set arrow from screen {},{} to screen {},{} nohead lw 0.6 lc rgb '#555555' front",
           across(box.right), up(number_of.y), across(box.right + bar_tick), up(number_of.y));
    }
    write(bar.label);
    constexpr long steps = 256;
    Matrix matrix{steps, 2, {}, 0, 0};
    const double step = (scale.most - scale.least) / steps;
    for (long i = 0; i < steps; i++)
      matrix.values.insert(matrix.values.end(), 2,
                           scale.least + (static_cast<double>(i) + 0.5) * step);
    line(image_plot(2, steps, 0.5, scale.least + step / 2, 1, step));
    text_ += coloured(matrix, scale);
    line("unset label");
    line("unset arrow");
  }

  const Figure& figure_;
  Format format_;
  Size size_;
  double scale_ = 1, pixels_ = 1;
  Layout layout_;
  std::string text_;
  std::size_t blocks_ = 0;
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) continue;
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string script(const Figure& figure, Format format, const Size& size) {
  return Script(figure, format, size).written();
}

Expected<std::string> picture(const Figure& figure, Format format, const Size& size) {
  if (format == Format::svg && !figure.moving.empty()) return figure.moving;
  POSENC_TRY(bytes, gnuplot(script(figure, format, size)));
  constexpr std::string_view magic[] = {"\x89PNG", "<?xml", "%PDF-"};
  if (!bytes.starts_with(magic[static_cast<std::size_t>(format)]))
    return fail("gnuplot", "drew something else", bytes.substr(0, 60));
  if (format == Format::svg) {
    // A machine without the font has one of the same widths, or at least one without serifs.
    replace_all(bytes, "font-family=\"DejaVu Sans\"",
                "font-family=\"DejaVu Sans, Verdana, Geneva, sans-serif\"");
    replace_all(bytes, "<title>Gnuplot</title>", "<title>" + xml(figure.title) + "</title>");
  }
  if (format == Format::pdf) {
    // Of the same length, so that the file's table of offsets stays true.
    constexpr std::string_view date = "/CreationDate (D:";
    if (const std::size_t at = bytes.find(date); at != std::string::npos)
      bytes.replace(at + date.size(), 14, "19700101000000");
  }
  return std::move(bytes);
}

}  // namespace posenc::cli
