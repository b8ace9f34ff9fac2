#!/usr/bin/env bash
# go build -v … 2>&1 | test/progress.sh WHAT
# Prints how many packages were compiled, on one line of a terminal, elsewhere twice a minute. Errors pass through.
# QUIET=1 prints errors only, for what runs beside something that has the line.
what=$1 count=0 shown=$SECONDS began=$SECONDS
terminal=
[ -t 1 ] && terminal=1
show() {
  [ -z "${QUIET:-}" ] || return 0
  if [ -n "$terminal" ]; then
    printf '\r\033[K%s: %d packages compiled in %ds' "$what" "$count" "$((SECONDS - began))"
  elif [ "$((SECONDS - shown))" -ge 30 ]; then
    printf '%s: %d packages compiled in %ds\n' "$what" "$count" "$((SECONDS - began))"
    shown=$SECONDS
  fi
}
while IFS= read -r line || [ -n "$line" ]; do
  case $line in
  'go: downloading '*) ;;
  *[[:space:]:#]*)
    [ -z "$terminal" ] || printf '\r\033[K'
    printf '%s\n' "$line"
    ;;
  *) count=$((count + 1)) ;;
  esac
  show
done
[ -z "$terminal" ] || [ -n "${QUIET:-}" ] || printf '\r\033[K'
exit 0
