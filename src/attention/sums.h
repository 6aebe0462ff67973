// The two loops over channels of the reference of attention, in double.
#pragma once

#include <cstdint>

namespace posenc::detail::reference {

// Σ a·b, as four sums that are added at the end.
double dot(const double* a, const double* b, std::int64_t count);

// to += factor · x, of memory apart.
void add_multiple(double factor, const double* x, std::int64_t count, double* to);

}  // namespace posenc::detail::reference
