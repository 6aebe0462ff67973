// Biases by distance: checked, one value, and the whole map as bias() of apply.h writes it.
#include "src/kernels/bias.h"
#include "posenc/features.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "posenc/apply.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

Expected<void> check_heads(std::string_view where, std::int64_t plan_heads, std::int64_t heads) {
  if (plan_heads == heads) return {};
  return fail(where,
              "heads must match the plan's bias for " + std::to_string(plan_heads) + " heads",
              std::to_string(heads), "compile the plan for this number of heads");
}

}  // namespace

Expected<void> check_bias(std::string_view where, const Bias& bias, std::int64_t heads) {
  if (const auto* slopes = std::get_if<Slopes>(&bias)) {
    return check_heads(where, static_cast<std::int64_t>(slopes->slope.size()), heads);
  }
  const auto& table = std::get<BiasTable>(bias);
  if (!table.values) {
    return fail(where, "the learned bias table must be given", "none",
                "set bias.values in the plan");
  }
  POSENC_TRY(values, viewed(where, "bias.values", table.values.values, 2));
  if (values.shape[1] != table.row_count) {
    return fail(where, "bias.values must be [heads or 1, " + std::to_string(table.row_count) + "]",
                shape_text(values), "pass the table as [heads, rows]");
  }
  return values.shape[0] == 1 ? Expected<void>{} : check_heads(where, values.shape[0], heads);
}

std::int64_t axes_of(const Plan& plan) {
  if (plan.rotate) return plan.rotate->frequencies.axes;
  const auto* table = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
  return table != nullptr && table->axes() > 1 ? table->axes() : 0;
}

Expected<double> bias_at(const Bias& bias, std::int64_t head, const Pair& pair) {
  if (const auto* slopes = std::get_if<Slopes>(&bias)) {
    const std::int64_t distance = pair.distance(0);
    const auto steps = static_cast<double>(slopes->bidirectional ? std::abs(distance) : distance);
    return -slopes->slope[static_cast<std::size_t>(head)] * steps;
  }
  const auto& table = std::get<BiasTable>(bias);
  const Tensor& values = table.values.values;
  double sum = 0;
  for (std::int64_t axis = 0; axis < table.axes(); ++axis) {
    POSENC_TRY(row, table.of_axis(axis).at(pair.distance(axis)));
    sum += values.get(values.offset(values.shape[0] == 1 ? 0 : head, row));
  }
  return sum;
}

}  // namespace posenc::detail

namespace posenc {

Expected<void> bias(const Plan& plan, const Positions& queries, const Positions& keys,
                    const Tensor& out_view, Threads threads) {
  POSENC_CHECK(check_takes(rooms::bias, plan));
  POSENC_TRY(out, detail::viewed("bias", "out", out_view, 3));
  POSENC_CHECK(detail::check_distinct("bias", out));
  const std::int64_t heads = out.shape[0], rows = out.shape[1], columns = out.shape[2];
  const std::int64_t axes = std::max<std::int64_t>(1, detail::axes_of(Plan{.bias = plan.bias}));
  POSENC_CHECK(detail::check_positions("bias", queries, 1, rows, axes));
  POSENC_CHECK(detail::check_positions("bias", keys, 1, columns, axes));
  if (plan.bias) {
    POSENC_CHECK(detail::check_bias("bias", *plan.bias, heads));
    POSENC_CHECK(detail::check_length("bias", plan, queries));
    POSENC_CHECK(detail::check_length("bias", plan, keys));
  }
  const auto fill = [&](std::int64_t first, std::int64_t last) -> Expected<void> {
    for (; first < last; ++first) {
      const std::int64_t h = first / rows, i = first % rows;
      for (std::int64_t j = 0; j < columns; ++j) {
        POSENC_TRY(value, plan.bias ? detail::bias_at(*plan.bias, h, {queries, keys, 0, i, j})
                                    : Expected<double>(0.0));
        out.set(out.offset(h, i, j), value);
      }
    }
    return {};
  };
  const std::int64_t bytes = heads * rows * columns * static_cast<std::int64_t>(size_of(out.dtype));
  std::atomic<bool> failed = false;
  detail::share_out(heads * rows, detail::thread_count(threads, bytes),
                    [&](std::int64_t first, std::int64_t last) {
                      if (!fill(first, last)) failed = true;
                    });
  // Of several threads' errors the first row's is told.
  return failed ? fill(0, heads * rows) : Expected<void>{};
}

}  // namespace posenc
