// In place of model/folder.cc, model/hub_cache.cc and tools/evidence_files.cc, as WebAssembly has no
// files: models come as bytes or by name.
#include <optional>
#include <string>
#include <utility>

#include "posenc/doctor.h"
#include "src/model/bundled.h"
#include "src/model/names.h"

namespace posenc {

std::optional<std::string> detail::hub_snapshot(const std::string& /*name*/) {
  return std::nullopt;
}

Expected<Model> read_model(std::string_view name) {
  auto model = detail::read_bundled(name);
  if (model) return model;
  return fail("read_model", "no bundled model of that name, and this build reads no files",
              "'" + std::string(name.substr(0, 200)) + "'", model.error().cure);
}

std::vector<Exhibit> exhibits_of(const std::string& given) {
  std::vector<Exhibit> all;
  if (given.find_first_of(" \n\t") != given.npos) {
    all.push_back(text_exhibit("command", given));
  } else {
    Expected<Model> model = read_model(given);
    all.push_back(model ? model_exhibit(given, *std::move(model))
                        : unusable_exhibit(given, model.error()));
  }
  return all;
}

}  // namespace posenc
