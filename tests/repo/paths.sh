#!/bin/sh
# paths.sh ROOT: what the pages name of this repository, between backticks, is there. NAME and its kin stand for any.
cd "$1" || exit 2
named=$(grep -oE '`(src|include|cli|bindings|backends|evidence|tests|web|cmake|models|examples|docs)/[A-Za-z0-9_./-]*`' \
          README.md CONTRIBUTING.md docs/*.md | grep -vE 'NAME|KIND|FORMAT|/dist/|/fetched' | tr -d '`' | sort -u)
failed=0
for each in $named; do
  [ -e "${each#*:}" ] || { echo "${each%%:*} names ${each#*:}, which is not there"; failed=1; }
done
[ $failed = 1 ] || echo "$(echo "$named" | wc -l) paths are there"
exit $failed
