#include "posenc/plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "src/core/check_plan.h"
#include "src/core/part_check.h"
#include "src/core/saturating.h"
#include "src/core/try.h"

namespace posenc {
namespace {

using detail::mend;
constexpr std::string_view here = "plan";

// --- sizes: what loops rely on -------------------------------------------------------------------

Expected<void> check_blocks(std::string_view where, const Waves& waves) {
  std::int64_t channels = 0;
  for (const std::int64_t block : waves.blocks) {
    if (block < 2 || block % 2 != 0)
      return fail(where, "a block of waves must be an even number of channels",
                  std::to_string(block), mend);
    channels = detail::sum(channels, block);
  }
  if (channels > waves.width)
    return fail(where, "blocks of waves must fit the width of " + std::to_string(waves.width),
                std::to_string(channels) + " channels", mend);
  if (waves.blocks.empty() || channels == 2 * waves.pairs()) return {};
  return fail(
      where, "blocks of waves must have a pair for two channels",
      std::to_string(waves.pairs()) + " pairs for " + std::to_string(channels) + " channels", mend);
}

// What is special of a kind, beside what its rows say: its sizes, and what may not stand beside it.
struct KindSizes {
  std::string_view where;
  const Rotate& rotate;
  detail::Extents around;

  Expected<void> operator()(const Plain& plain) const {
    if (plain.growth)
      POSENC_CHECK(detail::check_sizes(where, "rotate.growth", *plain.growth, around));
    POSENC_CHECK(detail::check_sizes(where, "rotate", plain, around));
    return of(plain.phase);
  }
  Expected<void> operator()(const Polar& polar) const {
    if (rotate.slice.blocks != 1)
      return beside("a channel of its own for each pair", "blocks of channels");
    POSENC_CHECK(no_values("polar pairs"));
    return of(polar.phase);
  }
  Expected<void> operator()(const Mix& mix) const {
    POSENC_CHECK(one_series("mixtures of cosines"));
    POSENC_CHECK(no_values("mixtures of cosines"));
    for (const auto& [what, count] :
         {std::pair{"rotate.mix.inputs", mix.inputs}, {"rotate.mix.outputs", mix.outputs}}) {
      if (0 <= count && count <= rotate.pairs()) continue;
      return fail(where,
                  std::string(what) + " must be 0 to the " + std::to_string(rotate.pairs()) +
                      " pairs that rotate",
                  std::to_string(count), mend);
    }
    return detail::check_sizes(where, "rotate.mix", mix, around);
  }
  Expected<void> operator()(const Regions& regions) const {
    if (rotate.frequencies.axes != 1) return beside("regions", "several axes");
    POSENC_CHECK(no_values("regions"));
    if ((regions.window > 0) == (regions.chunk > 0) || regions.window < 0 || regions.chunk < 0)
      return fail(where, "regions must have a window or a chunk above 0, and not both",
                  std::to_string(regions.window) + " and " + std::to_string(regions.chunk), mend);
    const std::size_t wanted = regions.window > 0 ? 2 : 3;
    if (regions.region.size() != wanted)
      return fail(where, "regions must be " + std::to_string(wanted),
                  std::to_string(regions.region.size()), mend);
    for (const Regions::Region& each : regions.region)
      for (const PositionMap* map : {&each.query, &each.key})
        if (map->modulus < 0 || map->divisor < 1)
          return fail(where,
                      "a region's positions must have a modulus of 0 or more and a divisor of 1 or "
                      "more",
                      std::to_string(map->modulus) + " and " + std::to_string(map->divisor), mend);
    return {};
  }
  Expected<void> operator()(const TwoAngles& two) const {
    POSENC_CHECK(one_series("pairs of two angles"));
    POSENC_CHECK(no_values("pairs of two angles"));
    return detail::check_sizes(where, "rotate.two_angles", two, around);
  }
  Expected<void> operator()(const HfFloat&) const { return one_series("an engine's arithmetic"); }
  Expected<void> operator()(const GgmlRope& ggml) const {
    POSENC_CHECK(one_series("an engine's arithmetic"));
    if (ggml.freq_factors.empty() || std::cmp_equal(ggml.freq_factors.size(), rotate.pairs()))
      return {};
    return fail(where, "rotate.ggml_float.freq_factors must be one for each pair, or none",
                std::to_string(ggml.freq_factors.size()) + " for " +
                    std::to_string(rotate.pairs()) + " pairs",
                mend);
  }

 private:
  // A phase for each head that has some, and for each of its pairs.
  Expected<void> of(const std::optional<Phase>& phase) const {
    if (!phase) return {};
    POSENC_CHECK(detail::check_sizes(where, "rotate.phase", *phase, around));
    if (phase->side == Side::value)
      return fail(where, "phases must be of queries or of keys", "of values", mend);
    const std::int64_t heads = rotate.frequencies.heads;
    if (heads == 1 || phase->heads == 1 || heads == phase->heads) return {};
    return fail(where, "phases must be of the " + std::to_string(heads) + " heads with frequencies",
                std::to_string(phase->heads) + " heads", mend);
  }
  Expected<void> one_series(std::string_view of) const {
    if (rotate.frequencies.heads == 1) return {};
    return beside(of, "frequencies of heads");
  }
  Expected<void> no_values(std::string_view of) const {
    if (!rotate.rotates_values()) return {};
    return beside(of, "rotated values");
  }
  Expected<void> beside(std::string_view kind, std::string_view other) const {
    return fail(where, std::string(kind) + " must stand without " + std::string(other) + " beside",
                other, "leave one of the two out");
  }
};

// --- numbers -------------------------------------------------------------------------------------

// Kernels read an engine's numbers, people and other code the rotation's own: they must not part.
Expected<void> check_engine(const Rotate& rotate) {
  if (const GgmlRope* const ggml = rotate.ggml()) {
    const double amplitude = ggml->amplitude();
    if (std::abs(amplitude - rotate.amplitude) <= 1e-5 * amplitude) return {};
    return fail(here,
                "rotate.amplitude must be what ggml's numbers give, " + number_text(amplitude),
                number_text(rotate.amplitude), "change its attn_factor with it");
  }
  if (rotate.angles() == Angles::exact) return {};
  const auto no_float = std::ranges::find_if(rotate.frequencies.radians, [](double f) {
    return static_cast<double>(static_cast<float>(f)) != f;
  });
  if (no_float == rotate.frequencies.radians.end()) return {};
  return fail("plan: angles hf_float", "every frequency must be a float", number_text(*no_float),
              "compile the scheme with these angles, or round them");
}

Expected<void> check(const Rotate& rotate, std::int64_t head_dim) {
  POSENC_CHECK(detail::check_sizes(here, rotate));
  POSENC_CHECK(detail::NumberCheck::of("rotate", rotate));
  POSENC_CHECK(check_engine(rotate));
  return head_dim > 0 ? detail::check_slice(here, rotate, head_dim) : Expected<void>();
}

Expected<void> check_table(const Waves&) { return {}; }
Expected<void> check_table(const Ramp&) { return {}; }
Expected<void> check_table(const Rows& rows) {
  const Tensor& table = rows.table.values;
  if (!table || (table.rank == 2 && table.shape[0] == rows.rows && table.shape[1] == rows.width))
    return {};
  return fail(
      here,
      "rows.table must be [" + std::to_string(rows.rows) + ", " + std::to_string(rows.width) + "]",
      shape_text(table), "pass the table as [rows, width]");
}

Expected<void> check(const Add& add) {
  POSENC_CHECK(detail::NumberCheck::of("add", add));
  return std::visit(
      [](const auto& kind) -> Expected<void> {
        POSENC_CHECK(detail::check_sizes(here, kind));
        return check_table(kind);
      },
      add.kind);
}

Expected<void> check(std::string_view what, const DistanceRows& rows, std::int64_t row_count,
                     std::int32_t least = 0) {
  if (rows.row.empty()) return fail(here, std::string(what) + ".rows must not be empty", "", mend);
  const auto bad = std::ranges::find_if(
      rows.row, [&](std::int32_t row) { return row < least || row >= row_count; });
  if (bad == rows.row.end()) return {};
  return fail(here, std::string(what) + ".rows must name rows below " + std::to_string(row_count),
              std::to_string(*bad), mend);
}

Expected<void> check(const Slopes& slopes) {
  if (slopes.slope.empty()) return fail(here, "bias.slope must name a head", "", mend);
  return detail::NumberCheck::of("bias", slopes);
}

Expected<void> check(const BiasTable& bias) {
  POSENC_CHECK(detail::NumberCheck::of("bias", bias));
  for (std::int64_t axis = 0; axis < bias.axes(); ++axis)
    POSENC_CHECK(check("bias", bias.of_axis(axis), bias.row_count));
  const Tensor& values = bias.values.values;
  if (!values || (values.rank == 2 && values.shape[0] > 0 && values.shape[1] == bias.row_count))
    return {};
  return fail(here, "bias.values must be [heads or 1, " + std::to_string(bias.row_count) + "]",
              shape_text(values),
              "pass the table as [heads, rows]; Tensor::swapped turns one around");
}

// Both read the same positions.
Expected<void> check_axes(std::string_view where, const Rotate& rotate, const Bias& bias) {
  const auto* table = std::get_if<BiasTable>(&bias);
  if (table == nullptr || table->axes() == 1 || table->axes() == rotate.frequencies.axes) return {};
  return fail(where, "a bias of several axes must have those of the rotation",
              std::to_string(table->axes()) + " and " + std::to_string(rotate.frequencies.axes),
              mend);
}

Expected<void> check(const Relative& relative, std::int64_t head_dim) {
  POSENC_CHECK(detail::NumberCheck::of("relative", relative));
  for (std::int64_t list = 0; list < relative.lists(); ++list)
    POSENC_CHECK(check("relative", relative.list(list), relative.row_count, no_row));
  if (!relative.uses_query && !relative.uses_key && !relative.uses_value) {
    return fail("plan", "relative must use at least one of its tables", "none",
                "leave the part out for no position at all");
  }
  for (const Table* table : {&relative.query, &relative.key, &relative.value}) {
    if (!*table) continue;
    const Tensor& values = table->values;
    const Tensor wide = values.rank == 2 ? values.with_rank(3) : values;
    const bool of_profiles = relative.profiles > 0 && table != &relative.value;
    const std::int64_t columns = of_profiles ? relative.profiles : head_dim;
    if (wide.rank == 3 && wide.shape[1] == relative.row_count &&
        (columns == 0 || wide.shape[2] == columns)) {
      continue;
    }
    const std::string rows = std::to_string(relative.row_count) + ", " +
                             (of_profiles ? std::to_string(columns) : "head_dim") + "]";
    return fail("plan", "relative tables must be [" + rows + " or [heads, " + rows,
                shape_text(values),
                "check the distances and channels of the scheme against the table");
  }
  return {};
}

Expected<void> check(const Logits& logits) {
  POSENC_CHECK(detail::NumberCheck::of("logits", logits));
  const std::size_t heads = logits.head_scale.size();
  if (logits.head_bias.size() == heads && (heads == 0 || logits.temperature == Temperature::heads))
    return {};
  return fail(here, "logits.head_scale and head_bias must be as many, and of Temperature::heads",
              std::to_string(heads) + " and " + std::to_string(logits.head_bias.size()), mend);
}

Expected<void> check(const Lengths& valid) {
  if (0 <= valid.from && valid.from <= valid.to) return {};
  return fail(here, "valid lengths must run upwards from 0 or more",
              std::to_string(valid.from) + " to " + std::to_string(valid.to), mend);
}

}  // namespace

std::string detail::Extents::text(const std::array<Axis, 3>& axes) const {
  std::string counts, names;
  for (const Axis axis : axes) {
    if (axis == Axis::none) break;
    counts += (counts.empty() ? "" : " x ") + std::to_string(of_[static_cast<std::size_t>(axis)]);
    names += "[" + std::string(name(axis)) + "]";
  }
  return counts + " numbers, " + names;
}

Expected<void> detail::check_sizes(std::string_view where, const Rotate& rotate) {
  const Slice& slice = rotate.slice;
  if (slice.rotary_dim <= 0 || slice.rotary_dim % 2 != 0)
    return fail(where, "rotary_dim must be even and positive", std::to_string(slice.rotary_dim),
                "every channel needs a partner");
  if (slice.blocks < 1 || slice.pairs() % slice.blocks != 0)
    return fail(where,
                "rotate.blocks must cut rotary_dim " + std::to_string(slice.rotary_dim) +
                    " into equal blocks of whole pairs",
                std::to_string(slice.blocks), mend);
  POSENC_CHECK(check_sizes(where, "rotate", rotate.frequencies, Extents().within(slice)));
  return std::visit(KindSizes{where, rotate, Extents::around_kind(rotate)}, rotate.kind);
}

Expected<void> detail::check_slice(std::string_view where, const Rotate& rotate,
                                   std::int64_t head_dim) {
  const std::int64_t first = rotate.slice.first_dim;
  const std::int64_t taken = rotate.slice.rotary_dim - rotate.widening();
  if (first >= 0 && taken <= head_dim && first <= head_dim - taken) return {};
  return fail(where, "the rotated slice must lie within head_dim " + std::to_string(head_dim),
              "channels from " + std::to_string(first) + ", " + std::to_string(taken) + " of them",
              "check rotary_dim against the model's head_dim");
}

Expected<void> detail::check_sizes(std::string_view where, const Waves& waves) {
  POSENC_CHECK(check_sizes(where, "waves", waves, {}));
  if (waves.zero_row >= 0 && waves.axes > 1)
    return fail(where, "waves of several axes have no row of zeros",
                "zero_row " + std::to_string(waves.zero_row), "set it to -1");
  if (waves.pairs() > (waves.width - 1) / 2 + 1)  // of an odd width the last pair has only one
    return fail(where,
                "waves.frequency must have at most a pair for two channels of width " +
                    std::to_string(waves.width),
                std::to_string(waves.pairs()) + " pairs", mend);
  return check_blocks(where, waves);
}

Expected<void> detail::check_sizes(std::string_view where, const Rows& rows) {
  if (rows.axis_rows.empty()) return {};
  std::int64_t of_axes = 0;
  for (const std::int64_t count : rows.axis_rows)
    of_axes = sum(of_axes, std::max<std::int64_t>(count, 0));
  if (of_axes == rows.rows) return {};
  return fail(where, "rows.axis_rows must be rows.rows in all, " + std::to_string(rows.rows),
              std::to_string(of_axes), mend);
}

Expected<void> detail::check_sizes(std::string_view where, const Ramp& ramp) {
  if (0 <= ramp.channel && ramp.channel < ramp.width) return {};
  return fail(where, "ramp.channel must lie within width " + std::to_string(ramp.width),
              std::to_string(ramp.channel), mend);
}

Table Table::own(std::vector<double> values, std::int64_t rows, std::int64_t columns) {
  return own(std::move(values), {rows, columns});
}

Table Table::own(std::vector<double> values, std::initializer_list<std::int64_t> shape) {
  Table table;
  table.owned = std::make_shared<const std::vector<double>>(std::move(values));
  // A Tensor is also what outputs are written through, hence not const; kernels only read tables.
  table.values = Tensor::dense(const_cast<double*>(table.owned->data()), shape);
  return table;
}

bool Table::operator==(const Table& other) const {
  const Tensor &a = values, &b = other.values;
  if (a == b) return true;
  if (!owned || !other.owned || a.rank != b.rank || a.shape != b.shape) return false;
  const Tensor x = a.with_rank(3), y = b.with_rank(3);  // owned tables have two axes or three
  for (std::int64_t head = 0; head < x.shape[0]; ++head) {
    for (std::int64_t row = 0; row < x.shape[1]; ++row) {
      for (std::int64_t column = 0; column < x.shape[2]; ++column) {
        if (x.get(x.offset(head, row, column)) != y.get(y.offset(head, row, column))) return false;
      }
    }
  }
  return true;
}

float GgmlRope::amplitude() const {
  return ext_factor == 0 ? attn_factor : attn_factor * (1.0f + 0.1f * std::log(1.0f / freq_scale));
}

Expected<std::int64_t> DistanceRows::at(std::int64_t distance) const {
  if (row.empty() || (!saturates && (distance < first || distance > last()))) {
    return fail("bias",
                "distance must lie within " + std::to_string(first) + " and " +
                    std::to_string(last()) + ", which the plan was compiled for",
                std::to_string(distance), "compile for a longer length");
  }
  return row[static_cast<std::size_t>(std::clamp(distance, first, last()) - first)];
}

double Logits::query_scale(std::int64_t position, std::int64_t head) const {
  if (!has_temperature()) return multiplier;
  // Padding may stand at -1: it is never attended to, and must not make a NaN.
  const double at = std::max(0.0, static_cast<double>(position) + offset);
  switch (temperature) {
    case Temperature::steps: return multiplier * (1 + beta * std::log1p(std::floor(at / floor)));
    case Temperature::log: return multiplier * (1 + beta * std::log(std::max(1.0, at / floor)));
    case Temperature::power: return multiplier * std::pow(1 + at / floor, beta);
    case Temperature::heads: break;
  }
  const auto h = static_cast<std::size_t>(head);
  return multiplier * (head_scale[h] * std::log(std::max(1.0, at)) + head_bias[h]);
}

Expected<void> set_temperature(Logits& logits, const Tensor& table) {
  constexpr std::string_view where = "set_temperature";
  if (logits.has_temperature() && logits.temperature != Temperature::heads)
    return fail(where, "logits must have no temperature yet", "one by position",
                "take a plan without it");
  if (!table || table.rank != 2 || table.shape[0] != 2 || table.shape[1] > 65536)
    return fail(where, "table must be [2, heads]: scales, then biases", shape_text(table),
                "stack softmax_scaling.scale and softmax_scaling.bias");
  if (logits.temperature != Temperature::heads) logits.offset = 1;
  logits.temperature = Temperature::heads;
  logits.head_scale.clear();
  logits.head_bias.clear();
  for (std::int64_t head = 0; head < table.shape[1]; ++head) {
    logits.head_scale.push_back(table.get(table.offset(0, head)));
    logits.head_bias.push_back(table.get(table.offset(1, head)));
  }
  return {};
}

Expected<Plan> checked(Plan plan, std::int64_t head_dim) {
  Expected<void> ok = check(plan.logits);
  if (ok && plan.add) ok = check(*plan.add);
  if (ok && plan.rotate) ok = check(*plan.rotate, head_dim);
  if (ok && plan.bias) ok = std::visit([](const auto& bias) { return check(bias); }, *plan.bias);
  if (ok && plan.relative) ok = check(*plan.relative, head_dim);
  if (ok && plan.rotate && plan.bias) ok = check_axes("plan", *plan.rotate, *plan.bias);
  if (ok && plan.valid) ok = check(*plan.valid);
  if (!ok) return std::unexpected(ok.error());
  return plan;
}

Expected<Plan> merged(const Plan& a, const Plan& b) {
  constexpr std::string_view where = "merged", twice = "two plans must act at different places";
  constexpr std::string_view cure = "keep one of the two";
  if (a.add && b.add) return fail(where, twice, "two parts added to the embedding", cure);
  if (a.rotate && b.rotate) return fail(where, twice, "two rotations", cure);
  if (a.bias && b.bias) return fail(where, twice, "two biases on the logit", cure);
  if (a.relative && b.relative) return fail(where, twice, "two sets of vectors by distance", cure);
  if (a.logits.has_temperature() && b.logits.has_temperature()) {
    return fail(where, twice, "two logit scales that grow with the position", cure);
  }
  if (a.logits.softcap != 0 && b.logits.softcap != 0)
    return fail(where, twice, "two softcaps of the logits", cure);
  Plan plan;
  plan.add = a.add ? a.add : b.add;
  plan.rotate = a.rotate ? a.rotate : b.rotate;
  plan.bias = a.bias ? a.bias : b.bias;
  if (plan.rotate && plan.bias)
    if (auto ok = check_axes(where, *plan.rotate, *plan.bias); !ok)
      return std::unexpected(ok.error());
  plan.relative = a.relative ? a.relative : b.relative;
  plan.logits = a.logits.has_temperature() ? a.logits : b.logits;
  plan.logits.multiplier = a.logits.multiplier * b.logits.multiplier;
  plan.logits.softcap = std::max(a.logits.softcap, b.logits.softcap);
  plan.unknown = a.unknown;
  plan.unknown.insert(plan.unknown.end(), b.unknown.begin(), b.unknown.end());
  plan.valid = a.valid ? a.valid : b.valid;
  if (a.valid && b.valid) {
    plan.valid =
        Lengths{std::max(a.valid->from, b.valid->from), std::min(a.valid->to, b.valid->to)};
    if (plan.valid->from > plan.valid->to) {
      return fail(where, "two plans must share a length for which both hold",
                  std::to_string(a.valid->from) + " to " + std::to_string(a.valid->to) + " and " +
                      std::to_string(b.valid->from) + " to " + std::to_string(b.valid->to),
                  "compile both for the same length");
    }
  }
  return plan;
}

}  // namespace posenc
