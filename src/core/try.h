// What is Expected is taken, or its error returned, in one line: errors as values without the
// plumbing.
//
//   Expected<Plan> plan_of(std::string_view text, const Geometry& geometry) {
//     POSENC_TRY(scheme, scheme_from_json(text));  // `scheme` is a Scheme
//     POSENC_CHECK(check_geometry(geometry));      // an Expected<void>, or a value nobody needs
//     return compile(scheme, geometry);
//   }
//
// The name is a reference to the value inside of the result, so nothing is moved or copied; to hand
// the value on, say std::move(name). POSENC_TRY is two statements: it stands in a block, never
// alone behind an `if`. Within a lambda inside a checked expression, name what is checked first.
// The idea is Arrow's ARROW_ASSIGN_OR_RAISE.
#pragma once

#include <expected>
#include <utility>

#define POSENC_TRY(name, ...)                                   \
  auto&& name##_or_error = (__VA_ARGS__);                       \
  if (!name##_or_error) [[unlikely]]                            \
    return std::unexpected(std::move(name##_or_error).error()); \
  auto& name = *name##_or_error

#define POSENC_CHECK(...)                                        \
  do {                                                           \
    if (auto&& checked_ = (__VA_ARGS__); !checked_) [[unlikely]] \
      return std::unexpected(std::move(checked_).error());       \
  } while (false)
