// What is added at the input on one axis or several, as other libraries' own code makes it
// (tests/peers/added.py).
#include <algorithm>
#include <cmath>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

Scheme scheme_of(const Json& record) {
  auto scheme = make_scheme(record.at("scheme").at("type").get<std::string>());
  EXPECT_TRUE(scheme) << (scheme ? "" : scheme.error().message());
  for (const auto& [field, value] : record.at("scheme").items())
    if (field != "type") set(*scheme, field, field_value(value));
  if (!record.contains("tables")) return *scheme;
  for (const auto& [name, rows] : record.at("tables").items()) {
    std::vector<double> values;
    const bool flat = rows.at(0).is_number();
    for (const Json& row : rows)
      for (const double x : flat ? std::vector{row.get<double>()} : numbers<double>(row))
        values.push_back(x);
    const auto count = flat ? 1 : std::ssize(rows);
    const std::int64_t columns = std::ssize(values) / count;
    const Table table = Table::own(std::move(values), count, columns);
    if (auto* learned = std::get_if<Learned>(&*scheme))
      learned->table = table;
    else
      EXPECT_TRUE(set_table(*scheme, name, table));
  }
  return *scheme;
}

struct Points {
  std::vector<double> at;  // [axis][token]
  std::int64_t axes, tokens;
};
Points points_of(const Json& record) {
  Points points{.axes = std::ssize(record.at("at")), .tokens = std::ssize(record.at("at").at(0))};
  for (const Json& axis : record.at("at"))
    for (const double x : numbers<double>(axis)) points.at.push_back(x);
  return points;
}

std::vector<double> rows_of(const Json& record) {
  std::vector<double> rows;
  for (const Json& row : record.at("rows"))
    for (const double x : numbers<double>(row)) rows.push_back(x);
  return rows;
}

// Most of them form angles in float, and DETR adds 1e-6 to the size of a picture that it divides
// by.
double added_tolerance(const Points& points, double scale) {
  double most = 0;
  for (const double x : points.at) most = std::max(most, std::abs(x * scale));
  return 5e-6 + 2e-7 * most;
}

TEST(Added, IsWhatOtherLibrariesAdd) {
  for (const Json& record : records("added")) {
    SCOPED_TRACE(record.at("model").get<std::string>());
    const auto width = record.at("width").get<std::int64_t>();
    const auto plan = compile(scheme_of(record), {.width = width});
    ASSERT_TRUE(plan) << plan.error().message();
    Points points = points_of(record);
    const Json& scheme = record.at("scheme");
    const double scale =
        scheme.contains("position_scale") ? scheme.at("position_scale").at(0).get<double>() : 1;
    std::vector<double> rows(static_cast<std::size_t>(points.tokens * width));
    const Tensor out = Tensor::dense(rows.data(), {1, points.tokens, width});
    if (std::holds_alternative<Waves>(plan->add->kind)) {
      const Tensor at = Tensor::dense(points.at.data(), {points.axes, 1, points.tokens});
      ASSERT_TRUE(position_vectors(*plan, at, out));
      expect_close(rows, rows_of(record), added_tolerance(points, scale));
    }
    const bool whole = std::ranges::all_of(points.at, [](double x) { return x == std::floor(x); });
    if (!whole) continue;
    const std::vector<std::int64_t> ids(points.at.begin(), points.at.end());
    const auto done = position_vectors(*plan, *Positions::signed_ids(ids, points.axes), out);
    ASSERT_TRUE(done) << done.error().message();
    expect_close(rows, rows_of(record), added_tolerance(points, scale));
  }
}

// Of floats, or with weights that are floats.
TEST(Added, TablesOfAGridAreResampledAsOtherLibrariesDo) {
  for (const Json& record : load("golden/added.json").at("resampled")) {
    const Json& said = record.at("how");
    SCOPED_TRACE(record.at("model").get<std::string>() + " " + said.dump());
    const Resampling how{.interpolation = said.at("interpolation") == "bicubic"
                                              ? Interpolation::bicubic
                                              : Interpolation::bilinear,
                         .align_corners = said.value("align_corners", false),
                         .antialias = said.value("antialias", false),
                         .zeros_outside = said.value("zeros_outside", false),
                         .spatial_merge_size = said.value("spatial_merge_size", std::int64_t{1}),
                         .kept_rows = said.value("kept_rows", std::int64_t{0}),
                         .offset = said.value("offset", 0.0)};
    const auto size = [&](const char* name) {
      const auto sides = numbers<std::int64_t>(record.at(name));
      return GridSize{sides[0], sides[1]};
    };
    std::vector<double> table;
    for (const Json& row : record.at("table"))
      for (const double x : numbers<double>(row)) table.push_back(x);
    const std::vector<double> wanted = rows_of(record);
    const std::int64_t rows = std::ssize(record.at("table")), channels = std::ssize(table) / rows;
    std::vector<double> out(wanted.size());
    const auto done =
        resample_grid(Tensor::dense(table.data(), {rows, channels}), size("from"), size("to"), how,
                      Tensor::dense(out.data(), {std::ssize(record.at("rows")), channels}));
    ASSERT_TRUE(done) << done.error().message();
    if (record.contains("window")) {  // which SAM 2 adds
      std::vector<double> window;
      for (const Json& row : record.at("window"))
        for (const double x : numbers<double>(row)) window.push_back(x);
      std::vector<double> repeated(out.size());
      ASSERT_TRUE(
          resample_grid(Tensor::dense(window.data(), {std::ssize(window) / channels, channels}),
                        size("window_grid"), size("to"), {.interpolation = Interpolation::repeated},
                        Tensor::dense(repeated.data(), {std::ssize(out) / channels, channels})));
      for (std::size_t i = 0; i < out.size(); ++i) out[i] += repeated[i];
    }
    expect_close(out, wanted, 2e-6);
  }
}

}  // namespace
}  // namespace posenc::golden
