package waybill_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"waybill.dev/go"
)

var (
	execRequest = waybill.StreamingRequest{Kind: waybill.StreamExec, ContainerID: "c1",
		Command: []string{"sh", "-c", "ü\n"}, Stdin: true, Stdout: true, TTY: true}
	attachRequest  = waybill.StreamingRequest{Kind: waybill.StreamAttach, ContainerID: "c1", Stderr: true}
	forwardRequest = waybill.StreamingRequest{Kind: waybill.StreamPortForward, PodSandboxID: "s1", Ports: []uint16{80, 65535}}
)

func streamingOptionsIn(directory string) waybill.StreamingOptions {
	return waybill.StreamingOptions{
		Directory: filepath.Join(directory, "streams"),
		Witness:   waybill.WitnessAt(filepath.Join(directory, "streams-witness")),
		MapBytes:  64 << 20,
	}
}

func openStreaming(t testing.TB, o waybill.StreamingOptions) *waybill.StreamingStore {
	t.Helper()
	s := value(waybill.OpenStreaming(o))
	t.Cleanup(func() { s.Close() })
	return s
}

func prepare(t testing.TB, s *waybill.StreamingStore, r waybill.StreamingRequest) string {
	t.Helper()
	token, err := s.Prepare(r)
	fatalIf(t, err != nil || len(token) != 32, "%q, %v", token, err)
	return token
}

func TestAStreamOpensOnce(t *testing.T) {
	s := openStreaming(t, streamingOptionsIn(scratch(t)))
	for _, request := range []waybill.StreamingRequest{execRequest, attachRequest, forwardRequest} {
		token := prepare(t, s, request)
		other := waybill.StreamAttach
		if request.Kind == other {
			other = waybill.StreamExec
		}
		wantCode(t, second(s.Consume(token, other)), waybill.ErrNotFound)
		got, err := s.Consume(token, request.Kind)
		errorIf(t, err != nil || !reflect.DeepEqual(got, request), "%+v, %v, not %+v", got, err, request)
		wantCode(t, second(s.Consume(token, request.Kind)), waybill.ErrNotFound)
	}
	wantCode(t, second(s.Prepare(waybill.StreamingRequest{Kind: waybill.StreamExec})), waybill.ErrInvalidArgument)
	wantCode(t, waybill.StreamingRequest{Kind: waybill.StreamExec}.Check(), waybill.ErrInvalidArgument)
	wantCode(t, waybill.StreamingRequest{Kind: 9, ContainerID: "c"}.Check(), waybill.ErrInvalidArgument)
	must(t, execRequest.Check())
	c := s.Counters()
	errorIf(t, c.Prepared != 3 || c.Consumed != 3 || c.RefusedKind != 3 || c.RefusedUnknown != 3 || c.PrepareInvalid != 1 || c.Open != 0, "%+v", c)
	errorIf(t, !strings.Contains(c.PrometheusText, "waybill_streaming_consumes_total{outcome=\"consumed\"} 3\n"), "%v", c.PrometheusText)
	report, err := s.Verify()
	errorIf(t, err != nil || !report.Sound, "%+v, %v", report, err)
}

func TestAFullStreamingStoreSaysWhenToComeBack(t *testing.T) {
	boot := waybill.NewManualBootClock(waybill.BootTime{BootID: [16]byte{1}, Since: time.Hour})
	o := streamingOptionsIn(scratch(t))
	o.BootClock = boot
	o.MaxOpen = 2
	o.TimeToLive = 5 * time.Second
	s := openStreaming(t, o)
	first := prepare(t, s, execRequest)
	boot.Set(waybill.BootTime{BootID: [16]byte{1}, Since: time.Hour + time.Second})
	prepare(t, s, attachRequest)
	_, err := s.Prepare(execRequest)
	wantCode(t, err, waybill.ErrLimitExceeded)
	var full *waybill.Error
	errorIf(t, !errors.As(err, &full) || full.RetryAfter != 4*time.Second+1, "%+v", full)
	streams, err := s.List()
	errorIf(t, err != nil || len(streams) != 2 || streams[0].ID != waybill.StreamTokenID(first) ||
		streams[0].Kind != waybill.StreamExec || streams[0].ExpiresIn != 4*time.Second, "%+v, %v", streams, err)
	boot.Set(waybill.BootTime{BootID: [16]byte{1}, Since: time.Hour + time.Minute})
	wantCode(t, second(s.Consume(first, waybill.StreamExec)), waybill.ErrNotFound)
	prepare(t, s, execRequest)
}

func TestARestartOfTheStreamingServer(t *testing.T) {
	for _, test := range []struct {
		name             string
		keeps, continues bool
		opens            bool
	}{{name: "restart"}, {name: "keeps", keeps: true, opens: true}, {name: "continues", continues: true, opens: true}} {
		t.Run(test.name, func(t *testing.T) {
			o := streamingOptionsIn(scratch(t))
			s := openStreaming(t, o)
			token := prepare(t, s, execRequest)
			must(t, s.Close())
			o.KeepsTokens, o.Continues = test.keeps, test.continues
			s = openStreaming(t, o)
			report := s.Report()
			errorIf(t, (report.Open == 1) != test.opens || (report.Voided == 0) != test.opens || (report.VoidReason == "") != test.opens, "%+v", report)
			observer, err := waybill.ObserveStreaming(filepath.Join(filepath.Dir(o.Directory), "missing"))
			wantCode(t, err, waybill.ErrNotFound)
			wantCode(t, observer.Close(), waybill.ErrClosed)
			_, err = s.Consume(token, waybill.StreamExec)
			errorIf(t, (err == nil) != test.opens, "%v", err)
		})
	}
}

func TestStreamingOptions(t *testing.T) {
	directory := scratch(t)
	o := streamingOptionsIn(directory)
	for _, life := range []time.Duration{-1, time.Nanosecond, 2 * time.Hour} {
		wrong := o
		wrong.TimeToLive = life
		wantCode(t, second(waybill.OpenStreaming(wrong)), waybill.ErrInvalidArgument)
	}
	must(t, openStreaming(t, o).Close())
	observer := value(waybill.ObserveStreaming(o.Directory))
	defer observer.Close()
	wantCode(t, second(observer.Prepare(execRequest)), waybill.ErrNotOwner)
	streams, err := observer.List()
	errorIf(t, err != nil || len(streams) != 0, "%+v, %v", streams, err)
}

func TestOneOfSeveralConsumersWins(t *testing.T) {
	s := openStreaming(t, streamingOptionsIn(scratch(t)))
	for range 50 {
		token := prepare(t, s, execRequest)
		var opened atomic.Int32
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := s.Consume(token, waybill.StreamExec); err == nil {
					opened.Add(1)
				}
			})
		}
		group.Wait()
		fatalIf(t, opened.Load() != 1, "%d streams opened", opened.Load())
	}
}

func TestAStreamingStoreThatIsNotOpen(t *testing.T) {
	closed := openStreaming(t, streamingOptionsIn(scratch(t)))
	must(t, closed.Close())
	for name, s := range map[string]*waybill.StreamingStore{"nil": nil, "zero": {}, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, second(s.Prepare(execRequest)), waybill.ErrClosed)
			wantCode(t, second(s.Consume("", waybill.StreamExec)), waybill.ErrClosed)
			wantCode(t, second(s.List()), waybill.ErrClosed)
			wantCode(t, second(s.Verify()), waybill.ErrClosed)
			wantCode(t, s.Close(), waybill.ErrClosed)
			wantEqual(t, s.Counters(), (waybill.StreamingCounters{}))
			s.Report()
		})
	}
}
