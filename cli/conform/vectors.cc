#include "cli/conform/vectors.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "cli/arguments/model.h"
#include "cli/conform/vectors_text.h"
#include "src/core/try.h"

namespace posenc::cli::conform {
namespace {

using nlohmann::json;

constexpr std::size_t largest_file = std::size_t{64} << 20;
constexpr int version = 1;

bool append(const json& value, std::vector<double>& to) {
  if (value.is_array())
    return std::ranges::all_of(value, [&](const json& part) { return append(part, to); });
  if (value.is_null())
    to.push_back(std::numeric_limits<double>::quiet_NaN());
  else if (value.is_number())
    to.push_back(value.get<double>());
  else if (value.is_boolean())
    to.push_back(value.get<bool>() ? 1 : 0);
  else
    return false;
  return true;
}

std::optional<Numbers> outputs(const json& of) {
  if (!of.is_object()) return std::nullopt;
  Numbers all;
  for (const auto& [name, value] : of.items()) {
    std::optional<std::vector<double>> read = numbers(value);
    if (!read) return std::nullopt;
    all.emplace(name, std::move(*read));
  }
  return all;
}

std::optional<VectorTest> test_of(const json& of) {
  if (!of.is_object() || !of.contains("input") || !of.contains("output")) return std::nullopt;
  std::optional<Numbers> right = outputs(of["output"]);
  if (!right) return std::nullopt;
  VectorTest test{word(of, "id"), word(of, "about"), of["input"], std::move(*right), {}, {}};
  for (const auto& [key, to] : {std::pair{"mistakes", &test.mistakes}, {"within", &test.within}}) {
    const json all = of.value(key, json::object());
    for (const auto& [name, numbers] : all.items()) {
      std::optional<Numbers> read = outputs(numbers);
      if (!read) return std::nullopt;
      to->emplace(name, std::move(*read));
    }
  }
  return test;
}

std::optional<VectorFile> file_of(const json& of) {
  if (!of.is_object() || of.value("version", json()) != version || !of.contains("tests"))
    return std::nullopt;
  VectorFile file{word(of, "operation"), word(of, "about"), {}, {}};
  const json tolerances = of.value("tolerance", json::object());
  for (std::size_t i = 0; i < file.tolerance.size(); ++i) {
    const auto found = tolerances.find(name(static_cast<DType>(i)));
    if (found == tolerances.end() || !found->is_object()) return std::nullopt;
    file.tolerance[i] = {found->value("absolute", 0.0), found->value("relative", 0.0)};
  }
  for (const json& each : of["tests"]) {
    std::optional<VectorTest> test = test_of(each);
    if (!test) return std::nullopt;
    file.tests.push_back(std::move(*test));
  }
  return file;
}

Expected<void> add(Vectors& to, std::string_view name, std::string_view text) {
  const json read = json::parse(text, nullptr, false);
  if (name == "mistakes.json" && read.is_object() && read.value("version", json()) == version) {
    const json mistakes = read.value("mistakes", json::object());
    for (const auto& [mistake, of] : mistakes.items())
      to.mistakes.emplace(mistake, NamedMistake{word(of, "title"), word(of, "cure"),
                                                word(of, "report"), of.value("loss", false)});
    return {};
  }
  std::optional<VectorFile> file = file_of(read);
  if (!file)
    return fail(name, "must be a file of vectors of version 1", "something else",
                "see vectors/schemas/ of posenc");
  to.files.push_back(std::move(*file));
  return {};
}

}  // namespace

std::string word(const json& of, const char* key) {
  const auto found = of.find(key);
  return found != of.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::vector<double>> numbers(const json& value) {
  std::vector<double> all;
  if (!append(value, all)) return std::nullopt;
  return all;
}

std::vector<EmbeddedText> embedded_vectors() {
  return {{"frequencies.json", frequencies_vectors},
          {"cos_sin.json", cos_sin_vectors},
          {"rotate.json", rotate_vectors},
          {"model.json", model_vectors},
          {"rekey.json", rekey_vectors},
          {"positions.json", positions_vectors},
          {"bias.json", bias_vectors},
          {"mask.json", mask_vectors},
          {"scores.json", scores_vectors},
          {"added.json", added_vectors},
          {"mistakes.json", mistakes_vectors}};
}

Expected<Vectors> read_vectors(const std::string& folder) {
  Vectors all;
  if (folder.empty()) {
    for (const EmbeddedText& each : embedded_vectors())
      POSENC_CHECK(add(all, each.file, each.text));
    return all;
  }
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" && entry.path().filename() != "package.json")  // npm's
      paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    POSENC_TRY(text, named_text(path.string(), largest_file));
    POSENC_CHECK(add(all, path.filename().string(), text));
  }
  if (all.files.empty())
    return fail("--vectors", "must be a folder of vectors", folder,
                "give the vectors/ of posenc, or leave it out");
  return all;
}

}  // namespace posenc::cli::conform
