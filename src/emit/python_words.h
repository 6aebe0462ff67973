// What the targets in Python write alike.
#pragma once

#include <string>
#include <vector>

#include "src/emit/printer.h"

namespace posenc::emitting {

class PythonPrinter : public Printer {
 public:
  explicit PythonPrinter(const Computation& what) : what_(&what) {
    indent = "    ";
    comment = "# ";
    divide = " // ";
  }

 protected:
  std::string literal(const Node& value) const override;
  std::string let(const Statement& made) const override {
    return made.text + " = " + expression(*made.value);
  }
  std::string assign(const Statement& made) const override { return let(made); }
  std::string end() const override { return ""; }

  const Computation* what_;
};

// "NAME = [\n    …\n]\n"
std::string python_list(const std::string& name, const std::vector<std::string>& words);

// The tables of a test, and functions that judge what numpy arrays hold: judge(x) of
// [tokens][heads][head_dim] floats, judge_bias(out) of [heads][queries][keys]. fill() makes x.
std::string python_rotation_test(const Computation& what);
std::string python_bias_test(const Computation& what);

}  // namespace posenc::emitting
