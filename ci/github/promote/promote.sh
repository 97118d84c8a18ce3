#!/usr/bin/env bash
# Run `ucp promote` as the variables UCP_PROMOTE_* say, and hand its result on as step outputs.
set -euo pipefail

if ! command -v ucp >/dev/null; then
  case "${UCP_INSTALL:-}" in
    *'#sha256='*) ;;
    '') echo "::error::ucp is not on PATH, and the input 'install' is empty"; exit 2 ;;
    *) echo "::error::the input 'install' has to be a URL that ends with #sha256=…"; exit 2 ;;
  esac
  python3 -m venv "$RUNNER_TEMP/ucp"
  "$RUNNER_TEMP/ucp/bin/pip" install --quiet --disable-pip-version-check \
    "k8s-ucp[forges] @ $UCP_INSTALL"
  PATH="$RUNNER_TEMP/ucp/bin:$PATH"
fi

code=0
result=$(ucp promote --output json) || code=$?
if [ -n "$result" ]; then
  # On one line, so that no value can pose as another output.
  python3 -c '
import json, sys
result = json.loads(sys.argv[1])
for name in ("status", "commit", "pr"):
    print(f"{name}={result.get(name) or str()}")
print(f"result={json.dumps(result)}")
' "$result" >> "$GITHUB_OUTPUT"
fi
exit "$code"
