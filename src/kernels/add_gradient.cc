// add_backward: the sum is linear in the embedding and in the learned rows.
#include <string>
#include <vector>

#include "posenc/gradients.h"
#include "src/core/try.h"
#include "src/kernels/arguments.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

// The sum of the gradients of the tokens that read a row.
Expected<void> write_rows(const Rows& rows, const Positions& positions, const Tensor& gradient,
                          const Tensor& table) {
  const std::int64_t width = gradient.shape[2];
  std::vector<double> sum(static_cast<std::size_t>(rows.rows * width));
  for (std::int64_t b = 0; b < gradient.shape[0]; ++b) {
    for (std::int64_t t = 0; t < gradient.shape[1]; ++t) {
      for (std::int64_t a = 0; a < rows.axes(); ++a) {
        POSENC_TRY(row, detail::row_at(rows, positions.at(t, b, a), a));
        double* const to = sum.data() + row * width;
        for (std::int64_t c = 0; c < width; ++c) to[c] += gradient.get(gradient.offset(b, t, c));
      }
    }
  }
  const double* next = sum.data();
  for (std::int64_t r = 0; r < rows.rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) table.set(table.offset(r, c), *next++);
  }
  return {};
}

}  // namespace

Expected<void> add_backward(const Plan& plan, const Positions& positions,
                            const Tensor& out_gradient, const Tensor& embedding_gradient,
                            const Tensor& table_gradient) {
  constexpr std::string_view where = "add_backward";
  if (!plan.add) {
    return fail(where, "the plan must have a part that is added to the embedding", "none",
                "compile an absolute scheme (sinusoidal, learned)");
  }
  POSENC_TRY(gradient, detail::viewed(where, "out_gradient", out_gradient, 3));
  const std::int64_t width =
      std::visit([](const auto& part) { return part.width; }, plan.add->kind);
  if (gradient.shape[2] != width) {
    return fail(where, "width must be the plan's " + std::to_string(width),
                std::to_string(gradient.shape[2]), "compile the plan for this width");
  }
  const auto* waves = std::get_if<Waves>(&plan.add->kind);
  const auto* rows = std::get_if<Rows>(&plan.add->kind);
  POSENC_CHECK(detail::check_positions(where, positions, gradient.shape[0], gradient.shape[1],
                                       waves  ? waves->axes
                                       : rows ? rows->axes()
                                              : 1));

  Tensor embedding;
  if (embedding_gradient) {
    POSENC_TRY(view, detail::viewed(where, "embedding_gradient", embedding_gradient, 3));
    POSENC_CHECK(detail::check_out(where, gradient, view));
    embedding = view;
  }
  if (table_gradient) {
    if (rows == nullptr) {
      return fail(where, "only learned rows have a gradient", "a computed encoding",
                  "leave table_gradient absent");
    }
    POSENC_TRY(table, detail::viewed(where, "table_gradient", table_gradient, 2));
    const Tensor like = Tensor::dense(table.data, table.dtype, {rows->rows, rows->width});
    POSENC_CHECK(detail::check_shape(where, "table_gradient", table, like));
    POSENC_CHECK(detail::check_distinct(where, table));
    POSENC_CHECK(write_rows(*rows, positions, gradient, table));
  }
  for (std::int64_t b = 0; embedding && b < embedding.shape[0]; ++b) {
    for (std::int64_t t = 0; t < embedding.shape[1]; ++t) {
      for (std::int64_t c = 0; c < width; ++c) {
        embedding.set(embedding.offset(b, t, c),
                      gradient.get(gradient.offset(b, t, c)) * plan.add->embedding_scale);
      }
    }
  }
  return {};
}

}  // namespace posenc
