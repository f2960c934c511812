#!/bin/bash
# Every relative link in the Markdown files must lead to a file that is there.
set -euo pipefail
cd "$(dirname "$0")/.."
broken=0
while IFS= read -r page; do
    while IFS= read -r link; do
        path=$(dirname "$page")/${link%%#*}
        [[ -e $path ]] || { echo "$page: $link leads nowhere"; broken=1; }
    done < <(grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v -E '^(https?:|#)')
done < <(find . -name '*.md' -not -path './build*' -not -path './runs/*')
exit $broken
