# shellcheck shell=bash
# The package manager of Debian and Ubuntu, asked only when something is missing.
#
# Two ways in. `apt_want` and `apt_install` put packages on the machine and need root or sudo. `apt_unpack` takes
# a package of another release apart in a folder of ours: it reads the machine's own sources for the
# mirror, keeps lists and cache to itself, installs nothing and needs no rights.

apt_updated=no
apt_wanted=()
apt_wanted_packages=()

# Whether a package is installed, without asking apt.
apt_has() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# apt_want WHAT PACKAGE…: WHAT is missing. Wants are collected, so that one call installs them all,
# and so that whoever must install by hand is told all of them at once.
apt_want() {
    local package
    apt_wanted+=("$1")
    shift
    for package; do
        apt_has "$package" 2>/dev/null || apt_wanted_packages+=("$package")
    done
}

# Installs what is wanted; without a want it does nothing at all.
apt_install() {
    local what packages elevate=()
    what=$(printf '%s, ' "${apt_wanted[@]}")
    what=${what%, }
    packages=("${apt_wanted_packages[@]}")
    apt_wanted=()
    apt_wanted_packages=()
    ((${#packages[@]})) || return 0

    command -v apt-get >/dev/null ||
        die "there is no apt on this machine: install by hand $what (Debian's packages: ${packages[*]}), then run this again"
    if ((EUID != 0)); then
        # Without a terminal sudo could only hang or fail on its question for the password.
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            elevate=(sudo)
        else
            die "installing $what needs root; let root run: apt-get update && apt-get install -y --no-install-recommends ${packages[*]}"
        fi
    fi
    say "installing $what (${packages[*]})"
    if [[ $apt_updated == no ]]; then
        # A dead third-party source must not stop us: whether the package is found decides.
        apt_quiet "${elevate[@]}" apt-get -q update || say 'apt-get update had errors, going on'
        apt_updated=yes
    fi
    apt_quiet "${elevate[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends -o Dpkg::Use-Pty=0 "${packages[@]}" ||
        die "apt-get could not install ${packages[*]}; its message stands above"
}

# Runs a command and shows what it said only if it failed.
apt_quiet() {
    local log status=0
    log=$(mktemp)
    "$@" </dev/null >"$log" 2>&1 || status=$?
    ((status == 0)) || cat "$log" >&2
    rm -f "$log"
    return "$status"
}

# The release's code name, such as bookworm; empty where os-release does not say.
apt_release() { (. /etc/os-release 2>/dev/null && printf '%s' "${VERSION_CODENAME:-}"); }

# Every `deb` line the machine's own sources amount to, as "[options] URI suite", in either of apt's
# two formats. Components are left out: what we want lies in main.
apt_machine_sources() {
    local file
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [[ -r $file ]] || continue
        sed -nE 's/^[[:space:]]*deb[[:space:]]+(\[[^]]*\])?[[:space:]]*([^[:space:]]+)[[:space:]]+([^[:space:]]+).*/[\1] \2 \3/
            t show
            d
            :show
            s/^\[\[/[/; s/\]\]/]/; p' "$file"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [[ -r $file ]] || continue
        awk '
            function flush(   u, s, i, j, option) {
                if (types ~ /(^| )deb( |$)/ && enabled != "no") {
                    option = ""
                    if (signed ~ /^\//) { gsub(/ +/, ",", signed); option = option " signed-by=" signed }
                    if (trusted != "") option = option " trusted=" trusted
                    sub(/^ /, "", option)
                    split(uris, u, " "); split(suites, s, " ")
                    for (i = 1; i in u; i++) for (j = 1; j in s; j++) print "[" option "] " u[i] " " s[j]
                }
                types = uris = suites = signed = trusted = enabled = field = ""
            }
            /^#/ { next }
            /^[[:space:]]*$/ { flush(); next }
            {
                value = $0
                if (value ~ /^[^[:space:]]/) { field = tolower(value); sub(/:.*/, "", field); sub(/^[^:]*:/, "", value) }
                gsub(/[[:space:]]+/, " ", value); sub(/^ /, "", value); sub(/ $/, "", value)
                if (field == "types") types = types " " value
                else if (field == "uris") uris = uris " " value
                else if (field == "suites") suites = suites " " value
                else if (field == "signed-by") signed = (signed == "" ? value : signed " " value)
                else if (field == "trusted") trusted = value
                else if (field == "enabled") enabled = tolower(value)
            }
            END { flush() }' "$file"
    done
}

# The sources we read from: the machine's mirror of this release and its security updates, and its
# backports, which lie on the same mirror unless the machine says otherwise. A key given inline in a .sources file cannot be
# named in this format and is looked for in apt's own key rings.
apt_private_sources() {
    local release=$1 options uri suite line mirror='' backports='' security=''
    while read -r line; do
        options=${line%%\] *}
        options=${options#\[}
        read -r uri suite <<<"${line#*\] }"
        line="deb ${options:+[$options] }$uri"
        case $suite in
            "$release") mirror=${mirror:-$line} ;;
            "$release-backports") backports=${backports:-$line} ;;
            "$release-security") security=${security:-$line} ;;
        esac
    done < <(apt_machine_sources)
    mirror=${mirror:-deb http://deb.debian.org/debian}
    printf '%s %s main\n' "$mirror" "$release" "${backports:-$mirror}" "$release-backports"
    [[ -z $security ]] || printf '%s %s main\n' "$security" "$release-security"
}

# apt_private FOLDER COMMAND…: runs an apt tool on sources, lists and cache of its own.
apt_private() {
    local folder=$1 tool=$2
    shift 2
    "$tool" -qq \
        -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
        -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
        -o APT::Sandbox::User=root "$@"
}

apt_private_ready=no

# apt_unpack CACHE INTO PACKAGE[/SUITE]…: downloads packages and unpacks them into the folder INTO.
apt_unpack() {
    local folder=$1/apt into=$2 debs deb
    shift 2
    if [[ $apt_private_ready == no ]]; then
        mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial"
        apt_private_sources "$(apt_release)" >"$folder/sources.list"
        apt_quiet apt_private "$folder" apt-get update || say "apt-get update had errors, going on"
        apt_private_ready=yes
    fi
    debs=$(mktemp -d "$folder/debs.XXXXXX")
    (cd "$debs" && apt_private "$folder" apt-get download "$@" >&2) ||
        die "could not download $* from the mirror of this machine's apt sources; its message stands above"
    mkdir -p "$into"
    for deb in "$debs"/*.deb; do
        dpkg-deb --extract "$deb" "$into"
        dpkg-deb --field "$deb" Package Version >>"$into/packages"
    done
    rm -rf "$debs"
}
