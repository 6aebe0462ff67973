#!/bin/sh
# killed_rank.sh RUN PROGRAM: a rank that dies ends all of them with an error, and soon.
timeout 60 "$1" 3 "$2" >/dev/null 2>&1
status=$?
[ $status != 124 ] || { echo "the other ranks wait for ever"; exit 1; }
[ $status != 0 ] || { echo "the program ends as if nobody had died"; exit 1; }
echo "status $status"
