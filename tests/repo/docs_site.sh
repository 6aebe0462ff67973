#!/bin/sh
# docs_site.sh ROOT: every page of docs/ stands in the navigation of docs/site/mkdocs.yml and in docs/README.md, once each; what
# the navigation names is a page, there or made by docs/site/hooks.py; the first sentence of a page says whom it is for; and the
# site finds every link that leads out of docs/.
cd "$1" || exit 2
failed=0
complain() {
  echo "$1"
  failed=1
}
nav=$(sed -n '/^nav:/,$p' docs/site/mkdocs.yml | sed -nE 's/^ *- ([^#]*: )?([^ ]+\.md)$/\2/p')
for page in docs/*.md; do
  name=${page#docs/}
  [ "$(echo "$nav" | grep -cxF "$name")" = 1 ] || complain "docs/site/mkdocs.yml: nav must have $name once"
  [ "$name" = README.md ] || [ "$(grep -cF "| [$name]($name) |" docs/README.md)" = 1 ] ||
    complain "docs/README.md must have a row of $name"
  grep -qE "^    $name: For " docs/site/mkdocs.yml || sed 1d "$page" | grep -v '^$' | head -n 1 | grep -q '^For ' ||
    complain "$page: its first sentence must say whom it is for ('For someone who …')"
done
for name in $nav; do
  [ -f "docs/$name" ] || grep -qF "made(\"$name\"" docs/site/hooks.py || complain "docs/site/mkdocs.yml: nav names $name, which is not there"
done
if command -v python3 >/dev/null; then python3 docs/site/links.py docs/*.md || failed=1; fi
[ "$failed" = 1 ] || echo "$(echo "$nav" | wc -l) pages are named, and each says whom it is for"
exit $failed
