// posenc lint: what deserves a look in a model's files, for people, programs and code hosts.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments/atomic_file.h"
#include "cli/arguments/flags.h"
#include "cli/arguments/lines.h"
#include "cli/arguments/model.h"
#include "cli/command.h"
#include "cli/pages/findings_page.h"
#include "cli/pages/json_text.h"
#include "cli/pages/layout_page.h"
#include "cli/pages/sarif.h"
#include "cli/pages/terminal.h"
#include "posenc/context_parallel.h"
#include "posenc/tools.h"
#include "src/core/try.h"

namespace posenc::cli {
namespace {

constexpr std::size_t largest_config = std::size_t{16} << 20;

// What is asked of each model.
struct LintAsked {
  LintOptions options;
  std::optional<layout::Sharding> sharding;
  layout::Machine machine = layout::machines().front();
};

// What is said of one, and of the layout that was asked about.
struct LintLooked {
  LintedFile file;
  std::optional<layout::Judgement> judged = {};
};

Expected<std::vector<Finding>> findings_of(const Model& model, const LintAsked& asked,
                                           LintLooked& out) {
  POSENC_TRY(findings, lint(model, asked.options));
  if (!asked.sharding) return findings;
  POSENC_TRY(judged, layout::judge(model, *asked.sharding,
                                   {.length = asked.options.length, .machine = asked.machine}));
  std::vector<Finding> all = layout_findings(judged);
  all.insert(all.end(), findings.begin(), findings.end());
  std::ranges::stable_sort(all, {}, &Finding::severity);
  out.judged = std::move(judged);
  return all;
}

// A file that cannot be read is a finding too, so that the others are looked at all the same.
Expected<LintLooked> looked(const Expected<Model>& model, const std::string& name,
                            const LintAsked& asked) {
  LintLooked out{{name, {}}};
  Expected<std::vector<Finding>> findings =
      model ? findings_of(*model, asked, out) : std::unexpected(model.error());
  if (findings) {
    out.file.findings = std::move(*findings);
    return out;
  }
  const Error& error = findings.error();
  // The words of --cp are whoever typed them's, and no file's.
  if (error.where == "cp" || error.where == "layout") return std::unexpected(error);
  const std::string got = error.got.empty() ? "" : ", got " + error.got;
  out.file.findings = {
      {.code = "unreadable", .message = error.where + ": " + error.rule + got, .cure = error.cure}};
  return out;
}

Expected<LintLooked> linted(const std::string& file, const LintAsked& asked) {
  const Expected<Model> model = named_model(file);
  if (!model && model.error().where == "read_model")
    return std::unexpected(model.error());  // nothing is there
  return looked(model, file, asked);
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

bool has_error(const std::vector<Finding>& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.severity == Severity::error; });
}

// {"file", "findings"}, and of a stream the number of its line; a model that the line itself is has
// no file.
LineAnswer record(const Expected<LintLooked>& one, const std::string& file, std::int64_t line) {
  const LintLooked said =
      one ? *one : LintLooked{{file, {{.code = "unreadable", .message = one.error().message()}}}};
  return {
      fmt::format("{{\"file\":{}{},\"findings\":{}{}}}", file.empty() ? "null" : json_string(file),
                  line > 0 ? fmt::format(",\"line\":{}", line) : "", to_json(said.file.findings),
                  said.judged ? ",\"cp\":" + to_json(*said.judged) : ""),
      has_error(said.file.findings)};
}

// A line of a stream: the text of a configuration, or a path.
LineAnswer of_line(const Line& line, const LintAsked& asked) {
  if (!line.text.starts_with('{')) {
    const std::string file(line.text);
    return record(file == "-"
                      ? Expected<LintLooked>(fail("lint", "a line must be a model", file,
                                                  "write the text of a configuration, or a path"))
                      : linted(file, asked),
                  file, line.number);
  }
  const std::string name = fmt::format("line {}", line.number);
  const auto model = read_model_bytes(std::as_bytes(std::span(line.text)), name);
  return record(looked(model, name, asked), "", line.number);
}

// Fleets: a line of JSON for each model as soon as it and those before it are read.
Expected<int> stream(const std::vector<std::string>& files, const std::string& list, int threads,
                     const LintAsked& asked) {
  bool bad = false;
  const auto lines = [&](const std::string& source) -> Expected<void> {
    POSENC_TRY(answered,
               answer_lines(
                   source, "lint", threads, [&](const Line& line) { return of_line(line, asked); },
                   [&](const Line& line) {
                     return record(fail("lint", "a line must have 16 MiB or less",
                                        printable(line.text, 60), "give its path"),
                                   "", line.number);
                   }));
    bad |= answered.bad > 0;
    return {};
  };
  for (const std::string& file : files) {
    if (file == "-") {
      POSENC_CHECK(lines(file));
      continue;
    }
    const LineAnswer one = record(linted(file, asked), file, 0);
    write_out("{}\n", one.line);
    bad |= one.bad;
  }
  if (!list.empty()) POSENC_CHECK(lines(list));
  return bad ? 1 : 0;
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

// What --cp says, or the file of that name does.
std::string words_or_file(const std::string& given) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(given, none)) return given;
  const auto text = named_text(given, largest_config);
  return text ? *text : given;
}

// "sglang 0.5.16, vllm 0.33.0": whose code was read, of the engines that findings name without a
// version. Empty: none does.
std::string as_of(const std::set<std::string>& engines) {
  std::string list;
  for (const std::string& name : engines)
    if (const auto engine = find_engine(name); engine && !name.contains('@'))
      list += (list.empty() ? "" : ", ") + name + " " + std::string(engine->version);
  return list;
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Run define_lint(CLI::App& app) {
  struct LintFlags {
    std::vector<std::string> files;
    LintOptions options;
    bool json = false, jsonl = false, sarif = false, fix = false;
    std::string from, cp, machine;
    int threads = 0;
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
      ->allow_extra_args(false)
      ->type_name("ENGINES");
  app.add_option(
         "--cp", flags->cp,
         "How a text is shared out among ranks, and whether each layer survives it: "
         "zigzag:8, contiguous:16, round_robin:4:block=64, ulysses:8, ring+heads:8:heads=2, "
         "decode:4:block=16; an engine's own by its name (megatron:8); or the command line "
         "or settings of a job, in quotes or in a file")
      ->type_name("LAYOUT:RANKS");
  app.add_option("--machine", flags->machine,
                 "Whose time --cp predicts: h100, a100 or core, with other numbers behind it "
                 "(h100:far_bytes=2.5e10)")
      ->type_name("MACHINE")
      ->default_str("h100");
  CLI::Option* json =
      app.add_flag("--json", flags->json)->description("The findings as JSON (docs/doctor.md)");
  CLI::Option* sarif_flag =
      app.add_flag("--sarif", flags->sarif, "The findings as SARIF 2.1.0, for code hosts")
          ->excludes(json);
  CLI::Option* jsonl =
      app.add_flag("--jsonl", flags->jsonl,
                   "A line of JSON for each model as soon as it is read, for fleets: in the order "
                   "in which they came, on all cores; of - and of --from LIST each line is a path, "
                   "or the text of a configuration")
          ->excludes(json)
          ->excludes(sarif_flag);
  app.add_option("--threads", flags->threads, "Of --jsonl; default: as many as there are cores")
      ->check(CLI::Range(0, 1024))
      ->default_str("");
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
      "  posenc lint deepseek-v3 --cp zigzag:8 --at 128k\n"
      "  posenc lint gemma-3-4b --cp '--context-parallel-size 8 --cp-comm-type a2a' --at 128k\n"
      "  posenc lint checkpoints/*/config.json --sarif > position.sarif\n"
      "  posenc lint --from names.txt --jsonl --engine vllm > fleet.jsonl\n"
      "  zcat configs.jsonl.gz | posenc lint --jsonl - > findings.jsonl");
  return [flags, &app]() -> Expected<int> {
    for (const std::string& engine : flags->options.engines) POSENC_CHECK(find_engine(engine));
    if (flags->fix && std::ranges::find(flags->files, "-") != flags->files.end())
      return fail("--fix", "writes a copy beside a file, and standard input has none", "-",
                  "save it first: posenc lint config.json --fix");
    if (!flags->from.empty() && !flags->jsonl) POSENC_CHECK(add_names(flags->from, flags->files));
    if (flags->files.empty() && flags->from.empty())
      return fail("lint", "takes one model or more", "", "posenc lint config.json");
    LintAsked asked{.options = flags->options, .sharding = std::nullopt};
    if (!flags->cp.empty()) {
      POSENC_TRY(sharding, layout::read_sharding(words_or_file(flags->cp)));
      asked.sharding = sharding;
    }
    if (!flags->machine.empty()) {
      if (!asked.sharding)
        return fail("--machine", "is for --cp, whose time it predicts", flags->machine,
                    "give --cp zigzag:8 too");
      POSENC_TRY(machine, layout::read_machine(flags->machine));
      asked.machine = machine;
    }
    if (flags->jsonl) return stream(flags->files, flags->from, flags->threads, asked);
    if (asked.sharding && flags->json && flags->files.size() > 1)
      return fail("--cp", "is said of one model with --json", std::to_string(flags->files.size()),
                  "--jsonl has a line for each");
    std::vector<LintedFile> files;
    std::vector<std::optional<layout::Judgement>> judged;
    for (const std::string& file : flags->files) {
      POSENC_TRY(one, linted(file, asked));
      files.push_back(std::move(one.file));
      judged.push_back(std::move(one.judged));
    }
    std::int64_t count[3] = {};
    std::set<std::string> engines;
    for (const LintedFile& file : files)
      for (const Finding& finding : file.findings) {
        ++count[static_cast<int>(finding.severity)];
        engines.insert(finding.engines.begin(), finding.engines.end());
      }
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
      write_out("{}{}{}}}\n", findings.substr(0, findings.size() - 1),
                flags->fix ? ",\"fixed\":" + json_of(copies) : "",
                judged.front() ? ",\"cp\":" + to_json(*judged.front()) : "");
    } else {
      for (std::size_t n = 0; n < files.size(); ++n) {
        write_out("{}\n{}\n", term.bold(printable(files[n].name, std::string::npos)),
                  findings_page(files[n].findings, term, "Nothing grave."));
        if (judged[n]) write_out("{}\n", layout_page(*judged[n], term));
      }
      write_out("{}, {}, {} in {}\n", counted(count[0], "error"), counted(count[1], "warning"),
                counted(count[2], "note"), counted(std::ssize(files), "file"));
      if (const std::string known = as_of(engines); !known.empty())
        write_out("{}\n", wrapped("engines as of " + known, 0, 0));
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
