# shellcheck shell=bash
# What packages say of themselves, for build and rpm/build. $here: this folder.

# Who answers for them is whoever builds: nobody is named by default.
maintainer() {
  local name=${DEBFULLNAME:-$(git -C "$here" config user.name || true)}
  local email=${DEBEMAIL:-$(git -C "$here" config user.email || true)}
  if [ -z "$name" ] || [ -z "$email" ]; then
    echo "error: packages name a maintainer: set DEBFULLNAME and DEBEMAIL, or git config user.name and user.email" >&2
    return 1
  fi
  echo "$name <$email>"
}

# changes VERSION MARK INDENT: what CHANGELOG.md says of it, point by point, in lines of 80 bytes.
changes() {
  local points point
  points=$(awk -v version="## $1" '$0 == version { on = 1; next } /^## / { on = 0 } on && NF' "$here/../CHANGELOG.md" |
    sed 's/`//g; s/^\* //')
  [ -n "$points" ] || { echo "error: CHANGELOG.md says nothing of $1" >&2; return 1; }
  while read -r point; do
    fold -s -w 74 <<<"$point" | sed "1s/^/$2/; 2,\$s/^/$3/; s/ *\$//"
  done <<<"$points"
}
