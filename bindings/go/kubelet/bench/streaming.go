package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"waybill.dev/go"
)

// streamPeer is one way to keep a streaming request until its token comes.
type streamPeer struct {
	name string
	// prepare keeps a request to exec, and returns its token.
	prepare func(*runtimeapi.ExecRequest) (string, error)
	// consume takes out the request of the token, and returns whether there was one.
	consume func(token string) (bool, error)
	close   func() error
}

// streamFigure is the time of one call, the median over the rounds.
type streamFigure struct {
	Open    int           `json:"open"` // tokens that are open meanwhile
	Over    string        `json:"over"`
	Prepare time.Duration `json:"prepare_ns"`
	Consume time.Duration `json:"consume_ns"`
	Used    time.Duration `json:"used_ns"` // consume with a token that was used before
}

// noStreams is a runtime that no stream reaches.
type noStreams struct{}

var errNoStreams = errors.New("no stream was expected")

func (noStreams) Exec(context.Context, string, []string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errNoStreams
}

func (noStreams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errNoStreams
}

func (noStreams) PortForward(context.Context, string, int32, io.ReadWriteCloser) error {
	return errNoStreams
}

// statusOnly is a client that wants only the status.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header { return w.header }

func (w *statusOnly) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return len(b), nil
}

func (w *statusOnly) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// newKubeletStreams is the cache in memory of the kubelet's streaming server. It is private, so the
// server's own functions reach it, and the figures have these in them:
//
//   - prepare: validation, token and insertion, and building the URL, from which the token is cut. The
//     request is kept as a pointer; nothing is copied, encrypted or written to a disk.
//   - consume: routing of a GET by go-restful, the cache, and the refusal (400) to upgrade a connection
//     that does not ask for it, which comes after the token is gone.
//   - used: routing, the cache, and the answer 404. So consume less used is about what the refusal
//     costs, and both are mostly HTTP: the cache itself is one map and one mutex.
func newKubeletStreams() (*streamPeer, error) {
	config := streaming.DefaultConfig
	config.Addr = "127.0.0.1:10010"
	server, err := streaming.NewServer(config, noStreams{})
	if err != nil {
		return nil, err
	}
	return &streamPeer{
		name: "kubelet",
		prepare: func(request *runtimeapi.ExecRequest) (string, error) {
			response, err := server.GetExec(request)
			if err != nil {
				return "", err
			}
			return path.Base(response.Url), nil
		},
		consume: func(token string) (bool, error) {
			request, err := http.NewRequest(http.MethodGet, "/exec/"+token, nil)
			if err != nil {
				return false, err
			}
			answer := statusOnly{header: http.Header{}}
			server.ServeHTTP(&answer, request)
			switch answer.status {
			case http.StatusBadRequest:
				return true, nil
			case http.StatusNotFound:
				return false, nil
			default:
				return false, fmt.Errorf("status %d", answer.status)
			}
		},
		close: func() error { return nil },
	}, nil
}

// newWaybillStreams is a store in `directory`. Prepare and consume seal and open the request, and are on
// the disk when they return. There is no HTTP in them.
func newWaybillStreams(directory string) (*streamPeer, error) {
	store, err := waybill.OpenStreaming(waybill.StreamingOptions{
		Directory: filepath.Join(directory, "streams"),
		Witness:   waybill.WitnessAt(filepath.Join(directory, "streams-witness")),
		MapBytes:  64 << 20,
	})
	if err != nil {
		return nil, err
	}
	return &streamPeer{
		name: overWaybill,
		prepare: func(r *runtimeapi.ExecRequest) (string, error) {
			return store.Prepare(waybill.StreamingRequest{
				Kind: waybill.StreamExec, ContainerID: r.ContainerId, Command: r.Cmd,
				Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, TTY: r.Tty,
			})
		},
		consume: func(token string) (bool, error) {
			_, err := store.Consume(token, waybill.StreamExec)
			if errors.Is(err, waybill.ErrNotFound) {
				return false, nil
			}
			return err == nil, err
		},
		close: store.Close,
	}, nil
}

// makeStreamPeers makes each peer, without a request. Its waybill lies in `directory`.
func makeStreamPeers(directory string) ([]*streamPeer, error) {
	kubelet, err := newKubeletStreams()
	if err != nil {
		return nil, err
	}
	ours, err := newWaybillStreams(directory)
	if err != nil {
		return nil, err
	}
	return []*streamPeer{kubelet, ours}, nil
}

// The kubelet's cache holds 1,000 requests at most: those that wait, and those that are measured.
const (
	mostOpenStreams = 1000
	streamSteps     = 100
)

func execRequest() *runtimeapi.ExecRequest {
	return &runtimeapi.ExecRequest{
		ContainerId: strings.Repeat("5e", 32),
		Cmd:         []string{"/bin/sh", "-c", "exec tail -n 100 -f /var/log/app.log"},
		Stdin:       true, Stdout: true, Tty: true,
	}
}

// measureStreams prepares and consumes `steps` requests, while `open` others wait.
func measureStreams(peer *streamPeer, open, steps int) (streamFigure, error) {
	figure := streamFigure{Open: open, Over: peer.name}
	waiting := make([]string, open)
	for i := range waiting {
		token, err := peer.prepare(execRequest())
		if err != nil {
			return figure, err
		}
		waiting[i] = token
	}
	tokens := make([]string, steps)
	begin := time.Now()
	for i := range tokens {
		token, err := peer.prepare(execRequest())
		if err != nil {
			return figure, err
		}
		tokens[i] = token
	}
	figure.Prepare = time.Since(begin) / time.Duration(steps)
	for _, pass := range []struct {
		into  *time.Duration
		found bool
	}{{&figure.Consume, true}, {&figure.Used, false}} { // the second time they are used
		begin = time.Now()
		for _, token := range tokens {
			if found, err := peer.consume(token); err != nil || found != pass.found {
				return figure, fmt.Errorf("consume: found is %t, want %t (%v)", found, pass.found, err)
			}
		}
		*pass.into = time.Since(begin) / time.Duration(steps)
	}
	for _, token := range waiting {
		if found, err := peer.consume(token); err != nil || !found {
			return figure, fmt.Errorf("a token that waited is gone (%v)", err)
		}
	}
	return figure, nil
}

// runStreams prints a line for each peer and number of open requests.
func (p plan) runStreams(steps int, out io.Writer) ([]streamFigure, error) {
	scratch, err := os.MkdirTemp(p.directory, "waybill-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	peers, err := makeStreamPeers(scratch)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, peer := range peers {
			_ = peer.close()
		}
	}()
	fmt.Fprintf(out, "streaming requests: prepare, consume, consume a used token (median of %d)\n", p.rounds)
	table := tabwriter.NewWriter(out, 9, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "open\tover\tprepare\tconsume\tused\t\n")
	var figures []streamFigure
	for _, open := range []int{0, mostOpenStreams - steps} {
		taken := make([][]streamFigure, len(peers))
		for round := range p.rounds + 1 {
			for i, peer := range peers {
				figure, err := measureStreams(peer, open, steps)
				if err != nil {
					return nil, fmt.Errorf("%s, %d open: %w", peer.name, open, err)
				}
				if round > 0 { // the first warms up
					taken[i] = append(taken[i], figure)
				}
			}
		}
		for _, rounds := range taken {
			of := func(one func(streamFigure) time.Duration) time.Duration {
				all := make([]time.Duration, len(rounds))
				for i, figure := range rounds {
					all[i] = one(figure)
				}
				return median(all)
			}
			figure := streamFigure{
				Open: open, Over: rounds[0].Over,
				Prepare: of(func(f streamFigure) time.Duration { return f.Prepare }),
				Consume: of(func(f streamFigure) time.Duration { return f.Consume }),
				Used:    of(func(f streamFigure) time.Duration { return f.Used }),
			}
			fmt.Fprintf(table, "%d\t%s\t%v\t%v\t%v\t\n", open, figure.Over, figure.Prepare, figure.Consume, figure.Used)
			figures = append(figures, figure)
		}
	}
	return figures, table.Flush()
}
