// The gradients of FIRE's attention (backward.h). S, the gradient by the scores, is that by the
// bias f_h(x_ij). On each of f's lines (fire.h) f is linear in x, so Σ S and Σ S·x of a line are
// all that the network's weights need of it.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "posenc/content.h"
#include "src/attention/backward.h"
#include "src/attention/fused.h"
#include "src/content/fire.h"
#include "src/content/stream_backward.h"
#include "src/core/try.h"

namespace posenc {
namespace {

// What the parameters get from one head of one sequence, of a part of its queries.
struct FireShare {
  std::vector<double> sum, moment;  // Σ S and Σ S·x of each line
  double c = 0, length = 0;
};

template <class T>
class FireBiasGradient final : public detail::FireBias<T> {
 public:
  // `shares`: of the heads of the group.
  FireBiasGradient(const Fire& fire, const detail::FireLines& lines, const detail::PsiTable& table,
                   FireShare* shares)
      : detail::FireBias<T>(fire, lines, table), shares_(shares) {}

  // x = ψ(n)/N with n the distance: ∂x/∂c = (ψ′(n) − x ψ′(m))/N, ψ′ by c, m = max(i, L) that N is
  // of.
  void take_gradient(std::int64_t g, std::int64_t query, T, const detail::VisibleRange& seen,
                     const T* by_logit) override {
    const std::int64_t position = this->block_->queries.position(query);
    const double reciprocal = 1 / detail::fire_normalizer(this->fire_, position);
    const double c = std::abs(this->fire_.c), threshold = this->fire_.threshold();
    const double m = std::max(static_cast<double>(position), threshold);
    const double by_c = m / (c * m + 1);
    const double by_length = static_cast<double>(position) < threshold ? c / (c * m + 1) : 0;
    const auto slope = this->lines_.of(this->lines_.slope, this->block_->first_head + g);
    FireShare& share = shares_[g];
    this->for_lines(
        position, reciprocal, seen,
        [&](std::int64_t begin, std::int64_t end, std::size_t line, const double* psi) {
          const std::int64_t ahead = this->block_->keys.position(begin) - position;
          const double one = this->table_.by_c_at(ahead);
          const double* const by_c_of = end - begin == 1 ? &one : this->table_.by_c(ahead);
          const detail::Moments s = detail::moments(by_logit + begin, psi, by_c_of, end - begin);
          const double moment = s.by_x * reciprocal;  // Σ S x
          share.sum[line] += s.sum;
          share.moment[line] += moment;
          const double by_x = slope[line] * reciprocal;
          share.c += by_x * (s.by_y - moment * by_c);
          share.length -= by_x * moment * by_length;
        });
  }

 private:
  FireShare* shares_;
};

// By what FIRE learns; shapes are those of Fire.
struct FireGradient {
  std::vector<double> hidden_weight = {}, hidden_bias = {}, output_weight = {}, output_bias = {};
  double c = 0, length_multiplier = 0;
};

// Where the gradients by the parameters go, of three axes; absent where not wanted.
struct Parameters {
  Tensor hidden_weight, hidden_bias, output_weight, output_bias, c, length_multiplier;

  static Expected<Parameters> of(std::string_view where, const ContentGradients& gradients,
                                 std::int64_t heads, std::size_t units) {
    Parameters to;
    const auto hidden = static_cast<std::int64_t>(units);
    const auto extents = [](std::int64_t rows, std::int64_t columns) {
      static double none = 0;  // compared with, never read
      return columns < 0 ? Tensor::dense(&none, {rows}) : Tensor::dense(&none, {rows, columns});
    };
    for (const auto& [name, gradient, like, member] :
         {std::tuple{"hidden_weight", &gradients.hidden_weight, extents(hidden, -1),
                     &to.hidden_weight},
          {"hidden_bias", &gradients.hidden_bias, extents(hidden, -1), &to.hidden_bias},
          {"output_weight", &gradients.output_weight, extents(heads, hidden), &to.output_weight},
          {"output_bias", &gradients.output_bias, extents(heads, -1), &to.output_bias},
          {"c", &gradients.c, extents(1, -1), &to.c},
          {"length_multiplier", &gradients.length_multiplier, extents(1, -1),
           &to.length_multiplier}}) {
      POSENC_TRY(view, detail::gradient_like(where, "the gradient of " + std::string(name),
                                             *gradient, like));
      *member = view.with_rank(3);
    }
    return to;
  }

  void write(const FireGradient& by) const {
    const auto put = [](const Tensor& to, std::span<const double> numbers) {
      if (!to) return;
      for (std::int64_t row = 0, n = 0; row < to.shape[1]; ++row) {
        for (std::int64_t column = 0; column < to.shape[2]; ++column, ++n)
          to.set(to.offset(0, row, column), numbers[static_cast<std::size_t>(n)]);
      }
    };
    put(hidden_weight, by.hidden_weight);
    put(hidden_bias, by.hidden_bias);
    put(output_weight, by.output_weight);
    put(output_bias, by.output_bias);
    put(c, std::span(&by.c, 1));
    put(length_multiplier, std::span(&by.length_multiplier, 1));
  }
};

// All heads' shares as the gradient of the parameters.
FireGradient gathered(const Fire& fire, const detail::FireLines& lines, std::int64_t heads,
                      const std::vector<FireShare>& shares) {
  const std::size_t units = fire.hidden_weight.size();
  FireGradient gradient{.hidden_weight = std::vector<double>(units),
                        .hidden_bias = std::vector<double>(units),
                        .output_weight = std::vector<double>(fire.output_weight.size()),
                        .output_bias = std::vector<double>(fire.output_bias.size())};
  double length = 0;
  for (std::size_t each = 0; each < shares.size(); ++each) {
    const std::size_t h = each % static_cast<std::size_t>(heads);
    const FireShare& share = shares[each];
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

Expected<void> detail::backward_with(const Fire& fire, const BackwardCall& call) {
  const std::int64_t heads = call.heads();
  POSENC_CHECK(check_fire(call.where, fire, heads, call.in.queries, call.in.keys));
  POSENC_TRY(parameters,
             Parameters::of(call.where, call.gradients, heads, fire.hidden_weight.size()));
  const FireLines lines(fire, heads);
  const PsiTable table(fire, call.in.queries, call.in.keys);
  std::vector<FireShare> shares(static_cast<std::size_t>(call.backward.shares()),
                                FireShare{std::vector<double>(lines.breakpoint.size() + 1),
                                          std::vector<double>(lines.breakpoint.size() + 1)});
  with_compute_type(call.in.q.dtype, [&]<class T>(T*) {
    biased_backward<T>(call.backward, call.plan, [&](std::int64_t first_share) {
      return FireBiasGradient<T>(fire, lines, table,
                                 shares.data() + static_cast<std::ptrdiff_t>(first_share));
    });
  });
  parameters.write(gathered(fire, lines, heads, shares));
  return {};
}

}  // namespace posenc
