// Plans as what pickle keeps: dicts, lists and numbers, a key for each member
// (src/core/plan_members.h).
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

#include "posenc/plan.h"

namespace posenc::python {

namespace nb = nanobind;

// Learned tables are copied, in float64.
nb::object state_of(const Plan& plan);

// Raises posenc.Error for what is no state of a plan: it comes from a file.
Plan plan_of_state(nb::handle state);

// The same for equal plans; of tables it knows the extents alone.
std::size_t hash_of(const Plan& plan);

}  // namespace posenc::python
