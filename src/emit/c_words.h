// What C, CUDA and OpenCL write alike.
#pragma once

#include <string>

#include "src/emit/printer.h"

namespace posenc::emitting {

class CPrinter : public Printer {
 public:
  explicit CPrinter(const Computation& what) : what_(&what) {}

  // "static const uint32_t TURNS[256] = {…};"
  std::string constant(const Constant& constant, std::string_view before) const;
  std::string constants(std::string_view before) const;  // all of the computation's

 protected:
  std::string uint_type = "uint32_t", int_type = "int32_t";

  std::string type(Type of) const;
  std::string literal(const Node& value) const override;
  std::string select(const std::string& condition, const std::string& yes,
                     const std::string& no) const override {
    return "(" + grouped(condition) + " ? " + yes + " : " + no + ")";
  }
  std::string least(const std::string& a, const std::string& b) const override {
    return "(" + a + " < " + b + " ? " + a + " : " + b + ")";
  }
  std::string most(const std::string& a, const std::string& b) const override {
    return "(" + a + " > " + b + " ? " + a + " : " + b + ")";
  }
  std::string as_i32(const std::string& of) const override { return cast(int_type, of); }
  std::string as_u32(const std::string& of) const override { return cast(uint_type, of); }
  std::string as_f32(const std::string& of, Type) const override { return cast("float", of); }
  std::string load(const Node& from) const override;
  std::string let(const Statement& made) const override;
  std::string variable(const Statement& made) const override;
  std::string assign(const Statement& made) const override;
  std::string store(const Statement& made) const override;
  std::string loop(const Statement& opened) const override;
  std::string cast(const std::string& to, const std::string& of) const {
    return "(" + to + ")" + grouped(of);
  }

  const Computation* what_;
};

// --- the parts of their hosts' tests -------------------------------------------------------------

// Checks as rows of numbers, and what tells of them: in the C of a host. Arrays x and out are there.
std::string rotation_test_tables(const Computation& what);
std::string rotation_test_verdict(const Computation& what);
std::string bias_test_tables(const Computation& what);
std::string bias_test_verdict(const Computation& what);
// #include lines and helpers that both need.
std::string test_helpers();

}  // namespace posenc::emitting
