// Two tensors whose sizes do not match: what the numbers and the lines around them say of the cause.
#include "src/tools/log_shapes.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/core/contains_any.h"
#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {

TableIs table_in(std::string_view context) {
  for (const std::string_view product : {"* cos", "*cos", "* freqs_cis", "* freqs)"})
    if (context.contains(product)) return TableIs::second;
  for (const std::string_view table : {"freqs_cis[", "freqs_cis *", "cos *"})
    if (context.contains(table)) return TableIs::first;
  return TableIs::unknown;
}

int times(double least, double most) {
  constexpr double shortest = 16, most_parts = 64;
  const double k = least >= shortest ? most / least : 0;
  return k >= 2 && k <= most_parts && k == std::floor(k) ? static_cast<int>(k) : 0;
}

std::string square_of(double rows) {
  constexpr int most_in_front = 5;  // class, distillation, registers
  for (int front = 0; front <= most_in_front; ++front) {
    const double side = std::sqrt(rows - front);
    if (side < 7 || side != std::floor(side)) continue;
    const std::string text = number_text(side);
    return text + "×" + text + (front > 0 ? " and " + std::to_string(front) : "");
  }
  return "";
}

namespace {

// --- What a message says ---

// Scores of several heads, and a mask that has one for all of them.
bool is_mask(const std::vector<double>& first, const std::vector<double>& second) {
  constexpr std::size_t head = 1, query = 2;
  return first[query] == second[query] && std::min(first[head], second[head]) == 1 &&
         std::max(first[head], second[head]) > 1 && first[query] > 1;
}

// The two sizes of the axis that differs: PyTorch's words, or MLX's and NumPy's.
std::optional<Mismatch> mismatch_in(std::string_view line, std::string_view context) {
  const auto are_channels = [](double a, double b) {
    constexpr double widest_head = 1024;
    return std::max(a, b) <= widest_head && std::fmod(a, 2) == 0 &&
           std::fmod(b, 2) == 0;  // they rotate in pairs
  };
  const auto by_channel = [&](double a, double b) {
    return line.contains("non-singleton dimension 3") && are_channels(a, b);
  };
  if (line.contains("size of tensor a (")) {
    const auto a = number_after(line, "size of tensor a ("), b = number_after(line, "tensor b (");
    if (!a || !b) return std::nullopt;
    return Mismatch{line, context, *a, *b, by_channel(*a, *b)};
  }
  if (line.contains("expanded size of the tensor (")) {
    const auto a = number_after(line, "expanded size of the tensor ("),
               b = number_after(line, "existing size (");
    if (!a || !b) return std::nullopt;
    return Mismatch{line, context, *a, *b, by_channel(*a, *b)};
  }
  if (!line.contains("broadcast")) return std::nullopt;
  std::size_t at = std::min(line.find("hapes"), line.size());
  std::vector<double> first = numbers_between(line, at, "(", ')'),
                      second = numbers_between(line, at, "(", ')');
  if (std::min(first.size(), second.size()) < 2) return std::nullopt;
  // The last axes stand below each other.
  first.insert(first.begin(), std::max(first.size(), second.size()) - first.size(), 1);
  second.insert(second.begin(), first.size() - second.size(), 1);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] != second[i] && first[i] != 1 && second[i] != 1)
      return Mismatch{line,
                      context,
                      first[i],
                      second[i],
                      i == 3 && are_channels(first[i], second[i]),
                      i == 3 && is_mask(first, second)};
  return std::nullopt;
}

bool is_of_parts(std::string_view line) {
  return line.contains("xpected size ") && line.contains("but got");
}
bool is_in_place(std::string_view line) {
  return line.contains("output with shape [") && line.contains("broadcast shape [");
}

// torch.cat of the channels that rotate and of those that do not: the first have taken over the
// shape of cos and sin.
std::optional<Finding> of_parts_of_heads(std::string_view line) {
  const auto rotated = number_after(line, "xpected size ");
  const std::string_view behind = line.substr(line.find("but got"));
  auto whole = number_after(behind, "but got size ");
  if (!whole) whole = number_after(behind, "but got ");
  if (!rotated || !whole || std::max(*rotated, *whole) > 0x1p50) return std::nullopt;
  constexpr double most_rows = 4;
  Finding out{.code = *rotated <= most_rows ? "position_rows" : "lengths_differ",
              .expected = told(*whole),
              .found = told(*rotated)};
  const std::string parts =
      "a part of each head rotates, and is put together with the rest again: ";
  if (*rotated == 0)
    out.message = parts +
                  "it has come out empty, as cos and sin have no rows: position_ids were cut to "
                  "nothing, or are those of another step";
  else
    out.message = parts + "it has " + told(*rotated) + " rows where the rest has " + told(*whole) +
                  ", so cos and sin were made of position_ids for " + told(*rotated) +
                  (*rotated > most_rows ? " tokens" : " texts or axes");
  out.cure =
      "hand over position_ids of just these tokens ([batch, tokens], or [3, batch, tokens] under "
      "M-RoPE), packed and cut together with input_ids; update the trainer and transformers "
      "together, and remove compiled code that is kept (unsloth_compiled_cache)";
  return out;
}

// `q *= cos`, where cos has rows for other tokens than q.
std::optional<Finding> of_rotation_in_place(std::string_view line) {
  std::size_t at = line.find("output with shape ");
  const std::vector<double> queries = numbers_between(line, at, "shape [", ']');
  at = line.find("broadcast shape ", at);
  const std::vector<double> table = numbers_between(line, at, "shape [", ']');
  if (queries.size() < 2 || queries.size() != table.size()) return std::nullopt;
  const std::size_t tokens = queries.size() - 2;
  if (queries[tokens] == table[tokens] || std::max(queries[tokens], table[tokens]) > 0x1p50)
    return std::nullopt;
  return Finding{.code = "lengths_differ",
                 .expected = told(queries[tokens]),
                 .found = told(table[tokens]),
                 .message = told(queries[tokens]) +
                            (queries[tokens] == 1 ? " new token is" : " tokens are") +
                            " rotated, and cos and sin have rows for " + told(table[tokens]) +
                            ": the positions of the whole prompt were handed over where those of "
                            "the new tokens are wanted",
                 .cure =
                     "update the program that patches generation (Unsloth), or run it with the "
                     "transformers it was made for: position_ids of a step have one column"};
}

// --- Causes ---

std::optional<Finding> axes_of_timm(const Mismatch& sizes) {
  if (!sizes.speaks_of({"apply_rot_embed", "rot(x) * sin"})) return std::nullopt;
  // timm's apply_rot_embed_cat: x is [batch, heads, tokens, channels] and the table is
  // [tokens, channels], or one for each picture of the batch.
  constexpr double most_heads = 64;
  const auto [a, b] = std::pair(sizes.a, sizes.b);
  Finding out;
  if (sizes.line.contains("dimension 1") && sizes.most() <= most_heads)
    out = mismatched(
        sizes, "axes_exchanged",
        "axis 1 of the queries are " + told(a) + " heads, and the table has " + told(b) +
            " there, the pictures of the batch: each has rows of its own after patches were "
            "dropped, and the axis of heads was not made for them",
        "pip install -U timm, or patch_drop_rate=0");
  else if (b > 0 && a > b && std::fmod(a, b) == 0 && sizes.line.contains("dimension 2"))
    out = mismatched(sizes, "axes_exchanged",
                     told(a) + " are the channels of all heads (" + told(a / b) + " of " + told(b) +
                         "): tokens are rotated before they are split into heads",
                     "rotate q and k as [batch, heads, tokens, head_dim], behind the split");
  else
    return std::nullopt;
  out.severity = Severity::error;
  return out;
}

std::optional<Finding> rows_of_positions(const Mismatch& sizes) {
  constexpr double most_axes = 4;  // text's own, time, row, column
  const bool told_so = sizes.speaks_of({"position", "rope", "rotary", "* cos"});
  if (sizes.most() > most_axes || sizes.least() < 1 || !(told_so || sizes.alone()))
    return std::nullopt;
  Finding out = mismatched(sizes, "position_rows",
                           "these are rows of positions, not tokens: M-RoPE has three (time, row, "
                           "column), some trainers "
                           "add the text's own, and here are " +
                               told(sizes.b) + " where " + told(sizes.a) + " are wanted",
                           "update the trainer or the bridge that makes position_ids");
  if (!told_so) out.severity = Severity::warning;
  return out;
}

std::optional<Finding> mask_of_other_layers(const Mismatch& sizes) {
  if (!sizes.of_mask) return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "a mask for " + told(sizes.least()) + " keys meets " + told(sizes.most()) +
          ": the cache holds " + told(sizes.most() - sizes.least()) +
          " keys more than the mask was made for. Where that is the window of layers that slide, "
          "the mask is of the layers without one, or the other way round",
      "update the engine: layers with a window need a mask of their own; until then keep prompts "
      "within the window");
}

// The two shapes of PyTorch's expand: what is wanted, and what there is. Empty: another message.
struct Expanded {
  std::vector<double> target, tensor;
};
Expanded expanded_in(std::string_view line) {
  Expanded out;
  std::size_t at = line.find("Target sizes: [");
  out.target = numbers_between(line, at, "[", ']');
  at = line.find("Tensor sizes: [", at);
  out.tensor = numbers_between(line, at, "[", ']');
  return out;
}

// Rows of as many tokens, and one channel less: a table for an odd part of a head.
bool is_odd_part(std::string_view line) {
  const auto [target, table] = expanded_in(line);
  if (target.size() < 2 || target.size() != table.size()) return false;
  for (std::size_t i = 0; i + 1 < target.size(); ++i)
    if (target[i] != table[i]) return false;
  return std::fmod(target.back(), 2) == 1 && std::abs(target.back() - table.back()) == 1;
}

std::optional<Finding> odd_rotary_part(const Mismatch& sizes) {
  if (!is_odd_part(sizes.line) || !sizes.speaks_of({"rotary", "rope", "freqs", "cos"}))
    return std::nullopt;
  return mismatched(
      sizes, "odd_rotary_part",
      "channels rotate in pairs, and here " + told(sizes.a) +
          " are to rotate, an odd number: the table has " + told(sizes.b),
      "take an even number of channels (dim of the rotation, or the head: hidden_size over the "
      "heads, times the part that rotates)");
}

// BERT's buffers have one row, which is broadcast over the texts of a batch: [1, 512] to
// [32, 1750].
bool is_row_of_a_table(std::string_view line) {
  const auto [texts, row] = expanded_in(line);
  constexpr double shortest_table = 256, special = 4;
  // PyTorch's words where the rows are added to those of the words.
  if (line.contains("size of tensor a (") && line.contains("non-singleton dimension 1")) {
    const auto text = number_after(line, "size of tensor a ("),
               rows = number_after(line, "tensor b (");
    constexpr double usual[] = {512, 514};  // of BERT and RoBERTa
    return text && rows && *text > *rows && std::ranges::find(usual, *rows) != std::end(usual);
  }
  return texts.size() == 2 && row.size() == 2 && row[0] == 1 && row[1] >= shortest_table &&
         texts[1] > row[1] && std::fmod(row[1], shortest_table) <= special;
}

std::optional<Finding> text_beyond_rows(const Mismatch& sizes) {
  if (!is_row_of_a_table(sizes.line) || sizes.speaks_of({"loss", "labels", "logits"}))
    return std::nullopt;
  return mismatched(
      sizes, "table_end",
      "the model has rows for " + told(sizes.b) + " positions (BERT's kind), and the text " +
          told(sizes.a) + " tokens",
      "cut texts to " + told(sizes.b) +
          " tokens (max_length, max_seq_length, truncation=True), special ones counted, or take a "
          "model of longer texts");
}

std::optional<Finding> axis_too_many(const Mismatch& sizes) {
  // Queries have four axes.
  if (!sizes.line.contains("non-singleton dimension 4") ||
      !sizes.speaks_of({"rotary", "rotate_half", "* cos"}))
    return std::nullopt;
  return mismatched(
      sizes, "position_rows",
      "queries of four axes meet cos and sin of one more: position_ids have an axis too many ([1, "
      "batch, tokens], or rows of M-RoPE), and " +
          told(sizes.least()) + " channels of a head meet " + told(sizes.most()) + " tokens",
      "position_ids of [batch, tokens] (squeeze the rest), or the transformers that the trainer "
      "was "
      "made for");
}

std::optional<Finding> ring_as_flat(const Mismatch& sizes) {
  if (!sizes.speaks_of({"rotatingkvcache", "rotating_kv", "ring buffer"})) return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "a cache of a sliding window is a ring buffer, and was cut or joined as if it were flat: its "
      "slots are in no order of the text, so what did not stop here was wrong in silence",
      "update the program; until then no prompt cache and no drafts for models with sliding layers "
      "(posenc explain MODEL says which layers slide)");
}

std::optional<Finding> channels_as_tokens(const Mismatch& sizes) {
  const bool told_so =
      sizes.speaks_of({"rotary", "rope", "rotate", "cos", "freqs", "q_embed", "head_dim"});
  if (!sizes.of_channels || !(told_so || sizes.alone())) return std::nullopt;
  Finding out =
      mismatched(sizes, "channels_differ",
                 "these are channels, not tokens: a table of cos and sin for " +
                     told(sizes.least()) + " channels meets heads of " + told(sizes.most()) +
                     ". A part of each head rotates (partial_rotary_factor, rotary_dim), and the "
                     "class rotates "
                     "all of it, or the other way round",
                 "update the engine: it does not read the key by which this file says the part");
  if (!told_so) out.severity = Severity::warning;
  return out;
}

std::optional<Finding> positions_of_another_request(const Mismatch& sizes) {
  const bool kept = sizes.speaks_of({"_position_ids[", "self._position_ids"}) ||
                    (sizes.speaks_of({"mlx_vlm", "vmlx"}) &&
                     sizes.speaks_of({"apply_multimodal_rotary", "the second", "turn 2"}));
  if (!kept) return std::nullopt;
  return mismatched(
      sizes, "positions_stale",
      "the positions kept from the request before are shorter or longer than this one: the server "
      "reuses them for another text",
      "update it (mlx-vlm and what is built on it); until then send one request at a time, and "
      "start anew between conversations");
}

std::optional<Finding> deltas_of_another_batch(const Mismatch& sizes) {
  if (!sizes.speaks_of({"rope_deltas", "compute_3d_position_ids"})) return std::nullopt;
  return mismatched(
      sizes, "mrope_deltas_stale",
      "rope_deltas, by which text goes on behind pictures, are those of another batch: kept from a "
      "call before, and repeated to a batch of another size",
      "update transformers and the trainer; until then set model.rope_deltas to None before each "
      "batch");
}

std::optional<Finding> packed_by_one_table(const Mismatch& sizes) {
  if (!sizes.speaks_of({"thd", "cu_seqlens", "packed_seq", "varlen"})) return std::nullopt;
  return mismatched(sizes, "packing_ignored",
                    "queries of a packed batch (" + told(sizes.most()) +
                        " tokens) are rotated by the table of one text (" + told(sizes.least()) +
                        "): the offsets of the packed texts (cu_seqlens) do not reach the rotation",
                    "update the trainer's bridge, or train without packing (thd)");
}

// A learned table is for a picture of another size, or for a shorter text.
std::optional<Finding> learned_rows(const Mismatch& sizes) {
  const bool adds =
      sizes.speaks_of({"+ self.position_embed", "+ position_embed", "+= position_embed",
                       "+ self.pos_embed", "+ pos_embed", "+= pos_embed",
                       "+ self.positional_embedding", "+= self.pos", "+ self.embed_positions"});
  if (!adds || sizes.speaks_of({"rotary", "cos", "freqs"})) return std::nullopt;
  const std::string rows = told(sizes.b), tokens = told(sizes.a);
  const std::string made = square_of(sizes.b), given = square_of(sizes.a);
  // Texts have tables of 1,024 rows, which are 32×32 by chance.
  const bool of_pictures = sizes.speaks_of({"pixel", "patch", "image", "vision", "vit", "siglip",
                                            "clip", "resampler"}) ||
                           (made.contains("and") && !given.empty());
  if (!made.empty() && of_pictures)
    return mismatched(
        sizes, "grid_size",
        "the learned positions are for " + rows + " patches (" + made + "), and the picture has " +
            tokens + (given.empty() ? "" : " (" + given + ")"),
        "interpolate_pos_encoding=True stretches them, or take pictures of the size that the model "
        "was made for (image_size of its configuration)");
  return mismatched(sizes, "table_end",
                    "the learned table has " + rows + " rows, and the text " + tokens + " tokens",
                    "cut the text to " + rows + " tokens, special ones counted");
}

// One tensor is a rank's part of what the other is whole.
std::optional<Finding> parts_of_ranks(const Mismatch& sizes) {
  const int ranks = is_of_pictures(sizes.context) ? 0 : times(sizes.least(), sizes.most());
  if (ranks == 0) return std::nullopt;
  // Lengths that are rounded are so many times another by chance.
  constexpr double rounded = 128;
  constexpr int usual_ranks = 8;
  const bool shares = sizes.speaks_of(
      {"ulysses", "sequence_parallel", "context_parallel", "ring_attn", "sp_group", "sp_size"});
  const bool rotates = std::fmod(sizes.least(), rounded) != 0 && ranks <= usual_ranks &&
                       sizes.speaks_of({"rotary", "cos, sin", "* cos"});
  if (!shares && !rotates) return std::nullopt;
  return mismatched(
      sizes, "parts_of_ranks",
      told(sizes.most()) + " is just " + std::to_string(ranks) + " times " + told(sizes.least()) +
          ": a text is shared among " + std::to_string(ranks) +
          " ranks, and one of the two tensors, positions (cos and sin) or queries, was cut into "
          "their parts, and the other not",
      "train without sequence or context parallelism (ulysses_sequence_parallel_size 1); or update "
      "the trainer and transformers together, whose patch of this model's class no longer fits");
}

// Queries of [batch, heads, tokens, channels] want cos and sin with an axis for the heads in front
// of the tokens.
std::optional<Finding> heads_for_tokens(const Mismatch& sizes) {
  constexpr double most_heads = 128, fewest_tokens = 4;
  if (!sizes.line.contains("non-singleton dimension 1") ||
      table_in(sizes.context) == TableIs::unknown || is_of_pictures(sizes.context) ||
      sizes.least() > most_heads || sizes.least() < 2 ||
      sizes.most() <= fewest_tokens * sizes.least())
    return std::nullopt;
  return mismatched(sizes, "axes_exchanged",
                    told(sizes.least()) + " is a number of heads, and " + told(sizes.most()) +
                        " one of tokens: cos and sin have their tokens on the axis on which the "
                        "queries have heads",
                    "unsqueeze_dim=1 where q and k are [batch, heads, tokens, channels], 2 where "
                    "they are [batch, "
                    "tokens, heads, channels] (apply_rotary_pos_emb)");
}

std::optional<Finding> ids_of_the_labels(const Mismatch& sizes) {
  const TableIs table = table_in(sizes.context);
  const bool longer = (table == TableIs::second && sizes.b == sizes.most()) ||
                      (table == TableIs::first && sizes.a == sizes.most());
  if (sizes.most() != sizes.least() + 1 || is_of_pictures(sizes.context) || !longer)
    return std::nullopt;
  return mismatched(
      sizes, "ids_cut",
      told(sizes.least()) + " tokens are rotated by a table for " + told(sizes.most()) +
          ": position_ids have one more than input_ids, of which the last, or the first, was cut "
          "off (input_ids[:, :-1], the labels being the next tokens)",
      "make position_ids of input_ids as they are handed over (torch.arange of their length); "
      "where "
      "texts are padded, pad them to one token more than the length");
}

// Padded to a multiple of eight, and the other not.
std::optional<Finding> ids_not_padded(const Mismatch& sizes) {
  constexpr double multiple = 8, shortest = 64;
  const double least = sizes.least(), most = sizes.most();
  if (least <= shortest || most == least || most - least >= multiple ||
      std::fmod(most, multiple) != 0 || std::fmod(least, multiple) == 0 ||
      sizes.speaks_of({"loss", "labels"}))
    return std::nullopt;
  return mismatched(
      sizes, "ids_not_padded",
      "input_ids were padded to a multiple of 8 (" + told(most) +
          "), or got tokens for a picture, and position_ids were not (" + told(least) + ")",
      "update the trainer; until then take a length that is a multiple of 8 (cutoff_len), or pack "
      "no texts");
}

std::optional<Finding> one_beyond_a_table(const Mismatch& sizes) {
  constexpr double of_tables = 1024;  // their lengths are multiples of it
  if (sizes.most() != sizes.least() + 1 || std::fmod(sizes.least(), of_tables) != 0 ||
      sizes.speaks_of({"norm", "self.weight", "loss", "labels"}))
    return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "the text has reached " + told(sizes.least()) +
          " tokens, for which a mask, a table of cos and sin or a cache was made, and the next "
          "token is beyond it",
      "raise what sizes it (max_position_embeddings, max_seq_len, the cache), or cut the text: "
      "posenc explain FILE says how far the model reaches");
}

std::optional<Finding> empty_tensor(const Mismatch& sizes) {
  if (sizes.least() != 0) return std::nullopt;
  if (sizes.context.contains("[broadcast_shapes]"))  // MLX's
    return mismatched(
        sizes, "lengths_differ",
        "a mask over no keys stands beside a cache of " + told(sizes.most()) +
            ": MLX's cache counts other tokens than it holds, as after a prompt that was reused, "
            "or "
            "beside a window's cache",
        "a server for each model, prompts not reused (a new conversation, or the server started "
        "again), and a newer mlx-lm");
  return mismatched(sizes, "lengths_differ",
                    "one of the tensors is empty: a batch, or a part of it, has no tokens",
                    "look at the line above: what it repeats or cuts to nothing");
}

std::optional<Finding> cache_of_ktransformers(const Mismatch& sizes) {
  if (!sizes.context.contains("ktransformers")) return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "KTransformers made its cache for " + told(sizes.least()) +
          " tokens (--cache_lens, max_new_tokens of its settings), and the text has " +
          told(sizes.most()),
      "--cache_lens of prompt and answer together: the talk grows by both");
}

std::optional<Finding> text_beyond_a_table(const Mismatch& sizes) {
  if (!sizes.speaks_of({"rotary", "rope", "cos, sin", "cos_sin", "position_id", "position_emb",
                        "pos_emb", "max_position", "cache"}))
    return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "a table of cos and sin, or a cache, has " + told(sizes.least()) + " rows, and the text " +
          told(sizes.most()) + " tokens",
      "raise what sizes it (max_position_embeddings, max_seq_len, the cache), or cut the text: "
      "posenc explain FILE says how far the model reaches");
}

// Nothing around the message says of what the two tensors are.
std::optional<Finding> lengths_alone(const Mismatch& sizes) {
  const double least = sizes.least(), most = sizes.most();
  Finding out = mismatched(
      sizes, "lengths_differ",
      "two tensors have different sizes: where the smaller is a context or a cache, a text is "
      "longer than that; else position has no part in it",
      "give the lines above as well (the traceback): they say what was added to what");
  out.severity = Severity::warning;
  constexpr double round = 50;
  const bool of_weights =
      sizes.speaks_of({"exp_avg", "optimizer", "vocab", "lm_head", "state_dict"});
  if (most - least == 1 && std::fmod(least, round) == 0 && !of_weights)
    out.message = "a cache or table of " + told(least) +
                  " steps is full, and one more was asked for: the text, or the sound, is longer";
  if (sizes.speaks_of({"prompt tuning", "p-tuning", "virtual_token", "virtual token"}))
    out.message =
        told(most - least) + " of the " + told(most) +
        " are virtual tokens of prompt tuning: the mask, or the bias that is made of it, counts "
        "them, and the text does not (PEFT beside transformers 4.45 and later)";
  else if (const int ranks = times(least, most); ranks > 0)
    out.message += "; " + told(most) + " is just " + std::to_string(ranks) + " times " +
                   told(least) +
                   ": a rank's part of a text (sequence or context parallelism) beside all of it, "
                   "or one text of a batch beside all";
  return out;
}

// In this order: what the message itself settles stands before what the lines around it suggest.
constexpr Cause* causes[] = {
    axes_of_timm,
    rows_of_positions,
    mask_of_other_layers,
    odd_rotary_part,
    text_beyond_rows,
    axis_too_many,
    ring_as_flat,
    channels_as_tokens,
    positions_of_another_request,
    deltas_of_another_batch,
    packed_by_one_table,
    learned_rows,
    parts_of_ranks,
    heads_before_tokens,
    heads_for_tokens,
    ids_of_the_labels,
    ids_not_padded,
    two_text_lengths,
    rounded_grid,
    pictures_of_two_sizes,
    table_of_a_picture,
    one_beyond_a_table,
    empty_tensor,
    cache_of_ktransformers,
    text_beyond_a_table,
    lengths_alone,
};

}  // namespace

bool tells_sizes(std::string_view line) {
  return mismatch_in(line, {}).has_value() || is_of_parts(line) || is_in_place(line);
}

std::optional<Finding> sizes_that_differ(std::string_view line, std::string_view context) {
  if (auto frames = frames_that_differ(line, context)) return frames;
  if (is_of_parts(line) || is_in_place(line)) {
    if (!contains_any(context, {"rotary", "rope", "cos", "q_embed", "q_pass"})) return std::nullopt;
    return is_in_place(line) ? of_rotation_in_place(line) : of_parts_of_heads(line);
  }
  const auto sizes = mismatch_in(line, context);
  constexpr double largest = 0x1p50;
  if (!sizes || std::max(std::abs(sizes->a), std::abs(sizes->b)) > largest) return std::nullopt;
  for (Cause* cause : causes)
    if (auto found = cause(*sizes)) return found;
  return std::nullopt;
}

}  // namespace posenc::detail
