package main

import (
	"strings"
	"testing"
	"time"
)

func TestQuickRun(t *testing.T) {
	var out strings.Builder
	p := plan{directory: t.TempDir(), records: []int{50}, perCPU: []int{0, 1}, rounds: 1, each: time.Millisecond, steps: 2}
	if err := run(p, &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines < 3*len(scenarios) {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}
