#!/bin/sh
# Store, find and forget from any language: HTTP with JSON over the daemon's socket.
set -eu

socket=${THERMOCLINE_SOCKET:-$XDG_RUNTIME_DIR/thermocline/thermocline.sock}
call() {
    path=$1
    shift
    curl --silent --show-error --fail --unix-socket "$socket" \
        --header 'X-Agent: http-example' "$@" "http://memory/api/$path"
    echo
}

call memory --data '{"text": "The boat is moored at pier 7", "category": "boat"}'
call kv/theme --request PUT --data '{"value": "dark"}'

# The query as a person asks it; `results` are best first, each with its relevance.
call recall --get --data-urlencode 'query=where is the boat?' --data limit=1

call memory/forget --data '{"category": "boat"}'
