// Logarithms and powers without tables, within a hair of half a unit in the last place, and the
// reduction of large angles. For WebAssembly, where the C library's tables for them are a tenth of
// the module; the rest of its mathematics has none.
#pragma once

namespace posenc::detail {

double small_exp(double x);
double small_exp2(double x);
double small_log(double x);
double small_log1p(double x);
double small_pow(double x, double y);

// a·b + c rounded once, where no product or sum of the numbers overflows and their last places do
// not underflow. (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
// algorithms using rounding to odd", 2008.)
double small_fma(double a, double b, double c);

// x − n·π/2 as a sum, with |sum| ≤ π/4 and a little, for finite x ≥ 1; returns n mod 8. (Payne and
// Hanek, "Radian reduction for trigonometric functions", 1983.)
int reduce_by_half_pi(double x, double rest[2]);

}  // namespace posenc::detail
