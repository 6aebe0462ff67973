// Sizes and numbers that nobody means, in every field of every scheme and of the geometry: a plan
// or an error, soon.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "posenc/schemes.h"

namespace posenc {
namespace {

constexpr double seconds = 5;  // a plain build takes a tenth of one

// Beyond any ceiling, and where conversions go wrong.
const std::vector<double> absurd = {-1,     0,      1,       2,    0x1p31, 0x1p40, 0x1p50,
                                    0x1p62, 0x1p63, -0x1p31, 1e19, 1e300,  -1e300, 0.5};

template <class Act>
void expect_soon(const std::string& what, const Act& act) {
  const std::clock_t start = std::clock();
  act();
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, seconds) << what;
}

const Geometry usual{.width = 64,
                     .heads = 8,
                     .kv_heads = 8,
                     .head_dim = 16,
                     .length = 128,
                     .grid_height = 4,
                     .grid_width = 4};

std::vector<Scheme> schemes() {
  std::vector<Scheme> all;
  for (const SchemeInfo& each : all_schemes()) all.push_back(*make_scheme(each.name));
  for (const SchemeInfo& each : all_scalings())
    all.push_back(Rope{.scaling = *make_scaling(each.name)});
  for (const DistanceMap& map :
       {DistanceMap(ReRope{}), DistanceMap(SelfExtend{}), DistanceMap(DualChunk{})})
    all.push_back(Rope{.distance_map = map});
  return all;
}

TEST(Extremes, OfEveryExtent) {
  for (const Scheme& scheme : schemes()) {
    for (std::int64_t Geometry::* extent :
         {&Geometry::width, &Geometry::heads, &Geometry::kv_heads, &Geometry::head_dim,
          &Geometry::length, &Geometry::grid_height, &Geometry::grid_width}) {
      for (const double value : absurd) {
        Geometry geometry = usual;
        geometry.*extent = value >= 0x1p63   ? INT64_MAX
                           : value < -0x1p62 ? INT64_MIN
                                             : static_cast<std::int64_t>(value);
        const std::string what =
            std::string(info(scheme).name) + ", an extent of " + std::to_string(geometry.*extent);
        expect_soon(what, [&] {
          const auto plan = compile(scheme, geometry);
          EXPECT_LE(plan ? 0 : plan.error().message().size(), 500u) << what;
        });
      }
    }
  }
}

TEST(Extremes, OfEveryNumberOfAScheme) {
  for (const Scheme& scheme : schemes()) {
    const auto vary = [&](const std::vector<FieldSetting>& fields) {
      for (const FieldSetting& field : fields) {
        for (const double value : absurd) {
          Scheme changed = scheme;
          if (!set_field(changed, field.name, value)) continue;
          const std::string what = std::string(info(scheme).name) + ", " + std::string(field.name) +
                                   " " + std::to_string(value);
          expect_soon(what, [&] { static_cast<void>(compile(changed, usual)); });
        }
      }
    };
    vary(settings(scheme));
    if (const auto* rope = std::get_if<Rope>(&scheme)) vary(settings(rope->scaling));
  }
}

}  // namespace
}  // namespace posenc
