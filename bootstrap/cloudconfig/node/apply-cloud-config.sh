#!/bin/sh
# Applies a bundle to this machine: writes the files that differ, restarts the units that they belong
# to and no others, and removes what an earlier bundle brought and this one does not.
# It comes in the bundle as apply.sh and is run by download-cloud-config.sh, which has verified it.
#
# usage: apply.sh <folder of the bundle> <folder for the state>
# Environment: ROOT is a prefix of every path, empty on a real machine. systemctl is found in PATH.
#
# The bundle has a file "manifest" with a line for each thing:
#   file <number> <mode> <unit that it belongs to, or -> <path>     its content is in files/<number>
#   unit <name> <enabled: yes|no> <start|restart|stop> <own|image>  own: the unit file is in the bundle
#
# It may be cut off at any point and is then run again: what is to be restarted is noted before a file
# is replaced, all that was ever begun is noted in "known", and "manifest" is replaced at the very end.
{
set -u
umask 022
ROOT=${ROOT:-}
bundle=$1
state=$2
pending=$state/pending

die() {
  printf 'cloud-config-downloader: %s\n' "$*"
  exit 1
}

checksum() {
  set -- "$(sha256sum <"$1")"
  printf '%s' "${1%% *}"
}

mode() {
  printf '%04o' "0$(stat -c %a "$1")"
}

# listed says whether manifest $1 has a line of kind $2 for path or unit $3.
listed() {
  case $2 in
  file) sed -n 's/^file [0-9]* [0-7]* [^ ]* //p' "$1" | grep -qxF -e "$3" ;;
  unit) sed -n 's/^unit \([^ ]*\) .*/\1/p' "$1" | grep -qxF -e "$3" ;;
  esac
}

# note remembers that unit $1 is to be restarted, over a power cut too.
note() {
  [ "$1" != - ] || return 0
  : >"$pending/$1" && : >"$state/reload"
}

# put writes file $1 with mode $2, which belongs to unit $3, to path $4, if that differs.
put() {
  [ ! -d "$4" ] || die "cannot write $4: it is a folder"
  if [ -f "$4" ] && [ "$(mode "$4")" = "$2" ] && [ "$(checksum "$4")" = "$(checksum "$1")" ]; then
    return 0
  fi
  note "$3" && mkdir -p "${4%/*}" && (umask 077 && cat "$1" >"$4.cloud-config-new") &&
    chmod "$2" "$4.cloud-config-new" || return 1
  sync "$4.cloud-config-new" 2>/dev/null || sync
  mv -f "$4.cloud-config-new" "$4"
}

write_files() {
  while read -r kind number mode unit path; do
    [ "$kind" = file ] || continue
    put "$bundle/files/$number" "$mode" "$unit" "$ROOT$path" || die "could not write $path"
  done <"$bundle/manifest"
}

# remove_units stops the units that have left, while their files are still there.
remove_units() {
  while read -r kind unit _ _ owner; do
    [ "$kind" = unit ] || continue
    listed "$bundle/manifest" unit "$unit" && continue
    if [ "$owner" = own ]; then
      systemctl disable "$unit" </dev/null || printf 'cloud-config-downloader: could not disable %s\n' "$unit"
      systemctl stop "$unit" </dev/null || printf 'cloud-config-downloader: could not stop %s\n' "$unit"
    else
      : >"$pending/$unit" || die "could not note $unit"
    fi
  done <"$state/known"
}

remove_files() {
  while read -r kind _ _ unit path; do
    [ "$kind" = file ] || continue
    listed "$bundle/manifest" file "$path" && continue
    [ -e "$ROOT$path" ] || continue
    [ "$unit" = - ] || : >"$state/reload" || die "could not note the removal of $path"
    if [ "$unit" != - ] && listed "$bundle/manifest" unit "$unit"; then
      note "$unit"
    fi
    rm -f "$ROOT$path" "$ROOT$path.cloud-config-new" || die "could not remove $path"
  done <"$state/known"
}

# command_unit does what the manifest says about unit $1 when it is new, has changed, or is pending.
command_unit() {
  if grep -qxF -e "unit $*" "$state/manifest" && [ ! -e "$pending/$1" ]; then
    return 0
  fi
  case $2 in
  yes) systemctl enable "$1" </dev/null ;;
  *) systemctl disable "$1" </dev/null ;;
  esac || return 1
  case $3 in
  stop) systemctl stop "$1" </dev/null ;;
  start) if [ -e "$pending/$1" ]; then systemctl restart "$1" </dev/null; else systemctl start "$1" </dev/null; fi ;;
  *) systemctl restart "$1" </dev/null ;;
  esac || return 1
  rm -f "$pending/$1"
}

command_units() {
  failed=
  while read -r kind unit enable command owner; do
    [ "$kind" = unit ] || continue
    command_unit "$unit" "$enable" "$command" "$owner" || failed="$failed $unit"
  done <"$bundle/manifest"
  # What is left are units of the image that have lost their drop-ins.
  for left in "$pending"/*; do
    [ -e "$left" ] || continue
    unit=${left##*/}
    listed "$bundle/manifest" unit "$unit" && continue
    systemctl restart "$unit" </dev/null && rm -f "$left" || failed="$failed $unit"
  done
  [ -z "$failed" ] || die "these units failed:$failed"
}

mkdir -p "$pending" && : >>"$state/manifest" && : >>"$state/known" || exit 1
sort -u "$state/known" "$bundle/manifest" >"$state/known.new" && mv -f "$state/known.new" "$state/known" || exit 1
write_files
remove_units
remove_files
if [ -e "$state/reload" ]; then
  systemctl daemon-reload </dev/null || die "systemd could not reload its units"
  rm -f "$state/reload"
fi
command_units
cp "$bundle/manifest" "$state/manifest.new" && mv -f "$state/manifest.new" "$state/manifest" || exit 1
cp "$bundle/manifest" "$state/known.new" && mv -f "$state/known.new" "$state/known" || exit 1
exit 0
}
