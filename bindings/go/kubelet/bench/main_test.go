package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuickRun(t *testing.T) {
	var out strings.Builder
	rows := new([]row)
	p := plan{before: 100_000, rows: rows, directory: t.TempDir(), records: []int{50}, perCPU: []int{0, 1}, rounds: 1, each: time.Millisecond, steps: 2}
	if err := run(p, &out); err != nil {
		t.Fatal(err)
	}
	if want := 4 * 2 * len(scenarios); len(*rows) != want {
		t.Errorf("%d rows, want %d", len(*rows), want)
	}
	for _, r := range *rows {
		if !(r.Ratio.Median > 0) || !(r.Ns.Low <= r.Ns.Median && r.Ns.Median <= r.Ns.High) {
			t.Errorf("not a figure: %+v", r)
		}
	}
	file := filepath.Join(t.TempDir(), "rows.json")
	if err := writeJSON(file, "kubelet", p, *rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	var read struct {
		Machine  map[string]string
		Warnings []string
		Rows     []row
	}
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil || !slices.Equal(read.Rows, *rows) {
		t.Errorf("the file holds other rows (%v): %s", err, text)
	}
	if read.Machine["commit"] == "" || read.Machine["rounds"] != "1" || !strings.Contains(read.Machine["load"], "100000.0 before") || len(read.Warnings) != 1 {
		t.Errorf("the file does not say what it is of: %s", text)
	}
	if lines := strings.Count(out.String(), "\n"); lines < 3*len(scenarios) {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

func TestStreamsQuickly(t *testing.T) {
	var out strings.Builder
	figures, err := plan{directory: t.TempDir(), rounds: 2}.runStreams(8, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if f.Prepare <= 0 || f.Consume <= 0 || f.Used <= 0 {
			t.Errorf("not a figure: %+v", f)
		}
	}
	if len(figures) < 2 || strings.Count(out.String(), "\n") != 2+len(figures) {
		t.Errorf("%d figures:\n%s", len(figures), out.String())
	}
}
