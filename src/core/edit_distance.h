// How many letters two words differ by.
#pragma once

#include <cstddef>
#include <string_view>

namespace posenc::detail {

// Levenshtein's distance: letters put in, left out or replaced. Takes the product of the lengths.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace posenc::detail
