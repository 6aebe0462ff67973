// The doctor: what the library's tools find, as the JSON that the command prints.
#include "posenc/tools.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "attention_arguments.h"
#include "bindings.h"
#include "errors.h"
#include "posenc/doctor.h"
#include "posenc/identify.h"

namespace posenc::python {
namespace {

std::string findings(const std::vector<Finding>& found) {
  return "{\"findings\":" + to_json(std::span<const Finding>(found)) + "}";
}

std::string diff(const ReadModel& expected, const ReadModel& found, std::int64_t length) {
  const auto differ = unlocked([&] { return differences(expected.model, found.model, length); });
  return differences_to_json(expected.model, found.model, differ);
}

// A model as an engine runs it, its text for pages lost: (model, notes, findings of a command line,
// context it asks for).
nb::tuple served(EngineReading&& reading, const std::vector<Finding>& found, std::int64_t length) {
  if (!reading.refused.empty())
    refuse("read_as", "the engine must run the model", reading.refused,
           "posenc.diff(model, engine=) tells of others");
  nb::list notes;
  for (const EngineNote& note : reading.notes)
    notes.append(nb::make_tuple(text(name(note.kind)), text(note.what)));
  return nb::make_tuple(ReadModel{std::move(reading.model), "", ""}, notes,
                        to_json(std::span<const Finding>(found)), length);
}

std::string identify_arrays(nb::handle after, nb::handle before, nb::handle position_ids,
                            bool repeated, const ReadModel* model, std::int64_t layer,
                            std::optional<std::string> part) {
  constexpr const char* where = "identify";
  const Array seen = array_of(after, where, "after", Access::read);
  Array unrotated;
  if (!before.is_none()) unrotated = array_of(before, where, "before", Access::read);
  if (seen.tensor.rank < 2)
    refuse(where, "after must be [head, seq, dim] or [batch, head, seq, dim]",
           std::to_string(seen.tensor.rank) + " axes");
  const std::int64_t tokens = seen.tensor.shape[static_cast<std::size_t>(seen.tensor.rank - 2)];
  const Positions positions = positions_of(position_ids, tokens, where);
  const Identified found = unlocked([&] {
    return identify({.after = seen.tensor,
                     .before = unrotated.tensor,
                     .positions = positions,
                     .repeated = repeated});
  });
  if (part && *part != "attention" && *part != "indexer")
    refuse(where, "part must be attention or indexer", *part);
  if (!model) return to_json(found);
  const DumpedPart whose = !part                ? DumpedPart::by_width
                           : *part == "indexer" ? DumpedPart::indexer
                                                : DumpedPart::attention;
  const auto beside = unlocked([&] { return beside_model(found, model->model, layer, 0, whose); });
  std::string json = to_json(found);
  json.replace(json.size() - 1, 1,
               ",\"beside_model\":" + to_json(std::span<const Finding>(beside)) + "}");
  return json;
}

std::string identify_cos_sin(nb::handle cos, nb::handle sin) {
  const Array c = array_of(cos, "identify_table", "cos", Access::read),
              s = array_of(sin, "identify_table", "sin", Access::read);
  return to_json(unlocked([&] { return identify_table(c.tensor, s.tensor); }));
}

std::string identify_added(nb::handle values) {
  const Array array = array_of(values, "identify_vectors", "values", Access::read);
  return to_json(unlocked([&] { return identify_vectors(array.tensor); }));
}

std::string check(nb::handle found, const Positions& expected, nb::handle keep) {
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("ascontiguousarray")(found, nb::arg("dtype") = "int64");
  const auto ids = nb::cast<nb::ndarray<const std::int64_t, nb::c_contig>>(array);
  PositionIds given{{ids.data(), ids.data() + ids.size()}};
  const auto extent = [&](std::size_t from_right) {
    return ids.ndim() >= from_right ? ids.shape_ptr()[ids.ndim() - from_right] : 1;
  };
  given.axes = extent(3), given.batch = extent(2), given.seq = extent(1);
  std::vector<std::uint8_t> kept;
  if (!keep.is_none()) kept = bytes_of(keep, "check_positions");
  return findings(unlocked([&] { return check_positions(given, expected, kept); }));
}

// Each of evidence: (name, contents), or a model, or a name alone: a path, a bundled name or a
// command line.
std::string doctor(nb::list given, const std::vector<std::string>& engines, std::int64_t length) {
  std::vector<Exhibit> evidence;
  for (const nb::handle one : given) {
    if (nb::isinstance<ReadModel>(one)) {
      const auto& model = nb::cast<const ReadModel&>(one).model;
      evidence.push_back(model_exhibit(model.name, model));
    } else if (nb::isinstance<nb::tuple>(one)) {
      const auto contents = nb::cast<nb::bytes>(one[1]);
      evidence.push_back(
          text_exhibit(nb::cast<std::string>(one[0]), {contents.c_str(), contents.size()}));
    } else {
      std::ranges::move(exhibits_of(nb::cast<std::string>(one)), std::back_inserter(evidence));
    }
  }
  return to_json(unlocked(
      [&] { return diagnose(std::move(evidence), {.length = length, .engines = engines}); }));
}

}  // namespace

void bind_tools(nb::module_& m) {
  m.def("doctor_json", &doctor, nb::arg("evidence"), nb::arg("engines"), nb::arg("length") = 0);
  m.def("diff_json", &diff, nb::arg("expected"), nb::arg("found"), nb::arg("length") = 0);
  m.def(
      "plan_diff_json",
      [](const CompiledPlan& expected, const CompiledPlan& found, std::int64_t length) {
        return findings(unlocked([&] { return differences(expected.plan, found.plan, length); }));
      },
      nb::arg("expected"), nb::arg("found"), nb::arg("length") = 0);
  m.def(
      "engine_diff_json",
      [](const ReadModel& model, const std::string& engine, std::int64_t length) {
        return to_json(unlocked([&] { return engine_differences(model.model, engine, length); }));
      },
      nb::arg("model"), nb::arg("engine"), nb::arg("length") = 0);
  m.def(
      "engine_pair_diff_json",
      [](const ReadModel& expected, const ReadModel& found, const std::string& engine,
         std::int64_t length) {
        return to_json(unlocked(
            [&] { return engine_differences(expected.model, found.model, engine, length); }));
      },
      nb::arg("expected"), nb::arg("found"), nb::arg("engine"), nb::arg("length") = 0);
  m.def(
      "command_diff_json",
      [](const ReadModel& model, const std::string& command, std::int64_t length) {
        return findings(
            unlocked([&] { return command_differences(model.model, command, length); }));
      },
      nb::arg("model"), nb::arg("command"), nb::arg("length") = 0);
  m.def(
      "read_as",
      [](const ReadModel& model, const std::string& engine, std::int64_t length) {
        return served(unlocked([&] { return read_as(model.model, engine, length); }), {}, length);
      },
      nb::arg("model"), nb::arg("engine"), nb::arg("length") = 0);
  m.def(
      "read_command",
      [](const ReadModel& model, const std::string& command) {
        CommandReading made = unlocked([&] { return read_command(model.model, command); });
        return served(std::move(made.reading), made.findings, made.length);
      },
      nb::arg("model"), nb::arg("command"));
  m.def(
      "read_trainer",
      [](const ReadModel& model, const std::string& settings) {
        TrainerReading made = unlocked([&] { return read_trainer(model.model, settings); });
        return served({.model = std::move(made.model)}, made.findings, made.length);
      },
      nb::arg("model"), nb::arg("settings"));
  m.def(
      "log_diff_json",
      [](const ReadModel& model, const std::string& log, std::int64_t length) {
        return findings(unlocked([&] { return log_differences(model.model, log, length); }));
      },
      nb::arg("model"), nb::arg("log"), nb::arg("length") = 0);
  m.def(
      "lint_json",
      [](const ReadModel& model, const std::vector<std::string>& engines, std::int64_t length) {
        return findings(
            unlocked([&] { return lint(model.model, {.length = length, .engines = engines}); }));
      },
      nb::arg("model"), nb::arg("engines"), nb::arg("length") = 0);
  m.def(
      "mend_json",
      [](const std::string& config) {
        const MendedConfig mended = unlocked([&] { return mend(config); });
        return nb::make_tuple(mended.text, to_json(std::span<const Finding>(mended.mended)));
      },
      nb::arg("config"));
  m.def(
      "translate_json",
      [](const ReadModel& model, const std::string& engine, std::int64_t length) {
        return to_json(unlocked([&] { return translate(model.model, engine, length); }));
      },
      nb::arg("model"), nb::arg("engine"), nb::arg("length") = 0);
  m.def(
      "extend_json",
      [](const ReadModel& model, std::int64_t to, const std::string& engine, std::int64_t trained,
         bool training) {
        return to_json(unlocked([&] {
          return extend(model.model,
                        {.to = to, .engine = engine, .trained = trained, .training = training});
        }));
      },
      nb::arg("model"), nb::arg("to"), nb::arg("engine") = "transformers", nb::arg("trained") = 0,
      nb::arg("training") = false);
  m.def("identify_json", &identify_arrays, nb::arg("after"), nb::arg("before").none() = nb::none(),
        nb::arg("position_ids").none() = nb::none(), nb::arg("repeated") = false,
        nb::arg("model").none() = nb::none(), nb::arg("layer") = 0,
        nb::arg("part").none() = nb::none());
  m.def("identify_table_json", &identify_cos_sin, nb::arg("cos"), nb::arg("sin"));
  m.def("identify_vectors_json", &identify_added, nb::arg("values"));
  m.def(
      "settings_diff_json",
      [](const ReadModel& base, const std::string& settings) {
        return findings(unlocked([&] { return adapter_differences(base.model, settings); }));
      },
      nb::arg("base"), nb::arg("settings"));
  m.def("check_positions_json", &check, nb::arg("found"), nb::arg("expected"),
        nb::arg("keep").none() = nb::none());
  m.def(
      "normals",
      [](std::uint64_t seed, std::int64_t count, std::int64_t first) {
        if (count < 0 || first < 0)
          refuse("normals", "seed, count and first must be 0 or more",
                 std::to_string(count < 0 ? count : first));
        return numbers(normals(seed, count, first), {count});
      },
      nb::arg("seed"), nb::arg("count"), nb::arg("first") = 0,
      "Normal numbers first, first + 1, ... of a seed's sequence: the same on every machine, and "
      "those that `posenc plot` draws.");
  m.def(
      "engines",
      [] {
        nb::list all;
        for (const Engine& each : engines())
          all.append(nb::make_tuple(text(each.name), text(each.title), text(each.version),
                                    text(each.source)));
        return all;
      },
      "(name, title, version, source) of every profile.");
}

}  // namespace posenc::python
