// Defaults of a family's configuration class, for engines that do not find what the file says.
#pragma once

#include <string_view>

namespace posenc::detail {

// rope_theta before transformers 5; 10000 of a family that is not known, or that has no default.
double theta_of_transformers4(std::string_view family);

// The part of a head that rotates where the class finds none in the file; 1 of a family that is not
// known.
double part_by_default(std::string_view family);

}  // namespace posenc::detail
