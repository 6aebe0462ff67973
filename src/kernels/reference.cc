// add, rotate and their kin as plain loops in double.
#include "src/kernels/reference.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/parity.h"

namespace posenc::detail::reference {
namespace {

// --- added to the token embedding ---------------------------------------------------------------

// The vector of one position. `out` has the part's width.
void vector_at(const Waves& waves, std::int64_t position, std::span<double> out) {
  std::ranges::fill(out, 0.0);
  const std::int64_t row = position + waves.row_offset;
  if (waves.zero_row >= 0 && row == waves.zero_row) return;
  const std::size_t pairs = waves.frequency.size();
  for (std::size_t r = 0; r < pairs; ++r) {
    Angle angle;
    angle.add(row, waves.frequency[r]);
    const bool interleaved = waves.layout == WaveLayout::interleaved;
    const std::size_t sine = interleaved ? 2 * r : r;
    const std::size_t cosine = interleaved ? 2 * r + 1 : pairs + r;
    out[sine] = angle.sine();
    if (cosine < out.size()) out[cosine] = angle.cosine();
  }
}

void vector_at(const Rows& rows, std::int64_t position, std::span<double> out) {
  const Tensor& table = rows.table.values;
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = table.get(table.offset(position + rows.row_offset, static_cast<std::int64_t>(c)));
  }
}

void vector_at(const Ramp& ramp, std::int64_t position, std::span<double> out) {
  std::ranges::fill(out, 0.0);
  out[static_cast<std::size_t>(ramp.channel)] = static_cast<double>(position) * ramp.scale;
}

// --- rotating query and key ---------------------------------------------------------------------

// A pair's 2 x 2 matrix [[cosine, −sine], [sine, cosine]], magnitude included.
struct PairMatrix {
  double cosine, sine;
};

PairMatrix pair_matrix(const Rotate& rotate, const Positions& positions, std::int64_t t,
                       std::int64_t b, std::int64_t head, std::int64_t pair, Side side,
                       Action action) {
  Angle angle = detail::angle(rotate, positions, t, b, head, pair);
  angle.add(phase(rotate, side, head, pair));
  const double m = magnitude(rotate, side, positions.at(t, b), pair);
  switch (action) {
    case Action::forward: return {m * angle.cosine(), m * angle.sine()};
    case Action::transpose: return {m * angle.cosine(), -m * angle.sine()};
    case Action::inverse: return {angle.cosine() / m, -angle.sine() / m};
  }
  return {};
}

// The matrices of the pairs of a head, out of those of their own angles.
void mix(const Mix& by, std::int64_t head, double amplitude, std::vector<PairMatrix>& of_pair) {
  const std::vector<PairMatrix> own = of_pair;
  for (std::size_t r = 0; r < of_pair.size(); ++r) {
    of_pair[r] = {amplitude, amplitude * by.rest_sine};
    if (std::cmp_greater_equal(r, by.outputs)) continue;
    of_pair[r] = {0, 0};
    for (std::int64_t u = 0; u < by.inputs; ++u) {
      const auto at = static_cast<std::size_t>((head * by.inputs + u) * by.outputs) + r;
      of_pair[r].cosine += own[static_cast<std::size_t>(u)].cosine * by.cosine[at];
      of_pair[r].sine += own[static_cast<std::size_t>(u)].sine * by.sine[at];
    }
  }
}

}  // namespace

void add(const Plan& plan, const Positions& positions, const AddArguments& arguments) {
  const Add& part = *plan.add;
  const Tensor &x = arguments.x, &out = arguments.out;
  const std::int64_t batch = out.shape[0], seq = out.shape[1], width = out.shape[2];
  std::vector<double> vector(static_cast<std::size_t>(width));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < seq; ++t) {
      std::visit([&](const auto& kind) { vector_at(kind, positions.at(t, b), vector); }, part.kind);
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = vector[static_cast<std::size_t>(c)];
        if (x) sum += x.get(x.offset(b, t, c)) * part.embedding_scale;
        out.set(out.offset(b, t, c), sum);
      }
    }
  }
}

void rotate(const Rotate* rotation, const Positions& positions, Side side, Action action,
            const RotateArguments& arguments) {
  const Tensor &x = arguments.x, &out = arguments.out;
  if (arguments.rotates && rotation->angles != Angles::exact) {
    return engine_rotated(*rotation, x, positions, side, out, action);
  }
  const std::int64_t batch = x.shape[0], heads = x.shape[1], seq = x.shape[2], dim = x.shape[3];
  const std::int64_t pairs = arguments.rotates ? rotation->pairs() : 0;
  const bool by_head = arguments.rotates && heads_apart(*rotation, side) > 1;
  const bool polar = arguments.rotates && rotation->polar;
  const bool mixed = arguments.rotates && rotation->mix;
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
          mix(*rotation->mix, h * apart / heads, rotation->amplitude, matrix_of);
          if (action == Action::transpose)
            for (PairMatrix& matrix : matrix_of) matrix.sine = -matrix.sine;
        }
        const auto from = [&](std::int64_t channel) { return x.offset(b, h, t, channel); };
        const auto to = [&](std::int64_t channel) { return out.offset(b, h, t, channel); };
        if (x.data != out.data) {
          const std::int64_t first_polar = polar ? rotation->first_dim : dim;
          for (std::int64_t c = 0; c < dim; ++c)
            copy(x, from(c), out, to(c < first_polar ? c : c + pairs));
        }
        for (std::int64_t r = 0; r < pairs; ++r) {
          const Channels pair = channels(*rotation, r);
          const PairMatrix& m = matrix_of[static_cast<std::size_t>(r)];
          if (polar) {
            const double length = softplus(x.get(from(rotation->first_dim + r)));
            out.set(to(pair.a), length * m.cosine);
            out.set(to(pair.b), length * m.sine);
            continue;
          }
          const double a = x.get(from(pair.a)), c = x.get(from(pair.b));
          out.set(to(pair.a), a * m.cosine - c * m.sine);
          out.set(to(pair.b), a * m.sine + c * m.cosine);
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

Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out, Action action) {
  POSENC_CHECK(check_action("rotate", plan, side, action));
  POSENC_TRY(arguments, rotate_arguments("rotate", plan, x, positions, side, out));
  const Rotate* const rotation = plan.rotate ? &*plan.rotate : nullptr;
  if (arguments.x.size() > 0) rotate(rotation, positions, side, action, arguments);
  return {};
}

}  // namespace posenc::detail::reference
