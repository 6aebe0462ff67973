// What llama.cpp saves of a context: llama_state_seq_save_file (a slot of llama-server) and
// llama_state_save_file (--prompt-cache). A magic, a version, the prompt's tokens, then each cache:
// its cells, and of each layer first all keys, then all values. Neither lengths nor the kind of
// model are said, so that a cache is read in each of the ways that there are, until one fits.
// Format: llama_kv_cache::state_write.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "posenc/files.h"
#include "src/files/quantized.h"

namespace posenc {
namespace {

constexpr std::uint32_t sequence_magic = 0x67677371, session_magic = 0x6767736e;  // 'ggsq', 'ggsn'
constexpr std::uint32_t sequence_version = 3, session_version = 10;
constexpr std::uint32_t most_layers = 4096, most_streams = 256, most_caches = 16;

// After a read that goes beyond the end every other yields zeros.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes), size_(bytes.size()) {}

  template <class T>
  T number() {
    T value{};
    const std::span<const std::byte> bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t count) {
    whole_ = whole_ && count <= rest_.size();
    if (!whole_) return {};
    const std::span<const std::byte> bytes = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  // Whether there are `count` records of `size` bytes more, before anything is made for them.
  bool has(std::uint64_t count, std::uint64_t size) const {
    return whole_ && count <= rest_.size() / size;
  }
  bool whole() const { return whole_; }
  std::size_t left() const { return rest_.size(); }
  std::size_t offset() const { return size_ - rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  std::size_t size_;
  bool whole_ = true;
};

// What a file does not say of itself.
struct Variant {
  std::uint64_t extra;  // bytes of a cell beyond its position: where it stands in a picture
  bool values;          // latent attention keeps none
};
constexpr Variant variants[] = {{0, true},  {8, true},  {12, true},
                                {0, false}, {8, false}, {12, false}};

bool read_cells(Cursor& in, std::uint32_t count, const Variant& variant, LlamaCache& cache) {
  if (!in.has(count, 8 + variant.extra)) return false;
  std::vector<std::int64_t> row, column;
  for (std::uint32_t i = 0; i < count; ++i) {
    cache.place.push_back(in.offset());
    cache.position.push_back(in.number<std::int32_t>());
    const auto sequences = in.number<std::uint32_t>();
    if (variant.extra > 0) {
      column.push_back(in.number<std::int32_t>());
      row.push_back(in.number<std::int32_t>());
      in.take(variant.extra - 8);
    }
    in.take(std::uint64_t{4} * sequences);
  }
  if (variant.extra > 0) {
    cache.axes = 3;
    cache.position.insert(cache.position.end(), row.begin(), row.end());
    cache.position.insert(cache.position.end(), column.begin(), column.end());
  }
  return in.whole();
}

bool read_keys(Cursor& in, std::uint32_t count, std::uint32_t layer, LlamaCache& cache) {
  const detail::GgmlType* type = detail::ggml_type(in.number<std::uint32_t>());
  const auto row = in.number<std::uint64_t>();
  if (!in.whole() || !type || row == 0 || row % static_cast<std::uint64_t>(type->bytes) != 0 ||
      !in.has(count, row))
    return false;
  const std::int64_t numbers = static_cast<std::int64_t>(row) / type->bytes * type->block;
  cache.keys.push_back({.name = "k_" + std::to_string(layer),
                        .type = std::string(type->name),
                        .shape = {count, numbers},
                        .bytes = in.take(count * row)});
  return true;
}

// Values are passed over: rows of cells, or each of a row's numbers for all cells.
bool skip_values(Cursor& in, std::uint32_t count, bool transposed) {
  const detail::GgmlType* type = detail::ggml_type(in.number<std::uint32_t>());
  std::uint64_t row = 0;
  if (transposed) {
    const std::uint64_t bytes = in.number<std::uint32_t>();
    row = bytes * in.number<std::uint32_t>();
  } else {
    row = in.number<std::uint64_t>();
  }
  if (!in.whole() || !type || row == 0 || !in.has(count, row)) return false;
  in.take(count * row);
  return true;
}

// One cache: the streams of a context, usually one. Nothing where this way of reading does not fit.
std::optional<std::vector<LlamaCache>> read_cache(Cursor& in, const Variant& variant) {
  std::vector<LlamaCache> streams;
  const auto count = in.number<std::uint32_t>();
  if (count == 0 || count > most_streams) return {};
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto cells = in.number<std::uint32_t>();
    if (!in.whole()) return {};
    if (cells == 0) continue;
    LlamaCache& cache = streams.emplace_back();
    if (!read_cells(in, cells, variant, cache)) return {};
    const auto transposed = in.number<std::uint32_t>(), layers = in.number<std::uint32_t>();
    if (!in.whole() || transposed > 1 || layers == 0 || layers > most_layers) return {};
    for (std::uint32_t layer = 0; layer < layers; ++layer)
      if (!read_keys(in, cells, layer, cache)) return {};
    for (std::uint32_t layer = 0; layer < layers && variant.values; ++layer)
      if (!skip_values(in, cells, transposed == 1)) return {};
  }
  return streams;
}

// The way in which a cache is read and most of the file with it; `in` goes on behind it.
std::optional<std::vector<LlamaCache>> next_cache(Cursor& in) {
  std::optional<std::vector<LlamaCache>> best;
  Cursor end = in;
  for (const Variant& variant : variants) {
    Cursor tried = in;
    auto streams = read_cache(tried, variant);
    if (streams && (!best || tried.left() < end.left())) {
      best = std::move(streams);
      end = tried;
    }
  }
  in = end;
  return best;
}

}  // namespace

bool is_llama_state(std::span<const std::byte> bytes) {
  const auto magic = Cursor(bytes).number<std::uint32_t>();
  return magic == sequence_magic || magic == session_magic;
}

Expected<LlamaState> parse_llama_state(std::span<const std::byte> bytes, std::string_view where) {
  Cursor in(bytes);
  const auto magic = in.number<std::uint32_t>(), version = in.number<std::uint32_t>();
  const bool session = magic == session_magic;
  if (!session && magic != sequence_magic)
    return fail(where, "must be a state file of llama.cpp", "",
                "save one with llama_state_seq_save_file, or by a slot of llama-server");
  const std::uint32_t known = session ? session_version : sequence_version;
  if (version != known)
    return fail(where, "the version of a state file must be " + std::to_string(known),
                std::to_string(version), "save it with a llama.cpp of 2025 or 2026");
  const auto truncated = [&] {
    return fail(
        where, "the state file must be whole",
        std::to_string(bytes.size()) + " bytes, its caches end later or are of no known kind",
        "save it again");
  };
  const auto tokens = in.number<std::uint32_t>();
  if (!in.has(tokens, 4)) return truncated();
  LlamaState state;
  state.tokens.reserve(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i) state.tokens.push_back(in.number<std::int32_t>());
  if (session) in.take(in.number<std::uint32_t>());  // the architecture's name
  while (in.whole() && in.left() > 0 && state.caches.size() < most_caches) {
    auto streams = next_cache(in);
    if (!streams) break;
    std::ranges::move(*streams, std::back_inserter(state.caches));
  }
  if (state.caches.empty()) return truncated();
  state.unread_bytes = in.left();
  return state;
}

}  // namespace posenc
