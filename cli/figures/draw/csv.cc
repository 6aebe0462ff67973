#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/figures/draw/draw.h"

namespace posenc::cli {
namespace {

std::string field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

class Csv {
 public:
  explicit Csv(const Figure& figure) : figure_(figure) {
    for (const Panel& panel : figure.panels) {
      with_panel_ |= figure.panels.size() > 1;
      for (const Series& series : panel.series) with_series_ |= !series.name.empty();
      place(panel.x.column);
      place(panel.y.column);
      if (panel.matrix) place(panel.scale.value_or(figure.scale).column);
    }
  }

  std::string written() {
    if (with_panel_) text_ += "panel,";
    if (with_series_) text_ += "series,";
    for (const std::string& column : columns_)
      text_ += field(column) + (&column == &columns_.back() ? "\n" : ",");
    for (const Panel& panel : figure_.panels) {
      const std::size_t x = place(panel.x.column), y = place(panel.y.column);
      if (panel.matrix) {
        const Matrix& m = *panel.matrix;
        const std::size_t value = place(panel.scale.value_or(figure_.scale).column);
        for (std::int64_t r = 0; r < m.rows; r++)
          for (std::int64_t c = 0; c < m.columns; c++) {
            std::vector<double> cells(columns_.size(), from_data);
            cells[x] = m.first_x + static_cast<double>(c);
            cells[y] = m.first_y + static_cast<double>(r);
            cells[value] = m.values[static_cast<std::size_t>(r * m.columns + c)];
            row(panel.title, "", cells);
          }
      }
      for (const Series& series : panel.series)
        for (std::size_t i = 0; i < series.x.size(); i++) {
          std::vector<double> cells(columns_.size(), from_data);
          cells[x] = series.x[i];
          cells[y] = series.y[i];
          row(panel.title, series.name, cells);
        }
    }
    return std::move(text_);
  }

 private:
  std::size_t place(const std::string& column) {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
    columns_.push_back(column);
    return columns_.size() - 1;
  }

  void row(const std::string& panel, const std::string& series, const std::vector<double>& cells) {
    if (with_panel_) text_ += field(panel) + ",";
    if (with_series_) text_ += field(series) + ",";
    for (std::size_t i = 0; i < cells.size(); i++) {
      if (!std::isnan(cells[i])) fmt::format_to(std::back_inserter(text_), "{}", cells[i]);
      text_ += i + 1 == cells.size() ? '\n' : ',';
    }
  }

  const Figure& figure_;
  std::vector<std::string> columns_;
  bool with_panel_ = false, with_series_ = false;
  std::string text_;
};

}  // namespace

std::string csv(const Figure& figure) { return Csv(figure).written(); }

}  // namespace posenc::cli
