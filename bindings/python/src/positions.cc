// Positions: where each token stands.
#include "posenc/positions.h"

#include <nanobind/stl/pair.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"

namespace posenc::python {
namespace {

// Integers of any array or list, with their shape.
struct Integers {
  std::vector<std::int64_t> values, shape;
};

Integers integers_of(nb::handle given, std::string_view name) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("ascontiguousarray")(given, nb::arg("dtype") = "int64");
  const auto seen = nb::cast<nb::ndarray<const std::int64_t, nb::c_contig>>(array);
  Integers out;
  out.values.assign(seen.data(), seen.data() + seen.size());
  for (std::size_t axis = 0; axis < seen.ndim(); ++axis)
    out.shape.push_back(seen.shape_ptr()[axis]);
  if (out.shape.empty()) refuse("positions", std::string(name) + " must be a list", "a number");
  return out;
}

Positions from_mask(nb::handle mask, std::int64_t cached, std::int64_t padding) {
  const Integers given = integers_of(mask, "mask");
  const std::vector<std::uint8_t> keep(given.values.begin(), given.values.end());
  const std::int64_t batch = given.shape.size() > 1 ? given.shape[0] : 1;
  return unwrap(Positions::from_mask(keep, batch, cached, padding));
}

nb::object ids_of(const Positions& positions) {
  std::vector<std::int64_t> ids;
  for (std::int64_t axis = 0; axis < positions.axes(); ++axis)
    for (std::int64_t b = 0; b < positions.batch(); ++b)
      for (std::int64_t t = 0; t < positions.size(); ++t) ids.push_back(positions.at(t, b, axis));
  const nb::bytes bytes(reinterpret_cast<const char*>(ids.data()),
                        ids.size() * sizeof(std::int64_t));
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object flat = numpy.attr("frombuffer")(bytes, "int64");
  if (positions.axes() > 1)
    return flat.attr("reshape")(positions.axes(), positions.batch(), positions.size())
        .attr("copy")();
  return flat.attr("reshape")(positions.batch(), positions.size()).attr("copy")();
}

GridAdvance advance_of(std::string_view name) {
  if (name == "past_largest") return GridAdvance::past_largest;
  if (name == "past_height_width") return GridAdvance::past_height_width;
  refuse("positions.vision", "advance must be past_largest or past_height_width", name);
}

FrameStep step_of(std::string_view name) {
  if (name == "one") return FrameStep::one;
  if (name == "seconds") return FrameStep::seconds;
  if (name == "per_frame") return FrameStep::per_frame;
  if (name == "float_seconds") return FrameStep::float_seconds;
  if (name == "real_seconds") return FrameStep::real_seconds;
  refuse("positions.vision", "step must be one, seconds, per_frame, float_seconds or real_seconds",
         name);
}

nb::tuple vision(nb::handle input_ids, nb::handle image_grid_thw, nb::handle video_grid_thw,
                 std::string_view rule_name, std::int64_t image_token_id,
                 std::int64_t video_token_id, std::int64_t audio_token_id,
                 std::int64_t spatial_merge_size, std::optional<std::string_view> advance,
                 std::optional<std::string_view> step, std::optional<double> tokens_per_second,
                 nb::handle seconds_per_grid) {
  VisionRule rule = unwrap(vision_rule(rule_name));
  if (advance) rule.advance = advance_of(*advance);
  if (step) rule.step = step_of(*step);
  if (tokens_per_second) rule.tokens_per_second = *tokens_per_second;
  const auto grids = [](nb::handle given, std::string_view name) {
    return given.is_none() ? std::vector<std::int64_t>() : integers_of(given, name).values;
  };
  std::vector<double> seconds;
  if (!seconds_per_grid.is_none())
    for (const nb::handle each : seconds_per_grid)
      seconds.push_back(nb::cast<double>(nb::float_(each)));
  const VisionPositions made = unwrap(vision_positions(integers_of(input_ids, "input_ids").values,
                                                       grids(image_grid_thw, "image_grid_thw"),
                                                       grids(video_grid_thw, "video_grid_thw"),
                                                       {.image_token_id = image_token_id,
                                                        .video_token_id = video_token_id,
                                                        .audio_token_id = audio_token_id,
                                                        .spatial_merge_size = spatial_merge_size},
                                                       rule, seconds));
  return nb::make_tuple(made.positions, made.delta);
}

// A range as its ends; ids as they are, [axis][batch][seq], with the bounds of packed sequences.
nb::tuple state_of_positions(const Positions& p) {
  for (std::int64_t t = 0; t < p.size(); ++t)
    if (p.order(t) != t || (t > 0 && p.segment(t) < p.segment(t - 1)))
      refuse("Positions", "must be of tokens in their text's order to be pickled",
             "token " + std::to_string(p.order(t)) + " at place " + std::to_string(t),
             "pickle the whole text's, and select again");
  if (p.contiguous())
    return nb::make_tuple(nb::make_tuple(p.at(0), p.size()), nb::none(), nb::none());
  std::vector<std::int64_t> ids, bounds;
  for (std::int64_t axis = 0; axis < p.axes(); ++axis)
    for (std::int64_t b = 0; b < p.batch(); ++b)
      for (std::int64_t t = 0; t < p.size(); ++t) ids.push_back(p.at(t, b, axis));
  for (std::int64_t t = 0; t < p.size(); ++t)
    while (std::ssize(bounds) <= p.segment(t)) bounds.push_back(t);
  if (bounds.size() > 1) bounds.push_back(p.size());
  return nb::make_tuple(nb::make_tuple(p.axes(), p.batch()), ids,
                        bounds.size() > 1 ? nb::cast(bounds) : nb::none());
}

void restore_positions(Positions& p, const nb::tuple& state) {
  std::pair<std::int64_t, std::int64_t> sizes;
  std::vector<std::int64_t> ids, bounds;
  const bool whole = nb::len(state) == 3 && nb::try_cast(nb::object(state[0]), sizes) &&
                     (state[1].is_none() || nb::try_cast(nb::object(state[1]), ids)) &&
                     (state[2].is_none() || nb::try_cast(nb::object(state[2]), bounds));
  if (!whole)
    refuse("Positions", "must be unpickled from what positions were pickled as", said(state),
           "pickle them again");
  if (state[1].is_none())
    new (&p) Positions(Positions::range(sizes.first, sizes.second));
  else if (bounds.empty())
    new (&p) Positions(unwrap(Positions::signed_ids(ids, sizes.first, sizes.second)));
  else
    new (&p) Positions(unwrap(Positions::packed(bounds, ids)));
}

}  // namespace

void bind_positions(nb::module_& m) {
  const VisionTokens tokens;
  nb::class_<Positions>(m, "Positions",
                        "Where each token stands: 64-bit integers [axis][batch][seq].")
      .def_prop_ro("axes", &Positions::axes, "1 for text, 2 for pictures, 3 for videos.")
      .def_prop_ro("batch", &Positions::batch, "Sequences; 1 stands for any number.")
      .def_prop_ro("length", &Positions::length, "Largest position plus one.")
      .def("__len__", &Positions::size)
      .def(
          "shifted",
          [](const Positions& p, std::int64_t offset) { return unwrap(p.shifted(offset)); },
          nb::arg("offset"), "The same tokens moved by an offset.")
      .def(
          "appended",
          [](Positions p, const Positions& more) {
            unwrap(p.append(more));
            return p;
          },
          nb::arg("more"), "These tokens, and those of others behind them.")
      .def(
          "slice",
          [](const Positions& p, std::int64_t sequence, std::int64_t first, std::int64_t count) {
            if (sequence < 0 || sequence >= p.batch() || first < 0 || count < 0 ||
                count > p.size() - first)
              throw nb::index_error("the positions have no such tokens");
            return p.slice(sequence, first, count);
          },
          nb::arg("sequence"), nb::arg("first"), nb::arg("count"),
          "Tokens first to first + count - 1 of one sequence.")
      .def_prop_ro(
          "segments",
          [](const Positions& p) {
            std::vector<std::int64_t> all;
            for (std::int64_t t = 0; t < p.size(); ++t) all.push_back(p.segment(t));
            return all;
          },
          "Which packed sequence each token belongs to; 0 where none is packed.")
      .def("numpy", &ids_of,
           "The ids: [batch, seq], or [axes, batch, seq] where there are several axes.")
      .def("__eq__",
           [](const Positions& a, nb::handle b) {
             return nb::isinstance<Positions>(b) && a == nb::cast<const Positions&>(b);
           })
      .def("__hash__",
           [](const Positions& p) {
             const std::int64_t last = p.size() > 0 ? p.at(p.size() - 1) : 0;
             return nb::hash(nb::make_tuple(p.axes(), p.batch(), p.size(), last));
           })
      .def("__copy__", [](const Positions& p) { return p; })
      .def(
          "__deepcopy__", [](const Positions& p, nb::handle) { return p; }, nb::arg("memo"))
      .def("__getstate__", &state_of_positions)
      .def("__setstate__", &restore_positions);
  m.def(
      "vision_rules",
      [] {
        nb::list all;
        for (const NamedVisionRule& each : vision_rules())
          all.append(nb::make_tuple(text(each.name), text(each.models)));
        return all;
      },
      "(name, whose it is) of the rules that positions.vision takes.");
  m.def("positions_range", &Positions::range, nb::arg("first"), nb::arg("count"),
        "first, first + 1, ..., count of them, for every sequence; costs no memory.");
  m.def(
      "positions_ids", [](nb::handle ids) { return positions_of(ids, 0, "positions.ids"); },
      nb::arg("ids"), "Ids as they are: [seq], [batch, seq] or [axes, batch, seq].");
  m.def(
      "positions_signed_ids",
      [](nb::handle ids) {
        const Integers given = integers_of(ids, "ids");
        const std::size_t rank = given.shape.size();
        return unwrap(Positions::signed_ids(given.values, rank > 2 ? given.shape[0] : 1,
                                            rank > 1 ? given.shape[rank - 2] : 1));
      },
      nb::arg("ids"), "As ids, negative ones too.");
  m.def(
      "positions_grid",
      [](const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& first) {
        return unwrap(Positions::grid(sizes, first));
      },
      nb::arg("sizes"), nb::arg("first") = std::vector<std::int64_t>(),
      "Of a grid of these sizes, an axis each, row by row; first: where each axis begins, 0 "
      "without.");
  m.def("positions_from_mask", &from_mask, nb::arg("mask"), nb::arg("cached") = 0,
        nb::arg("padding") = 0,
        "Of an attention mask [batch, seq]: a token's position is the number of tokens before it. "
        "The first `cached` columns are counted and not returned; padding stands at `padding`, 0 "
        "or -1.");
  m.def(
      "positions_packed",
      [](nb::handle cu_seqlens) {
        return unwrap(Positions::packed(integers_of(cu_seqlens, "cu_seqlens").values));
      },
      nb::arg("cu_seqlens"),
      "Of packed sequences, cu_seqlens = [0, n0, n0 + n1, ...]: positions restart at every "
      "boundary.");
  m.def(
      "positions_patches",
      [](std::int64_t height, std::int64_t width, std::int64_t spatial_merge_size,
         std::int64_t frames) {
        return unwrap(patch_positions(height, width, spatial_merge_size, frames));
      },
      nb::arg("height"), nb::arg("width"), nb::arg("spatial_merge_size") = 1, nb::arg("frames") = 1,
      "Of a picture's patches, two axes (row, column), in blocks of spatial_merge_size, frames "
      "times over.");
  m.def("positions_vision", &vision, nb::arg("input_ids"),
        nb::arg("image_grid_thw").none() = nb::none(),
        nb::arg("video_grid_thw").none() = nb::none(), nb::kw_only(), nb::arg("rule") = "qwen2_vl",
        nb::arg("image_token_id") = tokens.image_token_id,
        nb::arg("video_token_id") = tokens.video_token_id,
        nb::arg("audio_token_id") = tokens.audio_token_id,
        nb::arg("spatial_merge_size") = tokens.spatial_merge_size,
        nb::arg("advance").none() = nb::none(), nb::arg("step").none() = nb::none(),
        nb::arg("tokens_per_second").none() = nb::none(),
        nb::arg("seconds_per_grid").none() = nb::none(),
        "Of text with pictures and videos in it, three axes (time, height, width), by a family's "
        "rule: qwen2_vl, qwen2_vl_2025, qwen2_5_vl, qwen3_vl, ernie4_5_vl, qwen2_5_omni, "
        "qwen3_omni; advance, step and tokens_per_second are the rule's where they are None. Gives "
        "the positions, and how far the next token's is from the number of tokens so far.");
}

}  // namespace posenc::python
