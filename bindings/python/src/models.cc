// Models: read from files and texts, compiled layer by layer, explained.
#include "posenc/model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "posenc/explain.h"

namespace posenc::python {
namespace {

Stack stack_of(std::string_view word) {
  for (const Stack each :
       {Stack::text, Stack::encoder, Stack::decoder, Stack::vision, Stack::audio})
    if (name(each) == word) return each;
  refuse("plan", "stack must be text, encoder, decoder, vision or audio", word);
}

ReadModel read_path(const std::string& path) {
  return {unlocked([&] { return read_model(path); }), path, ""};
}

ReadModel read_bytes(nb::bytes contents, const std::string& name) {
  const auto* const data = static_cast<const std::byte*>(contents.data());
  const std::span<const std::byte> bytes(data, contents.size());
  Model model = unlocked([&] { return read_model_bytes(bytes, name); });
  return {std::move(model), "",
          std::string(static_cast<const char*>(contents.data()), contents.size())};
}

// Groups that hold the layer, or the only one that there is.
CompiledPlan plan_of(const ReadModel& read, std::optional<std::int64_t> layer,
                     std::string_view stack, std::optional<std::int64_t> group, std::int64_t length,
                     std::string_view angles, std::string_view part) {
  const auto& groups = read.model.groups;
  const LayerGroup* chosen = nullptr;
  if (group) {
    if (*group < 0 || *group >= static_cast<std::int64_t>(groups.size()))
      refuse("plan", "group must be one of the model's " + std::to_string(groups.size()),
             std::to_string(*group));
    chosen = &groups[static_cast<std::size_t>(*group)];
  } else if (layer) {
    chosen = find_group(read.model, *layer, stack_of(stack));
    if (!chosen)
      refuse("plan", "the model has no such layer in its " + std::string(stack),
             std::to_string(*layer));
  } else {
    const Stack asked = stack_of(stack);
    const auto of_stack = [&](const LayerGroup& each) { return each.stack == asked; };
    const auto count = std::ranges::count_if(groups, of_stack);
    if (count == 1) chosen = &*std::ranges::find_if(groups, of_stack);
    if (!chosen)
      refuse("plan", "layer must be given where layers differ",
             std::to_string(count) + " groups of " + std::string(stack) + " layers",
             "pass layer= or group=");
  }
  if (part != "attention" && part != "indexer")
    refuse("plan", "part must be attention or indexer", std::string(part));
  std::optional<LayerGroup> own;
  if (part == "indexer") {
    own = indexer_group(*chosen);
    if (!own)
      refuse("plan", "the layers must have an indexer", std::string(name(chosen->stack)),
             "m.explain().groups tells which have one");
    chosen = &*own;
  }
  CompiledPlan made{unwrap(compile(*chosen, length, angles_of(angles))), chosen->geometry};
  made.geometry.length = length;
  return made;
}

// What posenc.models has of that name, called with the model first.
template <class... T>
nb::object by_python(const char* function, nb::handle self, const T&... rest) {
  return nb::module_::import_("posenc.models").attr(function)(self, rest...);
}

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<ReadModel>(m, "Model", "What a model's files say about position, layer by layer.",
                        nb::dynamic_attr())
      .def_prop_ro(
          "name", [](const ReadModel& r) { return text(r.model.name); },
          "The file's or folder's, or the bundled name.")
      .def_prop_ro(
          "family", [](const ReadModel& r) { return text(r.model.family); },
          "model_type, or the GGUF's architecture.")
      .def_prop_ro(
          "known_family", [](const ReadModel& r) { return r.model.known_family; },
          "Whether the library knows what the family's code does; else it is read as files of its "
          "kind usually are.")
      .def_prop_ro(
          "context", [](const ReadModel& r) { return r.model.context; },
          "Tokens that the file promises; 0: it does not say.")
      .def_prop_ro(
          "trained_context", [](const ReadModel& r) { return r.model.trained_context; },
          "Tokens that training has shown, as far as the file tells; 0: it does not.")
      .def_prop_ro(
          "dtype", [](const ReadModel& r) { return text(r.model.dtype); },
          "That of the weights, as the file says.")
      .def_prop_ro(
          "file_warnings",
          [](const ReadModel& r) {
            nb::list all;
            for (const posenc::Warning& each : r.model.warnings)
              all.append(nb::make_tuple(text(each.code), text(each.message)));
            return all;
          },
          "(code, message) of what deserves a look in the files; posenc.model warns of them.")
      .def_prop_ro(
          "notes", [](nb::handle self) { return nb::getattr(self, "_notes", nb::list()); },
          "Of a model that posenc.read_as made: what the engine does otherwise than the file says, "
          "as (kind, sentence).")
      .def_prop_ro(
          "groups", [](nb::handle self) { return by_python("_groups", self); },
          "Groups of layers that treat position alike, as posenc.explain has them.")
      .def_prop_ro(
          "warnings", [](nb::handle self) { return by_python("_warnings", self); },
          "What deserves a look in the files: each with a stable code (docs/warnings.md) and a "
          "message.")
      .def(
          "schemes",
          [](nb::handle self, std::int64_t group) { return by_python("_schemes", self, group); },
          nb::arg("group") = 0, "The schemes of a group of layers as values.")
      .def(
          "explain",
          [](nb::handle self, std::int64_t at, std::optional<std::int64_t> layer) {
            return by_python("explain", self, nb::arg("at") = at, nb::arg("layer") = layer);
          },
          nb::kw_only(), nb::arg("at") = 0, nb::arg("layer").none() = nb::none(),
          "posenc.explain of it.")
      .def(
          "to_dict", [](nb::handle self) { return by_python("explain", self).attr("to_dict")(); },
          "The documented JSON (docs/json.md) as a dict.")
      .def(
          "plot",
          [](nb::handle self, nb::handle ax) {
            return by_python("explain", self).attr("plot")(ax);
          },
          nb::arg("ax").none() = nb::none(),
          "Draws the wavelengths of every group of layers with matplotlib, and returns the Axes.")
      .def("_repr_html_",
           [](nb::handle self) { return by_python("explain", self).attr("_repr_html_")(); })
      .def("__repr__", [](nb::handle self) { return by_python("_said", self); })
      // Nothing of it changes.
      .def("__copy__", [](nb::handle self) { return nb::borrow(self); })
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); },
          nb::arg("memo"))
      .def(
          "__reduce__", [](nb::handle self) { return by_python("_reduced", self); },
          "A file's text travels with the pickle; a path or bundled name is read again.")
      .def_ro("source", &ReadModel::source,
              "The path or bundled name it was read from; empty for bytes.")
      .def_prop_ro(
          "contents",
          [](const ReadModel& r) { return nb::bytes(r.contents.data(), r.contents.size()); },
          "The bytes it was read from, where there was no path.")
      .def_prop_ro(
          "files",
          [](const ReadModel& r) {
            nb::list all;
            constexpr std::string_view roles[] = {"model", "compared", "weights", "unread"};
            for (const ModelFile& file : r.model.files)
              all.append(nb::make_tuple(text(file.path), text(name(file.format)),
                                        text(roles[static_cast<std::size_t>(file.role)])));
            return all;
          },
          "(path, format, what it counted for) of the files that were looked at, the one that "
          "counts first.")
      .def_prop_ro(
          "group_count", [](const ReadModel& r) { return r.model.groups.size(); },
          "Groups of layers that treat position alike.")
      .def(
          "group_schemes",
          [](const ReadModel& r, std::size_t group) {
            if (group >= r.model.groups.size())
              throw nb::index_error("the model has no such group");
            nb::list all;
            for (const Scheme& scheme : r.model.groups[group].schemes)
              all.append(nb::cast(Value{scheme}));
            return all;
          },
          "The schemes of a group as the extension module's values; Model.schemes has them as "
          "classes.")
      .def("plan", &plan_of, nb::kw_only(), nb::arg("layer").none() = nb::none(),
           nb::arg("stack") = "text", nb::arg("group").none() = nb::none(), nb::arg("length") = 0,
           nb::arg("angles") = "exact", nb::arg("part") = "attention",
           "The plan of a layer (or group) for a length; exact angles, or an engine's: hf_float, "
           "ggml_float. part: \"indexer\" is what picks the keys there (DeepSeek V3.2), with heads "
           "and channels of its own.")
      .def(
          "explain_json",
          [](const ReadModel& r, std::int64_t at, std::optional<std::int64_t> layer) {
            return unlocked([&]() -> Expected<std::string> {
              const Expected<Explanation> made = explain(r.model, {.at = at, .layer = layer});
              if (!made) return std::unexpected(made.error());
              return to_json(*made);
            });
          },
          nb::arg("at") = 0, nb::arg("layer").none() = nb::none(),
          "The documented JSON of posenc.explain, as text.")
      .def(
          "pairs",
          [](const ReadModel& r, std::int64_t at, std::size_t group) {
            const Explanation made = unwrap(explain(r.model, {.at = at, .layer = {}}));
            if (group >= made.groups.size()) throw nb::index_error("the model has no such group");
            nb::list all;
            for (const PairFact& p : made.groups[group].pairs)
              all.append(nb::make_tuple(p.pair, p.axis, p.frequency, p.unscaled, p.wavelength,
                                        p.turns_trained, p.turns_asked));
            return all;
          },
          nb::arg("at") = 0, nb::arg("group") = 0,
          "(pair, axis, frequency, unscaled, wavelength, turns trained, turns asked) of a group's "
          "pairs.");
  m.def("read_path", &read_path, nb::arg("path"));
  m.def("read_bytes", &read_bytes, nb::arg("contents"), nb::arg("name"));
  m.def("models_json", [](bool published) {
    return models_to_json(published ? published_models() : bundled_models());
  });
  m.def(
      "bundled_config", [](std::string_view name) { return text(unwrap(bundled_config(name))); },
      nb::arg("name"), "The text of a bundled model's config.json.");
}

}  // namespace posenc::python
