// A rotation with the keys that an engine was told instead of the file's own: by a line of a log,
// or a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/tools.h"
#include "src/text/json.h"

namespace posenc::detail {

struct ToldHow {
  std::int64_t context = 1;     // the model's, which dynamic NTK depends on
  bool replaces = false;        // all of rope_parameters, the base with it
  double base_without = 10000;  // taken where what replaces has none
  std::optional<std::int64_t> line = {};
};

// The rope with a scaling's dict in it ("rope_type", its fields, "rope_theta"). Nothing: the dict
// says none that can be read, and a remark tells why.
std::optional<Rope> told_rope(const Rope& rope, const Json& dict, const ToldHow& how,
                              std::vector<Finding>& remarks);

// Whether a scaling's dict has a meaning for the key.
bool is_told_field(std::string_view key);
std::span<const std::string_view> told_fields();

// A finite number; nothing for anything else.
std::optional<double> real_number(const Json& json);

}  // namespace posenc::detail
