#!/usr/bin/env bash
# Runs `ucp promote`, configured by the variables UCP_PROMOTE_*, and sets the step's outputs.
set -euo pipefail

if ! command -v ucp >/dev/null; then
  case "${UCP_INSTALL:-}" in
    *'#sha256='*) ;;
    '') echo "::error::ucp is not on PATH, and the input 'install' is empty"; exit 2 ;;
    *) echo "::error::the input 'install' must be a URL that ends with #sha256=…"; exit 2 ;;
  esac
  place=$(mktemp -d "$RUNNER_TEMP/ucp.XXXXXX")
  # -I: the job's folder may have modules of the same names, from a pull request.
  python3 -I -m venv "$place/ucp"
  pip() { "$place/ucp/bin/pip" --quiet --disable-pip-version-check "$@"; }
  pip download --no-deps --dest "$place/wheel" "k8s-ucp @ $UCP_INSTALL"
  python3 -I -m zipfile --extract "$place"/wheel/*.whl "$place/wheel"
  # Verify the dependencies by hash, too. Earlier versions don't contain the list.
  if test -f "$place/wheel/k8s_ucp/requirements.txt"; then
    pip install --require-hashes -r "$place/wheel/k8s_ucp/requirements.txt"
    pip install --no-deps --no-index "$place"/wheel/*.whl
  else
    pip install "k8s-ucp[forges] @ $UCP_INSTALL"
  fi
  PATH="$place/ucp/bin:$PATH"
fi

code=0
result=$(ucp promote --output json) || code=$?
if [ -n "$result" ]; then
  # Each value on one line, so that none can set another output.
  python3 -I -c '
import json, sys
result = json.loads(sys.argv[1])
for name in ("status", "commit", "pr"):
    words = str(result.get(name) or "").split()
    print(f"{name}=" + " ".join(words))
print(f"result={json.dumps(result)}")
' "$result" >> "$GITHUB_OUTPUT"
fi
exit "$code"
