#!/bin/sh
# Installs Debian packages (programs to compare with) where that is possible, and says so where it is not. Never fails: what needs
# an absent program says that itself.
missing=""
for package in "$@"; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ]; then as_root=""; elif sudo -n true 2>/dev/null; then as_root="sudo -n"; else as_root="none"; fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "no apt-get here; to be compared with, install by other means:$missing" >&2
elif [ "$as_root" = none ]; then
  echo "to be compared with, install as root: apt-get install$missing" >&2
else
  echo "installing$missing" >&2
  { $as_root apt-get update -qq \
    && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 \
    || echo "could not be installed:$missing" >&2
fi
exit 0
