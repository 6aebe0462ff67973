// posenc lint: what deserves a look in a model's files, for people, programs and code hosts.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/json_text.h"
#include "cli/pages/sarif.h"
#include "cli/pages/terminal.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t largest_config = std::size_t{16} << 20;

// A file that cannot be read is a finding too, so that the others are looked at all the same.
Expected<LintedFile> linted(const std::string& file, const LintOptions& options) {
  const Expected<Model> model = named_model(file);
  if (!model && model.error().where == "read_model")
    return std::unexpected(model.error());  // nothing is there
  Expected<std::vector<Finding>> findings =
      model ? lint(*model, options) : std::unexpected(model.error());
  if (findings) return LintedFile{file, std::move(*findings)};
  const Error& error = findings.error();
  const std::string got = error.got.empty() ? "" : ", got " + error.got;
  return LintedFile{file,
                    {{.code = "unreadable",
                      .message = error.where + ": " + error.rule + got,
                      .cure = error.cure}}};
}

// What was mended of a file, and where the copy is; or why there is none.
struct FixedFile {
  std::string name, copy;
  std::vector<Finding> mended;
  std::optional<Error> error = {};
};

// The mended copy beside a config.json: config.fixed.json, which must not be there yet. Nothing is
// written where nothing is mended.
Expected<FixedFile> fixed(const std::string& file) {
  std::filesystem::path path = file;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) path /= "config.json";
  POSENC_TRY(text, named_text(path.string(), largest_config));
  POSENC_TRY(now, mend(text, path.string()));
  FixedFile out{path.string(), {}, now.mended};
  if (now.mended.empty()) return out;
  path.replace_filename(path.stem().string() + ".fixed" + path.extension().string());
  out.copy = path.string();
  if (std::filesystem::exists(std::filesystem::symlink_status(path, none)))
    return fail("--fix", "does not write over a file", out.copy, "move it away");
  POSENC_CHECK(write_whole(out.copy, {now.text}));
  return out;
}

std::string json_of(const std::vector<FixedFile>& files) {
  std::string all;
  for (const FixedFile& file : files)
    all += fmt::format("{}{{\"file\":{},\"copy\":{},\"mended\":{},\"error\":{}}}",
                       all.empty() ? "" : ",", json_string(file.name),
                       file.copy.empty() ? "null" : json_string(file.copy), to_json(file.mended),
                       file.error ? json_string(file.error->message()) : "null");
  return "[" + all + "]";
}

std::string copies_page(const std::vector<FixedFile>& copies, const Terminal& term) {
  std::string out;
  for (const FixedFile& copy : copies) {
    const std::string name = printable(copy.name, std::string::npos);
    if (copy.error)
      out += fmt::format("\n{}: not mended: {}\n", name, copy.error->message());
    else if (copy.copy.empty())
      out += fmt::format("\n{}: no cure leaves no choice\n", name);
    else
      out += fmt::format("\n{}: mended as {}\n{}", name,
                         term.bold(printable(copy.copy, std::string::npos)),
                         findings_page(copy.mended, term, ""));
  }
  return out;
}

Expected<void> add_names(const std::string& list, std::vector<std::string>& files) {
  POSENC_TRY(text, named_text(list, largest_config));
  std::string_view left = text;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    std::string_view name = left.substr(0, end);
    if (name.ends_with('\r')) name.remove_suffix(1);
    if (!name.empty()) files.emplace_back(name);
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

// A file that is not there is told in its line, so that the others go on.
int stream(const std::vector<std::string>& files, const LintOptions& options) {
  bool any_error = false;
  for (const std::string& file : files) {
    const Expected<LintedFile> one = linted(file, options);
    const LintedFile said =
        one ? *one : LintedFile{file, {{.code = "unreadable", .message = one.error().message()}}};
    any_error |= std::ranges::any_of(
        said.findings, [](const Finding& finding) { return finding.severity == Severity::error; });
    write_out("{{\"file\":{},\"findings\":{}}}\n", json_string(file), to_json(said.findings));
  }
  return any_error ? 1 : 0;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Run define_lint(CLI::App& app) {
  struct LintFlags {
    std::vector<std::string> files;
    LintOptions options;
    bool json = false, jsonl = false, sarif = false, fix = false;
    std::string from;
  };
  auto flags = std::make_shared<LintFlags>();
  app.add_option("FILE", flags->files,
                 "Models: config.json, params.json or .gguf files, - for standard input, folders, "
                 "bundled names")
      ->type_name("MODEL");
  app.add_option("--from", flags->from,
                 "Names of more models, one a line, in a file (- for standard input)")
      ->type_name("LIST");
  app.add_option("--at,--length", flags->options.length,
                 "Check for positions 0 to LENGTH-1 (131072, 128k); default: the model's context")
      ->transform(token_count())
      ->default_str("");
  app.add_option("--engines,--engine", flags->options.engines,
                 "Engines it is for (vllm,llama.cpp): what they do otherwise is then an error; "
                 "default: any, and a warning")
      ->delimiter(',')
      ->type_name("ENGINES");
  CLI::Option* json =
      app.add_flag("--json", flags->json)->description("The findings as JSON (docs/doctor.md)");
  CLI::Option* sarif_flag =
      app.add_flag("--sarif", flags->sarif, "The findings as SARIF 2.1.0, for code hosts")
          ->excludes(json);
  CLI::Option* jsonl =
      app.add_flag("--jsonl", flags->jsonl,
                   "A line of JSON for each file as soon as it is read, for fleets of files")
          ->excludes(json)
          ->excludes(sarif_flag);
  app.add_flag(
         "--fix", flags->fix,
         "Write a mended copy beside each config.json, config.fixed.json, where a cure leaves "
         "no choice")
      ->excludes(sarif_flag)
      ->excludes(jsonl);
  app.footer(
      "Every code with its cure: docs/warnings.md, and docs/codes.md for those that begin with "
      "engine_. Exit code 1: a finding is an error; 2: with --fix, a file was not mended (the "
      "others are; each is named).\n\n"
      "Examples:\n"
      "  posenc lint config.json\n"
      "  posenc lint config.json --engine vllm --at 128k\n"
      "  posenc lint config.json --fix && diff config.json config.fixed.json\n"
      "  posenc lint checkpoints/*/config.json --sarif > position.sarif\n"
      "  posenc lint --from names.txt --jsonl --engine vllm > fleet.jsonl");
  return [flags, &app]() -> Expected<int> {
    for (const std::string& engine : flags->options.engines) POSENC_CHECK(find_engine(engine));
    if (flags->fix && std::ranges::find(flags->files, "-") != flags->files.end())
      return fail("--fix", "writes a copy beside a file, and standard input has none", "-",
                  "save it first: posenc lint config.json --fix");
    if (!flags->from.empty()) POSENC_CHECK(add_names(flags->from, flags->files));
    if (flags->files.empty())
      return fail("lint", "takes one model or more", "", "posenc lint config.json");
    if (flags->jsonl) return stream(flags->files, flags->options);
    std::vector<LintedFile> files;
    for (const std::string& file : flags->files) {
      POSENC_TRY(one, linted(file, flags->options));
      files.push_back(std::move(one));
    }
    std::int64_t count[3] = {};
    for (const LintedFile& file : files)
      for (const Finding& finding : file.findings) ++count[static_cast<int>(finding.severity)];
    std::vector<FixedFile> copies;
    for (const LintedFile& file : files) {
      if (!flags->fix) break;
      Expected<FixedFile> copy = fixed(file.name);
      copies.push_back(copy ? std::move(*copy) : FixedFile{file.name, {}, {}, copy.error()});
    }
    const Terminal term = terminal(no_color(app));
    if (flags->sarif) {
      write_out("{}\n", sarif(files));
    } else if (flags->json) {
      const std::string findings = json_of(files);
      write_out("{}{}\n", findings.substr(0, findings.size() - 1),
                flags->fix ? ",\"fixed\":" + json_of(copies) + "}" : "}");
    } else {
      for (const LintedFile& file : files)
        write_out("{}\n{}\n", term.bold(printable(file.name, std::string::npos)),
                  findings_page(file.findings, term, "Nothing grave."));
      write_out("{}, {}, {} in {}\n", counted(count[0], "error"), counted(count[1], "warning"),
                counted(count[2], "note"), counted(std::ssize(files), "file"));
    }
    if (!flags->json) write_out("{}", copies_page(copies, term));
    // One that was not mended is bad input, whatever became of the others.
    if (const auto bad = std::ranges::find_if(
            copies, [](const FixedFile& copy) { return copy.error.has_value(); });
        bad != copies.end())
      return std::unexpected(*bad->error);
    return count[0] > 0 ? 1 : 0;
  };
}

}  // namespace

extern const Command lint_command{"lint", "what deserves a look in a model's files", define_lint};

}  // namespace posenc::cli
