#!/bin/sh
# What the kubelet's unit does around the kubelet.
#
# usage: kubelet.sh prepare|stopped
# Environment: ROOT is a prefix of every path, empty on a real machine. SERVICE_RESULT is systemd's.
{
set -u
ROOT=${ROOT:-}

# link has $2 refer to $1.
link() {
  [ "$(readlink "$2" 2>/dev/null)" = "$1" ] || ln -sfn "$1" "$2"
}

# prepare_dns makes the link that the kubelet's configuration names as resolvConf. The stub of systemd-resolved, 127.0.0.53, is
# an address that Pods cannot reach, and that has CoreDNS ask itself.
prepare_dns() {
  if [ -e "$ROOT/run/systemd/resolve/resolv.conf" ]; then
    link /run/systemd/resolve/resolv.conf "$ROOT/var/lib/kubelet/resolv.conf"
  else
    link /etc/resolv.conf "$ROOT/var/lib/kubelet/resolv.conf"
  fi
}

# prepare_kubelet has /opt/bin/kubelet be there. Packages install the kubelet elsewhere.
prepare_kubelet() {
  [ ! -x "$ROOT/opt/bin/kubelet" ] || return 0
  for kubelet in /usr/local/bin/kubelet /usr/bin/kubelet; do
    [ -x "$ROOT$kubelet" ] || continue
    mkdir -p "$ROOT/opt/bin" && link "$kubelet" "$ROOT/opt/bin/kubelet"
    return
  done
  echo 'cloud-config-downloader: there is no kubelet in /opt/bin, /usr/local/bin or /usr/bin' >"$ROOT/dev/console"
  return 1
}

case ${1:-} in
prepare) mkdir -p "$ROOT/var/lib/kubelet" "$ROOT/etc/kubernetes/manifests" && prepare_dns && prepare_kubelet ;;
# The last words of a kubelet that has failed, once a minute, for those who have nothing but the console.
stopped)
  [ "${SERVICE_RESULT:-success}" != success ] || exit 0
  now=$(date +%s)
  [ $((now - $(cat "$ROOT/run/kubelet-failed" 2>/dev/null || echo 0))) -ge 60 ] || exit 0
  echo "$now" >"$ROOT/run/kubelet-failed"
  journalctl --unit=kubelet.service --lines=3 --output=cat --no-pager 2>/dev/null | cut -c 1-400 >"$ROOT/dev/console"
  ;;
esac
exit
}
