#include "backends/distributed/visits.h"

#include <algorithm>

namespace posenc::mpi {
namespace {

constexpr std::size_t most_spans = 256;  // of a layout of more pieces one span tells all

}  // namespace

Visits::Visits(const Layout& layout, std::int64_t rank, const Positions& own) {
  std::vector<std::int64_t> starts;
  const std::vector<std::int64_t> tokens = layout.tokens_of(rank);
  for (std::size_t t = 0; t < tokens.size() && starts.size() <= most_spans; ++t) {
    const auto at = static_cast<std::int64_t>(t);
    if (t == 0 || tokens[t] != tokens[t - 1] + 1 || own.segment(at) != own.segment(at - 1))
      starts.push_back(at);
  }
  if (starts.size() > most_spans) starts = {0};
  const bool by_position = own.axes() == 1;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const std::int64_t end = s + 1 < starts.size() ? starts[s + 1] : own.size();
    const auto order = [&](std::int64_t t, std::int64_t b) {
      return by_position ? own.at(t, b) : own.order(t);
    };
    Span span{order(starts[s], 0), order(starts[s], 0), own.segment(starts[s]),
              own.segment(starts[s])};
    for (std::int64_t t = starts[s]; t < end; ++t) {
      for (std::int64_t b = 0; b < own.batch(); ++b) {
        span.first = std::min(span.first, order(t, b));
        span.last = std::max(span.last, order(t, b));
      }
      span.first_segment = std::min(span.first_segment, own.segment(t));
      span.last_segment = std::max(span.last_segment, own.segment(t));
    }
    spans_.push_back(span);
  }
}

bool Visits::sees(const Span& queries, const Span& keys, const Mask& mask) {
  if (keys.last_segment < queries.first_segment || keys.first_segment > queries.last_segment)
    return false;
  if (mask.blocks != nullptr || (mask.prefix > 0 && keys.first < mask.prefix)) return true;
  if (mask.causal && keys.first > queries.last) return false;
  if (mask.chunk > 0 && (mask.chunk_of(keys.last) < mask.chunk_of(queries.first) ||
                         mask.chunk_of(keys.first) > mask.chunk_of(queries.last)))
    return false;
  return mask.window == 0 ||
         (queries.first - keys.last < mask.window && keys.first - queries.last < mask.window);
}

bool Visits::see(const Visits& keys, const Mask& mask) const {
  return std::ranges::any_of(spans_, [&](const Span& own) {
    return std::ranges::any_of(keys.spans_,
                               [&](const Span& other) { return sees(own, other, mask); });
  });
}

}  // namespace posenc::mpi
