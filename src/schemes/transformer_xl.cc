// Transformer-XL's relative attention (1901.02860), as Conformers have it (2005.08100):
//   logit_ij = [(q_i + u)·k_j + (q_i + v)·r_{i−j}]/√d,  r_δ = W_R s_δ by heads,  s_δ a sinusoid of
//                                                       the model's width
// In a plan: a key table r, a query table that is u at every distance, and a bias v·r_δ/√d. W_R, u
// and v are the layer's.
//
//   layout  concatenated: all sines, then all cosines (Transformer-XL, XLNet); interleaved
//           (Conformers: wav2vec2-conformer, Parakeet)
//   biases  without u and v: r alone meets the query (Gemma's encoder of sound)
//   spacing ends: frequencies base^(−r/(d/2−1)), as Gemma's encoder has them
//
// Pitfalls: their code shifts a product with all distances by one column a row ("rel_shift"), which
// is how r_{i−j} is read; distances run from L − 1 down. XLNet adds a third term, whether two
// tokens are of one segment, which is no position. Distances grow with the text, and so does the
// table: compile for the length.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/scalings/scaling.h"
#include "src/schemes/common.h"

namespace posenc {
namespace {

constexpr std::string_view scheme_name = "transformer_xl";

// s_δ [width][distance], from the smallest distance on.
std::vector<double> sinusoids(const TransformerXl& scheme, std::int64_t width, std::int64_t first,
                              std::int64_t count) {
  const std::int64_t pairs = width / 2;
  auto frequency = detail::geometric_frequencies(scheme.base, width, pairs);
  if (scheme.spacing == WaveSpacing::ends && pairs > 1)
    for (std::int64_t r = 0; r < pairs; ++r)
      frequency[static_cast<std::size_t>(r)] =
          std::pow(scheme.base, -static_cast<double>(r) / static_cast<double>(pairs - 1));
  std::vector<double> s(static_cast<std::size_t>(count * width));
  for (std::int64_t n = 0; n < count; ++n) {
    for (std::int64_t r = 0; r < pairs; ++r) {
      const double angle = static_cast<double>(first + n) * frequency[static_cast<std::size_t>(r)];
      const bool interleaved = scheme.layout == WaveLayout::interleaved;
      const std::int64_t sine = interleaved ? 2 * r : r;
      const std::int64_t cosine = interleaved ? 2 * r + 1 : pairs + r;
      s[static_cast<std::size_t>(sine * count + n)] = std::sin(angle);
      s[static_cast<std::size_t>(cosine * count + n)] = std::cos(angle);
    }
  }
  return s;
}

// One [heads][columns] tensor of every row as [heads][rows][columns], its numbers once.
Table at_every_row(const Table& table, std::int64_t rows) {
  Tensor view = table.values;
  view.rank = 3;
  view.shape = {table.values.shape[0], rows, table.values.shape[1]};
  view.stride = {table.values.stride[0], 0, table.values.stride[1]};
  return table.viewed(view);
}

struct Sizes {
  std::int64_t width, heads, head_dim, first, count;
};

Expected<Sizes> sizes_of(const TransformerXl& scheme, const Geometry& geometry) {
  POSENC_CHECK(detail::known(scheme_name, {{"width", geometry.width},
                                           {"heads", geometry.heads},
                                           {"head_dim", geometry.head_dim},
                                           {"length", geometry.length}}));
  const auto& [width, heads, kv_heads, head_dim, length, grid_height, grid_width] = geometry;
  if (width % 2 != 0) return fail(scheme_name, "width must be even", std::to_string(width));
  POSENC_CHECK(detail::affordable(scheme_name, {"length", length}, {"directions", 2}));
  const std::int64_t first = scheme.bidirectional ? 1 - length : 0, count = length - first;
  POSENC_CHECK(detail::affordable(scheme_name, {"width", width}, {"distances", count}));
  POSENC_CHECK(detail::affordable(scheme_name, {"heads", heads}, {"distances", count}));
  POSENC_CHECK(detail::affordable(scheme_name, {"head_dim", head_dim},
                                  {"heads x distances", heads * count}));
  POSENC_CHECK(
      detail::shaped("transformer_xl: projection", scheme.projection, {heads * head_dim, width}));
  POSENC_CHECK(
      detail::shaped("transformer_xl: content_bias", scheme.content_bias, {heads, head_dim}));
  POSENC_CHECK(
      detail::shaped("transformer_xl: position_bias", scheme.position_bias, {heads, head_dim}));
  return Sizes{width, heads, head_dim, first, count};
}

// r [heads][distance][head_dim].
std::vector<double> projected(const TransformerXl& scheme, const Sizes& of,
                              const std::vector<double>& s) {
  const Tensor& w = scheme.projection.values;
  std::vector<double> sums(static_cast<std::size_t>(of.count));
  std::vector<double> r(static_cast<std::size_t>(of.heads * of.count * of.head_dim));
  for (std::int64_t row = 0; row < of.heads * of.head_dim; ++row) {
    std::ranges::fill(sums, 0.0);
    for (std::int64_t c = 0; c < of.width; ++c) {
      const double weight = w.get(w.offset(row, c));
      const double* const from = s.data() + c * of.count;
      for (std::size_t n = 0; n < sums.size(); ++n) sums[n] += weight * from[n];
    }
    const std::int64_t h = row / of.head_dim, channel = row % of.head_dim;
    for (std::int64_t n = 0; n < of.count; ++n)
      r[static_cast<std::size_t>((h * of.count + n) * of.head_dim + channel)] =
          sums[static_cast<std::size_t>(n)];
  }
  return r;
}

}  // namespace

Expected<Plan> TransformerXl::compiled(const Geometry& geometry) const {
  POSENC_TRY(of, sizes_of(*this, geometry));
  std::vector<std::int32_t> row(static_cast<std::size_t>(of.count));
  std::iota(row.begin(), row.end(), 0);
  const DistanceRows rows{.first = of.first, .row = std::move(row), .saturates = false};
  Relative relative{.rows = rows, .row_count = of.count, .uses_query = biases, .uses_key = true};
  BiasTable bias{.rows = rows, .row_count = of.count, .values = {}, .bidirectional = bidirectional};
  if (projection) {
    std::vector<double> r = projected(*this, of, sinusoids(*this, of.width, of.first, of.count));
    if (biases && position_bias) {
      const Tensor& v = position_bias.values;
      const double root = std::sqrt(static_cast<double>(of.head_dim));
      std::vector<double> values;
      for (std::int64_t n = 0; n < of.heads * of.count; ++n) {
        double sum = 0;
        for (std::int64_t c = 0; c < of.head_dim; ++c)
          sum +=
              v.get(v.offset(n / of.count, c)) * r[static_cast<std::size_t>(n * of.head_dim + c)];
        values.push_back(sum / root);
      }
      bias.values = Table::own(std::move(values), of.heads, of.count);
    }
    relative.key = Table::own(std::move(r), of.heads * of.count, of.head_dim);
    relative.key.values =
        Tensor::dense(relative.key.values.data, DType::f64, {of.heads, of.count, of.head_dim});
  }
  if (biases && content_bias) relative.query = at_every_row(content_bias, of.count);
  Plan plan;
  plan.relative = std::move(relative);
  if (biases) plan.bias = std::move(bias);
  return plan;
}

// With G^r, G^b and G^u the gradients by r, by the bias and by u at every distance:
//   R = G^r + G^b v/√d,  ∂W_R = Σ_δ R_δ s_δᵀ,  ∂v = Σ_δ G^b_δ r_δ/√d,  ∂u = Σ_δ G^u_δ
Expected<TransformerXlGradients> transformer_xl_gradients(const TransformerXl& scheme,
                                                          const Geometry& geometry,
                                                          const Tensor& key_gradient,
                                                          const Tensor& bias_gradient,
                                                          const Tensor& query_gradient) {
  constexpr std::string_view here = "transformer_xl_gradients";
  POSENC_TRY(of, sizes_of(scheme, geometry));
  const auto& [width, heads, dim, first, count] = of;
  if (!scheme.projection || (scheme.biases && !scheme.position_bias))
    return fail(here, "the scheme's learned tensors must be given", "none",
                "pass the scheme that was compiled");
  const auto check = [&](std::string_view name, const Tensor& x, bool wanted,
                         int rank) -> Expected<void> {
    const bool fits = x && x.rank == rank && x.shape[0] == heads && x.shape[1] == count &&
                      (rank == 2 || x.shape[2] == dim);
    if (wanted ? fits : !x) return {};
    return fail(here,
                std::string(name) + (wanted ? " must be [heads, distances" +
                                                  std::string(rank == 3 ? ", head_dim]" : "]")
                                            : " must be absent"),
                shape_text(x), "pass what attend_backward gave for the compiled plan");
  };
  POSENC_CHECK(check("the gradient by relative.key", key_gradient, true, 3));
  POSENC_CHECK(check("the gradient by the bias", bias_gradient, scheme.biases, 2));
  POSENC_CHECK(check("the gradient by relative.query", query_gradient, scheme.biases, 3));
  const std::vector<double> s = sinusoids(scheme, width, first, count);
  const std::vector<double> r = projected(scheme, of, s);
  const double root = std::sqrt(static_cast<double>(dim));
  TransformerXlGradients by{.projection =
                                std::vector<double>(static_cast<std::size_t>(heads * dim * width))};
  if (scheme.biases)
    by.content_bias = by.position_bias = std::vector<double>(static_cast<std::size_t>(heads * dim));
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t n = 0; n < count; ++n) {
      const double of_bias =
          scheme.biases ? bias_gradient.get(bias_gradient.offset(h, n)) / root : 0;
      for (std::int64_t c = 0; c < dim; ++c) {
        const auto at = static_cast<std::size_t>(h * dim + c);
        double row = key_gradient.get(key_gradient.offset(h, n, c));
        if (scheme.biases) {
          const Tensor& v = scheme.position_bias.values;
          row += of_bias * v.get(v.offset(h, c));
          by.position_bias[at] += of_bias * r[static_cast<std::size_t>((h * count + n) * dim + c)];
          by.content_bias[at] += query_gradient.get(query_gradient.offset(h, n, c));
        }
        double* const to = by.projection.data() + (h * dim + c) * width;
        for (std::int64_t w = 0; w < width; ++w)
          to[w] += row * s[static_cast<std::size_t>(w * count + n)];
      }
    }
  }
  return by;
}

}  // namespace posenc
