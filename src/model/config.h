// A config.json that is parsed already.
#pragma once

#include <string_view>

#include "src/model/families/reading.h"

namespace posenc::detail {

Expected<Model> read_config_json(const Json& json, std::string_view name);

}  // namespace posenc::detail
