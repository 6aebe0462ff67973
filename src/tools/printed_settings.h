// A configuration as a program prints it: Python's repr of a dict or a dataclass, Rust's {:?},
// JSON behind the name of its class.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace posenc::detail {

// The settings of a model among other words, as the JSON of a config.json. Nothing: none are there,
// or too few of them to tell what rotates.
std::optional<std::string> printed_settings(std::string_view text);

}  // namespace posenc::detail
