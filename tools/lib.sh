# SPDX-License-Identifier: Apache-2.0
# Shared by the scripts of this folder: sourced, not run.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
script_name="$(basename "$0")"

say() { printf '%s: %s\n' "$script_name" "$*"; }
die() {
  printf '%s: error: %s\n' "$script_name" "$*" >&2
  exit 1
}
# Prints the comment block at the top of the calling script (its help), without the leading "# ".
show_help() { awk 'NR > 2 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }
