#!/bin/sh
# Makes sure that there is a Chromium for the browser tests: installs Debian's where that is possible, else says why not.
# Always succeeds: without a browser those tests are skipped, with this reason.

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if ! command -v apt-get >/dev/null 2>&1; then
    echo "browser tests will be skipped: no Chromium, and no apt-get to install it with"
elif [ "$(id -u)" -ne 0 ]; then
    echo "browser tests will be skipped: no Chromium, and only root can install it (apt-get install chromium)"
elif ! { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1; then
    echo "browser tests will be skipped: apt-get could not install chromium"
fi
exit 0
