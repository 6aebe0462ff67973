// Learned tables out of weights on disk: one file, or a folder with its shards.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "posenc/files.h"
#include "src/core/disk.h"
#include "src/core/try.h"
#include "src/model/tables.h"
#include "src/text/json.h"

namespace posenc::detail {
namespace {

struct Weights {
  std::vector<StoredTensor> tensors;
  std::shared_ptr<const void> files;
};

Expected<std::set<std::string>> shards_with_tables(Model& model, const std::string& index) {
  POSENC_TRY(file, MappedFile::open(index));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  POSENC_TRY(json, parse_json(text, index));
  const Json* map = json.find("weight_map");
  if (!map || !map->get<Json::Object>())
    return fail(index, "must have 'weight_map', an object of tensor and file names",
                map ? map->text() : "", "download it again");
  std::set<std::string> shards;
  for (const JsonMember& member : *map->get<Json::Object>()) {
    const auto* shard = member.value.get<std::string>();
    if (!shard || shard->find_first_of(separators) != shard->npos)
      return fail(index, "weight_map must name files beside it", member.value.text(),
                  "download it again");
    if (may_hold_table(model, member.key)) shards.insert(*shard);
  }
  return shards;
}

Expected<Weights> read_weights(const std::string& folder, const std::set<std::string>& names) {
  Weights weights;
  const auto files = std::make_shared<std::vector<MappedFile>>();
  for (const std::string& name : names) {
    POSENC_TRY(read, read_tensors(folder + "/" + name));
    files->push_back(std::move(read.file));
    std::ranges::move(read.tensors, std::back_inserter(weights.tensors));
  }
  weights.files = files;
  return weights;
}

void not_read(Model& model, const Error& error) {
  model.warnings.push_back({"weights_not_read", error.message()});
}

}  // namespace

void give_tables_of_file(Model& model, const std::string& path) {
  if (!needs_tables(model)) return;
  const Expected<TensorFile> read = read_tensors(path);
  if (!read) return not_read(model, read.error());
  give_tables(model, read->tensors, std::make_shared<MappedFile>(read->file), path);
}

void give_tables_of_folder(Model& model, const std::string& folder) {
  if (!needs_tables(model)) return;
  const std::string single = "model.safetensors", index = "model.safetensors.index.json";
  const auto is_there = [&](const std::string& name) {
    std::error_code error;
    return std::filesystem::exists(folder + "/" + name, error);
  };
  std::string from = single;
  Expected<std::set<std::string>> names = std::set<std::string>{single};
  if (!is_there(single)) {
    if (!is_there(index)) return;
    from = index;
    names = shards_with_tables(model, folder + "/" + index);
  }
  const Expected<Weights> weights =
      names ? read_weights(folder, *names) : std::unexpected(names.error());
  if (!weights) return not_read(model, weights.error());
  give_tables(model, weights->tensors, weights->files, from);
}

}  // namespace posenc::detail
