// The program that stands for an engine: it reads a request a line and answers with numbers
// (docs/conformance.md has the protocol).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/conform/judge.h"
#include "cli/system/child.h"

namespace posenc::cli::conform {

class Adapter {
 public:
  // Starts the program and asks who it is. Errors: it does not start, does not answer, speaks
  // another protocol.
  static Expected<Adapter> start(const std::vector<std::string>& command, double timeout);

  Expected<Answer> ask(const std::string& operation, const VectorTest& test);

  std::string name, version;
  DType dtype = DType::f32;
  std::size_t ignored = 0;  // lines that were no answers

 private:
  Expected<nlohmann::json> answer(const nlohmann::json& request);

  std::unique_ptr<Child> child_;
  double timeout_ = 60;
  std::int64_t asked_ = 0;
};

}  // namespace posenc::cli::conform
