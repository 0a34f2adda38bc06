package main

import (
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// program runs this program.
func program(t *testing.T, arguments ...string) ([]byte, error) {
	t.Helper()
	// Without the race detector: it reads the sources of all packages of a kubelet.
	return exec.Command("go", append([]string{"run", "."}, arguments...)...).CombinedOutput()
}

// Of each release that the program knows: what it changes, and what the documentation shows, compiles.
func TestChangedSourcesCompile(t *testing.T) {
	// 1.38 needs a newer Go than this module, and modules that are not published yet: ../../NEXT_RELEASE.md.
	releases := []string{"v1.37.0", "v1.36.3", "v1.35.4"}
	if len(releases)+1 != len(tagsOf) {
		t.Errorf("%d releases are checked, and %d are known", len(releases), len(tagsOf))
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			if out, err := program(t, "-check", release); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	out := filepath.Join(t.TempDir(), "kubelet")
	type refusal struct {
		arguments []string
		want      string
	}
	refusals := map[string]refusal{
		"no arguments":       {nil, "build VERSION OUT"},
		"an unknown release": {[]string{"v1.30.1", out}, "v1.30.1 is not known; known: 1.35, 1.36, 1.37, 1.38"},
		"not a release":      {[]string{"latest", out}, "vlatest is not known"},
		"nowhere":            {[]string{"v1.37.0", filepath.Join(out, "kubelet")}, "which is no directory"},
		"a folder":           {[]string{"v1.37.0", filepath.Dir(out)}, "is not a file"},
	}
	if version.Compare(runtime.Version(), "go1.27") < 0 {
		refusals["an old Go"] = refusal{[]string{"-check", "v1.38.0-beta.0"}, "v1.38.0-beta.0 needs Go 1.27.0, and this program was built with " + runtime.Version()}
	}
	for name, test := range refusals {
		if got, err := program(t, test.arguments...); err == nil || !strings.Contains(string(got), test.want) {
			t.Errorf("%s: %v, %s; want %q", name, err, got, test.want)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
