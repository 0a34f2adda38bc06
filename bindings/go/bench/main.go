// Command bench asks a store the questions in a file, first all of them once and then a timed batch, and
// prints the nanoseconds of one decision. The project's benchmarks run it in turn with the same in C++.
//
//	bench STORE QUESTIONS BATCH
//
// A question is a line: image, image ref and a secret's UID, namespace, name and credential hash,
// separated by tabs.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

type question struct {
	image, imageRef string
	credentials     store.PodCredentials
}

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("usage: bench STORE QUESTIONS BATCH"))
	}
	batch, err := strconv.Atoi(os.Args[3])
	if err != nil {
		fail(err)
	}
	questions, err := read(os.Args[2])
	if err != nil {
		fail(err)
	}
	s, err := store.Open(store.Options{Directory: os.Args[1], Create: new(false), LossMarker: store.RememberedLossMarker})
	if err != nil {
		fail(err)
	}
	defer s.Close()
	hits := ask(s, questions, len(questions))
	begin := time.Now()
	hits += ask(s, questions, batch)
	took := time.Since(begin)
	if hits != len(questions)+batch {
		fail(errors.New("a decision did not hit; the figure is void"))
	}
	fmt.Printf("%.2f\n", float64(took.Nanoseconds())/float64(batch))
}

func read(path string) ([]question, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var questions []question
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("%s: a line of %d fields", path, len(f))
		}
		questions = append(questions, question{f[0], f[1], store.PodCredentials{
			Secrets: []waybill.Secret{{UID: f[2], Namespace: f[3], Name: f[4], Hash: f[5]}},
		}})
	}
	return questions, nil
}

// ask asks count questions, from the first on and then again, and counts the answers "no pull".
func ask(s *store.Store, questions []question, count int) int {
	hits := 0
	for next := 0; count > 0; count-- {
		q := &questions[next]
		if s.Decide(store.ImageCopy{Image: q.image, ImageRef: q.imageRef}, q.credentials).Use {
			hits++
		}
		if next++; next == len(questions) {
			next = 0
		}
	}
	return hits
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
