#!/bin/sh
# Checks a configuration and its policy. TOOLWAY is how to run Toolway, if not with npx.
set -eu
toolway=${TOOLWAY:-npx toolway}

# Exit code 2, with file and line, if the configuration is invalid.
$toolway validate

# 0 if the agent may use the tool, 4 if not.
why=$($toolway why ci files.read_text_file) || { echo "$why"; exit 1; }
code=0
why=$($toolway why ci files.write_file) || code=$?
test "$code" = 4 || { echo "$why"; exit 1; }
echo "✓ ci may read files, and may not write them"

# 1 if the tool fails, 3 if its server is unavailable, 4 if the call is denied.
$toolway call files.read_text_file path="$PWD/notes/release.txt" --agent ci
