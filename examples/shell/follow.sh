#!/bin/sh
# Keeps a copy of one dataset of a medfeed service as a file of JSON lines, with curl and jq 1.6 or newer.
#
#     MEDFEED_KEY=mfk_... ./follow.sh https://feed.example.org conferences conferences.jsonl
#
# Each run brings the copy up to date and ends; cron runs it again. The first one loads the export, later ones ask for what
# changed since the saved token. A fourth argument is how many seconds to wait for news, so this hears of them at once:
#
#     while :; do ./follow.sh https://feed.example.org conferences conferences.jsonl 45; sleep 1; done
#
# FILE holds the records in the order of ids, and is replaced whole, by one rename per page. FILE.tokens tells which sync token
# belongs to which content of FILE, by SHA-256; it knows the next content before FILE has it. So a run that is killed loses
# nothing, the next one goes on where it stopped, and a FILE that somebody else has changed is loaded anew. It also names the
# dataset, and FILE is not used for another one. When the license loses the dataset, FILE is emptied. The key is sent to URL
# alone: redirects are refused.
set -eu

# What a service sends must not control the terminal: control characters are shown as %1B.
fail() {
    printf 'error: %s' "$*" | jq -Rrs 'gsub("(?<char>\\p{C})"; .char | @uri)' >&2
    exit 1
}

[ $# -ge 3 ] || { echo "usage: MEDFEED_KEY=... follow.sh URL DATASET FILE [WAIT]" >&2; exit 2; }
url=${1%/} dataset=$2 file=$3 wait=${4:-0}
key=$(printf %s "${MEDFEED_KEY:-}" | tr -d '\r\n\t ')
[ -n "$key" ] || fail "put the API key into the environment variable MEDFEED_KEY"
case $key in *[!A-Za-z0-9_]*) fail "MEDFEED_KEY holds characters that no key has" ;; esac
command -v sha256sum >/dev/null || sha256sum() { shasum -a 256; }
find "$(dirname "$file")" -maxdepth 1 -type d -name "${file##*/}.follow-work.??????" -mtime +0 -exec rm -rf {} + # Of killed runs.
work=$(mktemp -d "$file.follow-work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Asks for a path, with further arguments for curl; leaves $status, and the answer in $work. Lost connections and answers
# 429 and 5xx are asked again, after the time that the service names or after growing pauses. The key stays out of `ps`.
request() {
    path=$1
    shift
    # `--no-location` also holds against a `location` in ~/.curlrc.
    status=$(printf 'X-API-Key: %s\n' "$key" | curl --silent --show-error --get --no-location --header @- "$@" \
        --retry 7 --retry-all-errors --retry-max-time 180 --connect-timeout 10 --speed-limit 1 --speed-time 90 \
        --dump-header "$work/headers" --output "$work/body" --write-out '%{http_code} %{redirect_url}' "$url/v1/$path")
    target=${status#* } status=${status%% *}
}

is_unlicensed() {
    [ "$status" = 403 ] && jq -e '.type | test("/errors/dataset_not_licensed$")' "$work/body" >"$work/type" 2>&1
}

# Like `request`, for answers that are no error. When the service says twice that the license does not have the dataset, its
# records have left like any others: they are removed.
ask() {
    request "$@"
    case $status in 200 | 410) return ;; esac
    [ -z "$target" ] || fail "$url: the service redirects to ${target%%/v1/*}; use that address if you trust it"
    if is_unlicensed && [ -s "$file" ]; then
        request "$@"
        case $status in 200 | 410) return ;; esac
        if is_unlicensed; then
            count=$(($(wc -l <"$file")))
            : >"$work/records"
            mv -f "$work/records" "$file"
            rm -f "$file.tokens"
            fail "$url: $(jq -r .detail "$work/body"); $count records removed from $file"
        fi
    fi
    told=$(jq -r 'select(.detail) | "\(.status) \(.detail) (request \(.request_id))"' "$work/body" 2>"$work/trouble") || told=
    fail "$url: ${told:-the answer $status is not one of a medfeed service; check the URL}"
}

# A header of the last answer; curl keeps those of attempts that failed, too.
header() {
    tr -d '\r' <"$work/headers" | awk -v name="$1:" 'tolower($1) == name { value = $2 } END { print value }'
}

sum_of() {
    sha256sum <"$1" | cut -c -64
}

# Makes $work/records the copy, with this token.
keep() {
    new_sum=$(sum_of "$work/records")
    printf '%s %s\n' dataset "$dataset" "$sum" "$token" "$new_sum" "$1" >"$work/tokens"
    mv -f "$work/tokens" "$file.tokens"
    mv -f "$work/records" "$file"
    sum=$new_sum token=$1
}

load() {
    ask "exports/$dataset"
    gzip -dc "$work/body" >"$work/records" 2>"$work/trouble" || fail "$url: the answer is no export; check the URL"
    count=$(($(wc -l <"$work/records"))) expected=$(header x-record-count)
    [ "$count" = "$expected" ] || fail "$url: the export holds $count records instead of ${expected:-as many as a header tells}"
    digest=$(header x-records-digest | sed 's/^sha-256=://' | tr -d : | base64 -d | od -An -v -tx1 | tr -d ' \n')
    [ -z "$digest" ] || [ "$digest" = "$(sum_of "$work/records")" ] || fail "$url: the export was changed on its way"
    next=$(header x-sync-token)
    [ -n "$next" ] || fail "$url: the export has no sync token; check the URL"
    keep "$next"
    echo "$count records loaded"
}

sum=none token=
if [ -f "$file" ] && [ -f "$file.tokens" ]; then
    other=$(awk -v dataset="$dataset" '$1 == "dataset" && $2 != dataset { print $2 }' "$file.tokens")
    [ -z "$other" ] || fail "$file is a copy of $other, not of $dataset; give another file"
    sum=$(sum_of "$file")
    token=$(awk -v sum="$sum" '$1 == sum { token = $2 } END { print token }' "$file.tokens")
fi
[ -n "$token" ] || load
more=true
while [ "$more" = true ]; do
    ask "$dataset/changes" --data-urlencode "since=$token" --data limit=1000 --data resync=diff --data "wait=$wait"
    if [ "$status" = 410 ]; then # After a restore of the service, say. A change of the license is no reason, thanks to `resync`.
        load
        break
    fi
    next=$(jq -r '.next_sync_token // empty' "$work/body" 2>"$work/trouble") || next=
    [ -n "$next" ] || fail "$url: the answer is no page of a feed; check the URL"
    more=$(jq .has_more "$work/body")
    [ "$next" != "$token" ] || break
    # Of what has the same id, the last counts.
    jq -cn --slurpfile page "$work/body" \
        'INDEX(inputs, $page[0].data[]; .id) | [.[]] | sort_by(.id)[] | select(.deleted != true)' "$file" >"$work/records"
    keep "$next"
    echo "$(jq '.data | length' "$work/body") changes applied"
done
