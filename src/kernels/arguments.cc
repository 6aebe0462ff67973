// What add and rotate refuse, said once for the kernels, the reference and the gradients.
#include "src/kernels/arguments.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "src/core/check_plan.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"

namespace posenc::detail {
namespace {

std::int64_t width_of(const Waves& waves) { return waves.width; }
std::int64_t width_of(const Rows& rows) { return rows.width; }
std::int64_t width_of(const Ramp& ramp) { return ramp.width; }
std::int64_t axes_of(const Waves& waves) { return waves.axes; }
std::int64_t axes_of(const Rows& rows) { return rows.axes(); }
std::int64_t axes_of(const Ramp&) { return 1; }

// The part has what its loop reads; positions are checked one by one.
Expected<void> check_part(const auto& part) { return check_sizes("add", part); }
Expected<void> check_part(const Rows& rows) {
  if (!rows.table) {
    return fail("add", "the learned position table must be given", "none",
                "set add.table in the plan");
  }
  POSENC_TRY(table, viewed("add", "the position table", rows.table.values, 2));
  POSENC_CHECK(check_sizes("add", rows));
  if (table.shape[0] == rows.rows && table.shape[1] == rows.width) return {};
  return fail("add",
              "the position table must be [" + std::to_string(rows.rows) + ", " +
                  std::to_string(rows.width) + "]",
              shape_text(table), "pass the table as [rows, width]");
}

Expected<std::int64_t> offset_row(std::int64_t position, std::int64_t row_offset) {
  std::int64_t row = 0;
  if (!__builtin_add_overflow(position, row_offset, &row)) return row;
  return fail("add", "position plus row offset must stay below 2^63",
              std::to_string(position) + " + " + std::to_string(row_offset), "check row_offset");
}

// The two ends of a range tell of all between; the error names the first that has no row.
template <class Part>
Expected<void> check_rows(const Part& part, const Positions& positions) {
  const std::int64_t seq = positions.size();
  const std::int64_t step = positions.contiguous() && seq > 1 ? seq - 1 : 1;
  for (std::int64_t a = 0; a < axes_of(part); ++a) {
    for (std::int64_t b = 0; b < positions.batch(); ++b) {
      for (std::int64_t t = 0; t < seq; t += step) {
        if (row_at(part, positions.at(t, b, a), a)) continue;
        for (std::int64_t i = 0; i <= t; ++i) POSENC_CHECK(row_at(part, positions.at(i, b, a), a));
      }
    }
  }
  return {};
}
Expected<void> check_rows(const Ramp&, const Positions&) { return {}; }

Expected<void> check_adds(const Plan& plan) {
  if (plan.add) return check_takes(rooms::add, plan);
  return fail("add", "the plan must have a part that is added to the embedding", "none",
              "compile an absolute scheme (sinusoidal, learned); RoPE and biases act in attention");
}

// The tensors fit each other and the part, which has what its loop reads.
Expected<AddArguments> add_tensors(const Add& part, const Tensor* embedding,
                                   const Tensor& out_view) {
  POSENC_TRY(out, viewed("add", "out", out_view, 3));
  Tensor x;
  if (embedding != nullptr) {
    POSENC_TRY(view, viewed("add", "embedding", *embedding, 3));
    x = view;
    POSENC_CHECK(check_out("add", x, out));
  } else {
    POSENC_CHECK(check_distinct("add", out));
  }
  const std::int64_t width = out.shape[2];
  const std::int64_t plan_width =
      std::visit([](const auto& kind) { return width_of(kind); }, part.kind);
  if (width != plan_width) {
    return fail("add", "width must be the plan's " + std::to_string(plan_width),
                std::to_string(width), "compile the plan for this width");
  }
  POSENC_CHECK(std::visit([](const auto& kind) { return check_part(kind); }, part.kind));
  return AddArguments{x, out};
}

// `out` can take what a polar rotation makes of x.
Expected<void> check_widened(std::string_view where, const Rotate& rotate, const Tensor& x,
                             const Tensor& out) {
  Tensor like = x;
  like.shape[3] += rotate.widening();
  if (out.data == x.data && x.size() > 0) {
    return fail(where,
                "a polar rotation widens a head by " + std::to_string(rotate.widening()) +
                    " channels, so out must not be x",
                "in place", "write to memory of its own");
  }
  POSENC_CHECK(check_shape(where, "out", out, like));
  if (out.dtype != x.dtype) {
    return fail(where, "out must have the dtype " + std::string(name(x.dtype)), name(out.dtype),
                "convert outside");
  }
  return check_distinct(where, out);
}

}  // namespace

Expected<std::int64_t> row_at(const Waves& waves, std::int64_t position, std::int64_t) {
  return offset_row(position, waves.row_offset);
}

Expected<std::int64_t> row_at(const Rows& rows, std::int64_t position, std::int64_t axis) {
  const auto row = offset_row(position, rows.row_offset);
  if (!row) return row;
  if (rows.axis_rows.empty()) {
    if (*row >= 0 && *row < rows.rows) return row;
    return fail("add",
                "position " + std::to_string(position) + " needs row " + std::to_string(*row) +
                    " of a table of " + std::to_string(rows.rows) + " rows",
                "",
                "shorten the text or train a longer table; a learned table does not extrapolate");
  }
  const std::int64_t count = rows.axis_rows[static_cast<std::size_t>(axis)];
  if (*row >= 0 && *row < count) return first_row(rows, axis) + *row;
  return fail("add",
              "position " + std::to_string(position) + " on axis " + std::to_string(axis) +
                  " needs row " + std::to_string(*row) + " of its " + std::to_string(count) +
                  " rows",
              "", "make the picture smaller; a learned table does not extrapolate");
}

std::int64_t first_row(const Rows& rows, std::int64_t axis) {
  std::int64_t first = 0;
  for (std::int64_t a = 0; a < axis; ++a) first += rows.axis_rows[static_cast<std::size_t>(a)];
  return first;
}

Expected<AddArguments> add_arguments(const Plan& plan, const Tensor* embedding,
                                     const Positions& positions, const Tensor& out_view) {
  POSENC_CHECK(check_adds(plan));
  POSENC_TRY(arguments, add_tensors(*plan.add, embedding, out_view));
  const Tensor& out = arguments.out;
  const std::int64_t axes =
      std::visit([](const auto& kind) { return axes_of(kind); }, plan.add->kind);
  POSENC_CHECK(check_positions("add", positions, out.shape[0], out.shape[1], axes));
  if (out.size() == 0) return arguments;
  POSENC_CHECK(
      std::visit([&](const auto& kind) { return check_rows(kind, positions); }, plan.add->kind));
  return arguments;
}

Expected<RealAddArguments> add_arguments(const Plan& plan, const Tensor* embedding,
                                         const Tensor& at_view, const Tensor& out_view) {
  POSENC_CHECK(check_adds(plan));
  const auto* waves = std::get_if<Waves>(&plan.add->kind);
  if (waves == nullptr) {
    return fail("add", "what is added must be waves where positions are real",
                std::holds_alternative<Rows>(plan.add->kind) ? "a learned table" : "the index",
                "pass whole positions");
  }
  POSENC_TRY(arguments, add_tensors(*plan.add, embedding, out_view));
  POSENC_TRY(at, real_positions("add", at_view, waves->axes, arguments.out.shape[0],
                                arguments.out.shape[1]));
  return RealAddArguments{arguments, at};
}

Expected<RotateArguments> rotate_arguments(const Room& room, const Plan& plan, const Tensor& x_view,
                                           const Positions& positions, Side side,
                                           const Tensor& out_view) {
  const std::string_view where = room.name;
  POSENC_TRY(x, viewed(where, "x", x_view, 4));
  POSENC_TRY(out, viewed(where, "out", out_view, 4));
  // Of values a rotation is plain, whatever kind it is of queries and keys.
  const bool rotates = plan.rotate && (side != Side::value || plan.rotate->rotates_values());
  if (side != Side::value || rotates || !plan.unknown.empty())
    POSENC_CHECK(check_takes(room, plan));
  if (rotates && plan.rotate->polar()) {
    POSENC_CHECK(check_widened(where, *plan.rotate, x, out));
  } else {
    POSENC_CHECK(check_out(where, x, out));
  }
  const std::int64_t axes = rotates ? plan.rotate->frequencies.axes : positions.axes();
  POSENC_CHECK(check_positions(where, positions, x.shape[0], x.shape[2], axes));
  if (rotates) {
    POSENC_CHECK(check_length(where, plan, positions));
    POSENC_CHECK(check_rotation(where, *plan.rotate, side, x.shape[1], x.shape[3]));
    POSENC_CHECK(check_engine(where, *plan.rotate, positions));
  }
  return RotateArguments{x, out, rotates};
}

}  // namespace posenc::detail
