// Random numbers for what a scheme needs and was not given, by what its lists and tables hold.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/content.h"
#include "src/core/random.h"

namespace posenc {
namespace {

// The extents of axes, and the sequence that all numbers are of.
class Drawing {
 public:
  explicit Drawing(const RandomContent& how) : how_(how), engine_(how.seed) {
    extent_.fill(1);
    extent(Axis::head) = how.heads;
    extent(Axis::key_head) = how.kv_heads != 0 ? how.kv_heads : how.heads;
    extent(Axis::query) = extent(Axis::key) = how.length;
    extent(Axis::channel) = how.head_dim;
    extent(Axis::unit) = how.hidden;
    extent(Axis::row) = how.positions;
    extent(Axis::column) = how.columns != 0 ? how.columns : how.head_dim;
  }

  std::int64_t& extent(Axis axis) { return extent_[static_cast<std::size_t>(axis)]; }
  std::vector<double> next(const Axes& axes) {
    std::int64_t count = 1;
    for (const Axis axis : axes) count *= extent(axis);
    std::vector<double> numbers(static_cast<std::size_t>(count));
    for (double& x : numbers) x = detail::normal(engine_);
    return numbers;
  }
  Table table(std::vector<double> numbers, const Axes& axes) {
    const auto at = [&](std::size_t n) { return extent(axes.all[n]); };
    switch (axes.count) {
      case 2: return Table::own(std::move(numbers), {at(0), at(1)});
      case 3: return Table::own(std::move(numbers), {at(0), at(1), at(2)});
      default: return Table::own(std::move(numbers), {at(0), at(1), at(2), at(3)});
    }
  }
  // Adds those of a head, [token][column].
  void add_head(const TableInfo& of, std::vector<double>& numbers) {
    const std::int64_t columns = of.holds.axes.count > 3 ? extent(of.holds.axes.all[3]) : 1;
    const std::int64_t drawn = how_.alike ? 1 : how_.length;
    std::vector<double> rows(static_cast<std::size_t>(drawn * columns));
    for (double& x : rows) x = detail::normal(engine_);
    activate(of.holds.projection.activation, columns, rows);
    for (std::int64_t t = 0; t < how_.length; ++t) {
      const auto from = rows.begin() + t % drawn * columns;
      numbers.insert(numbers.end(), from, from + columns);
    }
  }

 private:
  // Normal numbers have a root mean square of 1, rotated or not.
  void activate(Activation activation, std::int64_t columns, std::vector<double>& rows) const {
    switch (activation) {
      case Activation::none:
      case Activation::rms_rotated: break;
      case Activation::log_sigmoid:
        for (double& x : rows) x = -std::log1p(std::exp(-how_.open - x));
        break;
      case Activation::twice_sigmoid:
        for (double& x : rows) x = 2 / (1 + std::exp(-x));
        break;
      case Activation::unit_length:
        for (auto row = rows.begin(); row != rows.end(); row += columns) {
          double squares = 0;
          for (std::int64_t c = 0; c < columns; ++c) squares += row[c] * row[c];
          for (std::int64_t c = 0; c < columns; ++c) row[c] /= std::sqrt(squares);
        }
    }
  }

  const RandomContent& how_;
  detail::SplitMix64 engine_;
  std::array<std::int64_t, words_of(Axis{}).size()> extent_;
};

}  // namespace

// Names are those of the scheme's own lists, and the numbers finite: nothing is refused.
void randomize(ContentScheme& scheme, const RandomContent& how) {
  Drawing drawing(how);
  const auto list = [&](std::string_view name) {
    for (const FieldSetting& setting : settings(scheme))
      if (setting.name == name) return std::get<std::vector<double>>(setting.value);
    return std::vector<double>();
  };
  for (const FieldInfo& field : info(scheme).fields) {
    if (!field.required) continue;
    std::vector<double> numbers = list(field.name);
    const Axes& axes = field.holds.axes;
    if (numbers.empty()) std::ignore = set_field(scheme, field.name, numbers = drawing.next(axes));
    if (axes.count == 1) drawing.extent(axes.all[0]) = std::ssize(numbers);
  }
  std::vector<const TableInfo*> of_tokens;
  bool given = false;
  for (const TableInfo& table : info(scheme).tables) {
    const auto& [name, doc, holds] = table;
    if (holds.optional) continue;
    if (holds.axes.of_tokens()) {
      of_tokens.push_back(&table);
      given = given || *table_of(scheme, name) || !list(holds.instead).empty();
    } else if (!*table_of(scheme, name)) {
      const Axes axes = holds.least_axes();
      std::ignore = set_table(scheme, name, drawing.table(drawing.next(axes), axes));
    }
  }
  if (given) return;
  std::vector<std::vector<double>> numbers(of_tokens.size());
  for (std::int64_t h = 0; h < how.heads; ++h)
    for (std::size_t n = 0; n < of_tokens.size(); ++n)
      if (h < drawing.extent(of_tokens[n]->holds.axes.all[1]))
        drawing.add_head(*of_tokens[n], numbers[n]);
  for (std::size_t n = 0; n < of_tokens.size(); ++n)
    std::ignore = set_table(scheme, of_tokens[n]->name,
                            drawing.table(std::move(numbers[n]), of_tokens[n]->holds.axes));
}

}  // namespace posenc
