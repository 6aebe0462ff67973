// Wall attention: a product of queries and keys whose channels each token dampens by its gates
// (wall.h).
#include <limits>
#include <string_view>
#include <vector>

#include "src/attention/reference.h"
#include "src/content/wall.h"

namespace posenc {
namespace {

using detail::GatedKeys;
using detail::WallGates;
using detail::WallRows;

template <class T>
class WallTile : public detail::ForgetfulSoftmax<T> {
 public:
  WallTile(const GatedKeys<T>& keys, const WallGates& gates, std::int64_t b, std::int64_t h,
           std::int64_t first, std::int64_t rows)
      : detail::ForgetfulSoftmax<T>(gates.scalar_sums(), b, h, rows, gates.own_of(b, first)),
        rows_(keys, b, h, first, rows, gates.own_of(b, first)) {}

  void products(std::int64_t block, T* scores) { rows_.products(block, scores); }

 private:
  WallRows<T> rows_;
};

}  // namespace

Expected<void> detail::attend_with(const Wall& wall, const ContentCall& call) {
  POSENC_TRY(gates, WallGates::of(wall, call));
  return stream(call, MaskWords(call), false, [&]<class T>(const Streamed<T>& streamed) {
    return [&, keys = GatedKeys<T>(streamed, gates, call)](std::int64_t b, std::int64_t h,
                                                           std::int64_t first, std::int64_t rows) {
      return WallTile<T>(keys, gates, b, h, first, rows);
    };
  });
}

Expected<void> detail::reference_with(const Wall& wall, const ContentCall& call,
                                      const Tensor& weights) {
  POSENC_TRY(gates, WallGates::of(wall, call));
  const std::int64_t dim = call.head_dim();
  const auto gated = [&](const ReferenceRow& row) {
    std::vector<double> forgotten(static_cast<std::size_t>(dim));
    double of_head = 0;
    for (std::int64_t j = *gates.own_of(row.sequence, row.query); j >= 0; --j) {
      double& logit = row.logits[static_cast<std::size_t>(j)];
      if (logit != -std::numeric_limits<double>::infinity()) {
        logit = of_head;
        for (std::int64_t c = 0; c < dim; ++c)
          logit += row.scale * row.rotated_q[c] * row.rotated_keys[j * dim + c] *
                   std::exp(forgotten[static_cast<std::size_t>(c)]);
      }
      if (!call.keeps(row.sequence, j)) continue;
      for (std::int64_t c = 0; c < dim; ++c)
        forgotten[static_cast<std::size_t>(c)] +=
            gates.channels.get(gates.channels.offset(row.sequence, row.head, j, c));
      if (gates.scalar) of_head += gates.scalar.get(gates.scalar.offset(row.sequence, row.head, j));
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = gated, .weights = weights});
}

}  // namespace posenc
