// Evidence that lies in files.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "posenc/doctor.h"
#include "posenc/files.h"
#include "src/core/small_letters.h"
#include "src/tools/serving_settings.h"
#include "src/tools/symptom.h"

namespace posenc {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_answer = std::size_t{1} << 20;  // of a server, in JSON

std::vector<Exhibit> only(Exhibit one) {
  std::vector<Exhibit> all;
  all.push_back(std::move(one));
  return all;
}

Exhibit of_model(const std::string& given) {
  Expected<Model> model = read_model(given);
  return model ? model_exhibit(given, *std::move(model)) : unusable_exhibit(given, model.error());
}

Exhibit of_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  if (!file) return unusable_exhibit(path, file.error());
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  if (bytes.starts_with("\x93NUMPY"))
    return unusable_exhibit(path, {.where = "doctor",
                                   .rule = "tensors",
                                   .got = "",
                                   .cure = "posenc identify --after " + path +
                                           " --repeated --model MODEL tells what rotated them"});
  if (path.ends_with(".safetensors")) return of_model(path);
  const std::size_t first = bytes.substr(0, 4096).find_first_not_of(" \t\r\n");
  const bool settings = first != bytes.npos && detail::serving_settings(bytes.substr(first));
  const bool json = first != bytes.npos && bytes[first] == '{';
  if (bytes.substr(0, 4096).contains('\0')) return of_model(path);
  const bool answer = json && bytes.size() <= largest_answer && bytes.contains("\"model_info\"");
  if (json && !settings && !answer) {
    Exhibit model = of_model(path);
    if (model.model || bytes.size() > largest_answer) return model;
  }
  if (bytes.size() > largest_log)
    return unusable_exhibit(path, {.where = "doctor",
                                   .rule = "must be at most 64 MiB of text",
                                   .got = std::to_string(bytes.size() >> 20) + " MiB",
                                   .cure = "give its first lines: head -n 2000 FILE"});
  return text_exhibit(path, std::string(bytes));
}

// Settings of a trainer beside an adapter, which has no configuration of its own.
std::vector<Exhibit> of_adapter(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml")
      paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  std::vector<Exhibit> all;
  all.reserve(paths.size() + 1);
  for (const std::string& path : paths) all.push_back(of_file(path));
  if (all.empty())
    all.push_back(unusable_exhibit(
        folder, {.where = "doctor",
                 .rule = "an adapter without the settings of its training",
                 .got = "",
                 .cure = "put the trainer's YAML (cutoff_len, sequence_len) into the folder"}));
  return all;
}

}  // namespace

std::vector<Exhibit> exhibits_of(const std::string& given) {
  std::error_code none;
  constexpr std::size_t longest_path = 4096;
  if (given.size() < longest_path && fs::exists(given, none)) {
    if (!fs::is_directory(given, none)) return only(of_file(given));
    const fs::path folder = given;
    if (!fs::exists(folder / "config.json", none) &&
        fs::exists(folder / "adapter_config.json", none))
      return of_adapter(given);
    return only(of_model(given));
  }
  // Sentences in Chinese have no blanks, and names of models no such letters.
  const bool is_sentence =
      std::ranges::any_of(given, [](char c) { return static_cast<unsigned char>(c) >= 0xe0; });
  if (is_sentence || given.find_first_of(" \n\t") != given.npos)
    return only(text_exhibit("command", given));
  Exhibit model = of_model(given);
  if (model.model) return only(std::move(model));
  // 'transformers==5.17.0', 'vllm', 'gibberish'
  if (find_engine(given))
    return only({.name = "command", .kind = ExhibitKind::versions, .as = given, .text = given});
  Exhibit version = text_exhibit("command", given);
  if (version.kind == ExhibitKind::versions) return only(std::move(version));
  const std::string told = "the text is " + given;
  const auto seen =
      std::ranges::all_of(given, detail::is_letter) ? detail::symptom_of(told) : std::nullopt;
  return only(seen && seen->seen != detail::Seen::nothing ? text_exhibit("words", told)
                                                          : std::move(model));
}

}  // namespace posenc
