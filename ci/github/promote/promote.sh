#!/usr/bin/env bash
# Runs `ucp promote`, configured by the variables UCP_PROMOTE_*, and sets the step's outputs.
set -euo pipefail

if ! command -v ucp >/dev/null; then
  case "${UCP_INSTALL:-}" in
    *'#sha256='*) ;;
    '') echo "::error::ucp is not on PATH, and the input 'install' is empty"; exit 2 ;;
    *) echo "::error::the input 'install' must be a URL that ends with #sha256=…"; exit 2 ;;
  esac
  python3 -m venv "$RUNNER_TEMP/ucp"
  "$RUNNER_TEMP/ucp/bin/pip" install --quiet --disable-pip-version-check \
    "k8s-ucp[forges] @ $UCP_INSTALL"
  PATH="$RUNNER_TEMP/ucp/bin:$PATH"
fi

code=0
result=$(ucp promote --output json) || code=$?
if [ -n "$result" ]; then
  # Each value on one line, so that none can set another output.
  python3 -c '
import json, sys
result = json.loads(sys.argv[1])
for name in ("status", "commit", "pr"):
    print(f"{name}={result.get(name) or str()}")
print(f"result={json.dumps(result)}")
' "$result" >> "$GITHUB_OUTPUT"
fi
exit "$code"
