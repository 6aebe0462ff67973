#include "posenc/plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "src/core/saturating.h"

namespace posenc {
namespace {

constexpr std::string_view by_hand = "compile the plan from a scheme, or mend it";

Expected<void> finite(std::string_view what, std::span<const double> values) {
  const auto bad = std::ranges::find_if_not(values, [](double x) { return std::isfinite(x); });
  if (bad == values.end()) return {};
  return fail("plan", std::string(what) + " must be finite",
              number_text(*bad) + " at index " + std::to_string(bad - values.begin()), by_hand);
}
Expected<void> finite(std::string_view what, double value) { return finite(what, {&value, 1}); }

Expected<void> positive(std::string_view what, std::span<const double> values) {
  if (auto ok = finite(what, values); !ok) return ok;
  const auto bad = std::ranges::find_if(values, [](double x) { return x <= 0; });
  if (bad == values.end()) return {};
  return fail("plan", std::string(what) + " must be positive",
              number_text(*bad) + " at index " + std::to_string(bad - values.begin()), by_hand);
}
Expected<void> positive(std::string_view what, double value) { return positive(what, {&value, 1}); }

Expected<void> at_least(std::string_view what, std::int64_t least, std::int64_t value) {
  if (value >= least) return {};
  return fail("plan", std::string(what) + " must be at least " + std::to_string(least),
              std::to_string(value), by_hand);
}

// `count` numbers are a · b · c of them; an overflowing product equals no count.
Expected<void> counted(std::string_view what, std::size_t count, std::int64_t a, std::int64_t b,
                       std::int64_t c) {
  if (a >= 0 && b >= 0 && c >= 0 &&
      static_cast<std::uint64_t>(detail::product(detail::product(a, b), c)) == count) {
    return {};
  }
  return fail("plan",
              std::string(what) + " must hold " + std::to_string(a) + " x " + std::to_string(b) +
                  " x " + std::to_string(c) + " numbers",
              std::to_string(count), by_hand);
}

Expected<void> check_blocks(const Waves& waves) {
  std::int64_t channels = 0;
  for (const std::int64_t block : waves.blocks) {
    if (block < 2 || block % 2 != 0)
      return fail("plan", "a block of waves must be an even number of channels",
                  std::to_string(block), by_hand);
    channels = detail::sum(channels, block);
  }
  if (channels > waves.width)
    return fail("plan", "blocks of waves must fit the width of " + std::to_string(waves.width),
                std::to_string(channels) + " channels", by_hand);
  if (waves.blocks.empty() || channels == 2 * waves.pairs()) return {};
  return fail(
      "plan", "blocks of waves must have a pair for two channels",
      std::to_string(waves.pairs()) + " pairs for " + std::to_string(channels) + " channels",
      by_hand);
}

Expected<void> check(const Waves& waves) {
  if (auto ok = at_least("waves.width", 1, waves.width); !ok) return ok;
  if (auto ok = at_least("waves.zero_row", -1, waves.zero_row); !ok) return ok;
  if (auto ok = at_least("waves.axes", 1, waves.axes); !ok) return ok;
  if (waves.zero_row >= 0 && waves.axes > 1)
    return fail("plan", "waves of several axes have no row of zeros",
                "zero_row " + std::to_string(waves.zero_row), "set it to -1");
  if (auto ok = counted("waves.frequency (axes x pairs)", waves.frequency.size(), 1, waves.axes,
                        waves.pairs());
      !ok)
    return ok;
  if (waves.pairs() > (waves.width - 1) / 2 + 1) {  // of an odd width the last pair has only one
    return fail("plan",
                "waves.frequency must have at most a pair for two channels of width " +
                    std::to_string(waves.width),
                std::to_string(waves.pairs()) + " pairs", by_hand);
  }
  if (auto ok = check_blocks(waves); !ok) return ok;
  if (auto ok = finite("waves.amplitude", waves.amplitude); !ok) return ok;
  return finite("waves.frequency", waves.frequency);
}

Expected<void> check(const Rows& rows) {
  if (auto ok = at_least("rows.rows", 1, rows.rows); !ok) return ok;
  if (auto ok = at_least("rows.width", 1, rows.width); !ok) return ok;
  std::int64_t of_axes = 0;
  for (const std::int64_t count : rows.axis_rows) {
    if (auto ok = at_least("rows.axis_rows", 1, count); !ok) return ok;
    of_axes = detail::sum(of_axes, count);
  }
  if (!rows.axis_rows.empty() && of_axes != rows.rows)
    return fail("plan", "rows.axis_rows must be rows.rows in all, " + std::to_string(rows.rows),
                std::to_string(of_axes), by_hand);
  const Tensor& table = rows.table.values;
  if (!table || (table.rank == 2 && table.shape[0] == rows.rows && table.shape[1] == rows.width)) {
    return {};
  }
  return fail(
      "plan",
      "rows.table must be [" + std::to_string(rows.rows) + ", " + std::to_string(rows.width) + "]",
      shape_text(table), "pass the table as [rows, width]");
}

Expected<void> check(const Ramp& ramp) {
  if (auto ok = at_least("ramp.width", 1, ramp.width); !ok) return ok;
  if (ramp.channel < 0 || ramp.channel >= ramp.width) {
    return fail("plan", "ramp.channel must lie within width " + std::to_string(ramp.width),
                std::to_string(ramp.channel), by_hand);
  }
  return finite("ramp.scale", ramp.scale);
}

Expected<void> check(const Add& add) {
  if (auto ok = finite("add.embedding_scale", add.embedding_scale); !ok) return ok;
  return std::visit([](const auto& kind) { return check(kind); }, add.kind);
}

Expected<void> check(const GgmlRope& ggml, const Rotate& rotate) {
  for (const auto& [field, value] : {std::pair{"theta_scale", ggml.theta_scale},
                                     {"freq_scale", ggml.freq_scale},
                                     {"attn_factor", ggml.attn_factor}}) {
    if (auto ok = positive("rotate.ggml." + std::string(field), value); !ok) return ok;
  }
  for (const auto& [field, value] : {std::pair{"ext_factor", ggml.ext_factor},
                                     {"ramp_low", ggml.ramp_low},
                                     {"ramp_high", ggml.ramp_high}}) {
    if (auto ok = finite("rotate.ggml." + std::string(field), value); !ok) return ok;
  }
  const std::vector<double> factors(ggml.freq_factors.begin(), ggml.freq_factors.end());
  if (auto ok = positive("rotate.ggml.freq_factors", factors); !ok) return ok;
  if (!factors.empty()) {
    if (auto ok = counted("rotate.ggml.freq_factors (pairs)", factors.size(), 1, 1, rotate.pairs());
        !ok) {
      return ok;
    }
  }
  // Kernels read ggml's numbers, people and other code the rotation's own: they must not part.
  const double amplitude = ggml.amplitude();
  if (std::abs(amplitude - rotate.amplitude) <= 1e-5 * amplitude) return {};
  return fail("plan",
              "rotate.amplitude must be what ggml's numbers give, " + number_text(amplitude),
              number_text(rotate.amplitude), "change rotate.ggml->attn_factor with it");
}

// What an engine's arithmetic can be asked for.
Expected<void> check_angles(const Rotate& rotate) {
  if (rotate.ggml.has_value() != (rotate.angles == Angles::ggml_float)) {
    return fail("plan", "rotate.ggml must be there with the angles ggml_float, and only then",
                name(rotate.angles), by_hand);
  }
  if (rotate.angles == Angles::exact) return {};
  const std::string where = "plan: angles " + std::string(name(rotate.angles));
  constexpr std::string_view cure = "use exact angles";
  if (rotate.growth) return fail(where, "no engine grows queries and shrinks keys", "xPos", cure);
  if (rotate.phase) return fail(where, "no engine has phases beside its angles", "a phase", cure);
  if (rotate.polar) return fail(where, "no engine has polar rotations", "PoPE", cure);
  if (rotate.mix) return fail(where, "no engine's angles are mixed", "FoPE", cure);
  if (rotate.regions) return fail(where, "no engine's angles hang on regions", "regions", cure);
  if (rotate.heads != 1) {
    return fail(where, "no engine has frequencies for each head",
                std::to_string(rotate.heads) + " heads", cure);
  }
  if (rotate.ggml) return check(*rotate.ggml, rotate);
  const auto no_float = std::ranges::find_if(
      rotate.frequency, [](double f) { return static_cast<double>(static_cast<float>(f)) != f; });
  if (no_float == rotate.frequency.end()) return {};
  return fail(where, "every frequency must be a float", number_text(*no_float),
              "compile the scheme with these angles, or round them");
}

Expected<void> check(const Phase& phase, const Rotate& rotate) {
  if (auto ok = at_least("rotate.phase.heads", 1, phase.heads); !ok) return ok;
  if (auto ok = counted("rotate.phase.radians (heads x pairs)", phase.radians.size(), phase.heads,
                        1, rotate.pairs());
      !ok) {
    return ok;
  }
  if (rotate.heads != 1 && phase.heads != 1 && rotate.heads != phase.heads) {
    return fail(
        "plan",
        "phases must be of the " + std::to_string(rotate.heads) + " heads that have frequencies",
        std::to_string(phase.heads) + " heads", by_hand);
  }
  return finite("rotate.phase.radians", phase.radians);
}

// One series of angles, mixed into pairs of queries and keys, and nothing else that changes cosines.
Expected<void> check(const Mix& mix, const Rotate& rotate) {
  constexpr std::string_view rule = "a mixture has frequencies that all heads share, and no";
  constexpr std::string_view cure = "leave them out";
  const auto without = [&](std::string_view part) {
    return fail("plan", std::string(rule) + " " + std::string(part) + " beside", part, cure);
  };
  if (rotate.heads != 1) return without("frequencies of heads");
  if (rotate.phase) return without("phases");
  if (rotate.growth) return without("growth");
  if (rotate.polar) return without("polar pairs");
  if (rotate.values) return without("rotated values");
  if (auto ok = at_least("rotate.mix.heads", 1, mix.heads); !ok) return ok;
  for (const auto& [what, count] :
       {std::pair{"rotate.mix.inputs", mix.inputs}, {"rotate.mix.outputs", mix.outputs}}) {
    if (0 <= count && count <= rotate.pairs()) continue;
    return fail("plan",
                std::string(what) + " must be 0 to the " + std::to_string(rotate.pairs()) +
                    " pairs that rotate",
                std::to_string(count), by_hand);
  }
  for (const auto& [what, numbers] :
       {std::pair{"rotate.mix.cosine (heads x inputs x outputs)", &mix.cosine},
        {"rotate.mix.sine (heads x inputs x outputs)", &mix.sine}}) {
    if (auto ok = counted(what, numbers->size(), mix.heads, mix.inputs, mix.outputs); !ok)
      return ok;
    if (auto ok = finite(what, *numbers); !ok) return ok;
  }
  return finite("rotate.mix.rest_sine", mix.rest_sine);
}

Expected<void> check(const Regions& regions, const Rotate& rotate) {
  const auto without = [&](std::string_view part) {
    return fail("plan", "regions have one axis, and no " + std::string(part) + " beside", part,
                "leave them out");
  };
  if (rotate.axes != 1) return without("other axes");
  if (rotate.phase) return without("phases");
  if (rotate.mix) return without("mixtures");
  if (rotate.growth) return without("growth");
  if (rotate.polar) return without("polar pairs");
  if (rotate.values) return without("rotated values");
  constexpr std::int64_t far = std::int64_t{1} << 62;
  if ((regions.window > 0) == (regions.chunk > 0) || regions.window < 0 || regions.chunk < 0)
    return fail("plan", "regions must have a window or a chunk above 0, and not both",
                std::to_string(regions.window) + " and " + std::to_string(regions.chunk), by_hand);
  const std::size_t wanted = regions.window > 0 ? 2 : 3;
  if (regions.region.size() != wanted)
    return fail("plan", "regions must be " + std::to_string(wanted),
                std::to_string(regions.region.size()), by_hand);
  for (const Regions::Region& each : regions.region) {
    for (const PositionMap* map : {&each.query, &each.key}) {
      if (map->modulus >= 0 && map->divisor >= 1 && -far <= map->offset && map->offset <= far &&
          -far <= map->most)
        continue;
      return fail(
          "plan",
          "a region's positions must have a modulus of 0 or more, a divisor of 1 or more and "
          "an offset within 2^62 of 0",
          std::to_string(map->modulus) + ", " + std::to_string(map->divisor) + " and " +
              std::to_string(map->offset),
          by_hand);
    }
    if (auto ok = finite("regions.frequency_scale", each.frequency_scale); !ok) return ok;
  }
  return {};
}

// A channel of its own for each pair, and nothing that the others' pairs have besides.
Expected<void> check_polar(const Rotate& rotate) {
  constexpr std::string_view rule = "a polar rotation has neither blocks, values nor growth";
  constexpr std::string_view cure = "leave them out";
  if (rotate.blocks != 1) return fail("plan", rule, "blocks", cure);
  if (rotate.values) return fail("plan", rule, "values", cure);
  if (rotate.growth) return fail("plan", rule, "growth", cure);
  return {};
}

Expected<void> check(const Rotate& rotate, std::int64_t head_dim) {
  if (rotate.values_stay && !rotate.values)
    return fail("plan", "values stay rotated only where they are rotated", "values_stay alone",
                "set values too");
  if (rotate.rotary_dim <= 0 || rotate.rotary_dim % 2 != 0) {
    return fail("plan", "rotary_dim must be even and positive", std::to_string(rotate.rotary_dim),
                "every channel needs a partner");
  }
  if (rotate.blocks < 1 || rotate.rotary_dim / 2 % rotate.blocks != 0) {
    return fail("plan",
                "rotate.blocks must cut rotary_dim " + std::to_string(rotate.rotary_dim) +
                    " into equal blocks of whole pairs",
                std::to_string(rotate.blocks), by_hand);
  }
  if (auto ok = at_least("rotate.first_dim", 0, rotate.first_dim); !ok) return ok;
  const std::int64_t taken = rotate.rotary_dim - rotate.widening();
  if (head_dim > 0 && (taken > head_dim || rotate.first_dim > head_dim - taken)) {
    return fail("plan", "the rotated slice must lie within head_dim " + std::to_string(head_dim),
                "channels from " + std::to_string(rotate.first_dim) + ", " + std::to_string(taken) +
                    " of them",
                "check rotary_dim against the model's head_dim");
  }
  if (auto ok = at_least("rotate.heads", 1, rotate.heads); !ok) return ok;
  if (auto ok = at_least("rotate.axes", 1, rotate.axes); !ok) return ok;
  if (auto ok = counted("rotate.frequency (heads x axes x pairs)", rotate.frequency.size(),
                        rotate.heads, rotate.axes, rotate.pairs());
      !ok) {
    return ok;
  }
  if (auto ok = finite("rotate.frequency", rotate.frequency); !ok) return ok;
  if (auto ok = positive("rotate.amplitude", rotate.amplitude); !ok) return ok;
  if (auto ok = check_angles(rotate); !ok) return ok;
  if (rotate.phase)
    if (auto ok = check(*rotate.phase, rotate); !ok) return ok;
  if (rotate.mix)
    if (auto ok = check(*rotate.mix, rotate); !ok) return ok;
  if (rotate.regions)
    if (auto ok = check(*rotate.regions, rotate); !ok) return ok;
  if (rotate.polar)
    if (auto ok = check_polar(rotate); !ok) return ok;
  if (!rotate.growth) return {};
  const XposDecay& growth = *rotate.growth;
  if (auto ok = counted("growth.factor (pairs)", growth.factor.size(), 1, 1, rotate.pairs()); !ok) {
    return ok;
  }
  if (auto ok = positive("growth.factor", growth.factor); !ok) return ok;
  if (auto ok = positive("growth.scale", growth.scale); !ok) return ok;
  return finite("growth.centre", growth.centre);
}

Expected<void> check(std::string_view what, const DistanceRows& rows, std::int64_t row_count,
                     std::int32_t least = 0) {
  if (auto ok = at_least(std::string(what) + ".row_count", 1, row_count); !ok) return ok;
  if (rows.row.empty())
    return fail("plan", std::string(what) + ".rows must not be empty", "", by_hand);
  constexpr std::int64_t far = std::int64_t{1} << 62;  // distances must not wrap
  if (rows.first < -far || rows.first > far) {
    return fail("plan", std::string(what) + ".rows.first must be within 2^62 of 0",
                std::to_string(rows.first), by_hand);
  }
  const auto bad = std::ranges::find_if(
      rows.row, [&](std::int32_t row) { return row < least || row >= row_count; });
  if (bad == rows.row.end()) return {};
  return fail("plan", std::string(what) + ".rows must name rows below " + std::to_string(row_count),
              std::to_string(*bad), by_hand);
}

Expected<void> check(const Slopes& slopes) {
  if (slopes.slope.empty()) return fail("plan", "bias.slope must name a head", "", by_hand);
  return positive("bias.slope", slopes.slope);
}

Expected<void> check(const BiasTable& bias) {
  for (std::int64_t axis = 0; axis < bias.axes(); ++axis)
    if (auto ok = check("bias", bias.of_axis(axis), bias.row_count); !ok) return ok;
  const Tensor& values = bias.values.values;
  if (!values || (values.rank == 2 && values.shape[0] > 0 && values.shape[1] == bias.row_count))
    return {};
  return fail("plan", "bias.values must be [heads or 1, " + std::to_string(bias.row_count) + "]",
              shape_text(values),
              "pass the table as [heads, rows]; Tensor::swapped turns one around");
}

// Both read the same positions.
Expected<void> check_axes(std::string_view where, const Rotate& rotate, const Bias& bias) {
  const auto* table = std::get_if<BiasTable>(&bias);
  if (table == nullptr || table->axes() == 1 || table->axes() == rotate.axes) return {};
  return fail(where, "a bias of several axes must have those of the rotation",
              std::to_string(table->axes()) + " and " + std::to_string(rotate.axes), by_hand);
}

Expected<void> check(const Relative& relative, std::int64_t head_dim) {
  for (std::int64_t list = 0; list < relative.lists(); ++list)
    if (auto ok = check("relative", relative.list(list), relative.row_count, no_row); !ok)
      return ok;
  if (auto ok = at_least("relative.profiles", 0, relative.profiles); !ok) return ok;
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
  if (auto ok = positive("logits.multiplier", logits.multiplier); !ok) return ok;
  if (auto ok = finite("logits.beta", logits.beta); !ok) return ok;
  if (auto ok = positive("logits.floor", logits.floor); !ok) return ok;
  if (logits.softcap != 0)
    if (auto ok = positive("logits.softcap", logits.softcap); !ok) return ok;
  for (const std::vector<double>* numbers : {&logits.head_scale, &logits.head_bias}) {
    if (numbers->size() != logits.head_scale.size() ||
        (!numbers->empty() && logits.temperature != Temperature::heads))
      return fail("plan",
                  "logits.head_scale and head_bias must be as many, and of Temperature::heads",
                  std::to_string(logits.head_scale.size()) + " and " +
                      std::to_string(logits.head_bias.size()),
                  by_hand);
    for (const double number : *numbers)
      if (auto ok = finite("logits.head_scale and head_bias", number); !ok) return ok;
  }
  return finite("logits.offset", logits.offset);
}

Expected<void> check(const Lengths& valid) {
  if (0 <= valid.from && valid.from <= valid.to) return {};
  return fail("plan", "valid lengths must run upwards from 0 or more",
              std::to_string(valid.from) + " to " + std::to_string(valid.to), by_hand);
}

}  // namespace

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
