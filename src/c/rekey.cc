// The C interface of cached keys that move; the browser's module does without.
#include "posenc/rekey.h"
#ifndef __wasm__
#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "posenc/context_parallel.h"
#include "posenc/key_header.h"
#include "posenc/reuse.h"
#include "src/c/handles.h"
#include "src/core/addressable.h"

using namespace posenc;
using c::done, c::misuse, c::need, c::need_side, c::need_size, c::need_threads, c::refused, c::View,
    c::view;

static_assert(POSENC_E4M3 == static_cast<int>(KeyType::e4m3) &&
              POSENC_INT8 == static_cast<int>(KeyType::int8) &&
              POSENC_Q8_0 == static_cast<int>(KeyType::q8_0) &&
              POSENC_KEY_HEADER_BYTES == KeyHeader::bytes);

namespace {

// What every move has: where keys stand and shall stand.
struct Move {
  const posenc_plan* from;
  const posenc_positions* from_positions;
  const posenc_plan* to;
  const posenc_positions* to_positions;
  posenc_side side;

  posenc_status check(std::string_view where) const {
    if (const auto bad = need_side(where, side)) return bad;
    return need(where, {{"from", from},
                        {"from_positions", from_positions},
                        {"to", to},
                        {"to_positions", to_positions}});
  }
  Stand old_stand() const { return {&from->value, from_positions->value}; }
  Stand new_stand() const { return {&to->value, to_positions->value}; }
  Side of() const { return static_cast<Side>(side); }
};

struct ReadTable {
  posenc_status status = POSENC_MISUSE;
  std::span<const std::int32_t> pages = {};
  std::span<const std::int64_t> tokens = {};
};

ReadTable read_table(std::string_view where, const posenc_page_table& table) {
  if (const auto bad = need_size(where, "table", "posenc_page_table", table)) return {bad};
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (table.sequences < 0 || table.columns < 0 || table.sequences > most || table.columns > most ||
      detail::product(table.sequences, table.columns) > most)
    return {misuse(where, "a table must have 0 to 2^40 pages",
                   std::to_string(table.sequences) + " × " + std::to_string(table.columns))};
  if (table.sequences > 0)
    if (const auto bad = need(where, {{"table.tokens", table.tokens}})) return {bad};
  if (table.sequences > 0 && table.columns > 0)
    if (const auto bad = need(where, {{"table.pages", table.pages}})) return {bad};
  return {POSENC_OK,
          {table.pages, static_cast<std::size_t>(table.sequences * table.columns)},
          {table.tokens, static_cast<std::size_t>(table.sequences)}};
}

struct ReadCodes {
  posenc_status status = POSENC_MISUSE;
  CodedKeys keys = {};
};

ReadCodes read_codes(std::string_view where, const posenc_key_codes& given) {
  if (const auto bad = need_size(where, "keys", "posenc_key_codes", given)) return {bad};
  if (given.type != POSENC_E4M3 && given.type != POSENC_INT8)
    return {misuse(where, "keys.type must be POSENC_E4M3 or POSENC_INT8",
                   std::to_string(given.type), "posenc_key_codes_q8_0() fills one for q8_0")};
  if (const auto bad = need(where, {{"keys.codes", given.codes}})) return {bad};
  CodedKeys keys{.code = given.type == POSENC_E4M3 ? KeyCode::e4m3 : KeyCode::int8,
                 .codes = static_cast<std::byte*>(given.codes),
                 .block = given.block,
                 .block_stride = given.block_stride,
                 .keep_scales = given.new_scales == 0};
  std::ranges::copy(given.shape, keys.shape.begin());
  std::ranges::copy(given.stride, keys.stride.begin());
  if (given.scales.data) {
    const View scales = view(where, "keys.scales", &given.scales);
    if (scales.status) return {scales.status};
    keys.scales = scales.tensor;
  }
  return {POSENC_OK, keys};
}

std::string_view name_or_header(const char* name) { return name ? name : "header"; }

Expected<KeyHeader> parse(const void* bytes, std::size_t size, const char* name) {
  return parse_key_header({static_cast<const std::byte*>(bytes), size}, name_or_header(name));
}

}  // namespace

posenc_status posenc_rekey(const posenc_plan* from, const posenc_positions* from_positions,
                           const posenc_plan* to, const posenc_positions* to_positions,
                           const posenc_tensor* x, posenc_side side, const posenc_tensor* out,
                           int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_rekey";
  const Move move{from, from_positions, to, to_positions, side};
  if (const auto bad = move.check(where)) return bad;
  return c::on_tensors(
      where, {}, threads, {{"x", x}, {"out", out}}, [&](const Tensor& keys, const Tensor& moved) {
        return rekey(move.old_stand(), move.new_stand(), keys, moved, move.of(), Threads{threads});
      });
}

posenc_status posenc_rekey_pages(const posenc_plan* from, const posenc_positions* from_positions,
                                 const posenc_plan* to, const posenc_positions* to_positions,
                                 const posenc_tensor* keys, const posenc_page_table* table,
                                 posenc_side side, int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_rekey_pages";
  const Move move{from, from_positions, to, to_positions, side};
  if (const auto bad = move.check(where)) return bad;
  if (const auto bad = need(where, {{"table", table}})) return bad;
  const ReadTable read = read_table(where, *table);
  if (read.status) return read.status;
  return c::on_tensors(where, {}, threads, {{"keys", keys}}, [&](const Tensor& pool) {
    return rekey(move.old_stand(), move.new_stand(), KeyPages{pool, read.pages, read.tokens},
                 move.of(), Threads{threads});
  });
}

posenc_status posenc_key_codes_q8_0(void* blocks, int64_t batch, int64_t kv_heads, int64_t seq,
                                    int64_t head_dim, posenc_key_codes* out) noexcept {
  constexpr std::string_view where = "posenc_key_codes_q8_0";
  if (const auto bad = need(where, {{"blocks", blocks}, {"out", out}})) return bad;
  constexpr std::int64_t most = std::int64_t{1} << 40, channels_of_block = 32;
  std::int64_t all = 1;
  for (const std::int64_t extent : {batch, kv_heads, seq, head_dim}) {
    all = detail::product(all, extent);
    if (extent < 0 || all > most)
      return misuse(where, "sizes must not be negative, and their product at most 2^40",
                    std::to_string(extent));
  }
  if (head_dim % channels_of_block != 0)
    return misuse(where, "head_dim must be a multiple of 32", std::to_string(head_dim),
                  "llama.cpp keeps no such head as q8_0");
  const CodedKeys keys = CodedKeys::q8_0(blocks, batch, kv_heads, seq, head_dim);
  *out = {.struct_size = sizeof *out,
          .type = POSENC_INT8,
          .codes = keys.codes,
          .block = keys.block,
          .block_stride = keys.block_stride,
          .scales = {.struct_size = sizeof out->scales,
                     .dtype = static_cast<posenc_dtype>(keys.scales.dtype),
                     .rank = keys.scales.rank,
                     .data = keys.scales.data},
          .new_scales = !keys.keep_scales};
  std::ranges::copy(keys.shape, out->shape);
  std::ranges::copy(keys.stride, out->stride);
  std::ranges::copy(keys.scales.shape, out->scales.shape);
  std::ranges::copy(keys.scales.stride, out->scales.stride);
  return POSENC_OK;
}

posenc_status posenc_rekey_codes(const posenc_plan* from, const posenc_positions* from_positions,
                                 const posenc_plan* to, const posenc_positions* to_positions,
                                 const posenc_key_codes* keys, const posenc_page_table* table,
                                 posenc_side side, int32_t threads) noexcept {
  constexpr std::string_view where = "posenc_rekey_codes";
  const Move move{from, from_positions, to, to_positions, side};
  if (const auto bad = move.check(where)) return bad;
  if (const auto bad = need(where, {{"keys", keys}})) return bad;
  if (const auto bad = need_threads(where, threads)) return bad;
  const ReadCodes codes = read_codes(where, *keys);
  if (codes.status) return codes.status;
  const Stand old_stand = move.old_stand(), new_stand = move.new_stand();
  if (!table) return done(rekey(old_stand, new_stand, codes.keys, move.of(), Threads{threads}));
  const ReadTable read = read_table(where, *table);
  if (read.status) return read.status;
  return done(rekey(old_stand, new_stand, CodedPages{codes.keys, read.pages, read.tokens},
                    move.of(), Threads{threads}));
}

posenc_status posenc_key_header_make(const posenc_plan* plan, const posenc_positions* positions,
                                     const int64_t* shape, posenc_key_type type, posenc_side side,
                                     int64_t layer, unsigned char* header) noexcept {
  constexpr std::string_view where = "posenc_key_header_make";
  if (const auto bad = need(
          where, {{"plan", plan}, {"positions", positions}, {"shape", shape}, {"header", header}}))
    return bad;
  if (const auto bad = need_side(where, side)) return bad;
  if (type < POSENC_FLOAT64 || type > POSENC_Q8_0)
    return misuse(where, "type must be one of posenc_dtype or posenc_key_type",
                  std::to_string(type));
  if (layer < -1 || layer >= std::int64_t{KeyHeader::any_layer})
    return misuse(where, "layer must be -1 to 2^32 - 2", std::to_string(layer));
  const auto made =
      key_header({&plan->value, positions->value}, std::span(shape, 4), static_cast<KeyType>(type),
                 static_cast<Side>(side),
                 layer == -1 ? KeyHeader::any_layer : static_cast<std::uint32_t>(layer));
  if (!made) return refused(made.error());
  const auto bytes = to_bytes(*made);
  std::memcpy(header, bytes.data(), bytes.size());
  return POSENC_OK;
}

posenc_status posenc_key_header_read(const void* header, size_t size, const char* name,
                                     posenc_key_header* out) noexcept {
  if (const auto bad = need("posenc_key_header_read", {{"header", header}, {"out", out}}))
    return bad;
  const auto read = parse(header, size, name);
  if (!read) return refused(read.error());
  *out = {.struct_size = sizeof *out,
          .type = static_cast<posenc_key_type>(read->type),
          .pairing = read->pairing,
          .side = static_cast<posenc_side>(read->side),
          .axes = read->axes,
          .consecutive = read->consecutive,
          .first = read->first,
          .tokens = read->tokens,
          .layer = read->layer == KeyHeader::any_layer ? -1 : std::int64_t{read->layer},
          .kv_heads = read->kv_heads,
          .head_dim = read->head_dim,
          .first_dim = read->first_dim,
          .rotary_dim = read->rotary_dim,
          .rotation = read->rotation,
          .positions = read->positions};
  return POSENC_OK;
}

posenc_status posenc_key_header_check(const void* found, size_t size, const unsigned char* expected,
                                      const char* name) noexcept {
  constexpr std::string_view where = "posenc_key_header_check";
  if (const auto bad = need(where, {{"found", found}, {"expected", expected}})) return bad;
  const auto read = parse(found, size, name);
  if (!read) return refused(read.error());
  const auto asked = parse(expected, KeyHeader::bytes, "expected");
  if (!asked) return refused(asked.error());
  return done(check_key_header(*read, *asked, name_or_header(name)));
}

posenc_status posenc_model_reuse_json(const posenc_model* model, char** json) noexcept {
  if (const auto bad = need("posenc_model_reuse_json", "json", json, {{"model", model}}))
    return bad;
  return c::hand_out(to_json(reuse(model->value)), json);
}

posenc_status posenc_model_layout_json(const posenc_model* model, const char* cp, int64_t length,
                                       char** json) noexcept {
  if (const auto bad =
          need("posenc_model_layout_json", "json", json, {{"model", model}, {"cp", cp}}))
    return bad;
  const auto sharding = layout::read_sharding(cp);
  if (!sharding) return refused(sharding.error());
  const auto judged = layout::judge(model->value, *sharding, {.length = length});
  if (!judged) return refused(judged.error());
  return c::hand_out(to_json(*judged), json);
}

#endif
