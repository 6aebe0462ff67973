// Where a file has its rope parameters: rope_scaling or rope_parameters, flat or by layer type, or
// the default of the family's configuration class.
#pragma once

#include <optional>
#include <string_view>

#include "src/model/families/family.h"

namespace posenc::detail {

struct RopeParameters {
  Section section;
  bool by_layer_type = false;
  bool absent = false;  // null for this layer type: no position
  Section whole;        // around the entries by layer type; else the section itself
};

// The class's default of rope_parameters; null: none.
std::optional<Json> default_parameters(const Family& family);

// What holds for layers of one type. `defaults` are the class's, and must outlive the result.
RopeParameters find_parameters(const Section& config, const Family& family,
                               std::string_view layer_type, const std::optional<Json>& defaults);

}  // namespace posenc::detail
