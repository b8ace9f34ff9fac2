#!/bin/sh
# Fetches the user data of this instance from AWS Secrets Manager, and has cloud-init read them.
#
# Needs: base64, cat, curl, dirname, gzip, mktemp, sed, sha256sum, systemctl, tail, tr, and the AWS CLI or curl 7.86 or later; a route to Secrets Manager; a role that may
# call secretsmanager:GetSecretValue. What is fetched is never logged.
set -u
umask 077
region='@REGION@'
secret='@SECRET@'
file="${ROOT:-}@FILE@"
# For how long, in seconds, it is tried: IAM may take a while to let the role read.
limit="${MILLWRIGHT_FETCH_LIMIT:-1200}"
imds="${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}"
imds="${imds%/}"

log() { echo "millwright user data: $*" >&2; }

[ ! -s "$file" ] || exit 0
mkdir -p "$(dirname "$file")" || exit 1
work=$(mktemp -d "$file.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

metadata() { curl --silent --show-error --fail --max-time 10 --noproxy '*' --header "X-aws-ec2-metadata-token: $session" "$imds/latest/meta-data/$1"; }

# member prints a string of a JSON object that has no quotes in its strings.
member() { tr ',{}' '\n\n\n' | sed -n "s/^ *\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }

# Keys go to curl by its standard input: other programs can read its arguments.
with_curl() {
  session=$(curl --silent --show-error --fail --max-time 10 --noproxy '*' --request PUT \
    --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$imds/latest/api/token") || return 1
  role=$(metadata iam/security-credentials/ | sed -n 1p) && [ -n "$role" ] || { log "the instance has no role"; return 1; }
  keys=$(metadata "iam/security-credentials/$role") || return 1
  domain=$(metadata services/domain) || return 1
  url="${AWS_ENDPOINT_URL_SECRETS_MANAGER:-https://secretsmanager.$region.$domain}"
  token=$(printf '%s' "$keys" | member Token)
  answer=$(curl --silent --show-error --max-time 60 --config - <<CONFIG
url = "${url%/}/"
aws-sigv4 = "aws:amz:$region:secretsmanager"
user = "$(printf '%s' "$keys" | member AccessKeyId):$(printf '%s' "$keys" | member SecretAccessKey)"
header = "X-Amz-Security-Token: $token"
header = "X-Amz-Target: secretsmanager.GetSecretValue"
header = "Content-Type: application/x-amz-json-1.1"
data = "{\"SecretId\":\"$1\"}"
CONFIG
  ) || return 1
  printf '%s' "$answer" | member SecretBinary >"$work/value"
  [ -s "$work/value" ] || { log "GetSecretValue: $(printf '%s' "$answer" | member __type)"; return 1; }
  cat "$work/value"
}

with_cli() { aws secretsmanager get-secret-value --region "$region" --secret-id "$1" --query SecretBinary --output text; }

part() { if command -v aws >/dev/null 2>&1; then with_cli "$1"; else with_curl "$1"; fi; }

# fetch joins the parts. Each begins with a line of its number, how many there are, and the digest of the whole.
fetch() {
  : >"$work/all"
  number=1 count=1
  while [ "$number" -le "$count" ]; do
    part "$secret/$number" | base64 -d >"$work/part" 2>"$work/problem"
    IFS=' ' read -r is count digest <"$work/part" || { log "part $number cannot be read"; return 1; }
    case "$is $count" in
      "$number "[1-4]) ;;
      *) log "part $number is not what it should be"; return 1 ;;
    esac
    tail -n +2 "$work/part" >>"$work/all"
    number=$((number + 1))
  done
  sum=$(sha256sum <"$work/all") && [ "${sum%% *}" = "$digest" ] || { log "the parts do not belong together"; return 1; }
  gzip -d -c <"$work/all" >"$work/data"
}

pause=1 waited=0
until fetch; do
  [ "$waited" -lt "$limit" ] || { log "giving up after $waited seconds"; exit 1; }
  log "tried again in $pause seconds"
  sleep "$pause"
  waited=$((waited + pause))
  pause=$((pause * 2))
  [ "$pause" -le 30 ] || pause=30
done
mv "$work/data" "$file" || exit 1
rm -rf "$work"
log "fetched; starting cloud-init again"
for unit in cloud-init.service cloud-init-network.service; do
  if systemctl cat "$unit" >/dev/null 2>&1; then
    exec systemctl restart "$unit"
  fi
done
log "there is no cloud-init to be started again"
exit 1
