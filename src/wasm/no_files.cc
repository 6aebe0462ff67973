// In place of model/folder.cc, as WebAssembly has no files: models come as bytes or by name.
#include <string>

#include "src/model/bundled.h"

namespace posenc {

Expected<Model> read_model(std::string_view name) {
  auto model = detail::read_bundled(name);
  if (model) return model;
  return fail("read_model", "no bundled model of that name, and this build reads no files",
              "'" + std::string(name.substr(0, 200)) + "'", model.error().cure);
}

}  // namespace posenc
