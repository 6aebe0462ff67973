// Tables are dumps of vectors that are known: what a table of cosines and sines makes of (1, 0) in
// every pair.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "posenc/identify.h"
#include "src/explain/text.h"
#include "src/identify/frequency_fit.h"
#include "src/identify/rotation.h"

namespace posenc {
namespace {

using detail::Dump, detail::grouped, detail::shown;

constexpr std::int64_t most_numbers = std::int64_t{1} << 26;

// [row][column]
struct Numbers {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values = {};

  double at(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  bool same(std::int64_t a, std::int64_t b) const {
    for (std::int64_t t = 0; t < rows; ++t)
      if (at(t, a) != at(t, b)) return false;
    return true;
  }
};

// Columns that hold a number which is none are told, and no table is read.
Expected<Numbers> read_table(const Tensor& from, std::vector<std::int64_t>* not_finite = nullptr) {
  const Tensor x = from.with_rank(Tensor::max_rank);
  if (from.rank < 2 || x.shape[0] != 1 || x.shape[1] != 1)
    return fail("identify", "a table is [position][channel]", shape_text(from));
  Numbers out{.rows = x.shape[2], .columns = x.shape[3]};
  if (out.rows < 2 || out.columns < 1)
    return fail("identify", "a table has two rows or more", shape_text(from));
  if (from.size() > most_numbers)
    return fail("identify", "at most 2^26 numbers are read", std::to_string(from.size()),
                "give fewer rows");
  out.values.reserve(static_cast<std::size_t>(from.size()));
  for (std::int64_t t = 0; t < out.rows; ++t)
    for (std::int64_t c = 0; c < out.columns; ++c) {
      const double value = x.get(x.offset(0, 0, t, c));
      if (!std::isfinite(value) && not_finite) {
        if (std::ranges::find(*not_finite, c) == not_finite->end()) not_finite->push_back(c);
      } else if (!std::isfinite(value))
        return fail("identify", "every number must be finite", number_text(value));
      out.values.push_back(value);
    }
  return out;
}

// Which columns hold a pair's cosine and sine.
struct Columns {
  std::int64_t first = 0, step = 1;
  std::int64_t of(std::int64_t pair) const { return first + step * pair; }
};

// Each pair (1, 0) rotated, in halves.
Dump dump_of(const Numbers& cos, Columns cos_at, const Numbers& sin, Columns sin_at,
             std::int64_t pairs, const std::vector<std::int64_t>& rows, DType kept) {
  Dump dump{.heads = 1, .tokens = std::ssize(rows), .dim = 2 * pairs, .positions = {rows}};
  dump.noise = detail::rounding(kept);
  for (const std::int64_t row : rows) {
    for (std::int64_t c = 0; c < dump.dim; ++c) dump.before.push_back(c < pairs ? 1 : 0);
    for (std::int64_t r = 0; r < pairs; ++r) dump.after.push_back(cos.at(row, cos_at.of(r)));
    for (std::int64_t r = 0; r < pairs; ++r) dump.after.push_back(sin.at(row, sin_at.of(r)));
  }
  return dump;
}

std::vector<std::int64_t> all_rows(const Numbers& table) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TableColumns columns_of(const Numbers& cos, const Numbers& sin) {
  const std::int64_t half = cos.columns / 2;
  if (cos.columns % 2 != 0) return TableColumns::pairs;
  bool concatenated = true, interleaved = true;
  for (std::int64_t r = 0; r < half; ++r) {
    concatenated = concatenated && cos.same(r, r + half) && sin.same(r, r + half);
    interleaved = interleaved && cos.same(2 * r, 2 * r + 1) && sin.same(2 * r, 2 * r + 1);
  }
  if (concatenated == interleaved) return TableColumns::pairs;
  return concatenated ? TableColumns::concatenated : TableColumns::interleaved;
}

// A guess of how the columns of a table of vectors are laid out.
struct VectorLayout {
  WaveLayout layout;
  bool cosine_first;
};
constexpr VectorLayout wave_layouts[] = {{WaveLayout::interleaved, false},
                                         {WaveLayout::concatenated, false},
                                         {WaveLayout::interleaved, true},
                                         {WaveLayout::concatenated, true}};

Identified waves_of(const Numbers& table, const VectorLayout& guess,
                    const std::vector<std::int64_t>& rows, DType kept) {
  const std::int64_t pairs = table.columns / 2;
  const bool neighbours = guess.layout == WaveLayout::interleaved;
  const Columns front{0, neighbours ? 2 : 1}, back{neighbours ? 1 : pairs, neighbours ? 2 : 1};
  return detail::identified(dump_of(table, guess.cosine_first ? front : back, table,
                                    guess.cosine_first ? back : front, pairs, rows, kept),
                            false);
}

// base^(−2r/d) and base'^(−2r/(d − 2)) are the same numbers: people write the one of fewer digits.
void name_spacing(const Identified& found, std::int64_t width, IdentifiedVectors& out) {
  std::vector<detail::Measured> measured;
  for (const IdentifiedPair& pair : found.pairs)
    if (pair.frequency > 4 * pair.resolution)
      measured.push_back({pair.a, pair.frequency, pair.resolution});
  const auto by_width = detail::base_of(measured, width, 1);
  const auto by_ends = width > 2 ? detail::base_of(measured, width - 2, 1) : std::nullopt;
  if (!by_width) {
    out.cannot_tell.push_back("base: fewer than two waves turn visibly");
    return;
  }
  const auto digits = [](double base) { return detail::significant_digits(base); };
  const bool ends = by_ends && digits(*by_ends) < digits(*by_width);
  // Bases that are known well have many digits in the spacing that is not meant.
  if (by_ends && std::max(digits(*by_ends), digits(*by_width)) < 4)
    out.cannot_tell.push_back("spacing: base " + number_text(ends ? *by_width : *by_ends) +
                              " with the other one explains the waves as well");
  out.spacing = ends ? WaveSpacing::ends : WaveSpacing::width;
  out.base = ends ? *by_ends : *by_width;
  const double dim = static_cast<double>(ends ? width - 2 : width);
  double sum = 0;
  for (const detail::Measured& m : measured) {
    const double off =
        (std::pow(out.base, -2 * static_cast<double>(m.pair) / dim) - m.frequency) / m.resolution;
    sum += off * off;
  }
  if (std::sqrt(sum / static_cast<double>(measured.size())) > 10)
    out.cannot_tell.push_back("base: the waves are not those of one base; the nearest is named");
}

IdentifiedTable not_of_numbers(std::vector<std::int64_t> columns, std::int64_t all) {
  std::ranges::sort(columns);
  IdentifiedTable out;
  out.rotation.verdict = Rotated::not_a_rotation;
  out.rotation.findings.push_back(
      {.code = "not_finite",
       .expected = "numbers",
       .found = "NaN or infinity in " + std::to_string(columns.size()) + " of " +
                std::to_string(all) + " columns: " + detail::layer_list(columns),
       .message = "such a table makes every logit NaN: its frequencies were never computed, or "
                  "float16 overflowed",
       .cure = "compute inv_freq in float32 when the model has been loaded"});
  return out;
}

// Every pair at one speed: which two channels belong together cannot be seen, and need not be.
std::optional<Finding> one_speed(const Numbers& cos, const Numbers& sin) {
  for (std::int64_t c = 1; c < cos.columns; ++c)
    if (!cos.same(0, c) || !sin.same(0, c)) return {};
  const double turned =
      std::atan2(sin.at(1, 0), cos.at(1, 0)) - std::atan2(sin.at(0, 0), cos.at(0, 0));
  const double speed = std::remainder(turned, 6.283185307179586);
  if (cos.columns < 4 || speed == 0) return {};
  return Finding{.code = "frequencies_alike",
                 .expected = "each pair slower than the one before",
                 .found = "all pairs turn by " + shown(speed, 5) + " a position",
                 .message =
                     "no base makes these: one number was written over all frequencies, or "
                     "memory that nobody filled holds it",
                 .cure = "compute inv_freq anew when the weights have been loaded"};
}

// cos² + sin² is the square of one amplitude, whatever the angles are. Nothing: it is, but for rows
// that nobody filled.
std::optional<Finding> no_circle(const Numbers& cos, const Numbers& sin) {
  constexpr double widest = 4;  // amplitudes of pairs differ by less
  double least = 0, most = 0;
  for (std::size_t at = 0; at < cos.values.size(); ++at) {
    const double square = cos.values[at] * cos.values[at] + sin.values[at] * sin.values[at];
    if (square == 0) continue;
    least = most == 0 ? square : std::min(least, square);
    most = std::max(most, square);
  }
  if (most <= widest * widest * least) return std::nullopt;
  return Finding{.code = "no_circle",
                 .expected = "cos² + sin² alike everywhere",
                 .found = shown(least, 3) + " to " + shown(most, 3),
                 .message =
                     "these are no cosines and sines: memory that nobody filled, or two "
                     "tensors that do not belong together",
                 .cure = "compute the table when the weights have been loaded"};
}

// Rows up to the last that holds a number.
std::int64_t filled_rows(const Numbers& cos, const Numbers& sin) {
  std::int64_t rows = cos.rows;
  const auto is_empty = [&](std::int64_t row) {
    // Zeros, or what zeros for frequencies make.
    const double first = cos.at(row, 0);
    for (std::int64_t c = 0; c < cos.columns; ++c)
      if (cos.at(row, c) != first || sin.at(row, c) != 0) return false;
    return first == 0 || (first == 1 && row > 0);
  };
  while (rows > 0 && is_empty(rows - 1)) --rows;
  return rows;
}

// A table whose end nobody filled: what stands before it is looked at.
std::optional<Finding> keep_filled(Numbers& cos, Numbers& sin) {
  const std::int64_t filled = filled_rows(cos, sin), all = cos.rows;
  constexpr std::int64_t least = 4;
  if (filled == all || filled < least) return std::nullopt;
  const bool of_zeros = cos.at(filled, 0) == 0;
  for (Numbers* table : {&cos, &sin}) {
    table->rows = filled;
    table->values.resize(static_cast<std::size_t>(filled * table->columns));
  }
  return Finding{
      .code = "rows_unfilled",
      .position = filled,
      .expected = grouped(all) + " rows",
      .found = grouped(filled),
      .message = "the table is filled for " + grouped(filled) + " positions, and from row " +
                 grouped(filled) + " on " +
                 (of_zeros ? "holds 0: there every query and key becomes 0, and "
                             "attention the mean of all values"
                           : "is as at position 0: later positions look like one"),
      .cure = "compute as many rows as the longest text has tokens, before the first is read"};
}

void tell_constant(Identified& found) {
  if (found.verdict != Rotated::no_rotation) return;
  found.findings.push_back(
      {.code = "constant",
       .expected = "rows that turn",
       .found = "rows that are all alike",
       .message = "the table says the same at every position: its frequencies are 0, or every "
                  "position was 0",
       .cure = "compute inv_freq when the model has been loaded, and hand positions on"});
}

}  // namespace

Expected<IdentifiedTable> identify_table(const Tensor& cos, const Tensor& sin) {
  std::vector<std::int64_t> not_finite;
  Expected<Numbers> cosines = read_table(cos, &not_finite), sines = read_table(sin, &not_finite);
  if (!cosines) return std::unexpected(cosines.error());
  if (!sines) return std::unexpected(sines.error());
  if (cosines->rows != sines->rows || cosines->columns != sines->columns)
    return fail("identify", "cosines and sines have one shape",
                shape_text(cos) + " and " + shape_text(sin));
  if (!not_finite.empty()) return not_of_numbers(std::move(not_finite), cosines->columns);
  IdentifiedTable out{.columns = columns_of(*cosines, *sines)};
  std::vector<double> all = cosines->values;
  all.insert(all.end(), sines->values.begin(), sines->values.end());
  out.kept = detail::kept_type(all);
  if (std::ranges::all_of(all, [](double x) { return x == 0; })) {
    out.rotation.findings.push_back(
        {.code = "constant",
         .expected = "1 in the cosines of position 0",
         .found = "0 in every cosine and sine",
         .message = "the table was never filled: it makes every query and key 0, so that attention "
                    "is the mean of all values. A buffer that is saved with no weights is empty "
                    "where a model is built without its initialisation (meta device, "
                    "low_cpu_mem_usage, transformers 5)",
         .cure = "compute the table when the weights have been loaded"});
    return out;
  }
  if (auto broken = no_circle(*cosines, *sines)) {
    out.rotation.findings.push_back(*std::move(broken));
    return out;
  }
  if (auto alike = one_speed(*cosines, *sines)) {
    out.rotation.findings.push_back(*std::move(alike));
    return out;
  }
  const std::optional<Finding> unfilled = keep_filled(*cosines, *sines);
  const auto tell_unfilled = [&] {
    if (unfilled) out.rotation.findings.insert(out.rotation.findings.begin(), *unfilled);
  };
  const bool once = out.columns == TableColumns::pairs;
  const std::int64_t pairs = once ? cosines->columns : cosines->columns / 2;
  const Columns at{0, out.columns == TableColumns::interleaved ? 2 : 1};
  const std::vector<std::int64_t> rows = all_rows(*cosines);
  out.rotation =
      detail::identified(dump_of(*cosines, at, *sines, at, pairs, rows, out.kept), false);
  tell_constant(out.rotation);
  if (out.rotation.verdict == Rotated::rotation && out.rotation.offset) {
    tell_unfilled();
    return out;
  }
  Identified other =
      detail::identified(dump_of(*sines, at, *cosines, at, pairs, rows, out.kept), false);
  out.exchanged = other.verdict == Rotated::rotation && other.offset.has_value();
  if (out.exchanged) out.rotation = std::move(other);
  if (out.exchanged) tell_constant(out.rotation);
  tell_unfilled();
  return out;
}

Expected<IdentifiedVectors> identify_vectors(const Tensor& values) {
  const Expected<Numbers> table = read_table(values);
  if (!table) return std::unexpected(table.error());
  IdentifiedVectors out{.kept = detail::kept_type(table->values)};
  std::vector<std::int64_t> rows;
  for (std::int64_t t = 0; t < table->rows; ++t) {
    bool zero = true;
    for (std::int64_t c = 0; c < table->columns && zero; ++c) zero = table->at(t, c) == 0;
    (zero ? out.zero_rows : rows).push_back(t);
  }
  if (table->columns < 4 || rows.size() < 4) {
    out.cannot_tell.push_back("anything: four rows and four channels are the least");
    return out;
  }
  for (const VectorLayout& guess : wave_layouts) {
    const Identified found = waves_of(*table, guess, rows, out.kept);
    if (found.verdict != Rotated::rotation || found.pairing != Pairing::halves || found.sign < 0 ||
        !found.offset)
      continue;
    out.sinusoidal = true;
    out.layout = guess.layout;
    out.cosine_first = guess.cosine_first;
    out.scale = found.amplitude.value_or(1);
    out.offset = found.offset;
    out.residual = found.residual;
    name_spacing(found, table->columns / 2 * 2, out);
    return out;
  }
  return out;
}

}  // namespace posenc
