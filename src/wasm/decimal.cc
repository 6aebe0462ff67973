// Decimal digits of binary numbers, and back, by long division of whole numbers, without tables.
#include "src/wasm/decimal.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

namespace posenc::detail {
namespace {

// A whole number, not negative. The longest is 10^1124 with 64 bits more, for a decimal of 800
// digits.
class Whole {
 public:
  explicit Whole(std::uint64_t value) {
    for (; value; value >>= 32) limb_[size_++] = static_cast<std::uint32_t>(value);
  }

  // Only the limbs in use.
  Whole(const Whole& from) { *this = from; }
  Whole& operator=(const Whole& from) {
    size_ = from.size_;
    for (std::size_t i = 0; i < size_; i++) limb_[i] = from.limb_[i];
    return *this;
  }

  bool is_zero() const { return size_ == 0; }

  int bits() const {
    return size_ == 0 ? 0 : static_cast<int>(32 * size_) - std::countl_zero(limb_[size_ - 1]);
  }

  void multiply_add(std::uint32_t factor, std::uint32_t carried = 0) {
    std::uint64_t carry = carried;
    for (std::size_t i = 0; i < size_; i++) {
      carry += std::uint64_t{limb_[i]} * factor;
      limb_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) limb_[size_++] = static_cast<std::uint32_t>(carry);
  }

  void multiply_by_power_of_10(int power) {
    for (; power >= 9; power -= 9) multiply_add(1'000'000'000);
    for (; power > 0; power--) multiply_add(10);
  }

  void shift_left(int by) {
    for (; by >= 31; by -= 31) multiply_add(std::uint32_t{1} << 31);
    multiply_add(std::uint32_t{1} << by);
  }

  void subtract(const Whole& other) {  // no more than this
    std::int64_t borrow = 0;
    for (std::size_t i = 0; i < size_; i++) {
      borrow += std::int64_t{limb_[i]} - (i < other.size_ ? other.limb_[i] : 0);
      limb_[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    while (size_ > 0 && limb_[size_ - 1] == 0) size_--;
  }

  // Below 0, 0 or above.
  int compare(const Whole& other) const {
    if (size_ != other.size_) return size_ < other.size_ ? -1 : 1;
    for (std::size_t i = size_; i-- > 0;)
      if (limb_[i] != other.limb_[i]) return limb_[i] < other.limb_[i] ? -1 : 1;
    return 0;
  }

  // this + added against other.
  int compare(const Whole& other, const Whole& added) const {
    Whole sum = *this;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < size_ || i < added.size_ || carry; i++) {
      if (i >= sum.size_) sum.limb_[sum.size_++] = 0;
      carry += std::uint64_t{sum.limb_[i]} + (i < added.size_ ? added.limb_[i] : 0);
      sum.limb_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return sum.compare(other);
  }

 private:
  std::array<std::uint32_t, 128> limb_;
  std::size_t size_ = 0;
};

// The number as rest/whole · 10^point, in [0.1, 1) or, rounded up by half of the last place, 1.
struct Fraction {
  Whole rest;
  Whole whole = Whole(1), above = Whole(1),
        below = Whole(1);  // half of the way to the next number, over `whole`
  int point = 0;
};

void start(Fraction& f, const Binary& number, bool rounds_up) {
  const int narrow = number.narrow_below ? 1 : 0, e = number.exponent;
  f.rest.shift_left((e > 0 ? e : 0) + 1 + narrow);
  f.whole.shift_left((e < 0 ? -e : 0) + 1 + narrow);
  f.above.shift_left((e > 0 ? e : 0) + narrow);
  f.below.shift_left(e > 0 ? e : 0);
  // Never above ⌈log10⌉, and at most 1 below it.
  const int top = e + static_cast<int>(std::bit_width(number.mantissa)) - 1;
  f.point = static_cast<int>(std::ceil(top * 0.30102999566398114 - 1e-9));
  if (f.point > 0) f.whole.multiply_by_power_of_10(f.point);
  for (Whole* each : {&f.rest, &f.above, &f.below})
    if (f.point < 0) each->multiply_by_power_of_10(-f.point);
  const int order = rounds_up ? f.rest.compare(f.whole, f.above) : f.rest.compare(f.whole);
  const bool even = number.mantissa % 2 == 0;
  if (order > 0 || (order == 0 && (even || !rounds_up))) {
    f.whole.multiply_add(10);
    f.point++;
  }
}

int next_digit(Fraction& f) {
  for (Whole* each : {&f.rest, &f.above, &f.below}) each->multiply_add(10);
  int digit = 0;
  for (; f.rest.compare(f.whole) >= 0; digit++) f.rest.subtract(f.whole);
  return digit;
}

// Whether what is left is more than half of the last place, or half of an odd one.
bool above_half(const Fraction& f, int digit) {
  const int order = f.rest.compare(f.whole, f.rest);
  return order > 0 || (order == 0 && digit % 2 != 0);
}

char letter(int digit) { return static_cast<char>('0' + digit); }

template <class Number, class Bits>
Binary taken_apart(Number number) {
  constexpr int stored = std::numeric_limits<Number>::digits - 1;
  const auto bits = std::bit_cast<Bits>(number);
  const std::uint64_t low = bits & ((Bits{1} << stored) - 1);
  const int biased = static_cast<int>(bits >> stored);
  const int least = std::numeric_limits<Number>::min_exponent - 1 - stored;
  if (biased == 0) return {low, least, false};
  return {low | (std::uint64_t{1} << stored), least + biased - 1, low == 0 && biased > 1};
}

}  // namespace

Binary binary_of(double number) { return taken_apart<double, std::uint64_t>(number); }
Binary binary_of(float number) { return taken_apart<float, std::uint32_t>(number); }

Digits shortest_digits(const Binary& number) {
  Fraction f{Whole(number.mantissa)};
  start(f, number, true);
  Digits out{{}, f.point};
  const bool even =
      number.mantissa % 2 == 0;  // then the ends of the interval read back the same too
  for (;;) {
    const int digit = next_digit(f);
    const int down = f.rest.compare(f.below), up = f.rest.compare(f.whole, f.above);
    const bool low = down < 0 || (down == 0 && even), high = up > 0 || (up == 0 && even);
    if (!low && !high) {
      out.digits += letter(digit);
      continue;
    }
    out.digits += letter(digit + (high && (!low || above_half(f, digit)) ? 1 : 0));
    return out;
  }
}

Digits rounded_digits(const Binary& number, int significant) {
  Fraction f{Whole(number.mantissa)};
  start(f, number, false);
  Digits out{{}, f.point};
  int digit = 0;
  for (int i = 0; i < significant; i++) out.digits += letter(digit = next_digit(f));
  if (!above_half(f, digit)) return out;
  std::size_t last = out.digits.size();
  while (last > 0 && out.digits[last - 1] == '9') out.digits[--last] = '0';
  if (last > 0) {
    out.digits[last - 1]++;
  } else {
    out.digits[0] = '1';  // 99.9 is 100
    out.point++;
  }
  return out;
}

double read_decimal(const char* text, const char** end) {
  constexpr int most_digits = 800;  // more than the midpoint between two doubles can have
  const bool negative = *text == '-';
  if (negative) text++;
  Whole digits(0);
  std::uint64_t first = 0;  // all digits, where there are few
  int taken = 0, power = 0;
  bool seen_point = false, more = false;
  for (;; text++) {
    if (*text == '.' && !seen_point) {
      seen_point = true;
      continue;
    }
    if (*text < '0' || *text > '9') break;
    const auto digit = static_cast<std::uint32_t>(*text - '0');
    if (taken < most_digits) {
      digits.is_zero() ? void(digits = Whole(digit)) : digits.multiply_add(10, digit);
      if (!digits.is_zero() && taken++ < 18) first = 10 * first + digit;
      power -= seen_point;
    } else {
      more = more || digit != 0;
      power += !seen_point;
    }
  }
  if (*text == 'e' || *text == 'E') {
    text++;
    const bool down = *text == '-';
    if (*text == '-' || *text == '+') text++;
    int exponent = 0;
    for (; *text >= '0' && *text <= '9'; text++)
      if (exponent < 1'000'000) exponent = 10 * exponent + (*text - '0');
    power += down ? -exponent : exponent;
  }
  *end = text;

  const auto sign = [&](double x) { return negative ? -x : x; };
  if (digits.is_zero() || taken + power < -330) return sign(0);
  if (taken + power > 310) return sign(std::numeric_limits<double>::infinity());
  if (taken <= 15 && power >= -22 && power <= 22) {  // both exact, so one rounding
    double scale = 1;
    for (int i = 0; i < power || i < -power; i++) scale *= 10;
    const auto x = static_cast<double>(first);
    return sign(power < 0 ? x / scale : x * scale);
  }

  Whole over(1);
  if (more) digits.multiply_add(10, 1), power--;  // not on a midpoint
  (power > 0 ? digits : over).multiply_by_power_of_10(power > 0 ? power : -power);
  // digits/over · 2^exponent with as many bits above as below, so in (1/2, 2).
  int exponent = digits.bits() - over.bits();
  (exponent < 0 ? digits : over).shift_left(exponent < 0 ? -exponent : exponent);
  exponent -= 63;
  std::uint64_t quotient = 0;
  for (int i = 0; i < 64; i++) {
    quotient <<= 1;
    if (digits.compare(over) >= 0) {
      digits.subtract(over);
      quotient |= 1;
    }
    digits.shift_left(1);
  }
  const int zeros = std::countl_zero(quotient);
  quotient <<= zeros;
  exponent -= zeros;
  // 53 bits stay, fewer of a subnormal number.
  int drop = 11;
  if (exponent + drop < -1074) drop = -1074 - exponent;
  if (drop > 64) return sign(0);
  std::uint64_t kept = drop < 64 ? quotient >> drop : 0;
  const std::uint64_t half = std::uint64_t{1} << (drop - 1), rest = quotient & (half - 1);
  const bool sticky = rest != 0 || !digits.is_zero();
  if ((quotient & half) && (sticky || kept % 2 != 0)) kept++;
  return sign(std::ldexp(static_cast<double>(kept), exponent + drop));
}

}  // namespace posenc::detail
