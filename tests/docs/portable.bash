# page: packaging/portable/README.md
# shellcheck shell=bash
