#include "src/emit/computation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/apply.h"
#include "posenc/features.h"
#include "src/core/try.h"
#include "src/emit/evaluate.h"
#include "src/kernels/rotation.h"

namespace posenc::emitting {

Value f32(double number) {
  return literal(Type::f32, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
}

std::int64_t Rotation::first(std::int64_t pair) const {
  const std::int64_t of_block = pairs / slice.blocks;
  const std::int64_t base = slice.first_dim + pair / of_block * 2 * of_block, at = pair % of_block;
  return base + (slice.pairing == Pairing::halves ? at : 2 * at);
}
std::int64_t Rotation::second(std::int64_t pair) const {
  return first(pair) + (slice.pairing == Pairing::halves ? pairs / slice.blocks : 1);
}

namespace {

constexpr std::string_view where = "emit";
constexpr std::int64_t most_numbers = 1 << 14;  // of a table that a text has

std::uint32_t word(std::int64_t number) { return static_cast<std::uint32_t>(number); }

// --- the rotation --------------------------------------------------------------------------------

struct Phase {
  Value upper, lower;
};

// position · turns modulo 1, kept to 64 bits: of the product of p1 p0 and t3 t2 t1 t0, which are
// words of 32 bits with 128 bits behind the point, the two upper words.
Phase phase_of(Writer& to, const Value& head, const Value& axis) {
  const Value pair = named("pair", Type::u32), token = named("token", Type::u32);
  const auto turns = [&](std::uint32_t at, std::string_view name) {
    return to.let(name, load("TURNS", Type::u32, {head, axis, pair, u32(at)}));
  };
  const auto carry = [](const Value& sum, const Value& added) { return as_u32(sum < added); };
  to.say("Turns per position, and the position: words of 32 bits.");
  const Value t3 = turns(0, "t3"), t2 = turns(1, "t2"), t1 = turns(2, "t1"), t0 = turns(3, "t0"),
              p1 = to.let("p1", load("high", Type::u32, {axis, token})),
              p0 = to.let("p0", load("low", Type::u32, {axis, token}));
  to.say("Word 1 of their product, for its carry.");
  const Value a0 = to.let("a0", high(p0, t0)), a1 = to.let("a1", a0 + p0 * t1),
              a2 = to.let("a2", a1 + p1 * t0),
              carried = to.let("carried", carry(a1, a0) + carry(a2, a1));
  to.say("Word 2. A position below 0 has 2^64 too much here, whose turns are taken off.");
  const Value b0 = to.let("b0", high(p0, t1)), b1 = to.let("b1", b0 + carried),
              b2 = to.let("b2", b1 + high(p1, t0)), b3 = to.let("b3", b2 + p0 * t2),
              b4 = to.let("b4", b3 + p1 * t1), below = to.let("below", (p1 >> 31) != u32(0)),
              less0 = to.let("less0", select(below, t0, u32(0))),
              less1 = to.let("less1", select(below, t1, u32(0)));
  const Value lower = to.let("word2", b4 - less0);
  to.say("Word 3.");
  const Value c0 = to.let("c0", carry(b1, b0) + carry(b2, b1)),
              c1 = to.let("c1", c0 + carry(b3, b2) + carry(b4, b3)),
              c2 = to.let("c2", c1 - carry(b4, less0) - less1),
              c3 = to.let("c3", c2 + high(p0, t2) + high(p1, t1));
  return {to.let("word3", c3 + p0 * t3 + p1 * t2), lower};
}

struct CosSin {
  Value cos, sin;
};

// The cosine and sine of a phase: minimax fits of cos(π/4 u) = 1 − u²C(u²) and sin(π/4 u) = u S(u²)
// in the distance u from the quarter that is next, in integers. Off by at most 3.1e-8.
CosSin cos_sin_of(Writer& to, const Phase& phase, float amplitude) {
  to.say("The quarter that is next, and twice the distance from it in 2^-32 of a quarter.");
  const Value quarter = to.let("quarter", (phase.upper + u32(1u << 29)) >> 30),
              rest = to.let("rest", phase.upper - (quarter << 30)),
              behind = to.let("behind", (rest >> 31) != u32(0)),
              m1 = to.let("m1", select(behind, ~rest, rest)),
              m0 = to.let("m0", select(behind, ~phase.lower, phase.lower)),
              v = to.let("v", (m1 << 3) | (m0 >> 29)), z = to.let("z", high(v, v));
  to.say("Cosine and sine of that distance, in 2^-31 and 2^-32.");
  const auto series = [&](char name, const std::vector<std::uint32_t>& coefficients) {
    Value sum = u32(coefficients.back());
    for (std::size_t i = coefficients.size() - 1; i-- > 0;)
      sum = to.let(std::string(1, name) + std::to_string(i), u32(coefficients[i]) - high(z, sum));
    return sum;
  };
  const Value d0 = series('d', {1324675872, 68093819, 1399910, 15167}),
              d = to.let("d", high(z, d0)),
              s0 = series('s', {3373259426, 346799333, 10696154, 157073, 1325}),
              s = to.let("s", high(v, s0));
  const Value cosine = to.let("cosine", as_f32(u32(0x80000000) - (d >> 1)) * f32(0x1p-31)),
              sine = to.let("sine", as_f32(s) * f32(0x1p-32)),
              side = to.let("side", select(behind, -sine, sine));
  to.say("So many quarters on.");
  const Value odd = to.let("odd", (quarter & u32(1)) != u32(0)),
              exchanged_cos = to.let("c_near", select(odd, side, cosine)),
              exchanged_sin = to.let("s_near", select(odd, cosine, side));
  Value cos = to.let("cos_phase", select(((quarter + u32(1)) & u32(2)) != u32(0), -exchanged_cos,
                                         exchanged_cos)),
        sin = to.let("sin_phase",
                     select((quarter & u32(2)) != u32(0), -exchanged_sin, exchanged_sin));
  if (amplitude != 1) {
    to.say("Times the attention factor.");
    cos = to.let("cos_scaled", cos * f32(amplitude));
    sin = to.let("sin_scaled", sin * f32(amplitude));
  }
  return {cos, sin};
}

CosSin cos_sin_at(Writer& to, const Rotation& rotation, const Value& head) {
  if (rotation.axes == 1) return cos_sin_of(to, phase_of(to, head, u32(0)), rotation.amplitude);
  to.say("The phase is the sum over axes of position · turns, modulo 1.");
  const Value upper = to.variable("phase1", u32(0)), lower = to.variable("phase0", u32(0));
  const Value axis = to.loop("axis", u32(word(rotation.axes)));
  const Phase one = phase_of(to, head, axis);
  to.assign(lower, lower + one.lower);
  to.assign(upper, upper + one.upper + as_u32(lower < one.lower));
  to.end();
  return cos_sin_of(to, {upper, lower}, rotation.amplitude);
}

Statements rotation_statements(const Rotation& rotation) {
  Writer to;
  const Slice& slice = rotation.slice;
  const Value pair = named("pair", Type::u32), token = named("token", Type::u32);
  const std::uint32_t half = word(rotation.pairs / slice.blocks), start = word(slice.first_dim);
  to.say("The two channels of the pair.");
  Value base = u32(start), at = pair;
  if (slice.blocks > 1) {
    base = pair / u32(half) * u32(2 * half) + u32(start);
    at = pair % u32(half);
  }
  const bool halves = slice.pairing == Pairing::halves;
  const Value step = halves ? at : at * u32(2);
  const Value first = to.let("first", slice.blocks == 1 && start == 0 ? step : base + step),
              second = to.let("second", first + u32(halves ? half : 1));
  const auto rotate = [&](const Value& head, const CosSin& by) {
    const auto x = [&](const Value& channel) {
      return load("x", Type::f32, {token, head, channel});
    };
    const Value a = to.let("a", x(first)), b = to.let("b", x(second));
    const Value to_first = to.let("to_first", by.cos * a - by.sin * b),
                to_second = to.let("to_second", by.cos * b + by.sin * a);
    to.store(x(first), to_first);
    to.store(x(second), to_second);
  };
  const Value heads = named("heads", Type::u32);
  if (rotation.heads_differ()) {
    const Value head = to.loop("head", heads);
    rotate(head, cos_sin_at(to, rotation, head));
  } else {
    const CosSin by = cos_sin_at(to, rotation, u32(0));
    rotate(to.loop("head", heads), by);
  }
  to.end();
  return to.take();
}

std::uint32_t bits_of(float number) { return std::bit_cast<std::uint32_t>(number); }

std::vector<std::int64_t> few(std::vector<std::int64_t> of) {
  std::ranges::sort(of);
  const auto again = std::ranges::unique(of);
  of.erase(again.begin(), again.end());
  return of;
}

void add_checks(Rotation& to, const Rotate& rotate, const EmitOptions& options) {
  std::vector<std::int64_t> at = options.positions, pairs;
  if (at.empty()) at = {0, 1, 4095, 131071, -7, std::int64_t{1} << 31, (std::int64_t{1} << 40) + 7};
  if (options.every_pair)
    for (std::int64_t pair = 0; pair < to.pairs; ++pair) pairs.push_back(pair);
  else
    pairs = few({0, std::min<std::int64_t>(1, to.pairs - 1), to.pairs / 2, to.pairs - 1});
  const auto tokens = static_cast<std::int64_t>(at.size());
  Memory memory;
  memory.arrays["TURNS"] = to.turns;
  Constant low{.shape = {to.axes, tokens}}, high = low;
  for (const std::int64_t p : at) {
    to.positions.emplace_back();
    for (std::int64_t axis = 0; axis < to.axes; ++axis) to.positions.back().push_back(p - 3 * axis);
  }
  for (std::int64_t axis = 0; axis < to.axes; ++axis)
    for (const auto& token : to.positions) {
      const auto p = static_cast<std::uint64_t>(token[static_cast<std::size_t>(axis)]);
      low.bits.push_back(static_cast<std::uint32_t>(p));
      high.bits.push_back(static_cast<std::uint32_t>(p >> 32));
    }
  memory.arrays["low"] = low;
  memory.arrays["high"] = high;
  Constant x{.type = Type::f32, .shape = {tokens, to.heads, to.head_dim}};
  x.bits.assign(static_cast<std::size_t>(tokens * to.heads * to.head_dim), 0);
  const auto place = [&](std::int64_t token, std::int64_t head, std::int64_t channel) {
    return static_cast<std::size_t>((token * to.heads + head) * to.head_dim + channel);
  };
  for (std::int64_t token = 0; token < tokens; ++token)
    for (std::int64_t head = 0; head < to.heads; ++head)
      for (const std::int64_t pair : pairs) x.bits[place(token, head, to.first(pair))] = bits_of(1);
  memory.arrays["x"] = std::move(x);
  memory.names["heads"] = word(to.heads);
  for (std::int64_t token = 0; token < tokens; ++token)
    for (const std::int64_t pair : pairs) {
      memory.names["token"] = word(token);
      memory.names["pair"] = word(pair);
      run(to.statements, memory);
    }
  const std::vector<std::uint32_t>& rotated = memory.arrays["x"].bits;
  for (std::int64_t token = 0; token < tokens; ++token)
    for (const std::int64_t head : few({0, to.heads - 1}))
      for (const std::int64_t pair : pairs) {
        detail::Angle angle;
        for (std::int64_t axis = 0; axis < to.axes; ++axis)
          angle.add(to.positions[static_cast<std::size_t>(token)][static_cast<std::size_t>(axis)],
                    rotate.at(head, axis, pair));
        const detail::Angle::Unit unit = angle.unit();
        to.checks.push_back({.token = token,
                             .head = head,
                             .pair = pair,
                             .first = to.first(pair),
                             .second = to.second(pair),
                             .cosine = unit.cosine * rotate.amplitude,
                             .sine = unit.sine * rotate.amplitude,
                             .cosine_bits = rotated[place(token, head, to.first(pair))],
                             .sine_bits = rotated[place(token, head, to.second(pair))]});
      }
}

Expected<void> check_length(std::string_view what, std::int64_t count) {
  if (count <= most_numbers) return {};
  return fail(where,
              std::string(what) + " must have at most " + std::to_string(most_numbers) +
                  " numbers, to stand in a text",
              std::to_string(count), "use the library, or the table itself");
}

Expected<Rotation> rotation_of(const Plan& plan, const EmitOptions& options) {
  const Rotate& rotate = *plan.rotate;
  const std::int64_t end = rotate.slice.first_dim + rotate.slice.rotary_dim;
  Rotation made{.heads = rotate.frequencies.heads,
                .axes = rotate.frequencies.axes,
                .pairs = rotate.pairs(),
                .head_dim = options.head_dim > 0 ? options.head_dim : end,
                .slice = rotate.slice,
                .amplitude = static_cast<float>(rotate.amplitude)};
  if (made.head_dim < end)
    return fail(where, "a head must have the " + std::to_string(end) + " channels that rotate",
                std::to_string(made.head_dim), "give its head_dim");
  if (made.pairs < 1) return fail(where, "a rotation must have a pair of channels", "none");
  POSENC_TRY(turns, rotation_turns(plan));
  made.turns = {.name = "TURNS", .shape = {made.heads, made.axes, made.pairs, 4}};
  for (const Turns& each : turns)
    for (const std::uint64_t half : {each.high, each.low}) {
      made.turns.bits.push_back(static_cast<std::uint32_t>(half >> 32));
      made.turns.bits.push_back(static_cast<std::uint32_t>(half));
    }
  POSENC_CHECK(check_length("the turns", std::ssize(made.turns.bits)));
  made.statements = rotation_statements(made);
  if (rotate.slice.first_dim > 0)
    made.unrotated = 0;
  else if (end < made.head_dim)
    made.unrotated = end;
  add_checks(made, rotate, options);
  return made;
}

// --- the bias ------------------------------------------------------------------------------------

Constant floats(std::string name, const std::vector<double>& numbers, std::int64_t rows) {
  Constant made{.name = std::move(name), .type = Type::f32};
  const auto count = static_cast<std::int64_t>(numbers.size());
  made.shape = rows == 0 ? std::vector{count} : std::vector{rows, count / rows};
  for (const double number : numbers) made.bits.push_back(bits_of(static_cast<float>(number)));
  return made;
}

Value distance_of(Writer& to) {
  to.say("How far the key is behind the query.");
  const Value query = to.let("query_at", load("query_low", Type::u32, {named("query", Type::u32)})),
              key = to.let("key_at", load("key_low", Type::u32, {named("key", Type::u32)}));
  return to.let("distance", as_i32(query - key));
}

struct OfBias {
  DistanceBias& made;

  Expected<void> operator()(const Slopes& slopes) const {
    POSENC_CHECK(check_length("the slopes", std::ssize(slopes.slope)));
    made.heads = std::ssize(slopes.slope);
    made.before_scale = slopes.before_scale;
    made.constants = {floats("SLOPES", slopes.slope, 0)};
    Writer to;
    const Value distance = distance_of(to), back = to.let("back", i32(0) - distance),
                nearest = slopes.bidirectional ? to.let("below_0", least(distance, back)) : back;
    const Value slope = load("SLOPES", Type::f32, {named("head", Type::u32)});
    to.let("bias", slope * as_f32(nearest));
    made.statements = to.take();
    return {};
  }

  Expected<void> operator()(const BiasTable& table) const {
    const DistanceRows& rows = table.rows;
    if (!table.further_axes.empty())
      return fail(where, "a bias must be of one axis", std::to_string(table.axes()) + " axes",
                  "use bias()");
    if (!rows.saturates)
      return fail(
          where, "a bias's distances must go on beyond its list",
          "a list from " + std::to_string(rows.first) + " to " + std::to_string(rows.last()),
          "use bias()");
    POSENC_CHECK(check_length("the list of distances", static_cast<std::int64_t>(rows.row.size())));
    const bool is_given = static_cast<bool>(table.values);
    const std::int64_t given = is_given ? table.values.values.shape[0] : made.heads;
    POSENC_CHECK(check_length("the table of biases", given * table.row_count));
    made.learned = !is_given;
    made.shared = given == 1;
    made.heads = std::max(made.heads, given);
    made.row_count = table.row_count;
    Constant list{
        .name = "ROWS", .type = Type::i32, .shape = {static_cast<std::int64_t>(rows.row.size())}};
    for (const std::int32_t row : rows.row) list.bits.push_back(static_cast<std::uint32_t>(row));
    std::vector<double> values;
    for (std::int64_t head = 0; head < given; ++head)
      for (std::int64_t row = 0; row < table.row_count; ++row)
        values.push_back(is_given ? table.values.values.get(table.values.values.offset(head, row))
                                  : static_cast<double>((head * 3 + row * 7) % 11) * 0.25 - 1);
    Constant numbers = floats("VALUES", values, given);
    made.constants = {std::move(list)};
    if (is_given)
      made.constants.push_back(std::move(numbers));
    else
      made.test_values = std::move(numbers.bits);
    Writer to;
    const Value distance = distance_of(to);
    to.say("Beyond both ends of the list the end's row holds.");
    const Value until = to.let("until", least(distance, i32(rows.last()))),
                from = to.let("within", most(until, i32(rows.first))),
                within = rows.first == 0 ? from : to.let("place", from - i32(rows.first));
    const Value row = to.let("row", load("ROWS", Type::i32, {within}));
    const Value of_head = made.shared ? u32(0) : named("head", Type::u32);
    to.let("bias", load(is_given ? "VALUES" : "values", Type::f32, {of_head, row}));
    made.statements = to.take();
    return {};
  }
};

void add_checks(DistanceBias& to, const Bias& bias) {
  to.queries = {0, 17, 1000, 4096};
  to.keys = {0, 16, 1024};
  Memory memory;
  for (const Constant& each : to.constants) memory.arrays[each.name] = each;
  if (to.learned)
    memory.arrays["values"] = {.name = "values",
                               .type = Type::f32,
                               .shape = {to.shared ? 1 : to.heads, to.row_count},
                               .bits = to.test_values};
  const auto words = [](const std::vector<std::int64_t>& positions) {
    Constant made{.shape = {static_cast<std::int64_t>(positions.size())}};
    for (const std::int64_t p : positions) made.bits.push_back(word(p));
    return made;
  };
  memory.arrays["query_low"] = words(to.queries);
  memory.arrays["key_low"] = words(to.keys);
  const auto* slopes = std::get_if<Slopes>(&bias);
  for (const std::int64_t head : few({0, to.heads - 1}))
    for (std::int64_t query = 0; query < std::ssize(to.queries); ++query)
      for (std::int64_t key = 0; key < std::ssize(to.keys); ++key) {
        memory.names["head"] = word(head);
        memory.names["query"] = word(query);
        memory.names["key"] = word(key);
        run(to.statements, memory);
        const std::uint32_t bits = memory.names["bias"];
        double right = std::bit_cast<float>(bits);
        if (slopes != nullptr) {
          const auto distance = static_cast<double>(to.queries[static_cast<std::size_t>(query)] -
                                                    to.keys[static_cast<std::size_t>(key)]);
          right = -slopes->slope[static_cast<std::size_t>(head)] *
                  (slopes->bidirectional ? std::abs(distance) : distance);
        }
        to.checks.push_back(
            {.head = head, .query = query, .key = key, .right = right, .bits = bits});
      }
}

}  // namespace

Expected<Computation> computation_of(const Plan& plan, const Room& room,
                                     const EmitOptions& options) {
  const FeatureSet has = features(plan);
  Computation made{.about = options, .has = has};
  for (const FeatureInfo& each : feature_list())
    if (has.has(each.feature) && room.ignores.has(each.feature))
      made.left_out.emplace_back(each.words);
  if (plan.rotate && room.takes.has(Feature::rotation)) {
    POSENC_TRY(rotation, rotation_of(plan, options));
    made.rotation = std::move(rotation);
  }
  if (plan.bias) {
    DistanceBias bias{.heads = std::max<std::int64_t>(options.heads, 1)};
    POSENC_CHECK(std::visit(OfBias{bias}, *plan.bias));
    add_checks(bias, *plan.bias);
    made.bias = std::move(bias);
  }
  return made;
}

}  // namespace posenc::emitting
