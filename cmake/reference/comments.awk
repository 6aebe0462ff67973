# The comments of a public header as Doxygen wants them: `//` above a declaration becomes `///`, and behind one
# `///<`; so do the comments of c.h. The first comment is the file's; a title between dashes is for readers of the
# text alone; lines set in by two spaces are formulae. Lines move down by one, no more, so that messages can be followed.
{ line[NR] = $0 }

# Text in which Doxygen reads neither commands nor HTML; code between backticks is left alone.
function plain(text, parts, n, i, out) {
  n = split(text, parts, "`")
  for (i = 1; i <= n; i++) {
    if (i % 2 == 1) {
      gsub(/\\/, "\\\\\\\\", parts[i])
      gsub(/[@<>&#%|~*]/, "\\\\&", parts[i])
    }
    out = out (i > 1 ? "`" : "") parts[i]
  }
  return out
}
# A line of a comment, without its marks: errors in a paragraph of their own, formulae in lines of their own.
function said(text, was_formula) {
  was_formula = formula
  formula = text ~ /^  +[^ ]/
  if (formula) {
    sub(/^ +/, "", text)
    gsub(/`/, "", text)
    return "<br>&emsp;`" text "`"
  }
  text = plain(text)
  if (sub(/^Errors: /, "<p>**Errors:** ", text)) return text
  return (was_formula ? "<br>" : "") text
}
function is_section(i) { return line[i] ~ /^ *\/(\/|\*) ---.*---+( \*\/)?$/ }
function is_comment(i) { return i <= NR && line[i] ~ /^ *\/\// && !is_section(i) }
function is_block(i) { return line[i] ~ /^ *\/\*/ && !is_section(i) }

# The comment of lines first to last, whose lines begin with what `mark` matches.
function comment(first, last, mark, i, text) {
  formula = 0
  # A comment before an empty line is no declaration's.
  if (first > 1 && (last == NR || line[last + 1] ~ /^ *$/)) { for (i = first; i <= last; i++) print line[i]; return }
  if (first == 1) print "/// @file"
  for (i = first; i <= last; i++) {
    text = line[i]
    sub(mark, "", text)
    sub(/ *\*\/$/, "", text)
    print "/// " said(text)
  }
}
# The same behind code, where it starts in column `at`; // within a string is no comment.
function behind(text, at) {
  if (text ~ /^ *#|^ *\/[\/*]|^}/) return 0
  at = match(text, / +(\/\/|\/\*) /)
  return at && text !~ /"[^"]*  \/\/[^"]*"/ ? RSTART : 0
}
# A scheme or a scaling without a comment is what its own title and formula say.
function struct_without_comment(i) {
  return line[i] ~ /^struct [A-Za-z0-9]+ \{$/ && line[i - 1] !~ /^\/\// && line[i - 1] !~ /^template/
}
function own_words(i, all, title) {
  for (; line[i] !~ /^};/; i++) if (line[i] !~ /^ *\/\//) all = all line[i]
  if (!match(all, /title = *"[^"]*"/)) return ""
  title = substr(all, RSTART, RLENGTH)
  gsub(/^[^"]*"|"$/, "", title)
  all = substr(all, RSTART + RLENGTH)
  if (!match(all, /formula = *"[^"]*"( *"[^"]*")*/)) return plain(title)
  all = substr(all, RSTART, RLENGTH)
  sub(/^[^"]*"/, "", all)
  gsub(/" *"/, "", all)
  sub(/"$/, "", all)
  return plain(title) "<br>&emsp;`" all "`"
}
END {
  for (i = 1; i <= NR; i++) {
    if (is_section(i)) print ""
    else if (is_comment(i)) {
      for (last = i; is_comment(last + 1); last++) {}
      comment(i, last, "^ *// ?")
      i = last
    } else if (is_block(i)) {
      for (last = i; line[last] !~ /\*\/$/; last++) {}
      comment(i, last, "^( */\\*|  ) ?")
      i = last
    } else if (at = behind(line[i])) {
      code = substr(line[i], 1, at)
      text = substr(line[i], at)
      sub(/^ +\/[\/*] /, "", text)
      sub(/ *\*\/$/, "", text)
      print code "///< " plain(text)
    } else if (struct_without_comment(i)) {
      print (own_words(i) == "" ? "" : "/** " own_words(i) " */ ") line[i]
    } else print line[i]
  }
}
