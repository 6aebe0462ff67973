// An explanation laid out for a terminal, and its pairs as CSV. The words and facts are posenc's;
// only their places are chosen here.
#pragma once

#include <string>

#include "cli/pages/terminal.h"
#include "posenc/explain.h"

namespace posenc::cli {

// What is told whole, instead of what fits a screen.
struct Shown {
  bool pairs = false;   // every pair
  bool values = false;  // a line for each value, with its key
};
std::string page(const Explanation& explanation, Shown shown, const Terminal& term);
std::string csv(const Explanation& explanation);

}  // namespace posenc::cli
