// Numbers as decimal text beyond error.h's number_text, and back.
#pragma once

#include <string>

namespace posenc::detail {

// As printf's %g with so many significant digits, in any locale.
std::string rounded_text(double number, int significant);

// The shortest decimal that rounds to the float, as the double nearest to it: 0.1f gives 0.1.
double shortest_decimal(float number);

}  // namespace posenc::detail
