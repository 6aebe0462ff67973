#include "evidence/lab/train/position.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "src/core/try.h"
#include "src/core/words.h"

namespace posenc::lab {
namespace {

template <class S>
S* plain(AnyScheme& scheme) {
  auto* list = std::get_if<Scheme>(&scheme);
  return list != nullptr ? std::get_if<S>(list) : nullptr;
}
std::vector<double> doubles(const Parameter& parameter) {
  return {parameter.value.begin(), parameter.value.end()};
}

Expected<void> set_fields(ContentRope& rope, std::span<const FieldSetting> fields) {
  for (const FieldSetting& field : fields) {
    const auto* layer = std::get_if<std::int64_t>(&field.value);
    if (rope.name != "repo" || field.name != "first" || !layer || *layer < 0)
      return fail(rope.name, "has no such field here", field.name,
                  rope.name == "repo" ? "write first=1" : "leave it out");
    rope.first = *layer;
  }
  return {};
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// ALiBi's slopes of a power of two of heads, and near them of others.
double slope(std::int64_t head, std::int64_t heads) {
  return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
}

// Profiles as the plan takes them, dense [text][head][token][u]: of a ramp slope · softplus(z).
std::vector<float> profiles_of(const Tensor& said, bool ramp, const Parameter* slopes) {
  std::vector<float> made;
  for (std::int64_t b = 0; b < said.shape[0]; ++b)
    for (std::int64_t h = 0; h < said.shape[1]; ++h)
      for (std::int64_t t = 0; t < said.shape[2]; ++t)
        for (std::int64_t u = 0; u < said.shape[3]; ++u) {
          const double z = said.get(said.offset(b, h, t, u));
          made.push_back(static_cast<float>(
              ramp ? static_cast<double>(slopes->value[static_cast<std::size_t>(h)]) * softplus(z)
                   : z));
        }
  return made;
}
Tensor dense_like(std::vector<float>& numbers, const Tensor& like) {
  return Tensor::dense(numbers.data(),
                       {like.shape[0], like.shape[1], like.shape[2], like.shape[3]});
}

// Rows of p [text][head][token][column] divided by their root mean square, and what the gradient by
// those gives for p.
double inverse_rms(const Tensor& p, std::int64_t row) {
  double squares = norm_epsilon;
  for (std::int64_t c = 0; c < p.shape[3]; ++c) {
    const double x = p.get(row + c * p.stride[3]);
    squares += x * x / static_cast<double>(p.shape[3]);
  }
  return 1 / std::sqrt(squares);
}

template <class Act>
void each_row(const Tensor& x, const Act& act) {
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t h = 0; h < x.shape[1]; ++h)
      for (std::int64_t t = 0; t < x.shape[2]; ++t) act(b, h, t);
}

std::vector<float> normalized(const Tensor& p) {
  std::vector<float> made;
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const std::int64_t row = p.offset(b, h, t);
    const double scale = inverse_rms(p, row);
    for (std::int64_t c = 0; c < p.shape[3]; ++c)
      made.push_back(static_cast<float>(p.get(row + c * p.stride[3]) * scale));
  });
  return made;
}

void add_normalized_gradient(const Tensor& p, const Tensor& by_normalized, const Tensor& to) {
  each_row(p, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const std::int64_t row = p.offset(b, h, t), from = by_normalized.offset(b, h, t);
    const double scale = inverse_rms(p, row);
    double along = 0;
    for (std::int64_t c = 0; c < p.shape[3]; ++c)
      along += by_normalized.get(from + c) * p.get(row + c * p.stride[3]) * scale;
    along /= static_cast<double>(p.shape[3]);
    for (std::int64_t c = 0; c < p.shape[3]; ++c) {
      const std::int64_t at = to.offset(b, h, t, c);
      to.set(at, to.get(at) + scale * (by_normalized.get(from + c) -
                                       p.get(row + c * p.stride[3]) * scale * along));
    }
  });
}

// A radian a token, backwards.
Plan turning_back(std::int64_t columns) {
  Plan plan;
  plan.rotate = Rotate{
      .slice = {.rotary_dim = columns},
      .frequencies = {.radians = std::vector<double>(static_cast<std::size_t>(columns / 2), -1)}};
  return plan;
}

// The table that takes the same projection, normalized and rotated; null: none does.
const TableInfo* rotated_of(const ContentScheme& scheme, std::string_view table) {
  for (const TableInfo& each : info(scheme).tables)
    if (each.holds.projection.same == table) return &each;
  return nullptr;
}

// The parameters p and a of KERPLE stay positive: their logarithms are learned.
std::vector<double> exponentials(const Parameter& parameter) {
  std::vector<double> made = doubles(parameter);
  for (double& number : made) number = std::exp(number);
  return made;
}

}  // namespace

Expected<AnyScheme> parse_scheme(std::string_view text) {
  const std::vector<std::string_view> words = detail::split(text).list();
  if (words.empty()) return fail("scheme", "must begin with a name", "nothing", "write nope");
  AnyScheme made;
  if (ContentRope::is_name(words[0])) {
    made = ContentRope{std::string(words[0])};
  } else if (Expected<Scheme> scheme = make_scheme(words[0]); scheme) {
    made = std::move(*scheme);
  } else {
    Expected<ContentScheme> reads = make_content_scheme(words[0]);
    if (!reads) return std::unexpected(scheme.error());
    made = std::move(*reads);
  }
  POSENC_TRY(fields, written_fields("scheme", std::span(words).subspan(1)));
  POSENC_CHECK(std::visit([&](auto& scheme) { return set_fields(scheme, fields); }, made));
  return made;
}

Expected<Position> Position::make(AnyScheme scheme, const Geometry& geometry,
                                  Parameters& parameters) {
  Position made;
  made.scheme_ = std::move(scheme);
  made.geometry_ = geometry;
  if (const auto* rope = std::get_if<ContentRope>(&made.scheme_)) {
    POSENC_TRY(form, rope->form(geometry.head_dim));
    made.form_ = std::move(form);
  }
  made.learn(parameters);
  POSENC_CHECK(made.prepare(geometry.length));
  return made;
}

// add(name, size, deviation, middle)
template <class Add>
void Position::learn_content(const ContentScheme& scheme, const Add& add) {
  const auto part = [&](std::string_view name, const Holds& holds, bool is_table) {
    const Axes axes = holds.least_axes();
    parts_.push_back({name, axes, is_table});
    std::int64_t size = 1;
    for (const Axis axis : axes) size *= extent(axis);
    return size;
  };
  for (const FieldSetting& begins : settings(scheme)) {
    const Holds& holds =
        std::ranges::find(info(scheme).fields, begins.name, &FieldInfo::name)->holds;
    if (!holds.learned) continue;
    const auto* const number = std::get_if<double>(&begins.value);
    const double inputs = holds.axes.count > 1 ? static_cast<double>(extent(holds.axes.all[1])) : 1;
    add(begins.name, part(begins.name, holds, false), holds.deviation / std::sqrt(inputs),
        number != nullptr ? *number : 0);
  }
  for (const auto& [name, doc, holds] : info(scheme).tables)
    if (holds.learned && !holds.axes.of_tokens()) add(name, part(name, holds, true), 0.02, 0.0);
}

void Position::learn(Parameters& parameters) {
  const std::int64_t heads = geometry_.heads, length = geometry_.length;
  const auto add = [&](std::string_view name, std::int64_t size, double deviation,
                       double middle = 0) -> Parameter& {
    Parameter& made = parameters.add("position." + std::string(name), size, deviation, middle);
    made.decays = false;
    learned_.push_back(&made);
    return made;
  };
  if (auto* table = plain<Learned>(scheme_)) {
    if (table->rows == 0) table->rows = length;
    add("table", table->rows * geometry_.width, 0.02);
  } else if (const auto* t5 = plain<T5>(scheme_)) {
    add("buckets", heads * t5->num_buckets, 0.02);
  } else if (plain<Kerple>(scheme_) != nullptr) {
    add("ln_p", heads, 0.5);
    add("ln_a", heads, 0.5);
  } else if (auto* fope = plain<Fope>(scheme_)) {
    // The identity with Xavier noise of gain 0.3, as the paper begins; here C and S go on to learn.
    const Expected<Plan> plan = compile(Scheme{*fope}, geometry_);
    const Mix mix = plan ? std::get<Mix>(plan->rotate->kind) : Mix{};
    const auto size = static_cast<std::size_t>(mix.inputs * mix.outputs);
    for (const char* name : {"cos_coef", "sin_coef"}) {
      Parameter& made = add(name, heads * mix.inputs * mix.outputs,
                            0.3 / std::sqrt(std::max(1.0, static_cast<double>(mix.inputs))));
      for (std::size_t i = 0; i < made.value.size(); ++i)
        made.value[i] += static_cast<float>(mix.cosine[i % size]);
    }
  } else if (const auto* profiles = plain<Profiles>(scheme_)) {
    if (profiles->curves == ProfileCurves::distances)
      add("curves", profiles->profiles * profiles->extent, 0.02);
    if (profiles->curves != ProfileCurves::ramp) return;
    Parameter& slopes = add("slopes", heads, 0);  // GRAPE-A begins with ALiBi's
    for (std::int64_t h = 0; h < heads; ++h)
      slopes.value[static_cast<std::size_t>(h)] = static_cast<float>(slope(h, heads));
  } else if (plain<TransformerXl>(scheme_) != nullptr) {
    const std::int64_t width = geometry_.width;
    add("projection", width * width, 1 / std::sqrt(static_cast<double>(width)));
    add("content_bias", width, 0);
    add("position_bias", width, 0);
  } else if (const auto* scheme = std::get_if<ContentScheme>(&scheme_)) {
    learn_content(*scheme, add);
  }
}

std::int64_t Position::extent(Axis axis) const {
  switch (axis) {
    case Axis::head:
    case Axis::key_head: return geometry_.heads;
    case Axis::channel: return geometry_.head_dim;
    case Axis::row: return geometry_.length;
    case Axis::unit: return 32;
    default: return 1;
  }
}

Tensor Position::view(const Part& part, std::vector<float>& numbers) const {
  if (part.axes.count < 2) return Tensor::dense(numbers.data(), {std::ssize(numbers)});
  return Tensor::dense(numbers.data(), {extent(part.axes.all[0]), extent(part.axes.all[1])});
}

Expected<void> Position::replace(AnyScheme scheme) {
  Parameters none(0);
  POSENC_TRY(made, make(std::move(scheme), geometry_, none));
  if (!learned_.empty() || !made.learned_.empty() || made.saying() != Saying::nothing ||
      saying() != Saying::nothing)
    return fail("afterwards", "one scheme can stand for another where neither learns anything", "",
                "take a rotation");
  *this = std::move(made);
  return {};
}

Expected<void> Position::hear(const AttentionInputs& in, const Said& said) {
  auto* const scheme = std::get_if<ContentScheme>(&scheme_);
  if (scheme == nullptr) return {};
  const std::vector<const TableInfo*> tables = said_tables();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    Expected<void> set = set_table(*scheme, tables[i]->name, Table::borrow(said.tables[i]));
    const auto* const rotated = rotated_of(*scheme, tables[i]->name);
    if (set && rotated != nullptr) {
      rotated_ = normalized(said.tables[i]);
      const Tensor made = dense_like(rotated_, said.tables[i]);
      set = set_table(*scheme, rotated->name, Table::borrow(made));
      if (set)
        set = rotate(turning_back(made.shape[3]), made, in.keys, Side::key, made, in.threads);
    }
    if (!set) return set;
  }
  return {};
}

Expected<void> Position::prepare(std::int64_t length) {
  Geometry geometry = geometry_;
  geometry.length = length;
  if (auto* learned = plain<Learned>(scheme_))
    learned->table =
        Table::borrow(Tensor::dense(learned_[0]->data(), {learned->rows, geometry.width}));
  if (plain<Learned>(scheme_) != nullptr) geometry.length = geometry_.length;
  if (auto* t5 = plain<T5>(scheme_))
    t5->table = Table::borrow(
        Tensor::dense(learned_[0]->data(), {geometry.heads, t5->num_buckets}).swapped(0, 1));
  if (auto* kerple = plain<Kerple>(scheme_)) {
    kerple->p = exponentials(*learned_[0]);
    kerple->a = exponentials(*learned_[1]);
  }
  if (auto* fope = plain<Fope>(scheme_)) {
    fope->cos_coef = doubles(*learned_[0]);
    fope->sin_coef = doubles(*learned_[1]);
  }
  if (auto* profiles = plain<Profiles>(scheme_);
      profiles != nullptr && profiles->curves == ProfileCurves::distances)
    profiles->table =
        Table::borrow(Tensor::dense(learned_[0]->data(), {profiles->profiles, profiles->extent}));
  if (auto* xl = plain<TransformerXl>(scheme_)) {
    const auto borrowed = [&](std::size_t which, std::int64_t rows) {
      return Table::borrow(Tensor::dense(learned_[which]->data(),
                                         {rows, std::ssize(learned_[which]->value) / rows}));
    };
    xl->projection = borrowed(0, geometry.width);
    xl->content_bias = borrowed(1, geometry.heads);
    xl->position_bias = borrowed(2, geometry.heads);
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    auto& scheme = std::get<ContentScheme>(scheme_);
    const std::vector<double> numbers = doubles(*learned_[i]);
    POSENC_CHECK(
        parts_[i].table
            ? set_table(scheme, parts_[i].name, Table::borrow(view(parts_[i], learned_[i]->value)))
            : set_field(scheme, parts_[i].name,
                        parts_[i].axes.count == 0 ? FieldValue(numbers[0]) : FieldValue(numbers)));
  }
  const auto* list = std::get_if<Scheme>(&scheme_);
  Expected<Plan> plan = list != nullptr ? compile(*list, geometry) : Plan{};
  if (!plan) return std::unexpected(plan.error());
  plan_ = std::move(*plan);
  // Where posenc refuses a position without a row, the lab wants to know what the last row would
  // do.
  if (plain<Learned>(scheme_) != nullptr) plan_.valid.reset();
  return {};
}

Expected<Positions> Position::clamped(const Positions& positions) const {
  const Rows* rows = plan_.add ? std::get_if<Rows>(&plan_.add->kind) : nullptr;
  if (rows == nullptr || positions.length() <= rows->rows) return positions;
  std::vector<std::int64_t> ids;
  for (std::int64_t b = 0; b < positions.batch(); ++b)
    for (std::int64_t t = 0; t < positions.size(); ++t)
      ids.push_back(std::min(positions.at(t, b), rows->rows - 1));
  return Positions::ids(ids, 1, positions.batch());
}

Expected<void> Position::attend(const AttentionInputs& in, const Said& said, const Tensor& out) {
  POSENC_CHECK(hear(in, said));
  if (std::holds_alternative<ContentRope>(scheme_)) return lab::attend(in, form_, said.angles, out);
  if (const auto* profiles = plain<Profiles>(scheme_)) {
    const bool ramp = profiles->curves == ProfileCurves::ramp;
    std::vector<float> made = profiles_of(said.profiles, ramp, ramp ? learned_[0] : nullptr);
    AttentionInputs with = in;
    with.profiles.query = dense_like(made, said.profiles);
    return posenc::attend(with, plan_, out);
  }
  if (const auto* reads = std::get_if<ContentScheme>(&scheme_))
    return posenc::attend(in, *reads, plan_, out);
  return posenc::attend(in, plan_, out);
}

Expected<void> Position::attend_backward(const AttentionInputs& in, const Said& said,
                                         const Tensor& out_gradient,
                                         const AttentionGradients& wanted,
                                         const Said& said_gradient) {
  POSENC_CHECK(hear(in, said));
  if (std::holds_alternative<ContentScheme>(scheme_))
    return content_backward(in, said, out_gradient, wanted, said_gradient);
  if (std::holds_alternative<ContentRope>(scheme_))
    return lab::attend_backward(
        in, form_, said.angles, out_gradient, wanted,
        {.said = said_gradient.angles.said, .gate = said_gradient.angles.gate});
  AttentionGradients all = wanted;
  if (plain<Fope>(scheme_) != nullptr) return mixture_backward(in, out_gradient, all);
  if (plain<Profiles>(scheme_) != nullptr)
    return profiles_backward(in, said, out_gradient, all, said_gradient);
  if (plain<TransformerXl>(scheme_) != nullptr)
    return transformer_xl_backward(in, out_gradient, all);
  const BiasTable* table = plan_.bias ? std::get_if<BiasTable>(&*plan_.bias) : nullptr;
  if (learned_.empty() || table == nullptr)
    return posenc::attend_backward(in, plan_, out_gradient, all);
  std::vector<float> bias(static_cast<std::size_t>(geometry_.heads * table->row_count));
  all.bias = Tensor::dense(bias.data(), {geometry_.heads, table->row_count});
  POSENC_CHECK(posenc::attend_backward(in, plan_, out_gradient, all));
  const auto* kerple = plain<Kerple>(scheme_);
  if (kerple == nullptr) {  // T5
    learned_[0]->add_gradient(bias);
    return {};
  }
  POSENC_TRY(made, kerple_gradients(*kerple, all.bias));
  for (std::size_t h = 0; h < kerple->p.size(); ++h) {  // by the logarithms
    learned_[0]->gradient[h] += static_cast<float>(made.p[h] * kerple->p[h]);
    learned_[1]->gradient[h] += static_cast<float>(made.a[h] * kerple->a[h]);
  }
  return {};
}

Expected<void> Position::mixture_backward(const AttentionInputs& in, const Tensor& out_gradient,
                                          AttentionGradients& wanted) {
  const Mix& mix = std::get<Mix>(plan_.rotate->kind);
  std::vector<float> cosine(learned_[0]->value.size()), sine(cosine.size());
  wanted.mix_cosine = Tensor::dense(cosine.data(), {mix.heads, mix.inputs, mix.outputs});
  wanted.mix_sine = Tensor::dense(sine.data(), {mix.heads, mix.inputs, mix.outputs});
  POSENC_CHECK(posenc::attend_backward(in, plan_, out_gradient, wanted));
  learned_[0]->add_gradient(cosine);
  learned_[1]->add_gradient(sine);
  return {};
}

Expected<void> Position::profiles_backward(const AttentionInputs& in, const Said& said,
                                           const Tensor& out_gradient, AttentionGradients& wanted,
                                           const Said& said_gradient) {
  const bool ramp = plain<Profiles>(scheme_)->curves == ProfileCurves::ramp;
  std::vector<float> made = profiles_of(said.profiles, ramp, ramp ? learned_[0] : nullptr),
                     by_profile(made.size()), by_curve(ramp ? 0 : learned_[0]->value.size());
  AttentionInputs with = in;
  with.profiles.query = dense_like(made, said.profiles);
  wanted.profiles.query = dense_like(by_profile, said.profiles);
  const std::int64_t u = said.profiles.shape[3];
  if (!ramp)  // [distance][u] of curves [u][distance]
    wanted.relative_key =
        Tensor::dense(by_curve.data(), {u, std::ssize(by_curve) / u}).swapped(0, 1);
  POSENC_CHECK(posenc::attend_backward(with, plan_, out_gradient, wanted));
  if (!ramp) learned_[0]->add_gradient(by_curve);
  const Tensor &z = said.profiles, &to = said_gradient.profiles, &by = wanted.profiles.query;
  for (std::int64_t b = 0; b < z.shape[0]; ++b)
    for (std::int64_t h = 0; h < z.shape[1]; ++h)
      for (std::int64_t t = 0; t < z.shape[2]; ++t)
        for (std::int64_t c = 0; c < u; ++c) {
          double gradient = by.get(by.offset(b, h, t, c));
          if (ramp) {
            const auto head = static_cast<std::size_t>(h);
            const double number = z.get(z.offset(b, h, t, c));
            learned_[0]->gradient[head] += static_cast<float>(gradient * softplus(number));
            gradient *= static_cast<double>(learned_[0]->value[head]) / (1 + std::exp(-number));
          }
          to.set(to.offset(b, h, t, c), gradient);
        }
  return {};
}

Expected<void> Position::transformer_xl_backward(const AttentionInputs& in,
                                                 const Tensor& out_gradient,
                                                 AttentionGradients& wanted) {
  const Relative& relative = *plan_.relative;
  const std::int64_t heads = geometry_.heads, rows = relative.row_count;
  std::vector<double> key(static_cast<std::size_t>(heads * rows * geometry_.head_dim)),
      query(relative.query ? static_cast<std::size_t>(relative.query.values.size()) : 0),
      bias(static_cast<std::size_t>(heads * std::get<BiasTable>(*plan_.bias).row_count));
  wanted.relative_key = Tensor::dense(key.data(), {heads, rows, geometry_.head_dim});
  wanted.relative_query = Tensor::dense(
      query.data(), {heads, std::ssize(query) / heads / geometry_.head_dim, geometry_.head_dim});
  wanted.bias = Tensor::dense(bias.data(), {heads, std::ssize(bias) / heads});
  POSENC_CHECK(posenc::attend_backward(in, plan_, out_gradient, wanted));
  Geometry geometry = geometry_;
  geometry.length = in.keys.length();
  POSENC_TRY(made,
             transformer_xl_gradients(*plain<TransformerXl>(scheme_), geometry, wanted.relative_key,
                                      wanted.bias, wanted.relative_query));
  const auto add = [&](std::size_t which, const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
      learned_[which]->gradient[i] += static_cast<float>(gradient[i]);
  };
  add(0, made.projection);
  add(1, made.content_bias);
  add(2, made.position_bias);
  return {};
}

Expected<void> Position::content_backward(const AttentionInputs& in, const Said& said,
                                          const Tensor& out_gradient,
                                          const AttentionGradients& wanted,
                                          const Said& said_gradient) {
  const auto& scheme = std::get<ContentScheme>(scheme_);
  ContentGradients all{.q = wanted.q, .k = wanted.k, .v = wanted.v};
  std::vector<std::vector<float>> parts;
  parts.reserve(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i)
    all.*gradient_named(parts_[i].name) =
        view(parts_[i], parts.emplace_back(learned_[i]->value.size()));
  const std::vector<const TableInfo*> tables = said_tables();
  std::vector<float> by_rotated(rotated_.size());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    all.*gradient_named(tables[i]->name) = said_gradient.tables[i];
    if (const auto* const rotated = rotated_of(scheme, tables[i]->name))
      all.*gradient_named(rotated->name) = dense_like(by_rotated, said.tables[i]);
  }
  Expected<void> done = posenc::attend_backward(in, scheme, plan_, out_gradient, all);
  for (std::size_t i = 0; i < tables.size() && done; ++i) {
    if (rotated_of(scheme, tables[i]->name) == nullptr) continue;
    const Tensor by = dense_like(by_rotated, said.tables[i]);
    done = rotate_transpose(turning_back(by.shape[3]), by, in.keys, Side::key, by, in.threads);
    if (done) add_normalized_gradient(said.tables[i], by, said_gradient.tables[i]);
  }
  for (std::size_t i = 0; i < parts.size() && done; ++i) learned_[i]->add_gradient(parts[i]);
  return done;
}

Expected<void> Position::add_backward(const Positions& positions, const Tensor& gradient) {
  if (!plan_.add) return {};
  if (plain<Learned>(scheme_) == nullptr)
    return posenc::add_backward(plan_, positions, gradient, gradient);
  Parameter& table = *learned_[0];
  std::vector<float> part(table.value.size());
  const Tensor rows =
      Tensor::dense(part.data(), {std::ssize(part) / geometry_.width, geometry_.width});
  const Expected<void> done = posenc::add_backward(plan_, positions, gradient, gradient, rows);
  if (done) table.add_gradient(part);
  return done;
}

}  // namespace posenc::lab
