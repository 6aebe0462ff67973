// Whether cached keys of a model may be moved to other positions (rekey.h), and what moves with
// them: for a scheduler to read at start-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace [[gnu::visibility("default")]] posenc {

// Whether cached keys of a model may be moved.
enum class Reuse {
  exact,           // rekey() makes what a fresh prefill of the layer would
  unrotated_only,  // their rotation has no inverse: cache keys as they left the projection
  never,           // their content knows where they stood
};
constexpr std::string_view name(Reuse verdict) {
  constexpr std::string_view names[] = {"exact", "unrotated only", "never"};
  return names[static_cast<std::size_t>(verdict)];
}

// What holds for the keys of some layers.
struct ReuseGroup {
  Stack stack = Stack::text;
  std::vector<std::int64_t> layers = {};
  Reuse verdict = Reuse::exact;
  std::string why = {};                 // a sentence
  std::vector<std::string> moves = {};  // what moves with the keys, or must be kept in step
};

// Group by group of the stacks that write text. It is about the layer's own keys: those of deeper
// layers also hold what their tokens read of the tokens before them, which a chunk that is used
// again behind another prefix never saw (docs/cache.md).
std::vector<ReuseGroup> reuse(const Model& model);
std::string to_json(const std::vector<ReuseGroup>& groups);

}  // namespace posenc
