// Plans: compiled from values, read as numbers, applied to arrays.
#include <nanobind/stl/pair.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/apply.h"
#include "posenc/explain.h"
#include "posenc/features.h"
#include "posenc/gradients.h"
#include "src/core/some_heads.h"
#include "state.h"

namespace posenc::python {

Angles angles_of(std::string_view word) {
  for (const Angles each : {Angles::exact, Angles::hf_float, Angles::ggml_float})
    if (name(each) == word) return each;
  refuse("plan", "angles must be exact, hf_float or ggml_float", word);
}

Side side_of(std::string_view word) {
  constexpr std::string_view sides[] = {"query", "key", "value"};
  for (int side = 0; side < 3; ++side)
    if (sides[side] == word) return static_cast<Side>(side);
  refuse("rotate", "side must be query, key or value", word);
}

Table copied_table(const Tensor& values) {
  const Tensor seen = values.with_rank(Tensor::max_rank);
  std::vector<double> copy;
  copy.reserve(static_cast<std::size_t>(values.size()));
  for (std::int64_t a = 0; a < seen.shape[0]; ++a)
    for (std::int64_t b = 0; b < seen.shape[1]; ++b)
      for (std::int64_t c = 0; c < seen.shape[2]; ++c)
        for (std::int64_t d = 0; d < seen.shape[3]; ++d)
          copy.push_back(seen.get(seen.offset(a, b, c, d)));
  const std::int64_t columns =
      values.rank > 0 ? values.shape[static_cast<std::size_t>(values.rank - 1)] : 1;
  Table table = Table::own(std::move(copy), columns > 0 ? values.size() / columns : 0, columns);
  if (values.rank != 2) {
    std::int64_t step = 1;
    table.values.rank = values.rank;
    for (int axis = values.rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      table.values.shape[at] = values.shape[at];
      table.values.stride[at] = step;
      step *= values.shape[at];
    }
  }
  return table;
}

nb::object table_array(const Table& table) {
  if (!table) return nb::none();
  const Table copy = copied_table(table.values);
  const Tensor& values = copy.values;
  return numbers(*copy.owned, {values.shape.begin(), values.shape.begin() + values.rank});
}

const Rotate& rotation(const CompiledPlan& plan, std::string_view where) {
  if (!plan.plan.rotate)
    refuse(where, "the plan must rotate", "one that does not", "ask posenc.explain what it does");
  return *plan.plan.rotate;
}

namespace {

CompiledPlan compiled(const Value& value, std::int64_t head_dim, std::int64_t heads,
                      std::int64_t kv_heads, std::int64_t width, std::int64_t length,
                      std::pair<std::int64_t, std::int64_t> grid, std::string_view angles) {
  const auto* const scheme = std::get_if<Scheme>(&value.held);
  if (!scheme)
    refuse("plan", "a scheme is needed",
           std::visit([](const auto& held) { return info(held).name; }, value.held),
           std::holds_alternative<Scaling>(value.held)
               ? "put the scaling into posenc.Rope(scaling=...)"
               : "pass it to posenc.attend(..., scheme=)");
  const Geometry geometry{.width = width,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .head_dim = head_dim,
                          .length = length,
                          .grid_height = grid.first,
                          .grid_width = grid.second};
  return {unwrap(compile(*scheme, geometry, angles_of(angles))), geometry};
}

double amplitude(const CompiledPlan& p) { return p.plan.rotate ? p.plan.rotate->amplitude : 1.0; }

nb::object inv_freq(const CompiledPlan& plan) {
  const Rotate& rotate = rotation(plan, "inv_freq");
  if (rotate.frequencies.heads == 1 && rotate.frequencies.axes == 1)
    return numbers(rotate.frequencies.radians, {rotate.pairs()});
  if (rotate.frequencies.heads == 1)
    return numbers(rotate.frequencies.radians, {rotate.frequencies.axes, rotate.pairs()});
  return numbers(rotate.frequencies.radians,
                 {rotate.frequencies.heads, rotate.frequencies.axes, rotate.pairs()});
}

nb::object turns(const CompiledPlan& plan) {
  const Rotate& rotate = rotation(plan, "turns");
  std::vector<std::uint64_t> words;
  for (const Turns& each : unwrap(rotation_turns(plan.plan))) {
    words.push_back(each.high);
    words.push_back(each.low);
  }
  return numbers(words, {rotate.frequencies.heads, rotate.frequencies.axes, rotate.pairs(), 2});
}

// A plan written by hand: what every rotation comes down to.
CompiledPlan of_frequencies(nb::handle inv_freq, std::string_view pairing, std::int64_t first_dim,
                            std::int64_t blocks, double attention_factor) {
  constexpr std::string_view where = "of_frequencies";
  const Array given = array_of(inv_freq, where, "inv_freq", Access::read);
  const Tensor frequency = given.tensor.with_rank(3);
  Rotate rotate_part{
      .slice = {.pairing =
                    pairing == name(Pairing::interleaved) ? Pairing::interleaved : Pairing::halves,
                .first_dim = first_dim,
                .rotary_dim = 2 * frequency.shape[2],
                .blocks = blocks},
      .frequencies = {.heads = frequency.shape[0], .axes = frequency.shape[1]},
      .amplitude = attention_factor};
  if (pairing != name(rotate_part.slice.pairing))
    refuse(where, "pairing must be halves or interleaved", pairing);
  if (given.tensor.rank > 3)
    refuse(where, "inv_freq must be [pairs], [axes, pairs] or [heads, axes, pairs]",
           std::to_string(given.tensor.rank) + " axes");
  for (std::int64_t h = 0; h < frequency.shape[0]; ++h)
    for (std::int64_t a = 0; a < frequency.shape[1]; ++a)
      for (std::int64_t p = 0; p < frequency.shape[2]; ++p)
        rotate_part.frequencies.radians.push_back(frequency.get(frequency.offset(h, a, p)));
  Plan plan;
  plan.rotate = std::move(rotate_part);
  return {unwrap(checked(std::move(plan))), {}};
}

CompiledPlan with_table(CompiledPlan plan, std::string_view part, nb::handle values) {
  constexpr std::string_view where = "with_table";
  const Array given = array_of(values, where, "values", Access::read);
  const Table table = copied_table(given.tensor);
  Plan& made = plan.plan;
  const auto missing = [&]() -> void {
    refuse(where, "the plan has no learned table of that name", part);
  };
  if (part == "add") {
    auto* const rows = made.add ? std::get_if<Rows>(&made.add->kind) : nullptr;
    if (!rows) missing();
    rows->table = table;
  } else if (part == "bias") {
    auto* const rows = made.bias ? std::get_if<BiasTable>(&*made.bias) : nullptr;
    if (!rows) missing();
    rows->values = table;
  } else if (part == "temperature") {
    unwrap(set_temperature(made.logits, given.tensor));
  } else if (made.relative && (part == "query" || part == "key" || part == "value")) {
    (part == "query" ? made.relative->query
     : part == "key" ? made.relative->key
                     : made.relative->value) = table;
  } else {
    refuse(where, "part must be add, bias, query, key, value or temperature, and the plan's", part);
  }
  made = unwrap(checked(std::move(made), plan.geometry.head_dim));
  return plan;
}

// The learned (or computed) table of a part, which with_table gives; null where the plan has none.
const Table* part_table(const Plan& plan, std::string_view part) {
  const auto kind_of = [](auto& from) { return from ? &*from : nullptr; };
  if (part == "add") {
    const Add* const add = kind_of(plan.add);
    const Rows* const rows = add ? std::get_if<Rows>(&add->kind) : nullptr;
    return rows ? &rows->table : nullptr;
  }
  if (part == "bias") {
    const BiasTable* const rows = plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr;
    return rows ? &rows->values : nullptr;
  }
  const Relative* const relative = kind_of(plan.relative);
  if (part == "query") return relative ? &relative->query : nullptr;
  if (part == "key") return relative ? &relative->key : nullptr;
  if (part == "value") return relative ? &relative->value : nullptr;
  refuse("table", "part must be add, bias, query, key or value", part);
}

nb::object table_numbers(const CompiledPlan& plan, std::string_view part) {
  const Table* const table = part_table(plan.plan, part);
  return table ? table_array(*table) : nb::none();
}

// The rows of vectors by distance that belong to distances first to last, of one of the plan's
// lists.
std::vector<std::int64_t> relative_rows(const CompiledPlan& plan, std::int64_t first,
                                        std::int64_t last, std::int64_t list) {
  if (!plan.plan.relative)
    refuse("relative_rows", "the plan must have vectors by distance", "none");
  const Relative& relative = *plan.plan.relative;
  if (list < 0 || list >= relative.lists())
    refuse("relative_rows", "list must lie in 0 to " + std::to_string(relative.lists() - 1),
           std::to_string(list));
  std::vector<std::int64_t> rows;
  for (std::int64_t distance = first; distance <= last; ++distance)
    rows.push_back(unwrap(relative.list(list).at(distance)));
  return rows;
}

Temperature temperature_of(std::string_view word) {
  constexpr std::string_view words[] = {"steps", "log", "power"};
  for (std::size_t kind = 0; kind < std::size(words); ++kind)
    if (words[kind] == word) return static_cast<Temperature>(kind);
  refuse("with_logits", "temperature must be steps, log or power", word,
         "with_table(\"temperature\", …) gives a learned one");
}

CompiledPlan of_heads(const CompiledPlan& plan, std::int64_t first, std::int64_t count,
                      std::int64_t kv_first, std::int64_t kv_count) {
  for (const auto& [at, all] : {std::pair{first, count}, {kv_first, kv_count}})
    if (at < 0 || all < 1 || at > std::numeric_limits<std::int32_t>::max() - all)
      refuse("of_heads", "first must be 0 or more, and count 1 or more",
             std::to_string(at) + " and " + std::to_string(all));
  CompiledPlan made{detail::some_heads(plan.plan, {first, count}, {kv_first, kv_count}),
                    plan.geometry};
  if (made.geometry.heads != 0) made.geometry.heads = count;
  if (made.geometry.kv_heads != 0) made.geometry.kv_heads = kv_count;
  return made;
}

CompiledPlan with_logits(CompiledPlan plan, std::optional<double> multiplier,
                         std::optional<double> softcap, std::optional<std::string_view> temperature,
                         std::optional<double> beta, std::optional<double> floor,
                         std::optional<double> offset) {
  Logits& logits = plan.plan.logits;
  logits.multiplier = multiplier.value_or(logits.multiplier);
  logits.softcap = softcap.value_or(logits.softcap);
  if (temperature) logits.temperature = temperature_of(*temperature);
  logits.beta = beta.value_or(logits.beta);
  logits.floor = floor.value_or(logits.floor);
  logits.offset = offset.value_or(logits.offset);
  plan.plan = unwrap(checked(std::move(plan.plan), plan.geometry.head_dim));
  return plan;
}

nb::object query_scale(const CompiledPlan& plan, const std::vector<std::int64_t>& positions,
                       std::int64_t heads) {
  std::vector<double> scales;
  for (std::int64_t head = 0; head < heads; ++head)
    for (const std::int64_t position : positions)
      scales.push_back(plan.plan.logits.query_scale(position, head));
  return numbers(scales, {heads, std::ssize(positions)});
}

const Room& room_named(std::string_view name) {
  if (const Room* const room = find_room(name)) return *room;
  refuse("Plan", "room must be one of docs/features.md", name);
}

nb::object names_of(FeatureSet set) {
  nb::list names;
  for (const FeatureInfo& each : feature_list())
    if (set.has(each.feature)) names.append(text(each.name));
  return nb::module_::import_("builtins").attr("frozenset")(names);
}
nb::object feature_names(const CompiledPlan& p) { return names_of(features(p.plan)); }
nb::object refused_by(const CompiledPlan& p, std::string_view room) {
  return names_of(room_named(room).refused(features(p.plan)));
}
void check_room(const CompiledPlan& p, std::string_view room, std::string_view where) {
  unwrap(check_takes(room_named(room), p.plan, where));
}

void restore(CompiledPlan& plan, const std::pair<nb::object, nb::tuple>& state) {
  Geometry g;
  std::int64_t* const sizes[] = {&g.width,  &g.heads,       &g.kv_heads,  &g.head_dim,
                                 &g.length, &g.grid_height, &g.grid_width};
  for (std::size_t i = 0; i < std::size(sizes) && i < nb::len(state.second); ++i)
    if (!nb::try_cast(nb::object(state.second[i]), *sizes[i]))
      refuse("Plan", "must be unpickled from what a plan was pickled as", said(state.second),
             "pickle the plan again");
  new (&plan) CompiledPlan{plan_of_state(state.first), g};
}

}  // namespace

void bind_plans(nb::module_& m) {
  nb::class_<CompiledPlan> plan(m, "Plan",
                                "A positional encoding as tables and numbers, for one geometry.",
                                nb::dynamic_attr());
  bind_verbs(plan);
  bind_angles(plan);
  plan.def_prop_ro("inv_freq", &inv_freq,
                   "Radians per position: [pairs], or [axes, pairs], or [heads, axes, pairs].")
      .def_prop_ro("turns", &turns,
                   "The frequencies as turns in fixed point, for kernels of one's own: [heads, "
                   "axes, pairs, 2] of uint64, (high · 2^64 + low) · 2^-128 turns per position, "
                   "modulo 1.")
      .def_prop_ro("amplitude", &amplitude,
                   "On cos and sin of queries and keys: logits grow by its square.")
      .def_prop_ro("attention_factor", &amplitude,
                   "The amplitude, by the name that transformers has for it.")
      .def_prop_ro(
          "rotates", [](const CompiledPlan& p) { return p.plan.rotate.has_value(); },
          "Whether queries and keys are rotated.")
      .def_prop_ro(
          "pairing",
          [](const CompiledPlan& p) { return text(name(rotation(p, "pairing").slice.pairing)); },
          "Which channels make a pair: halves (neox, rotate_half) or interleaved (GPT-J, "
          "traditional).")
      .def_prop_ro(
          "rotary_dim",
          [](const CompiledPlan& p) { return rotation(p, "rotary_dim").slice.rotary_dim; },
          "Channels of a head that rotate.")
      .def_prop_ro(
          "first_dim",
          [](const CompiledPlan& p) { return rotation(p, "first_dim").slice.first_dim; },
          "The first of them.")
      .def_prop_ro(
          "axes",
          [](const CompiledPlan& p) { return p.plan.rotate ? p.plan.rotate->frequencies.axes : 1; },
          "Axes of the positions that it takes: 1 for text.")
      .def_prop_ro(
          "frequency_heads",
          [](const CompiledPlan& p) {
            return p.plan.rotate ? p.plan.rotate->frequencies.heads : 1;
          },
          "1 where all heads rotate alike.")
      .def_prop_ro(
          "angles_of",
          [](const CompiledPlan& p) { return text(name(rotation(p, "angles_of").angles())); },
          "Whose arithmetic forms the angles: exact, hf_float or ggml_float.")
      .def_prop_ro(
          "blocks", [](const CompiledPlan& p) { return rotation(p, "blocks").slice.blocks; },
          "Parts of the rotated channels that each have all frequencies.")
      .def_prop_ro(
          "features", &feature_names,
          "What the plan has, by the names of docs/features.md: rotation, growth, slopes, …")
      .def("refused_by", &refused_by, nb::arg("room"),
           "The features that a place of the library refuses; empty where it takes the plan. Rooms "
           "are named in docs/features.md.")
      .def("check", &check_room, nb::arg("room"), nb::arg("where") = "",
           "Raises Error where a place of the library refuses the plan, with the feature and the "
           "cure.")
      .def_prop_ro(
          "width", [](const CompiledPlan& p) { return p.geometry.width; },
          "Channels of the embedding, as it was compiled for.")
      .def_prop_ro(
          "head_dim", [](const CompiledPlan& p) { return p.geometry.head_dim; },
          "Channels of a head, as it was compiled for.")
      .def_prop_ro(
          "heads", [](const CompiledPlan& p) { return p.geometry.heads; },
          "Query heads, as it was compiled for.")
      .def_prop_ro(
          "valid",
          [](const CompiledPlan& p) -> nb::object {
            if (!p.plan.valid) return nb::none();
            const bool ends = p.plan.valid->to != std::numeric_limits<std::int64_t>::max();
            return nb::make_tuple(p.plan.valid->from,
                                  ends ? nb::cast(p.plan.valid->to) : nb::none());
          },
          "Lengths that it holds for, (from, to) with both included; None: any.")
      .def(
          "to_json", [](const CompiledPlan& p) { return to_json(p.plan); },
          "The plan as the documented JSON (docs/json.md), as text.")
      .def_static(
          "from_json",
          [](std::string_view json, std::int64_t head_dim) {
            return CompiledPlan{unwrap(read_plan(json, head_dim)), {.head_dim = head_dim}};
          },
          nb::arg("json"), nb::kw_only(), nb::arg("head_dim") = 0,
          "A plan read back from to_json(); learned tables come by with_table.")
      .def_static(
          "of_frequencies", &of_frequencies, nb::arg("inv_freq"), nb::kw_only(),
          nb::arg("pairing") = "halves", nb::arg("first_dim") = 0, nb::arg("blocks") = 1,
          nb::arg("attention_factor") = 1.0,
          "A plan written by hand, of an array [pairs], [axes, pairs] or [heads, axes, pairs].")
      .def("with_table", &with_table, nb::arg("part"), nb::arg("values"),
           "A copy with a learned table: part add, bias, query, key, value or temperature.")
      .def("table", &table_numbers, nb::arg("part"),
           "The table of a part, add, bias, query, key or value, in float64; None where there is "
           "none.")
      .def("relative_rows", &relative_rows, nb::arg("first"), nb::arg("last"), nb::arg("list") = 0,
           "The rows of the tables query, key and value that belong to distances (query - key) "
           "first to last; of a plan that sums several rows, those of one of its lists.")
      .def("with_logits", &with_logits, nb::kw_only(), nb::arg("multiplier").none() = nb::none(),
           nb::arg("softcap").none() = nb::none(), nb::arg("temperature").none() = nb::none(),
           nb::arg("beta").none() = nb::none(), nb::arg("floor").none() = nb::none(),
           nb::arg("offset").none() = nb::none(),
           "A copy whose logits are multiplied otherwise: multiplier beside 1/√head_dim, softcap "
           "c·tanh(z/c), a temperature (steps, log or power) that grows with the query's "
           "position. What is None stays.")
      .def("query_scale", &query_scale, nb::arg("position_ids"), nb::arg("heads") = 1,
           "What logits of queries at these positions are multiplied by, beside 1/√head_dim: "
           "[heads, positions].")
      .def("of_heads", &of_heads, nb::arg("first"), nb::arg("count"), nb::arg("kv_first"),
           nb::arg("kv_count"),
           "The part of the plan that concerns query heads first to first + count - 1, and key "
           "heads kv_first to kv_first + kv_count - 1: for those who share heads out.")
      .def(
          "merged",
          [](const CompiledPlan& a, const CompiledPlan& b) {
            return CompiledPlan{unwrap(merged(a.plan, b.plan)), a.geometry};
          },
          nb::arg("other"),
          "One plan out of two that act at different places: a learned table at the input, a "
          "rotation in the attention.")
      .def("_repr_html_",
           [](nb::object self) {
             return nb::module_::import_("posenc.display").attr("plan_html")(self);
           })
      .def("__repr__",
           [](nb::object self) {
             return nb::module_::import_("posenc.display").attr("plan_text")(self);
           })
      .def(
          "to_dict",
          [](const CompiledPlan& p) {
            return nb::module_::import_("json").attr("loads")(text(to_json(p.plan)));
          },
          "The plan as the documented JSON (docs/json.md), as a dict.")
      .def(
          "plot",
          [](nb::object self, nb::handle kind, nb::handle ax) {
            return nb::module_::import_("posenc.display").attr("plot_plan")(self, kind, ax);
          },
          nb::arg("kind") = "wavelengths", nb::arg("ax").none() = nb::none(),
          "Draws with matplotlib and returns the Axes: wavelengths, or bias.")
      .def(
          "same_as",
          [](nb::object self, nb::handle other, std::int64_t at) {
            return nb::module_::import_("posenc.tools").attr("plan_diff")(self, other, at);
          },
          nb::arg("other"), nb::kw_only(), nb::arg("at") = 0,
          "Whether another plan does the same, as a Report: true where it does, else its findings "
          "say which part, which pair and from which position on. at: tokens to tell it for.")
      .def("__eq__",
           [](const CompiledPlan& a, nb::handle b) {
             return nb::isinstance<CompiledPlan>(b) &&
                    a.plan == nb::cast<const CompiledPlan&>(b).plan;
           })
      .def("__hash__", [](const CompiledPlan& p) { return hash_of(p.plan); })
      .def("__copy__", [](const CompiledPlan& p) { return p; })
      .def(
          "__deepcopy__", [](const CompiledPlan& p, nb::handle) { return p; }, nb::arg("memo"))
      .def("__getstate__",
           [](const CompiledPlan& p) {
             const Geometry& g = p.geometry;
             return nb::make_tuple(state_of(p.plan),
                                   nb::make_tuple(g.width, g.heads, g.kv_heads, g.head_dim,
                                                  g.length, g.grid_height, g.grid_width));
           })
      .def("__setstate__", &restore);
  m.def(
      "plan",
      [](const Value& scheme, std::int64_t head_dim, std::int64_t heads, std::int64_t kv_heads,
         std::int64_t width, std::int64_t length, std::int64_t grid_height, std::int64_t grid_width,
         std::string_view angles) {
        return compiled(scheme, head_dim, heads, kv_heads, width, length, {grid_height, grid_width},
                        angles);
      },
      nb::arg("scheme"), nb::kw_only(), nb::arg("head_dim") = 0, nb::arg("heads") = 0,
      nb::arg("kv_heads") = 0, nb::arg("width") = 0, nb::arg("length") = 0,
      nb::arg("grid_height") = 0, nb::arg("grid_width") = 0, nb::arg("angles") = "exact",
      "posenc.plan of a scheme.");
}

}  // namespace posenc::python
