// Sizes that do not match in programs that make or see pictures and videos.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "src/explain/text.h"
#include "src/tools/log_shapes.h"

namespace posenc::detail {
namespace {

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

// Both are squares of patches, one a few times as wide, and nothing rotates. Sides of 16 and its
// multiples are those of latent pictures and of lengths of texts, too.
bool are_pictures_of_two_sizes(const Mismatch& sizes) {
  if (sizes.speaks_of({"rope", "rotary", "cos", "freqs"})) return false;
  constexpr double narrowest = 7, widest = 128, side_of_latents = 16;
  const auto is_whole = [](double side) { return side == std::floor(side); };
  // Of squares with a class token there are few by chance.
  const double side = std::sqrt(sizes.least() - 1), other_side = std::sqrt(sizes.most() - 1);
  if (side >= narrowest && other_side <= widest && side < other_side && is_whole(side) &&
      is_whole(other_side))
    return true;
  const double narrow = std::sqrt(sizes.least()), wide = std::sqrt(sizes.most());
  if (narrow < narrowest || wide > widest || wide <= narrow || !is_whole(narrow) ||
      !is_whole(wide) || std::fmod(wide, narrow) != 0 || sizes.context.contains("attn"))
    return false;
  return sizes.speaks_of({"siglip", "clip", "vit", "vision", "pixel_values", "patch"}) ||
         (is_of_pictures(sizes.context) && std::fmod(narrow, side_of_latents) != 0);
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

// Positions of each latent where latents are packed by 2×2.
std::optional<Finding> table_of_unpacked(const Mismatch& sizes, double longer, double tokens) {
  const double text = text_beside_unpacked(longer, tokens);
  if (text <= 0) return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      "without the " + told(text) + " tokens of text the table of cos and sin is for " +
          told(longer - text) + ", just four times the picture's " + told(tokens - text) +
          ": positions were made for each latent, and latents are packed by 2×2",
      "make the positions (_prepare_latent_image_ids) for half the height and half the width: "
      "diffusers changed what that function takes, so the script and diffusers must be of versions "
      "that belong together");
}

// Rows of one picture, so many times: steps in time of a video.
std::optional<Finding> table_of_frames(const Mismatch& sizes) {
  if (!sizes.context.contains("cogvideo")) return std::nullopt;
  const auto each = static_cast<double>(
      std::gcd(static_cast<std::int64_t>(sizes.a), static_cast<std::int64_t>(sizes.b)));
  constexpr double fewest_of_a_frame = 256, most_steps = 64;
  if (each < fewest_of_a_frame || sizes.least() <= each || sizes.most() > most_steps * each)
    return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      told(sizes.a) + " and " + told(sizes.b) + " are " + told(sizes.a / each) + " and " +
          told(sizes.b / each) + " times " + told(each) +
          ", the patches of a frame: positions were made for another number of latent frames than "
          "the video has",
      "update the program with the library whose rotation it calls (CogVideoX 1.5 joins two latent "
      "frames, which older ones do not count), or frames that both count alike");
}

// FLUX's ids of a prompt of T5's, once more or once less.
std::optional<Finding> table_of_two_prompts(const Mismatch& sizes) {
  constexpr double of_t5 = 512;
  if (std::abs(sizes.a - sizes.b) != of_t5 ||
      !sizes.speaks_of({"prior_preservation", "text_ids", "txt_ids"}))
    return std::nullopt;
  return mismatched(
      sizes, "lengths_differ",
      told(sizes.a) + " and " + told(sizes.b) +
          " are just the 512 tokens of T5's prompt apart: positions of a second prompt stand "
          "behind "
          "those of the first (text_ids put together along the text, as --with_prior_preservation "
          "does), or the prompt was left out of them",
      "one text_ids for all prompts of a batch (all are zeros), and no concatenation; or leave the "
      "option out, and update the script with diffusers");
}

// A table of cos and sin with rows for more or for fewer tokens than the picture has.
Finding table_and_tokens(const Mismatch& sizes, double rows, double tokens) {
  const auto found = [&](std::string message, std::string cure) {
    return Finding{.code = "lengths_differ",
                   .expected = told(rows),
                   .found = told(tokens),
                   .message = std::move(message),
                   .cure = std::move(cure)};
  };
  if (const int pictures = rows < tokens ? times(rows, tokens) : 0; pictures > 0)
    return found("the table of cos and sin is for one picture of " + told(rows) + " tokens, and " +
                     std::to_string(pictures) +
                     " of them stand in a row: the one that is made, and those that it is made "
                     "from (edited, reference, pair)",
                 "hand over the size of each of them (img_shapes, img_ids), not of the first "
                 "alone; in a program of others, update it");
  if (rows < tokens)
    return found("the table of cos and sin has rows for " + told(rows) + " of " + told(tokens) +
                     " tokens: the text beside the picture, or the picture, is longer than what "
                     "the program made it for",
                 "update the program; until then shorten the prompt, or take a smaller picture");
  if (const std::string large = exact_square(rows), small = exact_square(tokens);
      !large.empty() && !small.empty())
    return found("the table of cos and sin is for a picture of " + large + " tokens, and one of " +
                     small +
                     " is rotated by it: the condition, or the reference, is smaller than the "
                     "picture that is made",
                 "hand over the condition in the size of the picture, or positions (img_ids) that "
                 "are made for its own; where the node has no such setting, make a picture of the "
                 "condition's size");
  if (auto unpacked = table_of_unpacked(sizes, rows, tokens)) {
    unpacked->expected = told(rows);
    unpacked->found = told(tokens);
    return *std::move(unpacked);
  }
  return found("the table of cos and sin is for " + told(rows) + " tokens, and " + told(tokens) +
                   (rows == 2 * tokens ? ", half of them," : "") +
                   " are rotated: the program cuts what it rotates, or leaves a part out (a "
                   "reference picture, a pose, alpha), and not from the table",
               "update the program and the library whose rotation it calls: they are of different "
               "versions; until then leave the part out that was added last");
}

}  // namespace

bool is_of_pictures(std::string_view context) {
  return contains_any(
      context, {"flux", "/wan", "\\wan", "wanvideo", "qwen_image", "qwenimage", "hunyuanvideo",
                "cogvideo", "ltx_video", "ltxv", "diffusers", "comfy"});
}

std::optional<Finding> two_text_lengths(const Mismatch& sizes) {
  if (!is_of_pictures(sizes.context)) return std::nullopt;
  constexpr double usual[] = {77, 128, 256, 512};  // of CLIP and T5
  for (const double text : usual)
    for (const double other : usual) {
      if (text == other || sizes.a - text != sizes.b - other) continue;
      const std::string picture = exact_square(sizes.a - text);
      if (picture.empty()) continue;
      return mismatched(
          sizes, "lengths_differ",
          "both are a picture of " + picture + " tokens beside a text: of " + told(text) +
              " tokens in the one, and of " + told(other) + " in the other",
          "one length of text for both (max_sequence_length: 512 of FLUX.1-dev, 256 of schnell)");
    }
  return std::nullopt;
}

std::optional<Finding> rounded_grid(const Mismatch& sizes) {
  constexpr std::size_t lines_of_others = 400;  // letters of a context that would name a program
  if (!is_rounded_grid(sizes.a, sizes.b) ||
      !(is_of_pictures(sizes.context) || sizes.context.size() < lines_of_others))
    return std::nullopt;
  return mismatched(
      sizes, "grid_rounded",
      "both are areas of a grid of a picture or video, and one side was rounded: the height or "
      "width is no multiple of what a token covers (8 or 16 of the VAE times 2 of a patch)",
      "take a height and width that are multiples of 32 (1080 → 1088, 720 → 704 or 736)");
}

std::optional<Finding> pictures_of_two_sizes(const Mismatch& sizes) {
  if (!are_pictures_of_two_sizes(sizes)) return std::nullopt;
  Finding out = mismatched(
      sizes, "grid_size",
      told(sizes.a) + " and " + told(sizes.b) + " are squares of patches (" + square_of(sizes.a) +
          ", " + square_of(sizes.b) +
          "): the encoder's learned positions are for a picture of the one size, and it got one of "
          "the other",
      "hand the encoder a picture of the size that it was made for (image_size of its "
      "configuration), or interpolate_pos_encoding=True");
  constexpr double at_224 = 257, at_336 = 577;
  if (sizes.least() == at_224 && sizes.most() == at_336)
    out.cure +=
        "; 257 rows are of clip-vit-large-patch14, 577 of clip-vit-large-patch14-336: where a "
        "program asks for one of them, load that";
  return out;
}

std::optional<Finding> heads_before_tokens(const Mismatch& sizes) {
  constexpr double largest_head_count = 128, most_pictures = 4;  // with and without the prompt
  if (!is_of_pictures(sizes.context) || sizes.least() <= 1 || sizes.least() > largest_head_count ||
      sizes.most() <= 4 * sizes.least())
    return std::nullopt;
  const bool of_heads = sizes.least() > most_pictures;
  return mismatched(
      sizes, "axes_exchanged",
      told(sizes.least()) +
          (of_heads ? " is a number of heads, not of tokens"
                    : " is a number of pictures in a batch (with and without the prompt, or beside "
                      "a reference), not of heads or tokens") +
          ": the node hands over " +
          (of_heads ? "[batch, tokens, heads, channels] where the program rotates [batch, heads, "
                      "tokens, channels], or the other way round"
                    : "a tensor whose axes stand in another order than the program's"),
      "update the program and the node together: they are of different versions");
}

std::optional<Finding> table_of_a_picture(const Mismatch& sizes) {
  if (!is_of_pictures(sizes.context)) return std::nullopt;
  if (auto frames = table_of_frames(sizes)) return frames;
  if (auto prompts = table_of_two_prompts(sizes)) return prompts;
  switch (table_in(sizes.context)) {
    case TableIs::first: return table_and_tokens(sizes, sizes.a, sizes.b);
    case TableIs::second: return table_and_tokens(sizes, sizes.b, sizes.a);
    case TableIs::unknown: break;
  }
  if (auto unpacked = table_of_unpacked(sizes, sizes.most(), sizes.least())) return unpacked;
  return mismatched(
      sizes, "lengths_differ",
      "the table of cos and sin and the tokens of the picture, or the text beside it, are " +
          told(sizes.a) + " and " + told(sizes.b) +
          ": the program counts the one without a part of the other (a reference picture, a pose, "
          "text beyond its length)",
      "update the program and the node together; until then leave the part out that was added "
      "last, or take sizes that are multiples of 32");
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

}  // namespace posenc::detail
