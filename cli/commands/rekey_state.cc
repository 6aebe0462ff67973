#include "cli/commands/rekey_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/parse.h"
#include "posenc/files.h"
#include "posenc/model.h"
#include "posenc/rekey.h"
#include "posenc/reuse.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// How the keys of a layer are rotated and laid out.
struct StateLayer {
  Plan plan;
  std::int64_t kv_heads = 0, head_dim = 0;
};

// Those of each cache, in its order: layers with a window have one of their own, behind the others.
Expected<std::vector<std::vector<StateLayer>>> layers_of(const LlamaState& state, Source& source) {
  if (source.model().empty()) {
    POSENC_TRY(plan, source.plan({}));
    const Geometry& geometry = source.compiled_for();
    if (geometry.kv_heads < 1 || geometry.head_dim < 1)
      return fail("rekey", "a state file's rows hold all heads of a layer", "a scheme without them",
                  "say --kv_heads and --head_dim, or name the model by --model");
    std::vector<std::vector<StateLayer>> all;
    all.reserve(state.caches.size());
    for (const LlamaCache& cache : state.caches)
      all.emplace_back(cache.keys.size(), StateLayer{plan, geometry.kv_heads, geometry.head_dim});
    return all;
  }
  POSENC_TRY(model, read_model(source.model()));
  for (const ReuseGroup& group : reuse(model))
    if (group.verdict != Reuse::exact)
      return fail("rekey", "the model's keys must be ones that may be moved", group.why,
                  "read the text again; posenc explain MODEL --reuse says it layer by layer");
  std::map<std::int64_t, std::pair<bool, StateLayer>> layers;
  for (const LayerGroup& group : model.groups) {
    if (group.stack != Stack::text && group.stack != Stack::decoder) continue;
    POSENC_TRY(plan, compile(group));
    for (const std::int64_t layer : group.layers)
      layers[layer] = {group.window.has_value(),
                       {plan, group.geometry.kv_heads, group.geometry.head_dim}};
  }
  std::vector<std::vector<StateLayer>> all(1), apart(2);
  for (const auto& [number, layer] : layers) {
    all[0].push_back(layer.second);
    apart[layer.first ? 1 : 0].push_back(layer.second);
  }
  const auto fits = [&](const auto& caches) {
    return std::ranges::equal(
        caches, state.caches, {}, [](const auto& each) { return each.size(); },
        [](const LlamaCache& each) { return each.keys.size(); });
  };
  if (fits(all)) return all;
  if (fits(apart)) return apart;
  return fail("rekey", "the caches must be of the model's layers",
              std::to_string(state.caches.size()) + " caches, the first of " +
                  std::to_string(state.caches[0].keys.size()) + " layers",
              "name the model that wrote the file");
}

// Keys [cell][kv_head][head_dim] of a layer, in memory that is aligned for any type.
Expected<void> move_layer(const StoredTensor& stored, const StateLayer& layer,
                          const Positions& from, const Positions& to, std::span<std::byte> bytes) {
  const std::int64_t cells = stored.shape[0], heads = layer.kv_heads, dim = layer.head_dim;
  if (stored.shape[1] != heads * dim)
    return fail("rekey", stored.name + " must hold head_dim channels of each head",
                std::to_string(stored.shape[1]) + " for " + std::to_string(heads) + " x " +
                    std::to_string(dim),
                "name the model that wrote the file");
  std::vector<double> aligned((bytes.size() + 7) / 8);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  const Stand stood{&layer.plan, from}, stand{&layer.plan, to};
  if (stored.type == "Q8_0") {
    POSENC_CHECK(rekey(stood, stand, CodedKeys::q8_0(aligned.data(), 1, heads, cells, dim)));
  } else if (const auto dtype = dtype_of(stored)) {
    const Tensor keys = Tensor::dense(aligned.data(), *dtype, {1, cells, heads, dim}).swapped(1, 2);
    POSENC_CHECK(rekey(stood, stand, keys, keys));
  } else {
    return fail("rekey", "keys must be of f32, f16, bf16 or q8_0", stored.type,
                "start llama.cpp with --cache-type-k q8_0, or f16");
  }
  std::memcpy(bytes.data(), aligned.data(), bytes.size());
  return {};
}

}  // namespace

bool is_state_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file && is_llama_state(file->bytes());
}

Expected<void> rekey_state(const StateMove& how, Source& source) {
  POSENC_TRY(file, MappedFile::open(how.in));
  POSENC_TRY(state, parse_llama_state(file.bytes(), how.in));
  if (state.unread_bytes > 0)
    return fail(how.in, "all of the file must be keys and values",
                std::to_string(state.unread_bytes) + " bytes of something else",
                "recurrent states cannot be moved");
  POSENC_TRY(layers, layers_of(state, source));
  POSENC_TRY(to, positions(how.to));
  Expected<Positions> named =
      how.from.empty() ? Positions::ids(state.caches[0].position) : positions(how.from);
  POSENC_TRY(from, std::move(named));
  if (from.size() != to.size())
    return fail("rekey", "--to must be as many as --from", std::to_string(to.size()),
                "give " + std::to_string(from.size()));
  std::map<std::int64_t, std::int64_t> goes;
  for (std::int64_t t = 0; t < from.size(); ++t) goes[from.at(t)] = to.at(t);

  std::vector<std::byte> bytes(file.bytes().begin(), file.bytes().end());
  for (std::size_t c = 0; c < state.caches.size(); ++c) {
    const LlamaCache& cache = state.caches[c];
    if (cache.axes != 1)
      return fail(how.in, "a cell must have one position", "three, of a model that sees pictures",
                  "move the keys of one layer with --from and --to of three axes");
    std::vector<std::int64_t> moved;
    for (std::size_t cell = 0; cell < cache.position.size(); ++cell) {
      const auto found = goes.find(cache.position[cell]);
      if (found == goes.end() || found->second > INT32_MAX)
        return fail("rekey", "--from must name each cell, and --to positions of 32 bits",
                    std::to_string(cache.position[cell]), "give both for all of the file's cells");
      moved.push_back(found->second);
      for (int i = 0; i < 4; ++i)
        bytes[cache.place[cell] + static_cast<std::size_t>(i)] =
            static_cast<std::byte>(found->second >> (8 * i) & 0xff);
    }
    POSENC_TRY(stood, Positions::signed_ids(cache.position));
    POSENC_TRY(stand, Positions::signed_ids(moved));
    for (std::size_t layer = 0; layer < cache.keys.size(); ++layer) {
      const StoredTensor& keys = cache.keys[layer];
      const auto at = static_cast<std::size_t>(keys.bytes.data() - file.bytes().data());
      POSENC_CHECK(move_layer(keys, layers[c][layer], stood, stand,
                              std::span(bytes).subspan(at, keys.bytes.size())));
    }
  }
  return write_whole(how.out, {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
}

}  // namespace posenc::cli
