package kubelet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// guardDriver finds the program that runs a guard: WAYBILL_GUARD_DRIVER, or that of the release build.
func guardDriver(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("WAYBILL_GUARD_DRIVER")
	if path == "" {
		path = filepath.Join("..", "..", "..", "build", "release", "tests", "waybill_guard_driver")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err == nil {
		return path
	}
	if os.Getenv("WAYBILL_GO_REQUIRED") != "" {
		tb.Fatalf("the guard's driver is missing: %v; build waybill_guard_driver, or set WAYBILL_GUARD_DRIVER", err)
	}
	tb.Skipf("the guard's driver is missing: %v", err)
	return ""
}

type listedImage struct {
	ID          string   `json:"id"`
	RepoTags    []string `json:"repoTags"`
	RepoDigests []string `json:"repoDigests"`
}

// driverProcess is a guard in a process of its own (tests/guard/driver/driver.cc says what it is told).
type driverProcess struct {
	path, directory string
	command         *exec.Cmd // nil: none runs
	in              io.WriteCloser
	out             *bufio.Reader
	meanwhile       func() int // while it waits amid an answer; returns the life of the kubelet
}

type driverAnswer struct {
	Waits  bool   `json:"waits"`
	Error  string `json:"error"`
	Status struct {
		AfterGap     bool           `json:"afterGap"`
		RuntimeError string         `json:"runtimeError"`
		Holes        map[string]int `json:"holes"`
	} `json:"status"`
	Log []string `json:"log"`
}

func (d *driverProcess) kubelet() string { return filepath.Join(d.directory, "kubelet") }
func (d *driverProcess) shadow() string  { return filepath.Join(d.directory, "shadow") }

func (d *driverProcess) start() error {
	d.command = exec.Command(d.path, d.kubelet(), filepath.Join(d.directory, "store"), d.shadow())
	d.command.Stderr = os.Stderr
	in, err := d.command.StdinPipe()
	if err != nil {
		return err
	}
	out, err := d.command.StdoutPipe()
	if err != nil {
		return err
	}
	d.in, d.out = in, bufio.NewReader(out)
	if err = d.command.Start(); err != nil {
		d.command = nil
	}
	return err
}

// kill ends it as kill -9 does.
func (d *driverProcess) kill() {
	if d.command == nil {
		return
	}
	_ = d.command.Process.Kill()
	_ = d.command.Wait()
	d.command = nil
}

func (d *driverProcess) do(what string, order map[string]any) (answer driverAnswer, err error) {
	if order == nil {
		order = map[string]any{}
	}
	order["do"] = what
	if answer, err = d.say(order); err == nil && answer.Waits {
		answer, err = d.say(map[string]any{"life": d.meanwhile()})
	}
	if err == nil && answer.Error != "" {
		err = fmt.Errorf("the guard says: %s", answer.Error)
	}
	return answer, err
}

func (d *driverProcess) say(order map[string]any) (answer driverAnswer, err error) {
	line, err := json.Marshal(order)
	if err != nil {
		return answer, err
	}
	if _, err = d.in.Write(append(line, '\n')); err != nil {
		return answer, err
	}
	text, err := d.out.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("the driver is gone: %w", err)
	}
	return answer, json.Unmarshal(text, &answer)
}
