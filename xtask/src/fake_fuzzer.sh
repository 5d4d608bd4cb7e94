#!/bin/sh
# Stands in for libFuzzer in a unit test: a run finds one input, a merge takes all inputs.
set -eu
merge=no
folders=
for argument; do
    case "$argument" in
        -set_cover_merge=1) merge=yes ;;
        -*) ;;
        *) folders="$folders $argument" ;;
    esac
done
set -- $folders
first=$1
shift
if [ "$merge" = yes ]; then
    for folder; do cp -r "$folder/." "$first"; done
else
    printf found > "$first/00000000000000000000000000000000000000ff"
    echo "#1 INITED cov: 1 ft: 1" >&2
fi
