// posenc plot KIND OUT: the table of kinds, and what they have in common.
#include "cli/commands/plot.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/parse.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {

// Each in a file of figures/.
extern const Kind heatmap, channels, differences, binary, similarity, turns, rotation, wavelengths,
    axes, lock, decay, moves, bias_map, scores, logits, bucket_stairs, phase, precision, layouts,
    ring, sharing;

namespace {

// In the order in which one would read them.
constexpr const Kind* kinds[] = {
    &heatmap, &channels,      &binary, &differences, &similarity, &turns,    &rotation,
    &lock,    &wavelengths,   &axes,   &decay,       &moves,      &bias_map, &scores,
    &logits,  &bucket_stairs, &phase,  &precision,   &layouts,    &ring,     &sharing};

constexpr std::string_view gallery_about =
    "All of these into a folder, with an index.html that shows them";

Expected<Size> size_of(const std::string& text) {
  if (text.empty()) return Size{};
  const std::size_t cross = text.find('x');
  const Expected<std::int64_t> width = integer(text.substr(0, cross), "--size");
  const Expected<std::int64_t> height =
      integer(cross == std::string::npos ? "" : text.substr(cross + 1), "--size");
  if (!width || !height || *width < 200 || *height < 120 || *width > 10000 || *height > 10000)
    return fail("--size", "must be WIDTHxHEIGHT in pixels, 200x120 to 10000x10000", text,
                "write it like 1500x1000");
  return Size{static_cast<int>(*width), static_cast<int>(*height)};
}

Expected<int> plot(const Kind& kind, const Drawing& drawing, const std::string& out,
                   const std::string& csv_path, const std::string& size_text) {
  const std::string where = "plot " + std::string(kind.name);
  if (out.empty() && csv_path.empty())
    return fail(where, "needs a place for the picture or its numbers", "neither",
                "name a file like " + std::string(kind.name) + ".png, or say --csv -");
  POSENC_TRY(size, size_of(size_text));
  Format format = Format::png;
  if (!out.empty()) {
    POSENC_TRY(known, format_of(out, where));
    format = known;
  }
  POSENC_TRY(figure, drawing());
  if (!out.empty()) {
    POSENC_TRY(bytes, picture(figure, format, size));
    POSENC_CHECK(write_whole(out, {bytes}));
  }
  if (csv_path == "-") {
    const std::string text = csv(figure);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (!csv_path.empty()) {
    POSENC_CHECK(write_whole(csv_path, {csv(figure)}));
  }
  return 0;
}

template <const Kind& kind>
Run define_kind(CLI::App& app) {
  struct Options {
    std::string out, csv, size;
    Drawing drawing;
  };
  auto options = std::make_shared<Options>();
  app.add_option("OUT", options->out, "The picture: .png, .svg or .pdf");
  app.add_option("--csv", options->csv, "Write its numbers there; -: to standard output")
      ->type_name("FILE");
  app.add_option("--size", options->size, "Pixels of a .png; in .svg and .pdf 96 to the inch")
      ->type_name("WIDTHxHEIGHT")
      ->default_str("7 inches, 216 pixels each");
  options->drawing = kind.define(app);
  if (!kind.alias.empty()) app.alias(std::string(kind.alias));
  std::string examples = "Examples:";
  for (const std::string_view example : kind.examples)
    examples += fmt::format("\n  posenc plot {} {}", kind.name, example);
  app.footer(examples + fmt::format("\n  posenc plot {} --csv -", kind.name));
  return
      [options] { return plot(kind, options->drawing, options->out, options->csv, options->size); };
}

template <std::size_t... i>
constexpr auto commands_of(std::index_sequence<i...>) {
  return std::array{Command{{}, {}, define_kind<*kinds[i]>}...};
}

std::span<const Command> plot_kinds() {
  static const auto commands = [] {
    constexpr std::size_t count = std::size(kinds);
    const auto of_kinds = commands_of(std::make_index_sequence<count>());
    std::array<Command, count + 1> out;
    for (std::size_t i = 0; i < count; i++)
      out[i] = {kinds[i]->name, kinds[i]->about, of_kinds[i].define};
    out[count] = {"all", gallery_about, define_gallery};
    return out;
  }();
  return commands;
}

Run define_plot(CLI::App& app) {
  std::string text = "Kinds:\n";
  for (const Command& kind : plot_kinds())
    text += fmt::format("  {:<13}{}\n", kind.name, kind.about);
  app.footer(
      text +
      "\n`posenc plot KIND --help` shows a kind's flags. gnuplot draws (Debian: gnuplot-nox).\n\n"
      "Examples:\n"
      "  posenc plot wavelengths wavelengths.png --model llama-3.1-8b --at 131072\n"
      "  posenc plot heatmap heatmap.svg --scheme sinusoidal --width 128 --positions 0:100\n"
      "  posenc plot phase --csv -\n"
      "  posenc plot all pictures/");
  return [&app]() -> Expected<int> {
    const Terminal term = terminal(no_color(app));
    for (const Command& kind : plot_kinds())
      write_out("{}  {}\n", term.bold(padded(kind.name, 12)), kind.about);
    write_out("\nposenc plot KIND OUT.png draws one; posenc plot KIND --help shows its flags.\n");
    return 0;
  };
}

}  // namespace

std::span<const Kind* const> all_kinds() { return kinds; }

Expected<Format> format_of(const std::string& path, std::string_view where) {
  constexpr std::pair<std::string_view, Format> endings[] = {
      {".png", Format::png}, {".svg", Format::svg}, {".pdf", Format::pdf}};
  for (const auto& [ending, format] : endings)
    if (path.ends_with(ending)) return format;
  return fail(where, "the picture's name must end in .png, .svg or .pdf", path);
}

extern const Command plot_command{
    "plot", "pictures of all this: heat maps, waves, wavelengths, decay", define_plot, plot_kinds};

}  // namespace posenc::cli
