#!/bin/sh
# The C++ blocks of the docs. `snippets.sh source ROOT` prints a program of them all, each a function;
# `snippets.sh test ROOT PROGRAM` fails where it prints anything but the text blocks that follow them.
set -eu
blocks() {  # $1: ROOT, $2: what to print
  cd "$1"
  awk -v what="$2" '
    function flush() {
      if (what == "source" && body != "") printf "int snippet_%d([[maybe_unused]] float* data, [[maybe_unused]] std::int64_t seq) {\n%s  return 0;\n}\n", ++count, body
      if (what == "source" && body != "") calls = calls sprintf("  std::printf(\"== %s\\n\"); snippet_%d(data, 1); std::printf(\"\\n\");\n", FILENAME, count)
      if (what == "text" && body != "") printf "== %s\n", FILENAME
      body = ""
    }
    BEGIN {
      if (what == "source") print "#include <cstdint>\n#include <cstdio>\n#include <string>\n#include <vector>\n#include \"posenc/posenc.h\"\n" \
        "using namespace posenc;\nnamespace {\nint report(const std::string& message) { return std::puts(message.c_str()); }"
    }
    /^```/ {
      if (kind == "cpp") { flush(); shown = 1 }
      if (kind == "text") shown = 0
      kind = kind == "" ? substr($0, 4) : ""
      next
    }
    kind == "cpp" && !/^#include|^using namespace/ { body = body "  " $0 "\n" }
    kind == "text" && shown && what == "text" { print }
    kind == "" && NF { shown = 0 }
    END { if (what == "source") printf "}  // namespace\nint main() {\n  std::vector<float> storage(28 * 128);\n  float* data = storage.data();\n%s}\n", calls }
  ' README.md docs/*.md
}
case $1 in
  source) blocks "$2" source ;;
  test)
    blocks "$2" text | sed 's/ *$//; /^$/d' > "$3.expected"
    "$3" | sed 's/ *$//; /^$/d' | diff -u "$3.expected" -
    grep -c '^==' "$3.expected" | sed 's/$/ pages print what they say/' ;;
esac
