// The gradients of FIRE's attention (stream_backward.h). S, the gradient by the scores, is that by the
// bias f_h(x_ij). On each of f's lines (fire.h) f is linear in x, so Σ S and Σ S·x of a line are all that
// the network's weights need of it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "posenc/content.h"
#include "src/attention/fire.h"
#include "src/attention/stream_backward.h"

namespace posenc {
namespace {

using detail::block_keys;

// What the parameters get from one head of one sequence.
struct Share {
  std::vector<double> sum, moment;  // Σ S and Σ S·x of each line
  double c = 0, length = 0;
};

template <class T>
class FireGradientTile : public detail::FireTile<T> {
 public:
  FireGradientTile(const Fire& fire, const detail::FireLines& lines, const detail::PsiTable& table,
                   const Positions& queries, const Positions& keys, const detail::TileOf& tile,
                   Share& share)
      : detail::FireTile<T>(fire, lines, table, queries, keys, tile.b, tile.h, tile.first,
                            tile.rows),
        fire_(&fire),
        share_(&share) {}

  void differentiate(std::int64_t row, std::int64_t block, std::uint64_t seen, const T* by_weight,
                     T mean, T* scores, T* by_score) {
    this->add_bias(row, block, scores);
    this->softmax_.differentiate(row, by_weight, mean, scores, by_score);
    add_parameters(row, block, seen, by_score);
  }

 private:
  // x = ψ(n)/N with n the distance: ∂x/∂c = (ψ′(n) − x ψ′(m))/N, ψ′ by c, m = max(i, L) that N is of.
  void add_parameters(std::int64_t row, std::int64_t block, std::uint64_t seen, const T* s) {
    const std::int64_t start = block * block_keys;
    const std::int64_t count = std::min(block_keys, this->keys_->size() - start);
    const std::int64_t query = this->query_[row];
    const double reciprocal = this->reciprocal_[row];
    const double c = std::abs(fire_->c), threshold = fire_->threshold();
    const double m = std::max(static_cast<double>(query), threshold);
    const double by_c = m / (c * m + 1);
    const double by_length = static_cast<double>(query) < threshold ? c / (c * m + 1) : 0;
    double x[block_keys];
    this->table_->interpolated(*this->keys_, this->sequence_, query, reciprocal, start, count, x);
    std::size_t line = this->line_of(x[0]);
    for (std::uint64_t left = seen; left != 0; left &= left - 1) {
      const int j = std::countr_zero(left);
      line = this->line_near(line, x[j]);
      const double gradient = static_cast<double>(s[j]);
      share_->sum[line] += gradient;
      share_->moment[line] += gradient * x[j];
      const double n =
          std::abs(static_cast<double>(query - this->keys_->at(start + j, this->sequence_)));
      const double by_x = gradient * this->slope_[line] * reciprocal;
      share_->c += by_x * (n / (c * n + 1) - x[j] * by_c);
      share_->length -= by_x * x[j] * by_length;
    }
  }

  const Fire* fire_;
  Share* share_;
};

// All heads' shares as the gradient of the parameters.
FireGradient gathered(const Fire& fire, const detail::FireLines& lines, std::int64_t heads,
                      const std::vector<Share>& shares) {
  const std::size_t units = fire.hidden_weight.size();
  FireGradient gradient{.hidden_weight = std::vector<double>(units),
                        .hidden_bias = std::vector<double>(units),
                        .output_weight = std::vector<double>(fire.output_weight.size()),
                        .output_bias = std::vector<double>(fire.output_bias.size())};
  double length = 0;
  for (std::size_t each = 0; each < shares.size(); ++each) {
    const std::size_t h = each % static_cast<std::size_t>(heads);
    const Share& share = shares[each];
    gradient.c += share.c;
    length += share.length;
    for (std::size_t line = 0; line < share.sum.size(); ++line) {
      gradient.output_bias[h] += share.sum[line];
      for (std::size_t u = 0; u < units; ++u) {
        if (!lines.active(fire, u, line)) continue;
        const double w = fire.hidden_weight[u], output = fire.output_weight[h * units + u];
        gradient.output_weight[h * units + u] +=
            w * share.moment[line] + fire.hidden_bias[u] * share.sum[line];
        gradient.hidden_weight[u] += output * share.moment[line];
        gradient.hidden_bias[u] += output * share.sum[line];
      }
    }
  }
  if (std::signbit(fire.c)) gradient.c = -gradient.c;
  const double product = fire.length_multiplier * fire.initial_length;
  gradient.length_multiplier = length * (product < 0 ? -fire.initial_length : fire.initial_length);
  return gradient;
}

}  // namespace

Expected<FireGradient> attend_fire_backward(const AttentionInputs& in, const Fire& fire,
                                            const Plan& plan, const Tensor& out_gradient,
                                            const Tensor& q_gradient, const Tensor& k_gradient,
                                            const Tensor& v_gradient) {
  constexpr std::string_view where = "attend_fire_backward";
  const auto checked =
      detail::backward_arguments(where, in, plan, out_gradient, q_gradient, k_gradient, v_gradient);
  if (!checked) return std::unexpected(checked.error());
  const std::int64_t batch = checked->in.q.shape[0], heads = checked->in.q.shape[1];
  if (auto ok = detail::check_fire(where, fire, heads); !ok) return std::unexpected(ok.error());
  if (auto ok = detail::check_fire_axes(where, in.queries, in.keys); !ok)
    return std::unexpected(ok.error());
  const detail::FireLines lines(fire, heads);
  const detail::PsiTable table(fire, in.queries, in.keys);
  const detail::Seen seen(in.mask, in.queries, in.keys, batch);
  std::vector<Share> shares(static_cast<std::size_t>(checked->shares()),
                            Share{std::vector<double>(lines.turn.size() + 1),
                                  std::vector<double>(lines.turn.size() + 1)});
  const auto done = detail::with_compute_type(in.q.dtype, [&]<class T>(T*) -> Expected<void> {
    const auto bind = [&](const detail::Streamed<T>&, detail::StreamedGradients<T>&) {
      return [&](const detail::TileOf& tile) {
        return FireGradientTile<T>(fire, lines, table, in.queries, in.keys, tile,
                                   shares[static_cast<std::size_t>(tile.share)]);
      };
    };
    return detail::stream_backward<T>(*checked, plan, in.queries, in.keys, seen, false, in.threads,
                                      bind);
  });
  if (!done) return std::unexpected(done.error());
  return gathered(fire, lines, heads, shares);
}

}  // namespace posenc
