#!/bin/sh
# new_python.sh ARGUMENT...: runs the newest Python from 3.12 on, with its headers, that the path or pyenv has.
set -eu
for python in python3.15 python3.14 python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python3 python3; do
  command -v "$python" >/dev/null 2>&1 || continue
  "$python" -c 'import os, sys, sysconfig; sys.exit(sys.version_info < (3, 12) or not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null || continue  # pyenv's shims of others complain
  exec "$python" "$@"
done
echo "Python must be 3.12 or newer, with its headers, to build wheels; none is on the path or in pyenv: install one" >&2
exit 2
