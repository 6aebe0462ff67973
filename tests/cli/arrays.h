// Runs the command on .npy files that a test makes and reads back.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/arguments/npy.h"
#include "tests/cli/command.h"

namespace posenc::test {

// uint16 holds bfloat16.
class ArrayTest : public CommandTest {
 protected:
  // Numbers in [-1, 1] that differ from place to place.
  void make(const std::string& name, cli::NpyType type, std::vector<std::int64_t> shape,
            double seed = 1) const {
    cli::Array array = *cli::make_array(type, std::move(shape));
    const Tensor view = tensor(array);
    for (std::int64_t i = 0; i < array.size(); i++)
      view.set(i, std::sin(seed + 0.7 * static_cast<double>(i)));
    ASSERT_TRUE(cli::write_array(path(name), array));
  }
  static Tensor tensor(cli::Array& array) {
    return *cli::tensor_of(array, array.type == cli::NpyType::u16 ? "bfloat16" : "", "test");
  }
  cli::Array array(const std::string& name) const {
    Expected<cli::Array> read = cli::read_array(path(name));
    EXPECT_TRUE(read) << name;
    return read ? *std::move(read) : cli::Array{};
  }
  std::vector<double> values(const std::string& name) const {
    cli::Array read = array(name);
    std::vector<double> out;
    for (std::int64_t i = 0; i < read.size(); i++) out.push_back(tensor(read).get(i));
    return out;
  }
  double difference(const std::string& a, const std::string& b) const {
    const std::vector<double> x = values(a), y = values(b);
    if (x.size() != y.size() || x.empty()) return 1e300;
    double most = 0;
    for (std::size_t i = 0; i < x.size(); i++) most = std::max(most, std::abs(x[i] - y[i]));
    return most;
  }
};

}  // namespace posenc::test
