#!/bin/sh
# Starts a replica: sh replica.sh NAME PORT. TOOLWAY is how to run Toolway, if not with npx.
set -eu
export TOOLWAY_NAME="$1" TOOLWAY_PORT="$2"
exec ${TOOLWAY:-npx toolway} serve --config toolway.yaml
