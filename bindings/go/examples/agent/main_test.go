package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The agent is killed in the middle of pulls again and again, and goes on each time. The model
// contradicts no answer, and interrupted pulls are found.
func TestKillAndStartAgain(t *testing.T) {
	scratch := t.TempDir()
	if memory, err := os.MkdirTemp("/dev/shm", "waybill-agent-"); err == nil {
		t.Cleanup(func() { os.RemoveAll(memory) })
		scratch = memory
	}
	binary := filepath.Join(t.TempDir(), "agent")
	build := []string{"build", "-o", binary, "."}
	if raceEnabled {
		build = []string{"build", "-race", "-o", binary, "."}
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	node := filepath.Join(scratch, "node")
	intentsFound := 0
	found := regexp.MustCompile(`intentsFound=(\d+)`)
	for round := range 6 {
		agent := exec.Command(binary, "-directory", node, "-pods", "0", "-seed", fmt.Sprint(round))
		output, err := agent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errors bytes.Buffer
		agent.Stderr = &errors
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		lines, text := bufio.NewScanner(output), strings.Builder{}
		for n := 0; lines.Scan(); n++ {
			text.WriteString(lines.Text() + "\n")
			if n > 300+100*round && strings.Contains(lines.Text(), `"Pulling image"`) {
				break
			}
		}
		agent.Process.Kill()
		rest, _ := io.ReadAll(output)
		agent.Wait()
		text.Write(rest)
		if strings.Contains(text.String(), "VIOLATION") || errors.Len() > 0 || !strings.Contains(text.String(), `"Opened the store"`) {
			t.Fatalf("round %d:\n%s%s", round, errors.String(), text.String())
		}
		n := 0
		fmt.Sscan(found.FindStringSubmatch(text.String())[1], &n)
		intentsFound += n
	}
	if intentsFound == 0 {
		t.Error("six kills in the middle of a pull left no intent behind")
	}
	out, err := exec.Command(binary, "-directory", node, "-pods", "500", "-seed", "7", "-quiet").CombinedOutput()
	if err != nil || strings.Contains(string(out), "VIOLATION") || !strings.Contains(string(out), "violations=0") {
		t.Errorf("%v\n%s", err, out)
	}
}
