# shellcheck shell=bash
# A stage: a named, timed part of a longer run.
#
# A run is a row of stages. The first that fails ends it, and whatever happens, the run closes with
# a table of the stages and their times; a failed one stands in it by name.
#
#   stages_begin 'scripts/test'
#   stage 'lavapipe 22' run_suite lavapipe-22

# Says one line, on stderr so that a program's own output stays clean.
say() { printf '%s: %s\n' "${stage_program:-${0##*/}}" "$*" >&2; }

# Ends the run with one sentence that says what to do.
die() { say "$*"; exit 1; }

stage_program=${stage_program:-}
stage_current=
stage_started=0
stage_rows=()

# Milliseconds since the epoch; bash writes the decimal point in the locale's way.
stage_clock() { local now=${EPOCHREALTIME/[.,]/}; printf '%s' $((now / 1000)); }

# stages_begin PROGRAM: from here on the table is printed at the end, however it comes.
stages_begin() {
    stage_program=$1
    stage_scratch=$(mktemp -d)
    trap 'stages_end $?' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# stage NAME COMMAND…: never call it in a condition, there bash lets failures inside pass.
stage() {
    stage_current=$1
    shift
    stage_started=$(stage_clock)
    printf '\n== %s: %s\n' "$stage_program" "$stage_current" >&2
    "$@"
    stage_record ok
    stage_current=
}

# stage_skip NAME WHY: a stage that does not apply here is named, never left out in silence.
stage_skip() {
    printf '\n== %s: %s is skipped: %s\n' "$stage_program" "$1" "$2" >&2
    stage_rows+=("$(printf '%-36s %9s  skipped: %s' "$1" - "$2")")
}

stage_record() {
    local took=$(($(stage_clock) - stage_started))
    stage_rows+=("$(printf '%-36s %7d.%d  %s' "$stage_current" $((took / 1000)) $((took % 1000 / 100)) "$1")")
}

stages_end() {
    local status=$1
    trap - EXIT INT TERM HUP
    rm -rf "$stage_scratch"
    if [[ -n $stage_current ]]; then
        stage_record "FAILED ($status)"
    fi
    {
        printf '\n%-36s %9s  %s\n' stage seconds result
        printf '%s\n' "${stage_rows[@]}"
        printf '%-36s %7d\n' 'all' "$SECONDS"
    } >&2
    if ((status != 0)); then
        say "failed in stage \"${stage_current:-start}\" with exit code $status"
        # A full disk is told in the last line of a long error, where it is told.
        say "free here: $(df -h --output=avail . | tail -n 1 | tr -d ' ')"
    fi
    exit "$status"
}
