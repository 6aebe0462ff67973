// How the library's errors become Python's.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>
#include <utility>

#include "posenc/error.h"

namespace posenc::python {

namespace nb = nanobind;

// Thrown here and nowhere below; raised in Python as posenc.Error.
struct Refused {
  Error error;
};

[[noreturn]] inline void refuse(std::string_view where, std::string_view rule,
                                std::string_view got = {}, std::string_view cure = {}) {
  throw Refused{fail(where, rule, got, cure).error()};
}

template <class T>
T unwrap(Expected<T>&& made) {
  if (!made) throw Refused{std::move(made.error())};
  return std::move(*made);
}
inline void unwrap(Expected<void>&& done) {
  if (!done) throw Refused{std::move(done.error())};
}

// The library's verb without the interpreter's lock, its error raised with it.
template <class Act>
auto unlocked(const Act& act) {
  return unwrap([&] {
    const nb::gil_scoped_release release;
    return act();
  }());
}

inline nb::str text(std::string_view of) { return nb::str(of.data(), of.size()); }

// str() of an object.
inline std::string said(const nb::object& object) {
  const nb::str text(static_cast<const nb::handle&>(object));
  return text.c_str();
}

void bind_errors(nb::module_& m);

}  // namespace posenc::python
