#!/bin/sh
# Applies a bundle to this machine: writes the files that differ, restarts the units that they belong
# to and no others, and removes what an earlier bundle brought and this one does not.
# It comes in the bundle as apply.sh and is run by download-cloud-config.sh, which has verified it.
#
# usage: apply.sh <directory of the bundle> <directory for the state>
# Environment: ROOT is a prefix of every path, empty on a real machine. systemctl is found in PATH.
#
# The bundle has a file "manifest" with a line for each thing:
#   file <number> <mode> <units, or -> <path>                       its content is in files/<number>
#   unit <name> <enabled: yes|no> <start|restart|stop> <own|image>  own: the unit file is in the bundle
#
# The units of a file are a list with commas: the one that it is a part of, and +name or ~name for others that are restarted or
# reloaded when it changes.
#
# It may be cut off at any point and is then run again, or another bundle's in its place. "revision" is
# taken away before the first change: it names what is applied, whole. What is to be restarted is noted
# in "pending" before a file is replaced, all that was ever begun in "known", what was done with a unit
# in "done", and "manifest" is replaced at the very end.
{
set -u
umask 022
ROOT=${ROOT:-}
bundle=$1
state=$2
credentials=$ROOT/var/lib/cloud-config-downloader/credentials
reported=$ROOT/var/lib/cloud-config-downloader/downloads/reported
pending=$state/pending
finished=$state/done
# How many seconds systemctl may take. What systemd has begun goes on without it.
timeout_seconds=60

die() {
  printf 'cloud-config-downloader: %s\n' "$*"
  report "$*"
  exit 1
}

# report writes line $1 into the machine's Lease, for people who look why it does not join. Each line is tried once, for five
# seconds, and only while the token of the user data is in use.
report() {
  [ -s "$credentials/authorization" ] && [ "$1" != "$(cat "$reported" 2>/dev/null)" ] || return 0
  printf '%s\n' "$1" >"$reported"
  set -- "$(printf '%s' "$1" | tr -c 'A-Za-z0-9 .,:;/=_-' _ | cut -c 1-200)" "$(cat "$credentials/server")" "$(cat "$credentials/secret")"
  curl --silent --max-time 5 --cacert "$credentials/ca.crt" --header "@$credentials/authorization" --output /dev/null \
    --request PATCH --header 'Content-Type: application/merge-patch+json' \
    --data '{"spec":{"holderIdentity":"'"$1"'","renewTime":"'"$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"'"}}' \
    "$2/apis/coordination.k8s.io/v1/namespaces/${3%/*}/leases/${3#*/}" </dev/null >/dev/null 2>&1
  return 0
}

checksum() {
  set -- "$(sha256sum <"$1")"
  printf '%s' "${1%% *}"
}

mode() {
  printf '%04o' "0$(stat -c %a "$1")"
}

command -v timeout >/dev/null || timeout() { shift; "$@"; }

# ctl calls systemctl, which must not hold up what comes after: a unit that hangs costs a minute, each
# further one a few seconds. It returns 124 when it has not waited to the end.
ctl() {
  case ${2:-} in -*) set -- "$1" -- "$2" ;; esac # The root's mount and slice, -.mount and -.slice.
  timeout "$timeout_seconds" systemctl "$@" </dev/null
  set -- $?
  [ "$1" != 124 ] || timeout_seconds=5
  return "$1"
}

# mark notes what was done with unit $1: the rest of the words.
mark() {
  marked=$finished/$1
  shift
  printf '%s\n' "$*" >"$marked.new" && mv -f "$marked.new" "$marked"
}

# marked says whether that was noted.
is_marked() {
  unit_marked=$finished/$1
  shift
  [ "$(cat "$unit_marked" 2>/dev/null)" = "$*" ]
}

# listed says whether manifest $1 has a line of kind $2 for path or unit $3.
listed() {
  case $2 in
  file) sed -n 's/^file [0-9]* [0-7]* [^ ]* //p' "$1" | grep -qxF -e "$3" ;;
  unit) sed -n 's/^unit \([^ ]*\) .*/\1/p' "$1" | grep -qxF -e "$3" ;;
  esac
}

# owner prints the unit that a file is a part of, of its list of units $1, or - for none.
owner() {
  case $1 in -* | +* | ~*) echo - ;; *) echo "${1%%,*}" ;; esac
}

# leaves says whether unit $1 came with a bundle and is not in this one: it is stopped.
leaves() {
  sed -n 's/^unit \([^ ]*\) .* own$/\1/p' "$state/known" | grep -qxF -e "$1" && ! listed "$bundle/manifest" unit "$1"
}

# note remembers, over a power cut too, what a change of path $2 has restarted, reloaded or read again: the units in list $1 too.
note() {
  case $2 in
  /etc/fstab | /etc/systemd/system/* | /usr/lib/systemd/system/* | /usr/local/lib/systemd/system/*) : >"$state/reload" || return 1 ;;
  /etc/sysctl.d/* | /etc/sysctl.conf | /run/sysctl.d/* | /usr/lib/sysctl.d/* | /usr/local/lib/sysctl.d/*) : >"$state/sysctl" || return 1 ;;
  esac
  noted=$1,
  while [ -n "$noted" ] && [ "$noted" != -, ]; do
    unit_noted=${noted%%,*}
    noted=${noted#*,}
    case $unit_noted in
    [+~]*) leaves "${unit_noted#?}" && continue ;;
    esac
    case $unit_noted in
    "~"*) [ -e "$pending/${unit_noted#?}" ] || echo reload >"$pending/${unit_noted#?}" || return 1 ;;
    "+"*) : >"$pending/${unit_noted#?}" || return 1 ;;
    *) : >"$pending/$unit_noted" && rm -f "$finished/$unit_noted" && : >"$state/reload" || return 1 ;;
    esac
  done
}

# put writes file $1 with mode $2, which units $3 are about, to path $4, if that differs; $5 is the path without ROOT.
put() {
  [ ! -d "$4" ] || die "cannot write $4: it is a directory"
  if [ -f "$4" ] && [ "$(mode "$4")" = "$2" ] && [ "$(checksum "$4")" = "$(checksum "$1")" ]; then
    return 0
  fi
  # The name is short, for a name may have 255 bytes, and begins with a dot, for programs that read whole directories.
  new=${4%/*}/.cloud-config-new
  note "$3" "$5" && mkdir -p "${4%/*}/" && (umask 077 && cat "$1" >"$new") && chmod "$2" "$new" || return 1
  sync "$new" 2>/dev/null || sync
  mv -f "$new" "$4"
}

write_files() {
  while read -r kind number mode unit path; do
    [ "$kind" = file ] || continue
    put "$bundle/files/$number" "$mode" "$unit" "$ROOT$path" "$path" || die "could not write $path"
  done <"$bundle/manifest"
}

# leave_unit stops unit $1 and has it not start again. What systemd does not know needs neither.
leave_unit() {
  ctl disable "$1" || case $(ctl is-enabled "$1" 2>/dev/null) in enabled*) return 1 ;; esac
  ctl stop "$1" || case $(ctl is-active "$1" 2>/dev/null) in active | activating | deactivating | reloading) return 1 ;; esac
}

# remove_units stops the units that have left, while their files are still there, once.
remove_units() {
  while read -r kind unit _ _ owner; do
    [ "$kind" = unit ] || continue
    listed "$bundle/manifest" unit "$unit" && continue
    is_marked "$unit" gone && continue
    if [ "$owner" = own ]; then
      mark "$unit" leaving || die "could not note $unit"
      rm -f "$pending/$unit"
      leave_unit "$unit" || { failed="$failed $unit"; continue; }
    else
      : >"$pending/$unit" || die "could not note $unit"
    fi
    mark "$unit" gone || die "could not note $unit"
  done <"$state/known"
}

remove_files() {
  while read -r kind _ _ units path; do
    [ "$kind" = file ] || continue
    listed "$bundle/manifest" file "$path" && continue
    rm -f "$ROOT${path%/*}/.cloud-config-new"
    unit=$(owner "$units")
    # A unit that could not be stopped keeps its files: without them it could not be disabled.
    [ "$unit" = - ] || listed "$bundle/manifest" unit "$unit" || is_marked "$unit" gone || continue
    [ -e "$ROOT$path" ] || continue
    if [ "$unit" = - ] || listed "$bundle/manifest" unit "$unit"; then
      note "$units" "$path" || die "could not note the removal of $path"
    else
      : >"$state/reload" || die "could not note the removal of $path"
    fi
    rm -f "$ROOT$path" || die "could not remove $path"
  done <"$state/known"
}

# command_unit does what the manifest says about unit $1 when that is not done, or its files have changed.
command_unit() {
  verb=$3
  if [ ! -e "$pending/$1" ]; then
    is_marked "$@" && return 0
    # One that took too long is under way: to restart it would be to begin again.
    is_marked "$1" begun "$@" && { await_unit "$@"; return; }
  elif [ -s "$pending/$1" ] && [ "$verb" != stop ]; then
    verb=reload-or-restart
  elif [ "$verb" = start ]; then
    verb=restart
  fi
  rm -f "$finished/$1"
  enable_unit "$@" || return 1
  ctl "$verb" "$1"
  case $? in
  0) mark "$@" && rm -f "$pending/$1" ;;
  124)
    mark "$1" begun "$@" && rm -f "$pending/$1"
    return 1
    ;;
  *) return 1 ;;
  esac
}

# await_unit looks what has become of a unit that was commanded before.
await_unit() {
  case $(ctl is-active "$1") in
  activating | deactivating | reloading) return 1 ;;
  failed)
    rm -f "$finished/$1"
    return 1
    ;;
  esac
  mark "$@"
}

# enable_unit enables or disables a unit. An alias, or what a generator has made, cannot be and is left.
enable_unit() {
  if [ "$2" = yes ]; then ctl enable "$1"; else ctl disable "$1"; fi && return 0
  case $(ctl is-enabled "$1" 2>/dev/null) in
  alias | generated | transient | linked | linked-runtime) printf 'cloud-config-downloader: %s cannot be enabled or disabled: it is another unit'"'"'s name, or made by a program\n' "$1" ;;
  *) return 1 ;;
  esac
}

# command_others is about units of the image that have lost their drop-ins, or read a changed file. It is before the kubelet.
command_others() {
  for left in "$pending"/*; do
    [ -e "$left" ] || continue
    unit=${left##*/}
    listed "$bundle/manifest" unit "$unit" && continue
    verb=restart
    [ ! -s "$left" ] || verb=reload-or-restart
    ctl "$verb" "$unit"
    case $? in
    0 | 124) rm -f "$left" ;;
    *) if loaded_ours "$unit"; then rm -f "$left"; else failed="$failed $unit"; fi ;;
    esac
  done
}

# on_ours runs the rest of the words with the bundle's files whose paths match $1. Without any it does nothing.
on_ours() {
  ours=$(sed -n 's/^file [0-9]* [0-7]* [^ ]* //p' "$bundle/manifest" | grep -E -e "$1")
  shift
  [ -n "$ours" ] || return 0
  # A path may have spaces and asterisks, but no line break.
  IFS='
'
  set -f
  for our_path in $ours; do
    set -- "$@" "$ROOT$our_path"
  done
  set +f
  unset IFS
  "$@" </dev/null
}

# loaded_ours says whether unit $1 is the one that loads modules, and those of the bundle are loaded: a module that the image's own
# files name, and that is not there, must not hold up the bundle.
loaded_ours() {
  [ "$1" = systemd-modules-load.service ] || return 1
  on_ours '^/(etc|run|usr/lib|usr/local/lib)/modules-load[.]d/[^/]*[.]conf$' \
    timeout 60 "$ROOT/usr/lib/systemd/systemd-modules-load" || return 1
  printf 'cloud-config-downloader: %s failed, but not for a file of the configuration\n' "$1"
}

command_units() {
  while read -r kind unit enable command owner; do
    [ "$kind" = unit ] || continue
    command_unit "$unit" "$enable" "$command" "$owner" || failed="$failed $unit"
  done <"$bundle/manifest"
  [ -z "$failed" ] || die "these units failed, or are not done yet:$failed"
}

# set_kernel_parameters has the bundle's files succeed: a key that needs a module fails until the module is loaded. Then it reads all
# files, in the order of a boot. What the image's own files have wrong is told, and does not hold up the bundle.
set_kernel_parameters() {
  [ -e "$state/sysctl" ] || return 0
  on_ours '^/(etc|run|usr/lib|usr/local/lib)/sysctl([.]d/[^/]*)?[.]conf$' timeout 60 sysctl -p >"$state/sysctl.log" 2>&1
  applied=$?
  [ "$applied" = 0 ] || tell_sysctl 'sysctl -p'
  timeout 60 sysctl --system >"$state/sysctl.log" 2>&1 || tell_sysctl 'sysctl --system'
  if [ "$applied" = 0 ]; then
    rm -f "$state/sysctl" "$state/sysctl.log"
  else
    failed="$failed sysctl"
  fi
}

tell_sysctl() {
  printf 'cloud-config-downloader: %s failed: %s\n' "$1" "$(grep -v '^[*]' "$state/sysctl.log" | tail -n 1)"
}

# adopt takes over from a version of this program that noted nothing of units but by the manifest.
adopt() {
  [ ! -d "$finished" ] || return 0
  rm -rf "$finished.new" && mkdir -p "$finished.new" || return 1
  if [ -s "$state/revision" ] && [ -s "$state/manifest" ]; then
    while read -r kind unit rest; do
      [ "$kind" != unit ] || printf '%s\n' "$rest" >"$finished.new/$unit" || return 1
    done <"$state/manifest"
  fi
  mv "$finished.new" "$finished"
}

[ -e "$reported" ] || report "has downloaded its configuration"
mkdir -p "$pending" && adopt || die "could not write to $state"
rm -f "$state/revision" || die "could not take $state/revision away"
sync "$state" 2>/dev/null || sync
: >>"$state/manifest" && : >>"$state/known" || exit 1
sort -u "$state/known" "$bundle/manifest" >"$state/known.new" && mv -f "$state/known.new" "$state/known" || exit 1
failed=
write_files
remove_units
remove_files
if [ -e "$state/reload" ]; then
  ctl daemon-reload || die "systemd could not reload its units"
  rm -f "$state/reload"
fi
command_others
set_kernel_parameters
command_units
cp "$bundle/manifest" "$state/manifest.new" && mv -f "$state/manifest.new" "$state/manifest" || exit 1
cp "$bundle/manifest" "$state/known.new" && mv -f "$state/known.new" "$state/known" || exit 1
report "has applied its configuration and started the kubelet"
exit 0
}
