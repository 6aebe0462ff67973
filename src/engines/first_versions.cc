// Since when an engine has a class for a type of model.
#include <span>

#include "posenc/engines.h"
#include "src/core/words.h"
#include "src/engines/first_versions_table.h"

namespace posenc {
namespace {

std::span<const Release> releases_of(std::string_view engine) {
  if (engine == "transformers") return of_transformers;
  if (engine == "vllm") return of_vllm;
  if (engine == "sglang") return of_sglang;
  return {};
}

}  // namespace

std::string_view first_version(std::string_view engine, std::string_view type) {
  for (const Release& release : releases_of(engine))
    if (detail::contains_word(release.types, type)) return release.version;
  return "";
}

}  // namespace posenc
