// posenc itself before `posenc conform`, and an example of an adapter in C++: every operation by the
// public headers.
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "posenc/posenc.h"

namespace {

using nlohmann::json;
using Doubles = std::vector<double>;
using Ids = std::vector<std::int64_t>;

// What cannot be done is said to `posenc conform`, which shows it.
template <class T>
T take(posenc::Expected<T> value) {
  if (!value) throw std::runtime_error(value.error().message());
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

Doubles flat(const json& of) {
  if (!of.is_array()) return {of.get<double>()};
  Doubles all;
  for (const json& part : of)
    for (const double x : flat(part)) all.push_back(x);
  return all;
}

// [token][head][channel], seen as [head, token, channel].
struct Heads {
  std::int64_t tokens, heads, dim;
  Doubles values;
  explicit Heads(const json& of)
      : tokens(std::ssize(of)),
        heads(std::ssize(of[0])),
        dim(std::ssize(of[0][0])),
        values(flat(of)) {}
  posenc::Tensor view() {
    return posenc::Tensor::dense(values.data(), {tokens, heads, dim}).swapped(0, 1);
  }
};

posenc::Positions positions(const json& of) {
  if (!of[0].is_array()) return take(posenc::Positions::signed_ids(of.get<Ids>()));
  Ids all;
  for (const json& row : of)
    for (const json& at : row) all.push_back(at);
  return take(posenc::Positions::signed_ids(all, std::ssize(of)));
}

posenc::Plan plan_of(const json& in) {
  posenc::Plan plan;
  posenc::Rotate& rotate = plan.rotate.emplace();
  const Doubles f = in["inv_freq"];
  rotate.slice = {in.value("pairing", "halves") == "halves" ? posenc::Pairing::halves
                                                            : posenc::Pairing::interleaved,
                  in.value("first_dim", 0), 2 * std::ssize(f)};
  rotate.amplitude = in["attention_factor"];
  rotate.frequencies.radians = f;
  if (in.contains("axis_of_pair")) {
    rotate.frequencies.axes = 3;
    rotate.frequencies.radians.assign(3 * f.size(), 0);
    for (std::size_t r = 0; r < f.size(); ++r)
      rotate.frequencies.radians[in["axis_of_pair"][r].get<std::size_t>() * f.size() + r] = f[r];
  }
  return plan;
}

posenc::Plan plan_of_config(const json& in) {
  const posenc::Model model = take(posenc::read_config(in["config"].dump()));
  const posenc::LayerGroup* group = posenc::find_group(model, in["layer"], posenc::Stack::text);
  if (!group) group = posenc::find_group(model, in["layer"], posenc::Stack::decoder);
  if (!group) throw std::runtime_error("no such layer");
  return take(posenc::compile(*group, in.value("length", 0)));
}

json frequencies(const json& in) {
  const posenc::Rotate rotate = plan_of_config(in).rotate.value();
  const posenc::Frequencies& all = rotate.frequencies;
  Doubles f(static_cast<std::size_t>(rotate.pairs()));  // of several axes a pair takes one
  for (std::size_t i = 0; i < all.radians.size(); ++i) f[i % f.size()] += all.radians[i];
  return {{"inv_freq", f}, {"attention_factor", rotate.amplitude}};
}

json cos_sin(const json& in) {
  const posenc::Plan plan = plan_of(in);
  const auto pairs = in["inv_freq"].size(), tokens = in["positions"].size();
  Doubles x(tokens * 2 * pairs), cos, sin;  // (1, 0) rotated is (cos, sin)
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i / pairs % 2 == 0 ? 1 : 0;
  const posenc::Tensor view = posenc::Tensor::dense(
      x.data(), {1, static_cast<std::int64_t>(tokens), static_cast<std::int64_t>(2 * pairs)});
  take(posenc::rotate(plan, view, positions(in["positions"]), posenc::Side::query, view));
  for (std::size_t i = 0; i < x.size(); ++i) (i / pairs % 2 == 0 ? cos : sin).push_back(x[i]);
  return {{"cos", cos}, {"sin", sin}};
}

json rotated(const posenc::Plan& plan, const json& in) {
  Heads q(in["q"]), k(in["k"]);
  const posenc::Positions at = positions(in["positions"]);
  if (plan.rotate) {
    take(posenc::rotate(plan, q.view(), at, posenc::Side::query, q.view()));
    take(posenc::rotate(plan, k.view(), at, posenc::Side::key, k.view()));
  }
  return {{"q", q.values}, {"k", k.values}};
}

json rekey(const json& in) {
  posenc::Plan plan = plan_of(in);
  plan.rotate->amplitude = 1;
  Ids step = in["to"];
  for (std::size_t t = 0; t < step.size(); ++t) step[t] -= in["from"][t].get<std::int64_t>();
  Heads k(in["k"]);
  take(posenc::rotate(plan, k.view(), positions(step), posenc::Side::key, k.view()));
  return {{"k", k.values}};
}

json rows(const posenc::Positions& at, std::int64_t added = 0) {
  json all = json::array();
  for (std::int64_t axis = 0; axis < at.axes(); ++axis)
    for (std::int64_t b = 0; b < at.batch(); ++b) {
      Ids row;
      for (std::int64_t t = 0; t < at.size(); ++t) row.push_back(at.at(t, b, axis) + added);
      all.push_back(row);
    }
  return {{"positions", all}};
}

json ids(const json& in) {
  if (in.contains("cu_seqlens"))
    return rows(take(posenc::Positions::packed(in["cu_seqlens"].get<Ids>())));
  if (in.contains("chunks")) {
    posenc::Positions all = posenc::Positions::range(0, 0);
    for (const json& count : in["chunks"])
      take(all.append(posenc::Positions::range(all.size(), count)));
    return rows(all);
  }
  if (in.contains("image_grid_thw")) {
    Ids grids;
    for (const json& grid : in["image_grid_thw"])
      for (const json& side : grid) grids.push_back(side);
    return rows(take(posenc::vision_positions(in["input_ids"].get<Ids>(), grids, {},
                                              {.image_token_id = in["image_token_id"],
                                               .spatial_merge_size = in["spatial_merge_size"]},
                                              take(posenc::vision_rule("qwen2_vl"))))
                    .positions);
  }
  const bool learned = in.contains("padding_idx");
  std::vector<std::uint8_t> mask;
  const json& of = in[learned ? "input_ids" : "mask"];
  for (const json& row : of)
    for (const json& value : row) mask.push_back(learned ? value != in["padding_idx"] : value != 0);
  const auto at = take(
      posenc::Positions::from_mask(mask, std::ssize(of), in.value("cached", 0), learned ? -1 : 0));
  return rows(at, learned ? in["padding_idx"].get<std::int64_t>() + 1 : 0);
}

json bias(const json& in) {
  if (in["kind"] == "t5") {
    Ids buckets;
    for (const json& relative : in["relative_positions"])
      buckets.push_back(take(
          posenc::t5_bucket(relative, in["num_buckets"], in["max_distance"], in["bidirectional"])));
    return {{"buckets", buckets}};
  }
  Doubles slopes = take(posenc::alibi_slopes(in["heads"]));
  if (in.contains("local_heads")) {
    const auto first = slopes.begin() + in["first_head"].get<std::ptrdiff_t>();
    return {{"slopes", Doubles(first, first + in["local_heads"].get<std::ptrdiff_t>())}};
  }
  if (!in.contains("queries")) return {{"slopes", slopes}};
  const posenc::Plan plan = take(posenc::compile(posenc::Alibi{}, {.heads = in["heads"]}));
  const posenc::Positions queries = positions(in["queries"]), keys = positions(in["keys"]);
  Doubles out(slopes.size() * static_cast<std::size_t>(queries.size() * keys.size()));
  take(posenc::bias(
      plan, queries, keys,
      posenc::Tensor::dense(out.data(), {std::ssize(slopes), queries.size(), keys.size()})));
  return {{"bias", out}};
}

json mask(const json& in) {
  const posenc::Mask mask{
      .causal = in["causal"], .window = in.value("window", 0), .chunk = in.value("chunk", 0)};
  const std::int64_t queries = in["queries"], keys = in["keys"];
  posenc::Positions documents = posenc::Positions::range(0, keys);
  if (in.contains("cu_seqlens"))
    documents = take(posenc::Positions::packed(in["cu_seqlens"].get<Ids>()));
  Ids visible;
  for (std::int64_t q = keys - queries; q < keys; ++q)
    for (std::int64_t k = 0; k < keys; ++k)
      visible.push_back((mask.sees(q, k) || (k < in.value("sink_tokens", 0) && k <= q)) &&
                        documents.segment(q) == documents.segment(k) &&
                        (!in.contains("keep") || in["keep"][static_cast<std::size_t>(k)] != 0));
  return {{"visible", visible}};
}

json scores(const json& in) {
  posenc::Plan plan;
  const std::int64_t dim = in["head_dim"], queries = std::ssize(in["q"]),
                     keys = std::ssize(in["k"]);
  plan.logits.multiplier = in["scale"].get<double>() * std::sqrt(static_cast<double>(dim));
  plan.logits.softcap = in.value("softcap", 0.0);
  if (in.contains("temperature")) {
    plan.logits.beta = in["temperature"]["scale"];
    plan.logits.floor = in["temperature"]["length"];
    plan.logits.offset = 1;
  }
  Doubles q = flat(in["q"]), k = flat(in["k"]), each(static_cast<std::size_t>(keys * keys)),
          out(static_cast<std::size_t>(queries * keys));
  for (std::int64_t i = 0; i < keys; ++i)
    each[static_cast<std::size_t>(i * keys + i)] = 1;  // the values: what comes out are weights
  double sink = in.value("sink", 0.0);
  Ids at{0};  // the keys stand right behind one another, the last as the last query does
  const Ids queries_at = in["positions"];
  at.resize(static_cast<std::size_t>(keys - queries), 0);
  for (const std::int64_t position : queries_at) at.push_back(position);
  take(posenc::attend(
      {.q = posenc::Tensor::dense(q.data(), {1, 1, queries, dim}),
       .k = posenc::Tensor::dense(k.data(), {1, 1, keys, dim}),
       .v = posenc::Tensor::dense(each.data(), {1, 1, keys, keys}),
       .queries = take(posenc::Positions::ids(queries_at)),
       .keys = take(posenc::Positions::ids(at)),
       .sink_logits = in.contains("sink") ? posenc::Tensor::dense(&sink, {1}) : posenc::Tensor{}},
      plan, posenc::Tensor::dense(out.data(), {1, 1, queries, keys})));
  return {{"probabilities", out}};
}

json added(const json& in) {
  const posenc::Plan plan = take(posenc::compile(
      posenc::Sinusoidal{.layout = in["layout"] == "interleaved" ? posenc::WaveLayout::interleaved
                                                                 : posenc::WaveLayout::concatenated,
                         .spacing = in["spacing"] == "ends" ? posenc::WaveSpacing::ends
                                                            : posenc::WaveSpacing::width,
                         .base = in["base"]},
      {.width = in["width"]}));
  const posenc::Positions at = positions(in["positions"]);
  Doubles out(static_cast<std::size_t>(at.size()) * in["width"].get<std::size_t>());
  take(posenc::position_vectors(plan, at,
                                posenc::Tensor::dense(out.data(), {1, at.size(), in["width"]})));
  return {{"vectors", out}};
}

json hello(const json&) { return {}; }

}  // namespace

int main() {
  const std::map<std::string, json (*)(const json&)> operations{
      {"hello", hello},
      {"frequencies", frequencies},
      {"cos_sin", cos_sin},
      {"rotate", [](const json& in) { return rotated(plan_of(in), in); }},
      {"model", [](const json& in) { return rotated(plan_of_config(in), in); }},
      {"rekey", rekey},
      {"positions", ids},
      {"bias", bias},
      {"mask", mask},
      {"scores", scores},
      {"added", added}};
  for (std::string line; std::getline(std::cin, line);) {
    const json request = json::parse(line);
    json answer{{"id", request["id"]}};
    const auto found = operations.find(request["operation"]);
    if (found == operations.end()) {
      answer["unsupported"] = "no such operation";
    } else if (found->first == "hello") {
      answer.update({{"name", "posenc"}, {"version", POSENC_VERSION}, {"dtype", "float64"}});
    } else {
      try {
        answer["output"] = found->second(request["input"]);
      } catch (const std::exception& error) {
        answer["error"] = error.what();
      }
    }
    std::cout << answer.dump() << std::endl;
  }
}
