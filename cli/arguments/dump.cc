#include "cli/arguments/dump.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "posenc/files.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

// Whether `name` is `pattern`, whose stars stand for anything.
bool matches(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t at = star; at <= name.size(); ++at)
    if (matches(pattern.substr(star + 1), name.substr(at))) return true;
  return false;
}

std::int64_t first_number(std::string_view name) {
  std::int64_t number = -1;
  const std::size_t digit = name.find_first_of("0123456789");
  if (digit != name.npos) std::from_chars(name.data() + digit, name.data() + name.size(), number);
  return number;
}

// Whether a row holds some channels of each head.
Expected<void> check_heads(std::int64_t heads, std::span<const std::int64_t> shape,
                           std::string_view of) {
  if (heads == 0) return {};
  const std::int64_t row = shape.empty() ? 1 : shape.back();
  if (shape.empty() || row % heads != 0)
    return fail("--heads", "must divide a row of " + std::string(of), std::to_string(heads),
                "a row has " + std::to_string(row) + " numbers");
  if (row == 0)
    return fail(of, "a row must hold a channel of each head", "rows without numbers",
                "dump the tensor again, [seq][heads · head_dim]");
  return {};
}

Expected<DumpedLayer> layer_of(const StoredTensor& stored, std::int64_t heads,
                               const std::string& path) {
  const std::string where = path + ": " + stored.name;
  if (stored.shape.size() > Tensor::max_rank)
    return fail(where, "a dump has at most four axes", std::to_string(stored.shape.size()));
  POSENC_CHECK(check_heads(heads, stored.shape, stored.name));
  POSENC_TRY(numbers, floats_of(stored));
  DumpedLayer layer{
      .name = printable(stored.name), .layer = first_number(stored.name), .heads = heads};
  layer.array = {NpyType::f32, stored.shape, {}};
  const auto bytes = std::as_bytes(std::span(numbers));
  layer.array.data.assign(bytes.begin(), bytes.end());
  return layer;
}

Expected<Dump> read_state(std::span<const std::byte> bytes, const std::string& path,
                          const DumpFlags& flags) {
  POSENC_TRY(state, parse_llama_state(bytes, path));
  const std::int64_t heads = flags.heads > 0 ? flags.heads : flags.heads_of_states;
  if (heads == 0)
    return fail("--heads", "is required with a state file, whose rows hold all heads of a layer",
                "", "say how many key heads a layer has, or name the model by --model");
  if (state.tokens.empty() ||
      std::ranges::any_of(state.tokens, [&](auto t) { return t != state.tokens.front(); }))
    return fail(path, "the prompt must be one token repeated",
                std::to_string(state.tokens.size()) + " tokens that differ",
                "posenc identify --how llama.cpp");
  Dump dump{.repeated = true};
  for (const LlamaCache& cache : state.caches) {
    const auto cells = cache.position.size() / static_cast<std::size_t>(cache.axes);
    // Text stands at the same place on all axes, and one tells as much.
    const std::span<const std::int64_t> all(cache.position), first = all.first(cells);
    bool text = true;
    for (std::size_t axis = 1; axis < static_cast<std::size_t>(cache.axes); ++axis)
      text = text && std::ranges::equal(first, all.subspan(axis * cells, cells));
    POSENC_TRY(at, text ? Positions::signed_ids(first) : Positions::signed_ids(all, cache.axes));
    for (const StoredTensor& keys : cache.keys) {
      if (!flags.tensor.empty() && !matches(flags.tensor, keys.name)) continue;
      POSENC_TRY(layer, layer_of(keys, heads, path));
      layer.positions = at;
      if (state.caches.size() > 1)
        layer.name = "cache " + std::to_string(&cache - state.caches.data()) + " " + layer.name;
      dump.layers.push_back(std::move(layer));
    }
  }
  return dump;
}

}  // namespace

Expected<Tensor> DumpedLayer::tensor(std::string_view dtype) {
  Expected<Tensor> view = tensor_of(array, dtype, name);
  if (!view || heads == 0) return view;
  // [seq][heads · dim]: heads in front.
  const int last = view->rank - 1;
  if (view->rank < 2) return view;
  const std::int64_t dim = view->shape[static_cast<std::size_t>(last)] / heads;
  const std::int64_t seq = array.size() / (heads * dim);
  Tensor split = *view;
  split.rank = 3;
  split.shape = {heads, seq, dim, 0};
  split.stride = {dim, heads * dim, 1, 0};
  return split;
}

Expected<Dump> read_dump(const std::string& path, const DumpFlags& flags) {
  if (path == "-" || path.ends_with(".npy") || !array_name(path).tensor.empty()) {
    POSENC_TRY(array, read_array(path));
    POSENC_CHECK(check_heads(flags.heads, array.shape, path));
    Dump dump;
    const std::string tensor = array_name(path).tensor;
    dump.layers.push_back({.name = printable(tensor),
                           .layer = first_number(tensor),
                           .array = std::move(array),
                           .heads = flags.heads});
    return dump;
  }
  POSENC_TRY(file, MappedFile::open(path));
  if (is_llama_state(file.bytes())) return read_state(file.bytes(), path, flags);
  POSENC_TRY(stored, read_tensors(path));
  Dump dump;
  const std::size_t least_axes = flags.heads > 0 ? 2 : flags.least_axes;
  for (const StoredTensor& tensor : stored.tensors) {
    if (flags.tensor.empty() ? tensor.shape.size() < least_axes
                             : !matches(flags.tensor, tensor.name))
      continue;
    POSENC_TRY(layer, layer_of(tensor, flags.heads, path));
    dump.layers.push_back(std::move(layer));
  }
  std::ranges::stable_sort(dump.layers, {}, &DumpedLayer::layer);
  if (dump.layers.empty()) {
    std::vector<std::string_view> names;
    names.reserve(stored.tensors.size());
    for (const StoredTensor& tensor : stored.tensors) names.push_back(tensor.name);
    if (flags.tensor.empty())
      return fail(path, "must hold a tensor [head][seq][dim]",
                  std::to_string(names.size()) + " tensors of fewer axes",
                  "say --heads where a row holds all heads");
    return fail("--tensor", "must name a tensor of " + path, flags.tensor,
                suggestion(flags.tensor, names));
  }
  return dump;
}

}  // namespace posenc::cli
