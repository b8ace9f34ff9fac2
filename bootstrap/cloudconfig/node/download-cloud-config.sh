#!/bin/sh
# Downloads the configuration of this machine and has it applied, for as long as the machine lives.
# It is part of the user data and therefore never changes: it fetches, verifies and records, and
# leaves the work to apply-cloud-config.sh, which comes with the configuration and so can be improved.
#
# usage: download-cloud-config.sh [once]
# Environment: ROOT is a prefix of every path, empty on a real machine. systemctl is found in PATH.
#
# The body is in braces and ends with exit, since a shell reads its script while it runs.
{
set -u
umask 077
ROOT=${ROOT:-}
export ROOT
base=$ROOT/var/lib/cloud-config-downloader
credentials=$base/credentials
downloads=$base/downloads
applied=$base/applied
kubelet=$ROOT/var/lib/kubelet
certificate=$kubelet/pki/kubelet-client-current.pem
sentinel=$ROOT/run/cluster-api/bootstrap-success.complete
started=$ROOT/run/cloud-config-up
last=

# say logs a line, unless the line before said the same.
say() {
  [ "$*" = "$last" ] || printf 'cloud-config-downloader: %s\n' "$*"
  last=$*
}

# replace puts stdin in the place of file $1, whole or not at all.
replace() {
  cat >"$1.new" || return 1
  sync "$1.new" 2>/dev/null || sync
  mv -f "$1.new" "$1"
}

# value prints what key $1 of the downloaded Secret's data holds. The server is asked for pretty JSON,
# which has one key in a line; of any other answer nothing is found, and nothing is done. What others
# have written into the metadata is indented more and not between these lines.
value() {
  sed -n '/^  "data": {$/,/^  }/s|^    "'"$1"'": "\([A-Za-z0-9+/=]*\)",\{0,1\}$|\1|p' "$downloads/answer" | base64 -d 2>/dev/null
}

checksum() {
  set -- "$(sha256sum <"$1")"
  printf '%s' "${1%% *}"
}

# same says whether file $1 exists and has the content of file $2.
same() {
  [ -e "$1" ] && [ "$(checksum "$1")" = "$(checksum "$2")" ]
}

# update replaces file $1, which the kubelet reads when it starts. That it is to be restarted is noted before.
update() {
  [ ! -e "$1" ] || : >"$downloads/restart" || return 1
  replace "$1"
}

# ask fetches this machine's Secret with credential $1 (certificate or token) from server $2, whose
# certificate is by the authority in file $3. It sets status to the HTTP status, 000 for no answer, full
# for a disk that is, and large for an answer of more than 4 MiB (8 in some shells): a Secret has one.
ask() {
  server=$2
  authority=$3
  case $1 in
  certificate) set -- --cert "$certificate" --key "$certificate" ;;
  *) set -- --header "@$credentials/authorization" ;;
  esac
  rm -f "$downloads/answer" "$downloads/header"
  status=$(ulimit -f 8192 && curl --silent --show-error --connect-timeout 5 --max-time 20 --cacert "$authority" "$@" \
    --output "$downloads/answer" --dump-header "$downloads/header" --write-out '%{http_code}' \
    "$server/api/v1/namespaces/${secret%/*}/secrets/${secret#*/}?pretty=1" 2>"$downloads/error")
  case $? in
  0) ;;
  23) status=full ;;
  153) status=large ;;
  *) status=000 ;;
  esac
  later=$(sed -n 's/^[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([1-9][0-9]\{0,2\}\)[^0-9]*$/\1/p' "$downloads/header" 2>/dev/null | tail -n 1)
  [ "$status" = 200 ] && return 0
  rm -f "$downloads/answer"
  return 1
}

# fetch downloads the Secret, with the kubelet's certificate as soon as that is accepted, which is
# from the moment that the Node is linked to its Machine.
fetch() {
  secret=$(cat "$credentials/secret") && here=$(cat "$credentials/server") || return 1
  way=certificate
  if [ -s "$certificate" ] && ask certificate "$here" "$credentials/ca.crt"; then
    joined
    return 0
  fi
  way=token
  if [ -s "$credentials/authorization" ]; then
    ask token "$here" "$credentials/ca.crt" && return 0
  elif [ ! -s "$certificate" ]; then
    say "has no credential to read Secret $secret with; replace the machine"
    return 1
  fi
  complain
  return 1
}

complain() {
  case $status in
  000) say "awaits the API server at $here: $(sed -n '/^curl:/{p;q;}' "$downloads/error")" ;;
  full) say "cannot write to $downloads: $(df -P "$downloads" 2>/dev/null | tail -n 1)" ;;
  large) say "refuses an answer of $here that is too large" ;;
  401) say "awaits a valid credential: $here does not know the one of this machine; its bootstrap token may have expired" ;;
  403) say "awaits permission to read Secret $secret" ;;
  404) say "awaits Secret $secret, which is written when the provider ID of the machine is known" ;;
  *) say "awaits Secret $secret: the API server at $here answered with status $status" ;;
  esac
}

# joined forgets what is no longer needed. /run is empty after a boot, so the sentinel comes again.
joined() {
  rm -f "$credentials/authorization" "$kubelet/kubeconfig-bootstrap"
  [ -e "$sentinel" ] && return 0
  mkdir -p "${sentinel%/*}" && echo success | replace "$sentinel" && say "the machine has joined"
}

# stage takes the downloaded Secret apart. It fails, and nothing changes, unless it is whole.
stage() {
  rm -rf "$downloads/stage" && mkdir -p "$downloads/stage/bundle" || return 1
  value payload | gzip -dc >"$downloads/stage/bundle.tar" 2>/dev/null
  revision=$(value revision)
  if [ -z "$revision" ] || [ "$(checksum "$downloads/stage/bundle.tar")" != "$revision" ]; then
    say "refuses the content of Secret $secret: it is empty, cut short or does not have the checksum that it names"
    return 1
  fi
}

# follow_endpoint adopts another address or authority of the API server once it is proven to work.
follow_endpoint() {
  value ca.crt >"$downloads/stage/ca.crt"
  there=$(value server)
  case $there in https://*) ;; *) return 0 ;; esac
  [ -s "$downloads/stage/ca.crt" ] || return 0
  [ "$there" = "$here" ] && same "$credentials/ca.crt" "$downloads/stage/ca.crt" && return 0
  cp "$downloads/answer" "$downloads/answer.kept"
  if ask "$way" "$there" "$downloads/stage/ca.crt"; then
    replace "$credentials/ca.crt" <"$downloads/stage/ca.crt" && printf '%s\n' "$there" | replace "$credentials/server"
    here=$there
  else
    say "stays with the API server at $here: $there does not answer with its new certificate authority"
  fi
  mv -f "$downloads/answer.kept" "$downloads/answer"
}

# kubeconfig prints a kubeconfig. Its files are relative to its directory; $1 and $2 are lines for the user.
kubeconfig() {
  printf '%s\n' 'apiVersion: v1' 'kind: Config' 'clusters:' '- name: target' '  cluster:' \
    "    server: $here" '    certificate-authority: ca.crt' 'contexts:' '- name: target' '  context:' \
    '    cluster: target' '    user: kubelet' 'current-context: target' 'users:' '- name: kubelet' '  user:' "$@"
}

# credential gives the kubelet what it needs to join. A kubelet that rotates its certificate writes its
# kubeconfig before it has the certificate which that names, so the file alone is no proof of one.
credential() {
  mkdir -p "$kubelet" || return 1
  same "$kubelet/ca.crt" "$credentials/ca.crt" || update "$kubelet/ca.crt" <"$credentials/ca.crt" || return 1
  if [ -s "$certificate" ]; then
    if [ -s "$kubelet/kubeconfig-real" ]; then
      # The kubelet's own kubeconfig names the server that it has joined by; one that is not ours stays.
      grep -q kubelet-client-current.pem "$kubelet/kubeconfig-real" || return 0
      [ "$(sed -n 's/^[ -]*server: *//p' "$kubelet/kubeconfig-real" | tr -d \")" != "$here" ] || return 0
    fi
    kubeconfig '    client-certificate: pki/kubelet-client-current.pem' \
      '    client-key: pki/kubelet-client-current.pem' | update "$kubelet/kubeconfig-real"
    return
  fi
  if [ -s "$kubelet/kubeconfig-real" ] && ! grep -q kubelet-client-current.pem "$kubelet/kubeconfig-real"; then
    return 0
  fi
  token=$(value bootstrap-token | sed -n '/^[a-z0-9]\{6\}\.[a-z0-9]\{16\}$/p')
  if [ -z "$token" ]; then
    say "awaits a token to join with in Secret $secret"
    return 1
  fi
  kubeconfig "    token: $token" >"$downloads/kubeconfig"
  # A kubelet that waits with the token of before would wait for ever.
  same "$kubelet/kubeconfig-bootstrap" "$downloads/kubeconfig" ||
    update "$kubelet/kubeconfig-bootstrap" <"$downloads/kubeconfig"
}

# start starts what is enabled, once after each boot, for which /run is empty: the machine may have been
# switched off half-way. This program starts more often, and what has run to its end would run again. It
# waits for none: one that hangs must not hold up the kubelet.
start() {
  while read -r kind unit enable command _; do
    [ "$kind$enable" = unityes ] && [ "$command" != stop ] || continue
    systemctl start "$unit" --no-block </dev/null || say "could not start $unit"
  done <"$applied/manifest"
  : >"$started"
}

apply() {
  if [ "$revision" = "$(cat "$applied/revision" 2>/dev/null)" ]; then
    [ -e "$started" ] || start
    return
  fi
  say "applies revision $revision"
  tar -xof "$downloads/stage/bundle.tar" -C "$downloads/stage/bundle" </dev/null &&
    sh "$downloads/stage/bundle/apply.sh" "$downloads/stage/bundle" "$applied" </dev/null || {
    say "could not apply revision $revision; it is tried again"
    return 1
  }
  printf '%s\n' "$revision" | replace "$applied/revision" || return 1
  : >"$started"
  say "has applied revision $revision"
}

poll() {
  later=
  mkdir -p "$downloads" "$applied" "$ROOT/run" || return 1
  fetch && stage || return 1
  follow_endpoint
  interval=$(value poll-interval | sed -n '/^[1-9][0-9]\{0,3\}$/p')
  [ -z "$interval" ] || [ "$interval" = "$(cat "$applied/poll-interval" 2>/dev/null)" ] ||
    printf '%s\n' "$interval" | replace "$applied/poll-interval"
  credential && apply
  result=$?
  [ ! -e "$downloads/restart" ] || { systemctl restart kubelet.service --no-block </dev/null && rm -f "$downloads/restart"; }
  rm -rf "$downloads/stage" "$downloads/answer" "$downloads/kubeconfig"
  return $result
}

# pause prints the seconds until the next look: what the server asks for, else one until the machine has
# joined. Up to a quarter is added by chance, so that machines do not ask all at once.
pause() {
  if [ -n "$later" ]; then
    set -- "$later"
  elif [ -e "$credentials/authorization" ] || [ ! -e "$sentinel" ]; then
    set -- 1
  else
    set -- "$(cat "$applied/poll-interval" 2>/dev/null || echo 30)"
  fi
  echo $(($1 + $(od -An -N2 -tu2 /dev/urandom 2>/dev/null || echo 0) % ($1 / 4 + 1)))
}

slept=0
while :; do
  poll
  result=$?
  [ "${1:-}" != once ] || exit $result
  [ $slept -lt 900 ] || exit 0
  seconds=$(pause)
  sleep "$seconds"
  slept=$((slept + seconds))
done
exit
}
