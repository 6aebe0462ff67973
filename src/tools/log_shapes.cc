// Two tensors whose sizes do not match: what the numbers and the lines around them say of the cause.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "src/core/contains_any.h"
#include "src/explain/text.h"
#include "src/tools/log_lines.h"

namespace posenc::detail {
namespace {

bool is_of_pictures(std::string_view context) {
  return contains_any(
      context, {"flux", "/wan", "\\wan", "wanvideo", "qwen_image", "qwenimage", "hunyuanvideo",
                "cogvideo", "ltx_video", "ltxv", "diffusers", "comfy"});
}

// Areas of grids of which one side was rounded: the other sides divide both.
bool is_rounded_grid(double a, double b) {
  constexpr double largest = 0x1p40, shortest_side = 16, longest_side = 1024, most_rounded = 8;
  const double apart = std::abs(a - b), most = std::max(a, b);
  if (std::min(a, b) <= 2000 || most > largest || apart < shortest_side || apart > 0.08 * most)
    return false;
  const auto other_sides =
      static_cast<double>(std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  return other_sides >= shortest_side && apart <= most_rounded * other_sides &&
         most <= longest_side * other_sides;
}

// Which of the two is the table of cos and sin, as the source above the error multiplies them.
enum class TableIs { first, second, unknown };
TableIs table_in(std::string_view context) {
  for (const std::string_view product : {"* cos", "*cos", "* freqs_cis", "* freqs)"})
    if (context.contains(product)) return TableIs::second;
  for (const std::string_view table : {"freqs_cis[", "freqs_cis *", "cos *"})
    if (context.contains(table)) return TableIs::first;
  return TableIs::unknown;
}

// Padded to a multiple of eight, and the other not.
bool is_padded(double least, double most) {
  return least > 64 && most - least < 8 && most > least && std::fmod(most, 8) == 0 &&
         std::fmod(least, 8) != 0;
}

// How many times the one goes into the other: ranks, pictures, texts of a batch. 0: not a few times.
int times(double least, double most) {
  constexpr double shortest = 16, most_parts = 64;
  const double k = least >= shortest ? most / least : 0;
  return k >= 2 && k <= most_parts && k == std::floor(k) ? static_cast<int>(k) : 0;
}

// Both are squares of patches, one a few times as wide, and nothing rotates. Sides of 16 and its
// multiples are those of latent pictures and of lengths of texts, too.
bool are_pictures_of_two_sizes(double least, double most, std::string_view context) {
  constexpr double narrowest = 7, widest = 128, side_of_latents = 16;
  // Of squares with a class token there are few by chance.
  const double side = std::sqrt(least - 1), other_side = std::sqrt(most - 1);
  if (side >= narrowest && other_side <= widest && side < other_side && side == std::floor(side) &&
      other_side == std::floor(other_side))
    return !contains_any(context, {"rope", "rotary", "cos", "freqs"});
  const double narrow = std::sqrt(least), wide = std::sqrt(most);
  if (narrow < narrowest || wide > widest || wide <= narrow || narrow != std::floor(narrow) ||
      wide != std::floor(wide) || std::fmod(wide, narrow) != 0)
    return false;
  const bool sees =
      contains_any(context, {"siglip", "clip", "vit", "vision", "pixel_values", "patch"});
  return (sees || (is_of_pictures(context) && std::fmod(narrow, side_of_latents) != 0)) &&
         !contains_any(context, {"rope", "rotary", "cos", "freqs", "attn"});
}

// Vectors of a learned table that are added to tokens, as the source above the error says.
bool adds_learned_rows(std::string_view context) {
  return contains_any(context,
                      {"+ self.position_embed", "+ position_embed", "+= position_embed",
                       "+ self.pos_embed", "+ pos_embed", "+= pos_embed",
                       "+ self.positional_embedding", "+= self.pos", "+ self.embed_positions"}) &&
         !contains_any(context, {"rotary", "cos", "freqs"});
}

// A learned table is for a picture of another size, or for a shorter text.
void of_learned_rows(Finding& out, double rows, double tokens, std::string_view context) {
  const auto told = [](double number) { return grouped(std::llround(number)); };
  const std::string made = square_of(rows), given = square_of(tokens);
  out.expected = told(rows);
  out.found = told(tokens);
  // Texts have tables of 1,024 rows, which are 32×32 by chance.
  const bool of_pictures = contains_any(context, {"pixel", "patch", "image", "vision", "vit"}) ||
                           (made.contains("and") && !given.empty());
  if (!made.empty() && of_pictures) {
    out.code = "grid_size";
    out.message = "the learned positions are for " + told(rows) + " patches (" + made +
                  "), and the picture has " + told(tokens) +
                  (given.empty() ? "" : " (" + given + ")");
    out.cure =
        "interpolate_pos_encoding=True stretches them, or take pictures of the size that "
        "the model was made for (image_size of its configuration)";
    return;
  }
  out.code = "table_end";
  out.message =
      "the learned table has " + told(rows) + " rows, and the text " + told(tokens) + " tokens";
  out.cure = "cut the text to " + told(rows) + " tokens, special ones counted";
}

// One tensor is a rank's part of what the other is whole.
void of_parts(Finding& out, double least, double most, int k) {
  const auto told = [](double number) { return grouped(std::llround(number)); };
  out.code = "parts_of_ranks";
  out.message = told(most) + " is just " + std::to_string(k) + " times " + told(least) +
                ": a text is shared among " + std::to_string(k) +
                " ranks, and one of the two tensors, positions (cos and sin) or queries, was cut "
                "into their parts, and the other not";
  out.cure =
      "train without sequence or context parallelism (ulysses_sequence_parallel_size 1); "
      "or update the trainer and transformers together, whose patch of this model's class "
      "no longer fits";
}

// BERT's buffers have one row, which is broadcast over the texts of a batch: [1, 512] to
// [32, 1750].
bool is_row_of_a_table(std::string_view line) {
  std::size_t at = line.find("Target sizes: [");
  const std::vector<double> texts = numbers_between(line, at, "[", ']');
  at = line.find("Tensor sizes: [", at);
  const std::vector<double> row = numbers_between(line, at, "[", ']');
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

// Rows of as many tokens, and one channel less: a table for an odd part of a head.
bool is_odd_part(std::string_view line) {
  std::size_t at = line.find("Target sizes: [");
  const std::vector<double> target = numbers_between(line, at, "[", ']');
  at = line.find("Tensor sizes: [", at);
  const std::vector<double> table = numbers_between(line, at, "[", ']');
  if (target.size() < 2 || target.size() != table.size()) return false;
  for (std::size_t i = 0; i + 1 < target.size(); ++i)
    if (target[i] != table[i]) return false;
  return std::fmod(target.back(), 2) == 1 && std::abs(target.back() - table.back()) == 1;
}

struct Sizes {
  double a = 0, b = 0;
  bool of_channels = false;  // of the last axis of queries and keys
  bool of_mask = false;      // the one is a mask, [batch, 1, tokens, keys]
};

// Scores of several heads, and a mask that has one for all of them.
bool is_mask(const std::vector<double>& first, const std::vector<double>& second) {
  constexpr std::size_t head = 1, query = 2;
  return first[query] == second[query] && std::min(first[head], second[head]) == 1 &&
         std::max(first[head], second[head]) > 1 && first[query] > 1;
}

// The two sizes of the axis that differs: PyTorch's words, or MLX's and NumPy's.
std::optional<Sizes> sizes_in(std::string_view line) {
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
    return a && b ? std::optional(Sizes{*a, *b, by_channel(*a, *b)}) : std::nullopt;
  }
  if (line.contains("expanded size of the tensor (")) {
    const auto a = number_after(line, "expanded size of the tensor ("),
               b = number_after(line, "existing size (");
    return a && b ? std::optional(Sizes{*a, *b, by_channel(*a, *b)}) : std::nullopt;
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
      return Sizes{first[i], second[i], i == 3 && are_channels(first[i], second[i]),
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
  const auto told = [](double number) { return grouped(std::llround(number)); };
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
  const auto told = [](double number) { return grouped(std::llround(number)); };
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

// "64×64"; "": no square of a side that pictures have.
std::string exact_square(double count) {
  const double side = std::sqrt(count);
  if (side < 16 || side != std::floor(side)) return "";
  return number_text(side) + "×" + number_text(side);
}

// Tokens of text in both, where the rest of the one is just four times the rest of the other; 0:
// there is no such number.
double text_beside_unpacked(double rows, double tokens) {
  const double text = (4 * tokens - rows) / 3;
  constexpr double usual[] = {77, 128, 256, 512};  // of CLIP and T5
  const bool is_usual = std::ranges::find(usual, text) != std::end(usual);
  constexpr double longest = 1024;
  // Just twice as many have a plainer cause: one of two pictures was cut off.
  return rows != 2 * tokens && text == std::floor(text) && text > 0 && text < tokens &&
                 text <= longest && (is_usual || !exact_square(tokens - text).empty())
             ? text
             : 0;
}

// Positions of each latent where latents are packed by 2×2; false: the two are not so.
bool is_of_unpacked(Finding& out, double longer, double tokens) {
  const double text = text_beside_unpacked(longer, tokens);
  if (text <= 0) return false;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  out.message = "without the " + told(text) + " tokens of text the table of cos and sin is for " +
                told(longer - text) + ", just four times the picture's " + told(tokens - text) +
                ": positions were made for each latent, and latents are packed by 2×2";
  out.cure =
      "make the positions (_prepare_latent_image_ids) for half the height and half the width: "
      "diffusers changed what that function takes, so the script and diffusers must be of versions "
      "that belong together";
  return true;
}

// Rows of one picture, so many times: steps in time of a video; false: the two are not so.
bool is_of_frames(Finding& out, double a, double b) {
  const double each =
      static_cast<double>(std::gcd(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
  constexpr double fewest_of_a_frame = 256, most_steps = 64;
  if (each < fewest_of_a_frame || std::min(a, b) <= each || std::max(a, b) > most_steps * each)
    return false;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  out.message = told(a) + " and " + told(b) + " are " + told(a / each) + " and " + told(b / each) +
                " times " + told(each) +
                ", the patches of a frame: positions were made for another number of latent "
                "frames than the video has";
  out.cure =
      "update the program with the library whose rotation it calls (CogVideoX 1.5 joins two latent "
      "frames, which older ones do not count), or frames that both count alike";
  return true;
}

// FLUX's ids of a prompt of T5's, once more or once less; false: the two are not so.
bool is_of_prompts(Finding& out, double a, double b) {
  constexpr double of_t5 = 512;
  if (std::abs(a - b) != of_t5) return false;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  out.message = told(a) + " and " + told(b) +
                " are just the 512 tokens of T5's prompt apart: positions of a second prompt stand "
                "behind those of the first (text_ids put together along the text, as "
                "--with_prior_preservation does), or the prompt was left out of them";
  out.cure =
      "one text_ids for all prompts of a batch (all are zeros), and no concatenation; or leave the "
      "option out, and update the script with diffusers";
  return true;
}

// Words for a table and the tokens of a picture that differ.
void of_a_picture(Finding& out, double a, double b, std::string_view context) {
  if (context.contains("cogvideo") && is_of_frames(out, a, b)) return;
  if (contains_any(context, {"prior_preservation", "text_ids", "txt_ids"}) &&
      is_of_prompts(out, a, b))
    return;
  const TableIs table = table_in(context);
  const auto told = [](double number) { return grouped(std::llround(number)); };
  if (table == TableIs::unknown) {
    if (is_of_unpacked(out, std::max(a, b), std::min(a, b))) return;
    out.message =
        "the table of cos and sin and the tokens of the picture, or the text beside it, "
        "are " +
        told(a) + " and " + told(b) +
        ": the program counts the one without a part of the other (a reference picture, "
        "a pose, text beyond its length)";
    out.cure =
        "update the program and the node together; until then leave the part out that was "
        "added last, or take sizes that are multiples of 32";
    return;
  }
  const double rows = table == TableIs::first ? a : b, tokens = table == TableIs::first ? b : a;
  out.expected = told(rows);
  out.found = told(tokens);
  if (const int pictures = rows < tokens ? times(rows, tokens) : 0; pictures > 0) {
    out.message = "the table of cos and sin is for one picture of " + told(rows) + " tokens, and " +
                  std::to_string(pictures) +
                  " of them stand in a row: the one that is made, and "
                  "those that it is made from (edited, reference, pair)";
    out.cure =
        "hand over the size of each of them (img_shapes, img_ids), not of the first alone; "
        "in a program of others, update it";
    return;
  }
  if (rows < tokens) {
    out.message = "the table of cos and sin has rows for " + told(rows) + " of " + told(tokens) +
                  " tokens: the text beside the picture, or the picture, is longer than what the "
                  "program made it for";
    out.cure = "update the program; until then shorten the prompt, or take a smaller picture";
    return;
  }
  if (const std::string large = exact_square(rows), small = exact_square(tokens);
      !large.empty() && !small.empty()) {
    out.message = "the table of cos and sin is for a picture of " + large + " tokens, and one of " +
                  small +
                  " is rotated by it: the condition, or the reference, is smaller than "
                  "the picture that is made";
    out.cure =
        "hand over the condition in the size of the picture, or positions (img_ids) that are made "
        "for its own; where the node has no such setting, make a picture of the condition's size";
    return;
  }
  if (is_of_unpacked(out, rows, tokens)) return;
  out.message = "the table of cos and sin is for " + told(rows) + " tokens, and " + told(tokens) +
                (rows == 2 * tokens ? ", half of them," : "") +
                " are rotated: the program cuts what it rotates, or leaves a part out (a reference "
                "picture, a pose, alpha), and not from the table";
  out.cure =
      "update the program and the library whose rotation it calls: they are of different "
      "versions; until then leave the part out that was added last";
}

}  // namespace

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

bool tells_sizes(std::string_view line) {
  return sizes_in(line).has_value() || is_of_parts(line) || is_in_place(line);
}

// Latents of a video: each stands for four frames, the first for one.
std::optional<Finding> frames_that_differ(std::string_view line, std::string_view context) {
  const auto one = number_after(line, "xpected size "), other = number_after(line, "but got size ");
  constexpr double most_latents = 128;
  if (!one || !other || std::min(*one, *other) < 2 || std::max(*one, *other) > most_latents ||
      *one == *other ||
      !contains_any(context, {"wanvideo", "/wan", "\\wan", "hunyuanvideo", "latent"}))
    return std::nullopt;
  const auto frames = [](double latents) { return number_text(4 * (latents - 1) + 1); };
  return Finding{.code = "grid_rounded",
                 .expected = number_text(*one),
                 .found = number_text(*other),
                 .message = number_text(*one) + " and " + number_text(*other) +
                            " are latents of a video, four frames each and the first for one: " +
                            frames(*one) + " frames against " + frames(*other) +
                            ": what it is made from (a picture, a mask, a pose) has another length",
                 .cure = "the same number of frames for both, of the form 4k + 1"};
}

// timm's apply_rot_embed_cat: x is [batch, heads, tokens, channels] and the table is
// [tokens, channels], or one for each picture of the batch.
std::optional<Finding> axes_of_timm(std::string_view line, std::string_view context, double a,
                                    double b) {
  if (!contains_any(context, {"apply_rot_embed", "rot(x) * sin"})) return std::nullopt;
  constexpr double most_heads = 64;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  Finding out{
      .code = "axes_exchanged", .severity = Severity::error, .expected = told(b), .found = told(a)};
  if (line.contains("dimension 1") && std::max(a, b) <= most_heads) {
    out.message = "axis 1 of the queries are " + told(a) + " heads, and the table has " + told(b) +
                  " there, the pictures of the batch: each has rows of its own after patches were "
                  "dropped, and the axis of heads was not made for them";
    out.cure = "pip install -U timm, or patch_drop_rate=0";
    return out;
  }
  if (b > 0 && a > b && std::fmod(a, b) == 0 && line.contains("dimension 2")) {
    out.message = told(a) + " are the channels of all heads (" + told(a / b) + " of " + told(b) +
                  "): tokens are rotated before they are split into heads";
    out.cure = "rotate q and k as [batch, heads, tokens, head_dim], behind the split";
    return out;
  }
  return std::nullopt;
}

std::optional<Finding> sizes_that_differ(std::string_view line, std::string_view context) {
  if (auto frames = frames_that_differ(line, context)) return frames;
  if (is_of_parts(line) || is_in_place(line)) {
    if (!contains_any(context, {"rotary", "rope", "cos", "q_embed", "q_pass"})) return std::nullopt;
    return is_in_place(line) ? of_rotation_in_place(line) : of_parts_of_heads(line);
  }
  const auto sizes = sizes_in(line);
  if (!sizes) return std::nullopt;
  const std::optional a = sizes->a, b = sizes->b;
  if (std::abs(*a) > 0x1p50 || std::abs(*b) > 0x1p50) return std::nullopt;
  if (auto axes = axes_of_timm(line, context, *a, *b)) return axes;
  const auto told = [](double number) { return grouped(std::llround(number)); };
  Finding out{.code = "lengths_differ", .expected = told(*b), .found = told(*a)};
  const double least = std::min(*a, *b), most = std::max(*a, *b);
  constexpr double largest_head_count = 128;
  constexpr double most_axes = 4;  // text's own, time, row, column
  if (most <= most_axes && least >= 1) {
    out.code = "position_rows";
    out.message =
        "these are rows of positions, not tokens: M-RoPE has three (time, row, column), "
        "some trainers add the text's own, and here are " +
        told(*b) + " where " + told(*a) + " are wanted";
    out.cure = "update the trainer or the bridge that makes position_ids";
  } else if (sizes->of_mask) {
    out.message = "a mask for " + told(least) + " keys meets " + told(most) + ": the cache holds " +
                  told(most - least) +
                  " keys more than the mask was made for. Where that is the window of layers that "
                  "slide, the mask is of the layers without one, or the other way round";
    out.cure =
        "update the engine: layers with a window need a mask of their own; until then keep "
        "prompts within the window";
  } else if (is_odd_part(line) && contains_any(context, {"rotary", "rope", "freqs", "cos"})) {
    out.code = "odd_rotary_part";
    out.message = "channels rotate in pairs, and here " + told(*a) +
                  " are to rotate, an odd number: the table has " + told(*b);
    out.cure =
        "take an even number of channels (dim of the rotation, or the head: hidden_size over the "
        "heads, times the part that rotates)";
  } else if (is_row_of_a_table(line)) {
    out.code = "table_end";
    out.message = "the model has rows for " + told(*b) + " positions (BERT's kind), and the text " +
                  told(*a) + " tokens";
    out.cure = "cut texts to " + told(*b) +
               " tokens (max_length, max_seq_length, truncation=True), special ones counted, or "
               "take a model of longer texts";
  } else if (line.contains("non-singleton dimension 4") &&
             contains_any(context, {"rotary", "rotate_half", "* cos"})) {
    // Queries have four axes.
    out.code = "position_rows";
    out.message =
        "queries of four axes meet cos and sin of one more: position_ids have an axis too many "
        "([1, batch, tokens], or rows of M-RoPE), and " +
        told(std::min(*a, *b)) + " channels of a head meet " + told(std::max(*a, *b)) + " tokens";
    out.cure =
        "position_ids of [batch, tokens] (squeeze the rest), or the transformers that the trainer "
        "was made for";
  } else if (contains_any(context, {"rotatingkvcache", "rotating_kv", "ring buffer"})) {
    out.message =
        "a cache of a sliding window is a ring buffer, and was cut or joined as if it were flat: "
        "its slots are in no order of the text, so what did not stop here was wrong in silence";
    out.cure =
        "update the program; until then no prompt cache and no drafts for models with sliding "
        "layers (posenc explain MODEL says which layers slide)";
  } else if (sizes->of_channels) {
    out.code = "channels_differ";
    out.message =
        "these are channels, not tokens: a table of cos and sin for " + told(least) +
        " channels meets heads of " + told(most) +
        ". A part of each head rotates (partial_rotary_factor, rotary_dim), and the class rotates "
        "all of it, or the other way round";
    out.cure = "update the engine: it does not read the key by which this file says the part";
  } else if (context.contains("_position_ids[") || context.contains("self._position_ids") ||
             (contains_any(context, {"mlx_vlm", "vmlx"}) &&
              contains_any(context, {"apply_multimodal_rotary", "the second", "turn 2"}))) {
    out.code = "positions_stale";
    out.message =
        "the positions kept from the request before are shorter or longer than this one: "
        "the server reuses them for another text";
    out.cure =
        "update it (mlx-vlm and what is built on it); until then send one request at a time, "
        "and start anew between conversations";
  } else if (context.contains("rope_deltas") || context.contains("compute_3d_position_ids")) {
    out.code = "mrope_deltas_stale";
    out.message =
        "rope_deltas, by which text goes on behind pictures, are those of another batch: kept from "
        "a call before, and repeated to a batch of another size";
    out.cure =
        "update transformers and the trainer; until then set model.rope_deltas to None before "
        "each batch";
  } else if (contains_any(context, {"thd", "cu_seqlens", "packed_seq", "varlen"})) {
    out.code = "packing_ignored";
    out.message = "queries of a packed batch (" + told(most) +
                  " tokens) are rotated by the table of one text (" + told(least) +
                  "): the offsets of the packed texts (cu_seqlens) do not reach the rotation";
    out.cure = "update the trainer's bridge, or train without packing (thd)";
  } else if (adds_learned_rows(context)) {
    of_learned_rows(out, *b, *a, context);
  } else if (const int k = is_of_pictures(context) ? 0 : times(least, most);
             k > 0 && (contains_any(context, {"ulysses", "sequence_parallel", "context_parallel",
                                              "ring_attn", "sp_group", "sp_size"}) ||
                       (std::fmod(least, 128) != 0 && k <= 8 &&
                        contains_any(context, {"rotary", "cos, sin", "* cos"})))) {
    of_parts(out, least, most, k);
  } else if (is_of_pictures(context) && least > 1 && least <= largest_head_count &&
             most > 4 * least) {
    out.code = "axes_exchanged";
    out.message =
        told(least) +
        (least > most_axes ? " is a number of heads, not of tokens"
                           : " is a number of pictures in a batch (with and without the prompt, or "
                             "beside a reference), not of heads or tokens") +
        ": the node hands over " +
        (least > most_axes ? "[batch, tokens, heads, channels] where the program rotates [batch, "
                             "heads, tokens, channels], or the other way round"
                           : "a tensor whose axes stand in another order than the program's");
    out.cure = "update the program and the node together: they are of different versions";
  } else if (most == least + 1 && !is_of_pictures(context) &&
             ((table_in(context) == TableIs::second && *b == most) ||
              (table_in(context) == TableIs::first && *a == most))) {
    out.code = "ids_cut";
    out.message = told(least) + " tokens are rotated by a table for " + told(most) +
                  ": position_ids have one more than input_ids, of which the last, or the first, "
                  "was cut off (input_ids[:, :-1], the labels being the next tokens)";
    out.cure =
        "make position_ids of input_ids as they are handed over (torch.arange of their length); "
        "where texts are padded, pad them to one token more than the length";
  } else if (is_padded(least, most)) {
    out.code = "ids_not_padded";
    out.message = "input_ids were padded to a multiple of 8 (" + told(most) +
                  "), or got tokens for a picture, and position_ids were not (" + told(least) + ")";
    out.cure =
        "update the trainer; until then take a length that is a multiple of 8 (cutoff_len), "
        "or pack no texts";
  } else if (is_rounded_grid(*a, *b) && (is_of_pictures(context) || context.size() < 400)) {
    out.code = "grid_rounded";
    out.message =
        "both are areas of a grid of a picture or video, and one side was rounded: the "
        "height or width is no multiple of what a token covers (8 or 16 of the VAE times 2 "
        "of a patch)";
    out.cure = "take a height and width that are multiples of 32 (1080 → 1088, 720 → 704 or 736)";
  } else if (are_pictures_of_two_sizes(least, most, context)) {
    out.code = "grid_size";
    out.message = told(*a) + " and " + told(*b) + " are squares of patches (" + square_of(*a) +
                  ", " + square_of(*b) +
                  "): the encoder's learned positions are for a picture of the one size, and it "
                  "got one of the other";
    out.cure =
        "hand the encoder a picture of the size that it was made for (image_size of its "
        "configuration), or interpolate_pos_encoding=True";
    constexpr double at_224 = 257, at_336 = 577;
    if (least == at_224 && most == at_336)
      out.cure +=
          "; 257 rows are of clip-vit-large-patch14, 577 of clip-vit-large-patch14-336: where a "
          "program asks for one of them, load that";
  } else if (is_of_pictures(context)) {
    of_a_picture(out, *a, *b, context);
  } else if (most == least + 1 && std::fmod(least, 1024) == 0) {
    out.message = "the text has reached " + told(least) +
                  " tokens, for which a mask, a table of cos and sin or a cache was made, and the "
                  "next token is beyond it";
    out.cure =
        "raise what sizes it (max_position_embeddings, max_seq_len, the cache), or cut the text: "
        "posenc explain FILE says how far the model reaches";
  } else if (least == 0) {
    const bool of_mlx = contains_any(context, {"[broadcast_shapes]"});
    out.message =
        of_mlx ? "a mask over no keys stands beside a cache of " + told(most) +
                     ": MLX's cache counts other tokens than it holds, as after a prompt that was "
                     "reused, or beside a window's cache"
               : "one of the tensors is empty: a batch, or a part of it, has no tokens";
    out.cure = of_mlx ? "a server for each model, prompts not reused (a new conversation, or the "
                        "server started again), and a newer mlx-lm"
                      : "look at the line above: what it repeats or cuts to nothing";
  } else if (contains_any(context, {"ktransformers"})) {
    out.message = "KTransformers made its cache for " + told(least) +
                  " tokens (--cache_lens, max_new_tokens of its settings), and the text has " +
                  told(most);
    out.cure = "--cache_lens of prompt and answer together: the talk grows by both";
  } else if (contains_any(context,
                          {"rotary", "rope", "cos, sin", "cos_sin", "position", "cache"})) {
    out.message = "a table of cos and sin, or a cache, has " + told(least) +
                  " rows, and the text " + told(most) + " tokens";
    out.cure =
        "raise what sizes it (max_position_embeddings, max_seq_len, the cache), or cut the "
        "text: posenc explain FILE says how far the model reaches";
  } else {
    out.severity = Severity::warning;
    out.message =
        "two tensors of one text have different lengths: where the smaller is a context "
        "or a cache, the text is longer than that; else position has no part in it";
    constexpr double round = 50;
    if (most - least == 1 && std::fmod(least, round) == 0)
      out.message = "a cache or table of " + told(least) +
                    " steps is full, and one more was asked for: the text, or the sound, is longer";
    if (contains_any(context,
                     {"peft", "prompt tuning", "p-tuning", "virtual_token", "virtual token"}))
      out.message =
          told(most - least) + " of the " + told(most) +
          " are virtual tokens of prompt tuning: the mask, or the bias that is made of it, "
          "counts them, and the text does not (PEFT beside transformers 4.45 and later)";
    else if (const int ranks = times(least, most); ranks > 0)
      out.message += "; " + told(most) + " is just " + std::to_string(ranks) + " times " +
                     told(least) +
                     ": a rank's part of a text (sequence or context parallelism) beside all of "
                     "it, or one text of a batch beside all";
    out.cure = "give the lines above as well (the traceback): they say what was added to what";
  }
  return out;
}

}  // namespace posenc::detail
