// Test vectors of position for a C++ test of any framework, by this header and nlohmann/json alone:
//
//   const posenc_vectors::File file("vectors/rotate.json");
//   for (const auto& test : file.tests()) {
//     const std::string wrong = file.judge(test, {{"q", rotated_q}, {"k", rotated_k}}, "float32");
//     EXPECT_EQ(wrong, "") << test["id"];
//   }
//
// judge() returns "" where the answer is right, else the mistakes that give it ("wrong_pairing"), or
// "unknown". README.md says how an answer is judged.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

namespace posenc_vectors {

using Numbers = std::vector<double>;            // row-major
using Answer = std::map<std::string, Numbers>;  // outputs by name, all of them or some
constexpr double of_six_digits = 1e-5;          // wrong answers have six

// Every number of nested lists; NaN for null, which is compared with nothing.
inline Numbers flat(const nlohmann::json& value) {
  if (!value.is_array())
    return {value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>()};
  Numbers all;
  for (const auto& part : value)
    for (const double x : flat(part)) all.push_back(x);
  return all;
}

class File {
 public:
  // Throws where the file is not there or is no JSON.
  explicit File(const std::string& path) {
    std::ifstream in(path);
    if (!in) throw std::runtime_error("posenc_vectors: cannot read " + path);
    document_ = nlohmann::json::parse(in);
  }

  const nlohmann::json& tests() const { return document_["tests"]; }

  // dtype: float64, float32, float16 or bfloat16. Throws where the answer has none of the outputs.
  std::string judge(const nlohmann::json& test, const Answer& answer,
                    const std::string& dtype = "float32") const {
    const nlohmann::json& of = document_["tolerance"].at(dtype);
    const Tolerance tolerance{of["absolute"], of["relative"]};
    Answer got;
    for (const auto& [name, values] : answer)
      if (test["output"].contains(name)) got[name] = values;
    if (got.empty()) throw std::invalid_argument("posenc_vectors: none of the outputs is answered");
    std::vector<std::string> wrong, names;
    for (const auto& [name, values] : got)
      if (!close(values, flat(test["output"][name]), tolerance)) wrong.push_back(name);
    if (wrong.empty()) return "";
    names = shown(test, got, tolerance);
    if (names.empty() && got.size() > 1) {  // two mistakes at once
      for (const std::string& name : wrong) {
        auto each = shown(test, {{name, got[name]}}, tolerance);
        // One that changes another output too is not what made this one wrong.
        each.erase(std::remove_if(each.begin(), each.end(),
                                  [&](const std::string& mistake) {
                                    return test["mistakes"].contains(mistake) &&
                                           test["mistakes"][mistake].size() > 1;
                                  }),
                   each.end());
        if (each.empty()) return "unknown";
        names.push_back(each.front());
      }
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
    return text.empty() ? "unknown" : text;
  }

 private:
  struct Tolerance {
    double absolute, relative;
  };

  static bool close(const Numbers& got, const Numbers& wanted, Tolerance t, double slack = 0) {
    return got.size() == wanted.size() &&
           std::equal(got.begin(), got.end(), wanted.begin(), [&](double a, double b) {
             return std::isnan(b) ||
                    std::abs(a - b) <= t.absolute + (t.relative + slack) * std::abs(b);
           });
  }

  static std::vector<std::string> shown(const nlohmann::json& test, const Answer& got,
                                        Tolerance t) {
    std::vector<std::string> names;
    for (const auto& [name, changed] : test["mistakes"].items()) {
      bool visible = false, all = true;
      for (const auto& [key, values] : got) {
        const Numbers right = flat(test["output"][key]);
        const bool changes = changed.contains(key);
        const Numbers wanted = changes ? flat(changed[key]) : right;
        visible = visible || (changes && !close(wanted, right, t));
        all = all && close(values, wanted, t, changes ? of_six_digits : 0);
      }
      if (visible && all) names.push_back(name);
    }
    if (!test.contains("within")) return names;
    for (const auto& [name, bounds] : test["within"].items()) {
      bool all = std::find(names.begin(), names.end(), name) == names.end();
      for (const auto& [key, values] : got) {
        const Numbers right = flat(test["output"][key]), bound = flat(bounds[key]);
        all = all && values.size() == right.size() && bound.size() == right.size();
        for (std::size_t i = 0; all && i < right.size(); ++i)
          all = std::abs(values[i] - right[i]) <= t.absolute + bound[i];
      }
      if (all) names.push_back(name);
    }
    return names;
  }

  nlohmann::json document_;
};

}  // namespace posenc_vectors
