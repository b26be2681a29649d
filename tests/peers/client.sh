#!/usr/bin/env bash
# The client of client.mjs, with curl and openssl: METHOD URL, the body on standard input, credentials in the environment.
set -euo pipefail

method=$1 url=$2
body=$(mktemp)
trap 'rm -f "$body"' EXIT
cat >"$body"

hmac() { openssl dgst -sha256 -mac HMAC -macopt "key:$API_SECRET" "$@"; }
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

case $AUTH in
signature)
  stamp=$(date +%s%3N)
  sign=$({ printf %s "$API_KEY"; cat "$body"; printf %s "$stamp"; } | hmac -r | cut -d ' ' -f 1)
  headers=(-H "x-svc-apikey: $API_KEY" -H "x-svc-timestamp: $stamp" -H "x-svc-sign: $sign")
  ;;
jwt)
  exp=$(($(date +%s) + 60))
  claims=$(printf '{"alg":"HS256"}' | base64url).$(printf '{"iss":"%s","exp":%d}' "$API_KEY" "$exp" | base64url)
  headers=(-H "Authorization: jwt $claims.$(printf %s "$claims" | hmac -binary | base64url)")
  ;;
bearer) headers=(-H "Authorization: Bearer $TOKEN") ;;
token) headers=(-H "Authorization: $TOKEN") ;;
esac

data=()
[[ -s $body ]] && data=(--data-binary "@$body")
curl -sS --no-buffer -X "$method" "$url" -H "Content-Type: application/json" "${headers[@]}" "${data[@]}" \
  -o "$body.answer" -w '%{http_code} %{content_type}\n\n'
cat "$body.answer"
rm -f "$body.answer"
