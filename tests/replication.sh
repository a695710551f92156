#!/bin/sh
# What replication promises, shown at length: half an hour on two cores. Each test prints its seed and what it counted.
#
#   tests/replication.sh                       # MEDFEED_SEED=7 tests/replication.sh for other seeds
#   tests/replication.sh replica_kills         # one of them
set -eu
cd "$(dirname "$0")/.."
only="${1:-}"

long() {
    case "$2" in *"$only"*) ;; *) return 0 ;; esac
    echo "== $2: MEDFEED_CASES=$1"
    MEDFEED_CASES="$1" cargo test --quiet --test medfeed -- --nocapture "process::$2"
}

# Kills at every step, in a folder and over the network.
long 2000 replica_kills
long 60 promotion
# In each of two stores.
long 100 publishing_doubles
long 20 replica_faults
long 100 revocation
long 10000 replica_walks
long 50 replica_instants

[ -n "$only" ] || cargo bench --bench replicas
