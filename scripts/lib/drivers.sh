# shellcheck shell=bash
# shellcheck disable=SC2154  # root, the repository, is set by the script that reads this
# Vulkan drivers: which are installed, which can be unpacked beside them, and how a run sees just one.
#
# A driver is a library and a small JSON file that names it (its ICD). The loader takes the ICD files
# of its search path, or exactly those named in VK_DRIVER_FILES; one name is one driver, however many
# are installed. A driver unpacked into `.cache/drivers/NAME` has its ICD there as `icd.json`, with a
# path relative to itself, and in `libs` what it needs and the machine lacks, mostly nothing.

# Where unpacked drivers lie; NFENCE_CACHE moves it.
drivers_cache() { printf '%s' "${NFENCE_CACHE:-$root/.cache}"; }

# Whether the Vulkan loader is there. /sbin is not on the PATH of every user.
drivers_loader() { [[ $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null) == *libvulkan.so.1* ]]; }

# Whether any driver is installed or chosen, for whatever GPU; if not, nothing can answer.
drivers_any() {
    local folders folder file
    [[ -z ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}${VK_ADD_DRIVER_FILES:-} ]] || return 0
    IFS=: read -ra folders <<<"${XDG_CONFIG_HOME:-${HOME:-}/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:\
${XDG_DATA_HOME:-${HOME:-}/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}"
    for folder in "${folders[@]}"; do
        for file in "$folder"/vulkan/icd.d/*.json; do
            [[ ! -r $file ]] || return 0
        done
    done
    return 1
}

# The ICD file of the installed lavapipe; fails where there is none.
drivers_system_lavapipe() {
    local folder name
    for folder in /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d /etc/vulkan/icd.d; do
        for name in "lvp_icd.$(uname -m).json" lvp_icd.json; do
            if [[ -r $folder/$name ]]; then
                printf '%s' "$folder/$name"
                return 0
            fi
        done
    done
    return 1
}

# The major version of the installed lavapipe, such as 22.
drivers_system_major() {
    local version
    version=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null) || return 1
    version=${version#*:}
    printf '%s' "${version%%.*}"
}

# drivers_unpack NAME PACKAGE[/SUITE] LIBRARY: unpacks a driver once; later calls find it there.
# Everything happens in a folder beside it, so a run that was cut short leaves no half driver.
drivers_unpack() {
    local name=$1 package=$2 library=$3 cache work found icd
    cache=$(drivers_cache)
    [[ ! -e $cache/drivers/$name/icd.json ]] || return 0
    say "unpacking $name from the package ${package%%/*} into ${cache#"$root"/}/drivers (nothing is installed)"
    mkdir -p "$cache/drivers"
    find "$cache/drivers" -maxdepth 1 -name "$name.??????" -mmin +60 -exec rm -rf {} +
    work=$(mktemp -d "$cache/drivers/$name.XXXXXX")
    apt_unpack "$cache" "$work/package" "$package"
    found=$(find "$work/package" -name "$library" -print -quit)
    [[ -n $found ]] || die "the package ${package%%/*} has no $library any more; $name cannot be unpacked from it"
    icd=$(grep -rl --include='*.json' "\"[^\"]*$library\"" "$work/package" | head -n 1) ||
        die "the package ${package%%/*} has no ICD file for $library any more; $name cannot be unpacked from it"
    sed "s#\"[^\"]*$library\"#\"./$library\"#" "$icd" >"$work/icd.new"
    mv "$found" "$work/package/packages" "$work/"
    rm -rf "$work/package"
    drivers_complete "$cache" "$work" "$library" "$package"
    mv "$work/icd.new" "$work/icd.json"
    chmod 755 "$work"
    rm -rf "${cache:?}/drivers/$name"
    mv "$work" "$cache/drivers/$name"
    say "$name is $(tr '\n' ' ' <"$cache/drivers/$name/packages" | sed 's/Package: //g; s/Version: //g; s/ $//')"
}

# What the dynamic linker misses for a library: names of libraries, or a symbol version too new.
drivers_missing() {
    LD_LIBRARY_PATH=$1/libs ldd "$1/$2" 2>&1 |
        sed -nE 's/^[[:space:]]*([^ ]+) => not found.*/\1/p; /version .* not found/p' | sort -u
}

# Another release's driver may want libraries that this machine has not. The packages that apt would
# install with it are unpacked too, and of them only the missing libraries are taken: everything
# that the machine has stays the machine's.
drivers_complete() {
    local cache=$1 work=$2 library=$3 package=$4 missing name found with=()
    missing=$(drivers_missing "$work" "$library")
    [[ -n $missing ]] || return 0
    mapfile -t with < <(apt_private "$cache/apt" apt-get -s -o Debug::NoLocking=true \
        install --no-install-recommends "$package" | sed -nE 's/^Inst ([^ ]+) (\[[^]]*\] )?\(([^ ]+) .*/\1=\3/p')
    ((${#with[@]})) && apt_unpack "$cache" "$work/with" "${with[@]}"
    mkdir -p "$work/libs"
    while [[ -n $missing ]]; do
        for name in $missing; do
            found=$(find "$work/with" -name "$name" -print -quit 2>/dev/null)
            [[ -n $found && ! -e $work/libs/$name ]] ||
                die "$library of ${package%%/*} does not load here and its packages do not help: $missing"
            cp -L "$found" "$work/libs/$name"
        done
        missing=$(drivers_missing "$work" "$library")
    done
    rm -rf "$work/with"
}

# drivers_icd NAME: the ICD file of `system`, or of a driver that was unpacked.
drivers_icd() {
    case $1 in
        system) drivers_system_lavapipe ;;
        *) printf '%s/drivers/%s/icd.json' "$(drivers_cache)" "$1" ;;
    esac
}

# drivers_use NAME: from here on, in this shell, Vulkan is this one driver and nothing else.
drivers_use() {
    local icd libs
    icd=$(drivers_icd "$1") || die 'the installed lavapipe has no ICD file (lvp_icd*.json) in the usual folders'
    [[ -r $icd ]] || die "the Vulkan driver $1 is not there: no ${icd#"$root"/}"
    # The loader of Debian 12 knows the newer name too, still older ones only the second.
    export VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd
    unset VK_ADD_DRIVER_FILES VK_LOADER_DRIVERS_SELECT VK_LOADER_DRIVERS_DISABLE VK_INSTANCE_LAYERS
    libs=${icd%/*}/libs
    [[ ! -d $libs ]] || export LD_LIBRARY_PATH=$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

drivers_lavapipe_25() { drivers_unpack lavapipe-25 mesa-vulkan-drivers/bookworm-backports libvulkan_lvp.so; }
drivers_lavapipe_22() { drivers_unpack lavapipe-22 mesa-vulkan-drivers/bookworm libvulkan_lvp.so; }
# The newest chromium is taken: Debian removes an older one with each security update.
drivers_swiftshader() { drivers_unpack swiftshader chromium-common libvk_swiftshader.so; }

# drivers_title NAME: how the tables call it, with its version.
drivers_title() {
    local version
    case $1 in
        system) version=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null) || version='of the system' ;;
        *) version=$(sed -n 's/^Version: //p' "$(drivers_cache)/drivers/$1/packages") ;;
    esac
    version=${version#*:}
    case $1 in
        swiftshader) printf 'SwiftShader %s' "${version%%-*}" ;;
        *) printf 'lavapipe %s' "${version%%-*}" ;;
    esac
}

# Whether the Khronos validation layers are installed.
drivers_validation() {
    local folder
    for folder in /usr/share /usr/local/share /etc; do
        [[ ! -r $folder/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]] || return 0
    done
    return 1
}
