// Every verb of apply.h as plain loops in double: the truth that faster kernels are tested against.
// A value is rounded once, where it is stored.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/by_distance.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"
#include "src/kernels/rotation.h"

namespace posenc {
namespace {

using detail::Action;
using detail::check_length;
using detail::check_out;
using detail::check_positions;
using detail::copy;
using detail::viewed;

// --- added to the token embedding ---------------------------------------------------------------

std::int64_t width_of(const Waves& waves) { return waves.width; }
std::int64_t width_of(const Rows& rows) { return rows.width; }
std::int64_t width_of(const Ramp& ramp) { return ramp.width; }

Expected<std::int64_t> row_at(std::int64_t position, std::int64_t row_offset) {
  std::int64_t row = 0;
  if (!__builtin_add_overflow(position, row_offset, &row)) return row;
  return fail("add", "position plus row offset must stay below 2^63",
              std::to_string(position) + " + " + std::to_string(row_offset), "check row_offset");
}

// The part has what its loop reads; positions are checked one by one.
Expected<void> check_part(const Waves& waves) {
  if (static_cast<std::int64_t>(waves.frequency.size()) <= (waves.width + 1) / 2) return {};
  return fail("add", "there must be two channels for each frequency",
              std::to_string(waves.frequency.size()) + " frequencies in width " +
                  std::to_string(waves.width),
              "pass a plan written by hand through checked()");
}

Expected<void> check_part(const Rows& rows) {
  if (!rows.table) {
    return fail("add", "the learned position table must be given", "none",
                "set add.table in the plan");
  }
  const auto table = viewed("add", "the position table", rows.table.values, 2);
  if (!table) return std::unexpected(table.error());
  if (table->shape[0] == rows.rows && table->shape[1] == rows.width) return {};
  return fail("add",
              "the position table must be [" + std::to_string(rows.rows) + ", " +
                  std::to_string(rows.width) + "]",
              shape_text(*table), "pass the table as [rows, width]");
}

Expected<void> check_part(const Ramp& ramp) {
  if (0 <= ramp.channel && ramp.channel < ramp.width) return {};
  return fail("add", "the ramp's channel must lie within width " + std::to_string(ramp.width),
              std::to_string(ramp.channel), "pass a plan written by hand through checked()");
}

// The vector of one position. `out` has the part's width.
Expected<void> vector_at(const Waves& waves, std::int64_t position, std::span<double> out) {
  std::ranges::fill(out, 0.0);
  const auto row = row_at(position, waves.row_offset);
  if (!row) return std::unexpected(row.error());
  if (waves.zero_row >= 0 && *row == waves.zero_row) return {};
  const std::size_t pairs = waves.frequency.size();
  for (std::size_t r = 0; r < pairs; ++r) {
    detail::Angle angle;
    angle.add(*row, waves.frequency[r]);
    const bool interleaved = waves.layout == WaveLayout::interleaved;
    const std::size_t sine = interleaved ? 2 * r : r;
    const std::size_t cosine = interleaved ? 2 * r + 1 : pairs + r;
    out[sine] = angle.sine();
    if (cosine < out.size()) out[cosine] = angle.cosine();
  }
  return {};
}

Expected<void> vector_at(const Rows& rows, std::int64_t position, std::span<double> out) {
  const auto row = row_at(position, rows.row_offset);
  if (!row) return std::unexpected(row.error());
  if (*row < 0 || *row >= rows.rows) {
    return fail("add",
                "position " + std::to_string(position) + " needs row " + std::to_string(*row) +
                    " of a table of " + std::to_string(rows.rows) + " rows",
                "",
                "shorten the text or train a longer table; a learned table does not extrapolate");
  }
  const Tensor& table = rows.table.values;
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = table.get(table.offset(*row, static_cast<std::int64_t>(c)));
  }
  return {};
}

Expected<void> vector_at(const Ramp& ramp, std::int64_t position, std::span<double> out) {
  std::ranges::fill(out, 0.0);
  out[static_cast<std::size_t>(ramp.channel)] = static_cast<double>(position) * ramp.scale;
  return {};
}

// out = embedding · scale + vectors; without an embedding the vectors alone.
Expected<void> add_to(const Plan& plan, const Tensor* embedding, const Positions& positions,
                      const Tensor& out_view) {
  if (!plan.add) {
    return fail(
        "add", "the plan must have a part that is added to the embedding", "none",
        "compile an absolute scheme (sinusoidal, learned); RoPE and biases act in attention");
  }
  const Add& part = *plan.add;
  const auto out = viewed("add", "out", out_view, 3);
  if (!out) return std::unexpected(out.error());
  Tensor x;
  if (embedding != nullptr) {
    const auto view = viewed("add", "embedding", *embedding, 3);
    if (!view) return std::unexpected(view.error());
    x = *view;
    if (auto ok = check_out("add", x, *out); !ok) return ok;
  } else if (auto ok = detail::check_distinct("add", *out); !ok) {
    return ok;
  }
  const std::int64_t batch = out->shape[0], seq = out->shape[1], width = out->shape[2];
  if (auto ok = check_positions("add", positions, batch, seq, 1); !ok) return ok;
  const std::int64_t plan_width =
      std::visit([](const auto& kind) { return width_of(kind); }, part.kind);
  if (width != plan_width) {
    return fail("add", "width must be the plan's " + std::to_string(plan_width),
                std::to_string(width), "compile the plan for this width");
  }
  if (auto ok = std::visit([](const auto& kind) { return check_part(kind); }, part.kind); !ok)
    return ok;

  // All vectors first: an error leaves out as it was.
  if (out->size() == 0) return {};
  const std::int64_t sequences = positions.batch() == 1 ? 1 : batch;
  std::vector<double> vectors(static_cast<std::size_t>(sequences * seq * width));
  const auto vector = [&](std::int64_t b, std::int64_t t) {
    const std::int64_t start = ((sequences == 1 ? 0 : b) * seq + t) * width;
    return std::span(vectors).subspan(static_cast<std::size_t>(start),
                                      static_cast<std::size_t>(width));
  };
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      const auto ok = std::visit(
          [&](const auto& kind) { return vector_at(kind, positions.at(t, b), vector(b, t)); },
          part.kind);
      if (!ok) return ok;
    }
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = vector(b, t)[static_cast<std::size_t>(c)];
        if (embedding != nullptr) sum += x.get(x.offset(b, t, c)) * part.embedding_scale;
        out->set(out->offset(b, t, c), sum);
      }
    }
  }
  return {};
}

// --- rotating query and key ---------------------------------------------------------------------

// A pair's 2 x 2 matrix [[cosine, −sine], [sine, cosine]], magnitude included.
struct Turn {
  double cosine, sine;
};

Turn turn(const Rotate& rotate, const Positions& positions, std::int64_t t, std::int64_t b,
          std::int64_t head, std::int64_t pair, Side side, Action action) {
  const detail::Angle angle = detail::angle(rotate, positions, t, b, head, pair);
  const double m = detail::magnitude(rotate, side, positions.at(t, b), pair);
  switch (action) {
    case Action::forward: return {m * angle.cosine(), m * angle.sine()};
    case Action::transpose: return {m * angle.cosine(), -m * angle.sine()};
    case Action::inverse: return {angle.cosine() / m, -angle.sine() / m};
  }
  return {};
}

Expected<void> rotated(std::string_view where, const Plan& plan, const Tensor& x_view,
                       const Positions& positions, Side side, const Tensor& out_view,
                       Action action) {
  const auto x = viewed(where, "x", x_view, 4), out = viewed(where, "out", out_view, 4);
  if (!x) return std::unexpected(x.error());
  if (!out) return std::unexpected(out.error());
  if (auto ok = check_out(where, *x, *out); !ok) return ok;
  const std::int64_t batch = x->shape[0], heads = x->shape[1], seq = x->shape[2], dim = x->shape[3];
  const bool turns = plan.rotate && (side != Side::value || plan.rotate->values);
  const std::int64_t axes = turns ? plan.rotate->axes : positions.axes();
  if (auto ok = check_positions(where, positions, batch, seq, axes); !ok) return ok;
  if (turns) {
    if (auto ok = check_length(where, plan, positions); !ok) return ok;
    if (auto ok = detail::check_rotation(where, *plan.rotate, heads, dim); !ok) return ok;
  }
  if (turns && plan.rotate->angles != Angles::exact) {
    return detail::engine_rotated(where, *plan.rotate, *x, positions, side, *out, action);
  }
  if (x->size() == 0) return {};

  const std::int64_t pairs = turns ? plan.rotate->pairs() : 0;
  std::vector<Turn> turn_of(static_cast<std::size_t>(pairs));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < pairs && (h == 0 || plan.rotate->heads > 1); ++r) {
          turn_of[static_cast<std::size_t>(r)] =
              turn(*plan.rotate, positions, t, b, h, r, side, action);
        }
        const auto from = [&](std::int64_t channel) { return x->offset(b, h, t, channel); };
        const auto to = [&](std::int64_t channel) { return out->offset(b, h, t, channel); };
        if (x->data != out->data) {
          for (std::int64_t c = 0; c < dim; ++c) copy(*x, from(c), *out, to(c));
        }
        for (std::int64_t r = 0; r < pairs; ++r) {
          const detail::Channels pair = detail::channels(*plan.rotate, r);
          const Turn& m = turn_of[static_cast<std::size_t>(r)];
          const double a = x->get(from(pair.a)), c = x->get(from(pair.b));
          out->set(to(pair.a), a * m.cosine - c * m.sine);
          out->set(to(pair.b), a * m.sine + c * m.cosine);
        }
      }
    }
  }
  return {};
}

}  // namespace

Expected<void> add(const Plan& plan, const Tensor& embedding, const Positions& positions,
                   const Tensor& out) {
  return add_to(plan, &embedding, positions, out);
}

Expected<void> position_vectors(const Plan& plan, const Positions& positions, const Tensor& out) {
  return add_to(plan, nullptr, positions, out);
}

Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out) {
  return rotated("rotate", plan, x, positions, side, out, Action::forward);
}

Expected<void> rotate_transpose(const Plan& plan, const Tensor& x, const Positions& positions,
                                Side side, const Tensor& out) {
  return rotated("rotate_transpose", plan, x, positions, side, out, Action::transpose);
}

Expected<void> rotate_inverse(const Plan& plan, const Tensor& x, const Positions& positions,
                              Side side, const Tensor& out) {
  return rotated("rotate_inverse", plan, x, positions, side, out, Action::inverse);
}

// --- bias on the attention logit ----------------------------------------------------------------

Expected<void> bias(const Plan& plan, const Positions& queries, const Positions& keys,
                    const Tensor& out_view) {
  const auto out = viewed("bias", "out", out_view, 3);
  if (!out) return std::unexpected(out.error());
  if (auto ok = detail::check_distinct("bias", *out); !ok) return ok;
  const std::int64_t heads = out->shape[0], rows = out->shape[1], columns = out->shape[2];
  if (auto ok = check_positions("bias", queries, 1, rows, 1); !ok) return ok;
  if (auto ok = check_positions("bias", keys, 1, columns, 1); !ok) return ok;
  if (plan.bias) {
    if (auto ok = detail::check_bias("bias", *plan.bias, heads); !ok) return ok;
    if (auto ok = check_length("bias", plan, queries); !ok) return ok;
    if (auto ok = check_length("bias", plan, keys); !ok) return ok;
  }
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        Expected<double> value = 0.0;
        if (plan.bias) value = detail::bias_at(*plan.bias, h, queries.at(i) - keys.at(j));
        if (!value) return std::unexpected(value.error());
        out->set(out->offset(h, i, j), *value);
      }
    }
  }
  return {};
}

}  // namespace posenc
