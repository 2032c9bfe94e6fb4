#!/usr/bin/env bash
# The rules of the house that a compiler cannot see, as a test: sizes, lists of files, and words
# that have a better replacement. Prints every breach with its place; exit 1 if there is any.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
export LC_ALL=C.UTF-8  # columns are characters, not bytes

breaches=0
breach() { # what to do instead; the places come on standard input, one a line
    local place
    while IFS= read -r place; do
        echo "$place: $1"
        breaches=$((breaches + 1))
    done
}

mapfile -t code < <(git ls-files '*.cpp' '*.hpp')
mapfile -t product < <(git ls-files '*.cpp' '*.hpp' | grep -v '^tests/')
mapfile -t headers < <(git ls-files '*.hpp')
mapfile -t text < <(git ls-files '*.cpp' '*.hpp' '*.sql' '*.sh' '*.mjs' '*.cmake' '*.yaml' '*CMakeLists.txt' dev | grep -v /bad/)

# --- sizes --------------------------------------------------------------------------------------
breach "a file is one noun: at most 400 lines" < <(
    wc -l "${product[@]}" | awk '$2 != "total" && $1 > 400 { print $2 " (" $1 ")" }')
# Not in tests: a document in a raw string cannot be broken.
breach "at most 100 columns" < <(grep -nE '^.{101,}$' "${product[@]}" | cut -d: -f1,2)
breach "no tabs" < <(grep -nP '\t' "${text[@]}" | cut -d: -f1,2)
breach "no white space at the end of a line" < <(grep -nE '[[:blank:]]+$' "${text[@]}" | cut -d: -f1,2)

# A function starts with a line that ends in "{" behind its parameters, at column 0 or, in a class,
# at 4; it ends with "}" at the same column.
breach "a function fits a screen: at most 70 lines" < <(
    awk 'FNR == 1 { start[0] = start[4] = 0 }
         { indent = match($0, /[^ ]/) - 1 }
         (indent == 0 || indent == 4) && /\).*\{$/ && !/^ *(namespace|struct|class|enum)/ { start[indent] = FNR }
         (indent == 0 || indent == 4) && /^ *\}/ && start[indent] {
             if (FNR - start[indent] > 70)
                 print FILENAME ":" start[indent] " (" FNR - start[indent] ")"
             start[indent] = 0
         }' "${product[@]}")

# --- lists --------------------------------------------------------------------------------------
listed() { # does CMake at or above the file's folder name it?
    local dir=${1%/*} name
    git ls-files '*CMakeLists.txt' '*.cmake' | xargs grep -qF "/${dir##*/}/${1##*/}" && return
    while :; do
        name=${1#"$dir"/}
        grep -qE "(^|[ (/\"])${name//./\\.}([ )\"]|$)" "$dir/CMakeLists.txt" "$dir"/*.cmake 2>/dev/null && return
        [[ $dir == */* ]] || return 1
        dir=${dir%/*}
    done
}
breach "list it in CMakeLists.txt" < <(
    for file in $(git ls-files '*.cpp'); do listed "$file" || echo "$file"; done)
breach "list it in sql/CMakeLists.txt" < <(
    for file in $(git ls-files 'sql/*.sql'); do
        name=$(basename "$file" .sql)
        grep -qE "^ *$name\$" sql/CMakeLists.txt || echo "$file"
    done)
breach "#pragma once comes first" < <(grep -L '^#pragma once' "${headers[@]}")

# --- words --------------------------------------------------------------------------------------
# banned PATTERN WHAT-TO-DO FILE…: comments do not count.
banned() {
    local pattern=$1 advice=$2
    shift 2
    [ $# = 0 ] && return
    breach "$advice" < <(
        awk -v pattern="$pattern" '{ line = $0; sub(/\/\/.*/, "", line)
            if (line ~ pattern) print FILENAME ":" FNR }' "$@")
}
without() { printf '%s\n' "${product[@]}" | grep -vE "$1"; }

banned '[^a-z_]detached[^a-z_]' 'spawn in a TaskGroup, nothing is detached' "${code[@]}"
banned 'std::(cout|cerr)' 'only daemon/ prints; elsewhere return the fact or log it' $(without '^daemon/')
banned 'sleep_for|sleep_until|usleep' 'wait on a timer, or for the thing itself' $(without '^outbox/(pg/|failpoint)')
banned 'shared_from_this' 'ownership is a tree rooted in App' "${product[@]}"
banned '^ *#(ifdef|ifndef|if) ' 'only a compat header may choose by version' $(without '(compat|catch)\.hpp$')
banned 'using namespace [a-z:]*[a-z]+;' 'no using namespace in a header' \
    $(grep -LE 'using namespace std::(chrono_)?literals|chrono_literals' "${headers[@]}")
banned 'TODO|FIXME' 'an issue keeps it; the code does not' "${code[@]}"

# --- layers: who may include whom ---------------------------------------------------------------
banned '#include [<"]pqxx' 'only outbox/pg sees libpqxx' $(without '^(outbox/(pg/|failpoint)|docs/clients/cpp/)')
banned '#include [<"]boost/beast' 'only tools/ and daemon/ see Beast' $(without '^(tools|daemon)/')
banned '#include [<"]yaml-cpp' 'only config/ sees YAML' $(without '^config/')
banned '#include "daemon/' 'nothing includes daemon/' $(without '^daemon/')
banned '#include "(config|tools|daemon)/' 'outbox/ stands below the other layers' \
    $(printf '%s\n' "${product[@]}" | grep '^outbox/')
banned '#include "(outbox|tools|daemon)/' 'config/ knows YAML and nothing else of ours' \
    $(printf '%s\n' "${product[@]}" | grep '^config/')
banned '#include "outbox/pg/' 'the core and the tools do not know the store' $(without '^(outbox/pg|daemon)/')

if [ $breaches = 0 ]; then
    echo "tidy: ${#code[@]} files keep the rules"
else
    echo "tidy: $breaches breaches"
    exit 1
fi
