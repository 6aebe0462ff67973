// Parts of the doctor that look at one kind of evidence, or at two beside each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "posenc/doctor.h"

namespace posenc::detail {

// Says better what one piece of evidence says of another: a limit that a log names is one of the
// line's own. What no piece says alone comes back as findings of its own, with `message` and
// `line`.
std::vector<Finding> join_evidence(Diagnosis& diagnosis);

// Printed frequencies against each other, and against the model's as far as their digits go. With
// no model (null) what the numbers say alone; nothing: they say nothing wrong. Errors: no list of
// frequencies.
Expected<std::optional<Finding>> compare_frequencies(const Model* model, std::string_view text,
                                                     std::int64_t length);

}  // namespace posenc::detail
