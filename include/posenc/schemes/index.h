// The bare position index as a feature. The mathematics is in src/schemes/index.cc.
#pragma once

#include "posenc/schemes/scheme.h"

namespace [[gnu::visibility("default")]] posenc {

struct Index {
  std::int64_t channel = -1;
  double scale = 1;

  static constexpr std::string_view name = "index", aliases = "ramp bare-index",
                                    title = "the bare position index as a feature",
                                    formula = "x[channel] += scale·p", paper = "";
  static constexpr auto fields() {
    return std::tuple{
        Field{"channel", &Index::channel, "reserved channel; -1: the last", row_index, "channel"},
        Field{"scale", &Index::scale, "value of one position"}};
  }
  Expected<Plan> compiled(const Geometry& geometry) const;  // needs width
  bool operator==(const Index&) const = default;
};

}  // namespace posenc
