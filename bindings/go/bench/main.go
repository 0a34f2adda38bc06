// Command bench asks a store the questions in a file, first all of them once and then a timed batch, and
// prints the nanoseconds of one decision. The project's benchmarks run it in turn with the same in C++.
//
//	bench STORE QUESTIONS BATCH
//
// A question is a line: image, image ref and a secret's UID, namespace, name and credential hash,
// separated by tabs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"waybill.dev/go"
)

type question struct {
	image, imageRef string
	credentials     waybill.PodCredentials
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
	store, err := waybill.Open(context.Background(), waybill.Options{
		Directory: os.Args[1], MustExist: true, Witness: waybill.WitnessRemembered(),
	})
	if err != nil {
		fail(err)
	}
	defer store.Close()
	hits := ask(store, questions, len(questions))
	begin := time.Now()
	hits += ask(store, questions, batch)
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
		questions = append(questions, question{f[0], f[1], waybill.PodCredentials{
			Secrets: []waybill.ImagePullSecret{
				{UID: f[2], Namespace: f[3], Name: f[4], CredentialHash: f[5]},
			},
		}})
	}
	return questions, nil
}

// ask asks count questions, from the first on and then again, and counts the answers "no pull".
func ask(store *waybill.Store, questions []question, count int) int {
	hits := 0
	for next := 0; count > 0; count-- {
		q := &questions[next]
		if !store.MustAttemptPull(waybill.ImageCopy{Image: q.image, ImageRef: q.imageRef}, q.credentials).Pull() {
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
