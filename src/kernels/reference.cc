// add, rotate and their kin as plain loops in double.
#include "src/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/pairs.h"
#include "src/kernels/parity.h"
#include "src/kernels/waves.h"

namespace posenc::detail::reference {
namespace {

// --- added to the token embedding ---------------------------------------------------------------

// The waves of one token, whose pairs have angles. `out` has the part's width.
template <class AngleOf>
void waves_of(const Waves& waves, const AngleOf& angle_of, std::span<double> out) {
  for (std::int64_t r = 0; r < waves.pairs(); ++r) {
    const Angle::Unit wave = angle_of(r).unit();
    const WaveChannels to = channels(waves, r);
    if (std::cmp_less(to.sine, out.size()))
      out[static_cast<std::size_t>(to.sine)] = waves.amplitude * wave.sine;
    if (std::cmp_less(to.cosine, out.size()))
      out[static_cast<std::size_t>(to.cosine)] = waves.amplitude * wave.cosine;
  }
}
double frequency(const Waves& waves, std::int64_t axis, std::int64_t pair) {
  return waves.frequency[static_cast<std::size_t>(axis * waves.pairs() + pair)];
}

// The vector of token t of sequence b. `out` has the part's width.
void vector_at(const Waves& waves, const Positions& positions, std::int64_t t, std::int64_t b,
               std::span<double> out) {
  std::ranges::fill(out, 0.0);
  if (waves.zero_row >= 0 && positions.at(t, b) + waves.row_offset == waves.zero_row) return;
  const auto angle_of = [&](std::int64_t pair) {
    Angle angle;
    for (std::int64_t a = 0; a < waves.axes; ++a)
      angle.add(positions.at(t, b, a) + waves.row_offset, frequency(waves, a, pair));
    return angle;
  };
  waves_of(waves, angle_of, out);
}

void vector_at(const Rows& rows, const Positions& positions, std::int64_t t, std::int64_t b,
               std::span<double> out) {
  const Tensor& table = rows.table.values;
  std::ranges::fill(out, 0.0);
  for (std::int64_t a = 0; a < rows.axes(); ++a) {
    const std::int64_t row = first_row(rows, a) + positions.at(t, b, a) + rows.row_offset;
    for (std::size_t c = 0; c < out.size(); ++c)
      out[c] += table.get(table.offset(row, static_cast<std::int64_t>(c)));
  }
}

void vector_at(const Ramp& ramp, const Positions& positions, std::int64_t t, std::int64_t b,
               std::span<double> out) {
  std::ranges::fill(out, 0.0);
  out[static_cast<std::size_t>(ramp.channel)] =
      static_cast<double>(positions.at(t, b)) * ramp.scale;
}

// --- rotating query and key ---------------------------------------------------------------------

PairMatrix pair_matrix(const Rotate& rotate, const Positions& positions, std::int64_t t,
                       std::int64_t b, std::int64_t head, std::int64_t pair, Side side,
                       Action action) {
  Angle angle = detail::angle(rotate, positions, t, b, head, pair);
  angle.add(phase(rotate, side, head, pair));
  const double m = magnitude(rotate, side, positions.at(t, b), pair);
  const auto [cosine, sine] = angle.unit();
  if (const auto* two = std::get_if<TwoAngles>(&rotate.kind); two != nullptr) {
    const Angle::Unit second = second_angle(rotate, *two, positions, t, b, pair).unit();
    const PairMatrix forward{m * cosine, m * sine, m * second.cosine, m * second.sine};
    if (action == Action::forward) return forward;
    return {forward.cosine, -forward.second_sine, forward.second_cosine, -forward.sine};
  }
  switch (action) {
    case Action::forward: return {m * cosine, m * sine};
    case Action::transpose: return {m * cosine, -m * sine};
    case Action::inverse: return {cosine / m, -sine / m};
  }
  return {};
}

// The matrices of the pairs of a head, out of those of their own angles.
void mix(const Mix& by, std::int64_t head, double amplitude, std::vector<PairMatrix>& of_pair) {
  const std::vector<PairMatrix> own = of_pair;
  for (std::size_t r = 0; r < of_pair.size(); ++r) {
    of_pair[r] = {amplitude, amplitude * by.rest_sine};
    if (std::cmp_greater_equal(r, by.outputs)) continue;
    PairMatrix sum{0, 0};
    for (std::int64_t u = 0; u < by.inputs; ++u) {
      const auto at = static_cast<std::size_t>((head * by.inputs + u) * by.outputs) + r;
      sum.cosine += own[static_cast<std::size_t>(u)].cosine * by.cosine[at];
      sum.sine += own[static_cast<std::size_t>(u)].sine * by.sine[at];
    }
    of_pair[r] = {sum.cosine, sum.sine};
  }
}

}  // namespace

namespace {

// Writes the vectors that vector_of(b, t, vector) makes, or their sums with an embedding.
template <class VectorOf>
void add_vectors(const Add& part, const AddArguments& arguments, const VectorOf& vector_of) {
  const Tensor &x = arguments.x, &out = arguments.out;
  const std::int64_t batch = out.shape[0], seq = out.shape[1], width = out.shape[2];
  std::vector<double> vector(static_cast<std::size_t>(width));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      vector_of(b, t, std::span(vector));
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = vector[static_cast<std::size_t>(c)];
        if (x) sum += x.get(x.offset(b, t, c)) * part.embedding_scale;
        out.set(out.offset(b, t, c), sum);
      }
    }
  }
}

}  // namespace

void add(const Plan& plan, const Positions& positions, const AddArguments& arguments) {
  add_vectors(*plan.add, arguments, [&](std::int64_t b, std::int64_t t, std::span<double> vector) {
    std::visit([&](const auto& kind) { vector_at(kind, positions, t, b, vector); }, plan.add->kind);
  });
}

void add(const Plan& plan, const RealAddArguments& arguments) {
  const auto& waves = std::get<Waves>(plan.add->kind);
  const Tensor& at = arguments.at;
  const auto vector_of = [&](std::int64_t b, std::int64_t t, std::span<double> vector) {
    std::ranges::fill(vector, 0.0);
    waves_of(
        waves,
        [&](std::int64_t pair) {
          double angle = 0;
          for (std::int64_t a = 0; a < waves.axes; ++a)
            angle = std::fma(at.get(at.offset(a, b, t)) + static_cast<double>(waves.row_offset),
                             frequency(waves, a, pair), angle);
          return Angle{.high = angle};
        },
        vector);
  };
  add_vectors(*plan.add, arguments.tensors, vector_of);
}

void rotate(const Rotate* rotation, const Positions& positions, Side side, Action action,
            const RotateArguments& arguments) {
  const Tensor &x = arguments.x, &out = arguments.out;
  if (arguments.rotates && rotation->angles() != Angles::exact) {
    return engine_rotated(*rotation, x, positions, side, out, action);
  }
  const std::int64_t batch = x.shape[0], heads = x.shape[1], seq = x.shape[2], dim = x.shape[3];
  const std::int64_t pairs = arguments.rotates ? rotation->pairs() : 0;
  const bool by_head = arguments.rotates && heads_apart(*rotation, side) > 1;
  const bool polar = arguments.rotates && rotation->polar();
  const bool mixed = arguments.rotates && rotation->mix();
  const bool in_rows = arguments.rotates && multiplies_pairs(*rotation, x, out);
  PairMatrices rows(in_rows ? pairs : 0);
  std::vector<PairMatrix> matrix_of(static_cast<std::size_t>(pairs));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t r = 0; r < pairs && (h == 0 || by_head); ++r) {
          matrix_of[static_cast<std::size_t>(r)] =
              pair_matrix(*rotation, positions, t, b, h, r, side, mixed ? Action::forward : action);
        }
        if (mixed && (h == 0 || by_head)) {
          const std::int64_t apart = heads_apart(*rotation, side);
          mix(*rotation->mix(), h * apart / heads, rotation->amplitude, matrix_of);
          if (action == Action::transpose)
            for (PairMatrix& matrix : matrix_of) matrix = {matrix.cosine, -matrix.sine};
        }
        if (in_rows) {
          if (h == 0 || by_head) rows.set(matrix_of);
          multiply_pairs(*rotation, rows, x, x.offset(b, h, t), out, out.offset(b, h, t));
          continue;
        }
        const auto from = [&](std::int64_t channel) { return x.offset(b, h, t, channel); };
        const auto to = [&](std::int64_t channel) { return out.offset(b, h, t, channel); };
        if (x.data != out.data) {
          const std::int64_t first_polar = polar ? rotation->slice.first_dim : dim;
          for (std::int64_t c = 0; c < dim; ++c)
            copy(x, from(c), out, to(c < first_polar ? c : c + pairs));
        }
        for (std::int64_t r = 0; r < pairs; ++r) {
          const Channels pair = channels(*rotation, r);
          const PairMatrix& m = matrix_of[static_cast<std::size_t>(r)];
          if (polar) {
            const double length = softplus(x.get(from(rotation->slice.first_dim + r)));
            out.set(to(pair.a), length * m.cosine);
            out.set(to(pair.b), length * m.sine);
            continue;
          }
          const double a = x.get(from(pair.a)), c = x.get(from(pair.b));
          out.set(to(pair.a), a * m.cosine - c * m.sine);
          out.set(to(pair.b), a * m.second_sine + c * m.second_cosine);
        }
      }
    }
  }
}

Expected<void> add(const Plan& plan, const Tensor& embedding, const Positions& positions,
                   const Tensor& out) {
  POSENC_TRY(arguments, add_arguments(plan, &embedding, positions, out));
  if (arguments.out.size() > 0) add(plan, positions, arguments);
  return {};
}

Expected<void> position_vectors(const Plan& plan, const Positions& positions, const Tensor& out) {
  POSENC_TRY(arguments, add_arguments(plan, nullptr, positions, out));
  if (arguments.out.size() > 0) add(plan, positions, arguments);
  return {};
}

Expected<void> add(const Plan& plan, const Tensor& embedding, const Tensor& at, const Tensor& out) {
  POSENC_TRY(arguments, add_arguments(plan, &embedding, at, out));
  if (arguments.tensors.out.size() > 0) add(plan, arguments);
  return {};
}

Expected<void> position_vectors(const Plan& plan, const Tensor& at, const Tensor& out) {
  POSENC_TRY(arguments, add_arguments(plan, nullptr, at, out));
  if (arguments.tensors.out.size() > 0) add(plan, arguments);
  return {};
}

Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out, Action action) {
  const Room& room = action == Action::forward     ? rooms::rotate
                     : action == Action::transpose ? rooms::rotate_transpose
                                                   : rooms::rotate_inverse;
  POSENC_TRY(arguments, rotate_arguments(room, plan, x, positions, side, out));
  const Rotate* const rotation = plan.rotate ? &*plan.rotate : nullptr;
  if (arguments.x.size() > 0) rotate(rotation, positions, side, action, arguments);
  return {};
}

}  // namespace posenc::detail::reference
