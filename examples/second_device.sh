#!/bin/sh
# Two devices that share a memory through a replica in a file, and the restore of one that is lost.
# Both run on this machine, each with a folder and a socket of its own.
set -eu

folder=$(mktemp -d)
replica=file:$folder/replica.db
trap 'kill $daemons 2>/dev/null || :; wait; rm -rf "$folder"' EXIT
daemons=

device() { # NAME: its daemon, until this script ends
    thermocline --socket "$folder/$1.sock" daemon --state-dir "$folder/$1" \
        --set "sync.url=$replica" --set sync.seal=off 2>"$folder/$1.log" &
    daemons="$daemons $!"
    until thermocline --socket "$folder/$1.sock" status >/dev/null 2>&1; do sleep 0.1; done
}
on() { # NAME VERB WORDS: a command on that device
    socket=$folder/$1.sock
    shift
    thermocline --socket "$socket" "$@"
}

device laptop
laptop=$!
device phone
on laptop store "The boat is moored at pier 7"
on laptop sync --now
on phone sync --now
on phone retrieve "where is the boat?"

kill -9 "$laptop" && wait "$laptop" || :
rm -rf "$folder/laptop"
# The laptop is lost with its disk. A new one joins with the replica alone, before its daemon has run.
thermocline restore --url "$replica" --to "$folder/new" --agent-id default
device new
on new retrieve "where is the boat?"
