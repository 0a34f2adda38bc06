package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// The streaming server that runtimes use, with its cache in memory, judges the store: random requests
// and histories go to both. Three differences are meant: exec needs a command; a token of another kind
// stays good for its own; and a full store says when to come back, not always after a minute.

type neverStreams struct{}

func (neverStreams) Exec(context.Context, string, []string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("no stream was expected")
}

func (neverStreams) Attach(context.Context, string, io.Reader, io.WriteCloser, io.WriteCloser, bool, <-chan remotecommand.TerminalSize) error {
	return errors.New("no stream was expected")
}

func (neverStreams) PortForward(context.Context, string, int32, io.ReadWriteCloser) error {
	return errors.New("no stream was expected")
}

type realStreams struct{ server streaming.Server }

func (r realStreams) prepare(q waybill.PrepareStream) (string, codes.Code) {
	var url string
	var err error
	switch q.Kind {
	case waybill.StreamExec:
		var got *runtimeapi.ExecResponse
		got, err = r.server.GetExec(&runtimeapi.ExecRequest{ContainerId: q.ContainerID, Cmd: q.Command,
			Stdin: q.Stdin, Stdout: q.Stdout, Stderr: q.Stderr, Tty: q.TTY})
		url = got.GetUrl()
	case waybill.StreamAttach:
		var got *runtimeapi.AttachResponse
		got, err = r.server.GetAttach(&runtimeapi.AttachRequest{ContainerId: q.ContainerID,
			Stdin: q.Stdin, Stdout: q.Stdout, Stderr: q.Stderr, Tty: q.TTY})
		url = got.GetUrl()
	default:
		ports := make([]int32, len(q.Ports))
		for i, port := range q.Ports {
			ports[i] = int32(port)
		}
		var got *runtimeapi.PortForwardResponse
		got, err = r.server.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: q.PodSandboxID, Port: ports})
		url = got.GetUrl()
	}
	return path.Base(url), status.Code(err)
}

// consume says whether the token opened a stream: then the server refuses a request that does not ask
// for an upgrade, after it used the token up.
func (r realStreams) consume(t *testing.T, token string, kind waybill.StreamKind) bool {
	t.Helper()
	answer := httptest.NewRecorder()
	r.server.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/"+strings.ToLower(string(kind))+"/"+token, nil))
	if answer.Code != http.StatusNotFound && answer.Code != http.StatusBadRequest && answer.Code != http.StatusForbidden {
		t.Fatalf("the real server answers %d: %s", answer.Code, answer.Body)
	}
	return answer.Code != http.StatusNotFound
}

func TestTheRealStreamingServerJudgesRequestsAndHistories(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	config := streaming.DefaultConfig
	config.Addr = "127.0.0.1:0"
	server, err := streaming.NewServer(config, neverStreams{})
	must(t, err)
	real := realStreams{server}
	directory := scratchDir(t)
	opened, err := store.OpenStreams(store.StreamsOptions{Directory: filepath.Join(directory, "streams"), LossMarker: store.NoLossMarker})
	must(t, err)
	defer opened.Close()

	type pair struct {
		real, ours string
		request    waybill.PrepareStream
	}
	var open, used []pair
	kinds := []waybill.StreamKind{waybill.StreamExec, waybill.StreamAttach, waybill.StreamPortForward}
	request := func() waybill.PrepareStream {
		yes := func() bool { return draw.IntN(2) == 0 }
		q := waybill.PrepareStream{Kind: kinds[draw.IntN(3)]}
		if q.Kind == waybill.StreamPortForward {
			if draw.IntN(8) > 0 {
				q.PodSandboxID = "s1"
			}
			for range draw.IntN(3) {
				q.Ports = append(q.Ports, int64(1+draw.IntN(65535)))
			}
			return q
		}
		if draw.IntN(8) > 0 {
			q.ContainerID = "c1"
		}
		q.Stdin, q.Stdout, q.Stderr, q.TTY = yes(), yes(), yes(), yes()
		if q.Kind == waybill.StreamExec {
			q.Command = []string{"sh", fmt.Sprint(draw.IntN(1000))}
		}
		return q
	}
	full := 0
	prepare := func() {
		q := request()
		theirs, code := real.prepare(q)
		ours, err := opened.PrepareStream(t.Context(), q)
		var e *waybill.Error
		errors.As(err, &e)
		switch {
		case code == codes.OK && err == nil:
			open = append(open, pair{theirs, ours.Token, q})
		case code == codes.InvalidArgument && errors.Is(err, waybill.ErrInvalidArgument):
		case code == codes.ResourceExhausted && errors.Is(err, waybill.ErrLimitExceeded) && e.RetryAfter() > 0 && e.RetryAfter() <= time.Minute+time.Millisecond:
			full++
		default:
			t.Fatalf("%+v: the real server says %v, waybill %v", q, code, err)
		}
	}
	consume := func(p pair, kind waybill.StreamKind) bool {
		theirs := real.consume(t, p.real, kind)
		got, err := opened.ConsumeStream(t.Context(), waybill.ConsumeStream{Token: p.ours, Kind: kind})
		if theirs != (err == nil) || (err != nil && !errors.Is(err, waybill.ErrNotFound)) {
			t.Fatalf("%+v as %v: the real server opens it: %v, waybill: %v", p.request, kind, theirs, err)
		}
		if err == nil && fmt.Sprint(got) != fmt.Sprint(p.request) {
			t.Fatalf("%+v, not %+v", got, p.request)
		}
		return err == nil
	}
	take := func() pair {
		i := draw.IntN(len(open))
		p := open[i]
		open = append(open[:i], open[i+1:]...)
		return p
	}
	began := time.Now()
	// The cache forgets by real time; nothing here may be old enough for that.
	for step := 0; step < 6000 && time.Since(began) < 20*time.Second; step++ {
		switch at := draw.IntN(10); {
		case at < 6 || len(open) == 0:
			prepare()
		case at < 8 && step%3 == 0:
			p := take()
			if !consume(p, p.request.Kind) {
				t.Fatalf("%+v does not open", p)
			}
			used = append(used, p)
		case at < 9 && len(used) > 0:
			p := used[draw.IntN(len(used))]
			consume(p, kinds[draw.IntN(3)])
		case draw.IntN(20) == 0:
			// Of another kind: theirs is used up, ours stays.
			p := take()
			if other := kinds[draw.IntN(3)]; other != p.request.Kind {
				consume(p, other)
			} else {
				real.consume(t, p.real, p.request.Kind)
			}
			if got, err := opened.ConsumeStream(t.Context(), waybill.ConsumeStream{Token: p.ours, Kind: p.request.Kind}); err != nil || fmt.Sprint(got) != fmt.Sprint(p.request) {
				t.Fatalf("%+v, %v, not %+v", got, err, p.request)
			}
		default:
			consume(pair{real: "fooBAR", ours: "fooBAR"}, kinds[draw.IntN(3)])
		}
	}
	for once := full + 1; full < once; {
		if time.Since(began) > 30*time.Second {
			t.Skip("the machine is too slow: the cache would forget")
		}
		prepare()
	}
	if len(open) != 1000 {
		t.Errorf("%d are open where there is no room", len(open))
	}
	if listed, err := opened.ListStreams(t.Context()); err != nil || len(listed.Streams) != len(open) {
		t.Errorf("%d are open, not %d: %v", len(listed.Streams), len(open), err)
	}
}
