// Numbers of a log whose words posenc does not know: two lengths that a line compares, and which of
// the model's own sizes a number is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "posenc/tools.h"

namespace posenc::detail {

// A line that says that one length is beyond another, or an index beyond its table, in whatever
// words. Its `expected` is the smaller one, `found` the larger. Nothing: it compares none.
std::optional<Finding> compared_lengths(std::string_view line);

// "max_position_embeddings", "the trained length of its scaling", "head_dim", …; "": none of them.
std::string size_of_model(const Model& model, double number);

// Puts beside the numbers of a finding what they are of this model, and what follows.
void name_numbers(const Model& model, Finding& finding);

// A view of a tensor as heads of another width than the model's: the shape "[1, 1, 32, 64]" that a
// line asks for, and how many numbers there are. Nothing: it fits, or is of something else.
std::optional<Finding> heads_of_view(const Model& model, std::string_view shape, double size);

}  // namespace posenc::detail
