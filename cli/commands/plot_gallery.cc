// posenc plot all: every kind's examples into a folder, and a page that shows them.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/commands/plot.h"
#include "cli/pages/terminal.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

struct Shown {
  std::string file, command;
  Figure figure;
};

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  return out;
}

constexpr std::string_view head = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>posenc: positional encodings in pictures</title>
<style>
:root { --paper: #fdfdfc; --ink: #1d1d1f; --soft: #5c5c61; --line: #dedede; --code: #f2f2ef; --link: #0b5c94 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16171a; --ink: #e7e7ea; --soft: #a3a4ab; --line: #34363c; --code: #23252a; --link: #7fbfee }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55;
  font: 1.0625rem/1.55 "Iowan Old Style", Palatino, "Palatino Linotype", "Book Antiqua", Georgia, serif }
main { max-width: 52rem; margin: 0 auto; padding: 3rem 1.25rem 5rem }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; text-wrap: balance }
h2 { font-size: 1.3rem; margin: 3.5rem 0 .25rem; scroll-margin-top: 1rem }
p { margin: 0 0 1rem; max-width: 42rem; text-wrap: pretty }
a { color: var(--link) }
.about, nav { color: var(--soft) }
nav ul { list-style: none; margin: 1.5rem 0 0; padding: 0; columns: 2; column-gap: 2rem }
nav li { break-inside: avoid; margin: 0 0 .35rem }
figure { margin: 1.5rem 0 2.25rem }
figure img { display: block; width: 100%; height: auto; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; padding: .5rem }
figcaption { margin: .75rem 0 0 }
code { font: .8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
pre { margin: .5rem 0 0; padding: .6rem .8rem; background: var(--code); border-radius: 6px; overflow-x: auto }
@media (max-width: 36rem) { nav ul { columns: 1 } main { padding-top: 1.5rem } }
@media print { figure { break-inside: avoid } pre { white-space: pre-wrap } }
</style>
<main>
<h1>Positional encodings in pictures</h1>
<p class="about">Drawn by <code>posenc plot all</code>. Every number is computed by the library; the command
below a picture makes it again, and <code>--csv -</code> prints its numbers.</p>
)";

// Everything of one kind stands under its name.
std::string page(std::span<const std::pair<const Kind*, std::vector<Shown>>> sections) {
  std::string out(head);
  out += "<nav><ul>\n";
  for (const auto& [kind, shown] : sections)
    out += fmt::format("<li><a href=\"#{0}\">{0}</a> {1}</li>\n", kind->name, html(kind->about));
  out += "</ul></nav>\n";
  for (const auto& [kind, shown] : sections) {
    out += fmt::format("<section>\n<h2 id=\"{0}\">{0}</h2>\n<p class=\"about\">{1}.</p>\n",
                       kind->name, html(kind->about));
    for (const Shown& picture : shown)
      out += fmt::format(
          "<figure>\n<img src=\"{0}\" alt=\"{1}\" loading=\"lazy\" width=\"1512\" "
          "height=\"{2:.0f}\">\n"
          "<figcaption>{3}</figcaption>\n<pre><code>{4}</code></pre>\n</figure>\n",
          html(picture.file), html(picture.figure.title), picture.figure.height * 3,
          html(picture.figure.caption), html(picture.command));
    out += "</section>\n";
  }
  return out + "</main>\n</html>\n";
}

// An example's figure, by the same flags as the command's.
Expected<Shown> shown(const Kind& kind, std::string_view example) {
  std::istringstream words{std::string(example)};
  Shown out;
  words >> out.file;
  out.command = fmt::format("posenc plot {} {}", kind.name, example);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;)
    arguments.insert(arguments.begin(), word);  // as CLI11 takes them
  CLI::App app;
  const Drawing drawing = kind.define(app);
  app.parse(std::move(arguments));
  POSENC_TRY(figure, drawing());
  out.figure = std::move(figure);
  return out;
}

Expected<int> gallery(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder))
    return fail(folder.string(), "must be a folder that can be made", error.message(),
                "name another");
  std::size_t count = 0, done = 0;
  for (const Kind* kind : all_kinds()) count += kind->examples.size();
  const bool watched = isatty(STDERR_FILENO) != 0;
  std::vector<std::pair<const Kind*, std::vector<Shown>>> sections;
  for (const Kind* kind : all_kinds()) {
    sections.emplace_back(kind, std::vector<Shown>{});
    for (const std::string_view example : kind->examples) {
      if (watched) {
        clear_line();
        write_error("drawing {} of {}: {}", ++done, count, kind->name);
      }
      Expected<Shown> one = shown(*kind, example);
      Expected<std::string> bytes =
          one ? picture(one->figure, Format::png, {}) : std::unexpected(one.error());
      Expected<void> written;
      if (bytes) written = write_whole((folder / one->file).string(), {*bytes});
      if (!bytes || !written) {
        if (watched) clear_line();
        return std::unexpected(bytes ? written.error() : bytes.error());
      }
      // The page needs its words alone.
      one->figure.panels.clear();
      sections.back().second.push_back(std::move(*one));
    }
  }
  if (watched) clear_line();
  const std::string index = (folder / "index.html").string();
  POSENC_CHECK(write_whole(index, {page(sections)}));
  write_out("{} pictures: {}\n", count, index);
  return 0;
}

}  // namespace

Run define_gallery(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  app.add_option("OUT_FOLDER", *folder, "Where pictures and index.html go; made if it is missing")
      ->required();
  app.footer("Examples:\n  posenc plot all pictures/");
  return [folder] { return gallery(*folder); };
}

}  // namespace posenc::cli
