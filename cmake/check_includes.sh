#!/bin/sh
# check_includes.sh [ROOT]: who may include whom. Exits 1 and names each include that breaks a rule.
# Includes are read from the text, whatever #if stands around them: stricter than asking one compiler
# about one configuration, and instant.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2046  # no file here has a space in its name
exec awk '
BEGIN {
  # --- The rooms, and the files of other rooms that each may name. All are regular expressions. A room is named as
  # the public header that it implements, and may name that header and those below.
  public  = "^include/posenc/"
  plans   = "^include/posenc/(plan|features|turns|angles|apply|resample|attention|content|gradients|cache|rekey|key_header|convolution)\\.h$"
  schemes = "^include/posenc/(features|schemes(/[a-z0-9_]+)?|axis_scalings|scalings|fields|plan|model|explain|position|reuse|files)\\.h$"
  common  = "^include/posenc/(tensor|positions|error)\\.h$|^src/core/"  # named by all

  room("^include/posenc/c\\.h$", "^$")
  room("^include/posenc/", "^$")
  room("^src/core/",      "^include/posenc/(plan|features|turns)\\.h$")
  room("^src/scalings/",  "^include/posenc/(schemes(/[a-z0-9_]+)?|scalings|fields|plan)\\.h$")
  room("^src/schemes/",   "^include/posenc/(schemes(/[a-z0-9_]+)?|distance_maps|axis_scalings|scalings|fields|plan|content)\\.h$|^src/scalings/")
  room("^src/kernels/",   plans)
  room("^src/attention/", plans "|^src/kernels/")
  room("^src/layout/",    "^include/posenc/(layout|attention|plan|apply)\\.h$|^src/(kernels|attention)/")
  room("^src/content/",   plans "|^src/(kernels|attention)/")
  room("^src/emit/",      "^include/posenc/(emit|plan|features|apply)\\.h$|^src/(text/number|kernels/rotation)\\.h$")
  room("^src/cache/",     plans "|^src/(kernels|attention)/")
  room("^src/text/",      "^$")
  room("^src/files/",     "^include/posenc/(files|fields)\\.h$|^src/text/")
  room("^src/model/families/", schemes "|^src/(files|text)/")
  room("^src/model/",     schemes "|^src/(files|text|model/families)/")
  room("^src/explain/",   schemes "|^src/(files|text|model)/")
  room("^src/context_parallel/", schemes "|^include/posenc/(context_parallel|layout|attention)\\.h$|^src/(text/|explain/text\\.h)")
  room("^src/engines/",   schemes "|^include/posenc/engines\\.h$|^src/(text|scalings)/|^src/(files/field_value|explain/text|model/(compare|class_defaults))\\.h$")
  room("^src/tools/",     schemes "|^include/posenc/(engines|tools|pictures|doctor|apply|context_parallel)\\.h$|^src/(text/|files/field_value\\.h|explain/(text|odd_pair)\\.h|model/(compare|names)\\.h|context_parallel/sharding\\.h)")
  room("^src/identify/",  schemes "|^include/posenc/(tools|identify|apply)\\.h$|^src/(text/|files/field_value\\.h|explain/(text|odd_pair)\\.h)")
  room("^src/c/",         public)
  room("^src/wasm/",      "^include/posenc/(model|doctor)\\.h$|^src/(text/number|model/(bundled|names))\\.h$")
  room("^evidence/claims/",        public "|^src/explain/text\\.h$")
  room("^evidence/bench/",         public "|^src/kernels/(threads|elements|elements-inl|ahead|gemm16|instruction_sets)\\.h$")
  room("^vectors/",       "^include/posenc/|^vectors/cpp/")
  room("^evidence/lab/",           public "|^evidence/bench/harness/blas\\.h$|^src/text/json\\.h$")
  room("^cli/",           public "|^evidence/lab/")
  room("^(examples|bindings/python|backends/distributed)/", public "|^cli/run\\.h$")
  room("^backends/cuda/python/",   public "|^backends/cuda/|^bindings/python/src/errors\\.h$")
  room("^backends/cuda/program/",  public "|^backends/cuda/")
  room("^backends/cuda/",          plans "|^src/kernels/check\\.h$")
  room("^(bindings/(npm|webgpu)|web)/",     "^include/posenc/c\\.h$")
  room("^tests/fuzz/",          public "|^src/|^cli/(arguments/parse|playground/answer)\\.h$")

  # --- What the files of a place, but for some, may not reach through however many headers.
  # <x is a header from outside.
  scheme_headers = "^include/posenc/(schemes(/[a-z0-9_]+)?|scalings|model|explain|engines|tools|identify|posenc)\\.h$"
  never("^src/(core|kernels|attention|content|cache)/|^backends/cuda/", "^backends/cuda/(program|python)/", scheme_headers, "kernels see plans, never schemes")
  never("^include/posenc/(tensor|positions|error|plan|members|features|turns|angles|apply|attention|content|gradients|cache)\\.h$", "",
        scheme_headers, "plans and what works on them know no scheme")
  never("^include/", "", "^src/|^<(hwy|nlohmann|fmt|CLI)/", "public headers need only the standard library")
  never("^include/posenc/c\\.h$", "", "^<[a-z_]+$", "c.h is C")
  never("^src/(core|text|files|scalings|schemes|model|explain|engines|tools|identify)/|^evidence/claims/", "", "^<(hwy/|[a-z]*intrin\\.h|arm_)", "SIMD belongs to kernels")
  never("^src/", "^src/(text|model|explain)/", "^<nlohmann/",
        "JSON belongs to src/text, src/model and src/explain")
  never("^src/|^include/posenc/posenc\\.h$", "", "^evidence/(claims|bench)/|^include/posenc/(claims|bench)\\.h$",
        "claims and bench stand on the library")
  never("^(src|evidence/(claims|bench))/", "", "^<(fmt|CLI)/", "the core prints nothing")
  never("", "^(cli/|tests/fuzz/|bindings/python/src/command\\.cc$)", "^cli/", "nothing includes cli, but for the package that carries it")
  never("", "^(cli|evidence/lab)/", "^evidence/lab/", "only the command includes lab")
  never("", "^src/wasm/", "^src/wasm/", "src/wasm stands in for others, which know nothing of it")
  never("", "", "^tests/|_test\\.", "nothing includes a test")

  for (i = 1; i < ARGC; i++) { sub(/^\.\//, "", ARGV[i]); known[ARGV[i]] = 1 }
}

function room(files, may) { room_files[++rooms] = files; room_may[rooms] = may }
function never(files, but, what, why) {
  never_files[++nevers] = files; never_but[nevers] = but ? but : "^$"
  never_what[nevers] = what; never_why[nevers] = why
}
function room_of(file, r) {
  for (r = 1; r <= rooms; r++) if (file ~ room_files[r]) return r
  return 0
}
function is_test(file) { return file ~ /^tests\/|_test\.[a-z]+$/ }

# The file that an include means: beside the includer, in include/, or from the root.
function resolve(from, quote, name, path) {
  path = from
  sub(/[^\/]*$/, name, path)
  while (sub(/[^\/]+\/\.\.\//, "", path)) {}
  if (quote == "\"" && path in known) return path
  if (("include/" name) in known) return "include/" name
  return name in known ? name : "<" name
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  sub(/^[^<"]*/, "")
  quote = substr($0, 1, 1)
  name = substr($0, 2)
  sub(/[>"].*/, "", name)
  includes[FILENAME, ++count[FILENAME]] = resolve(FILENAME, quote, name)
}

function report(file, text) { print file ": " text; violations++ }

# Visits all that `file` reaches, nearest first, so that the way shown is the shortest.
function check(file, queue, way, n, head, i, k, at, target, mine, told) {
  split("", way); split("", queue)
  mine = room_of(file)
  if (!mine) { report(file, "is in no room; give it one in cmake/check_includes.sh"); return }
  queue[n = 1] = file
  way[file] = file
  for (head = 1; head <= n; head++) {
    at = queue[head]
    for (i = 1; i <= count[at]; i++) {
      target = includes[at, i]
      if (target in way) continue
      way[target] = way[at] " > " target
      queue[++n] = target
      told = 0
      for (k = 1; k <= nevers && !told; k++)
        if (file ~ never_files[k] && file !~ never_but[k] && target ~ never_what[k]) {
          report(file, never_why[k] " (" way[target] ")")
          told = 1
        }
      if (at == file && !told && target in known && room_of(target) != mine &&
          target !~ common && target !~ room_may[mine])
        report(file, "may not include " target)
    }
  }
}

END {
  for (i = 1; i < ARGC; i++) {
    if (is_test(ARGV[i])) continue
    files++
    check(ARGV[i])
  }
  printf "include rules: %d files, %d violations\n", files, violations
  exit violations > 0
}' $(find . -path './.*' -prune -o -path './build*' -prune -o -path ./out -prune -o \
    -name node_modules -prune -o -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) \
    -print | sort) </dev/null
