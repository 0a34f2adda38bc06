package waybill_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

func TestOpenAgainRemembers(t *testing.T) {
	o := optionsIn(scratch(t))
	s := open(t, o)
	errorIf(t, !s.RecoveryReport().Created, "the report of a new store doesn't say so")
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	intend(t, s, waybill.ImageCopy{Image: "dangling:v1"})
	must(t, s.Close())

	o.ImagesOnNode = []waybill.ImageOnNode{{ID: "sha256:1", RepoTags: []string{"docker.io/library/dangling:v1"}}}
	s = open(t, o)
	report := s.RecoveryReport()
	errorIf(t, report.Created || report.Records != 2 || report.IntentsFound != 1 || report.IntentsLeft != 1 || report.IntentsReplayed != 0 ||
		report.Observed == nil || report.Observed.Closed != 1 || report.FirstStart || report.ReplaySkipped, "report: %+v", report)
	must(t, s.Close())
	errorIf(t, s.RecoveryReport().Records != 2, "a closed store forgot its report")
}

func TestOptionsAreChecked(t *testing.T) {
	directory := scratch(t)
	ctx := context.Background()
	wantCode(t, second(waybill.Open(ctx, waybill.Options{})), waybill.ErrInvalidArgument)
	if _, err := waybill.Observe(waybill.ObserveOptions{}); err == nil {
		t.Error("the zero options observe something")
	}
	wantCode(t, second(waybill.Observe(waybill.ObserveOptions{Directory: filepath.Join(directory, "none")})), waybill.ErrNotFound)

	for want, change := range map[error]func(*waybill.Options){
		waybill.ErrInvalidArgument: func(o *waybill.Options) { o.Witness = waybill.Witness{} },
		waybill.ErrNotFound:        func(o *waybill.Options) { o.MustExist = true },
		waybill.ErrIO:              func(o *waybill.Options) { o.Directory = strings.Repeat("/x", 1<<19) },
	} {
		o := optionsIn(directory)
		change(&o)
		s, err := waybill.Open(ctx, o)
		errorIf(t, s != nil, "%v: a store beside an error", want)
		wantCode(t, err, want)
	}
}

func TestTrace(t *testing.T) {
	directory := scratch(t)
	o := optionsIn(directory)
	o.Trace = &waybill.Trace{Path: filepath.Join(directory, "trace"), Files: 101}
	wantCode(t, second(waybill.Open(context.Background(), o)), waybill.ErrInvalidArgument)
	o.Trace.Files = 0
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	m := s.Metrics()
	errorIf(t, !m.WritesTrace || m.TraceEventsDropped != 0, "metrics: writes %v, dropped %d", m.WritesTrace, m.TraceEventsDropped)
	must(t, s.Close())
	text := value(os.ReadFile(o.Trace.Path))
	for _, part := range []string{`{"waybill_trace":1,"source":"owner"}`, `"event":"pullBegun"`, `"event":"pulled"`} {
		errorIf(t, !strings.Contains(string(text), part), "the trace lacks %s:\n%s", part, text)
	}
	errorIf(t, strings.Contains(string(text), secret.CredentialHash), "the trace has a credential hash")
}

func TestContexts(t *testing.T) {
	o := optionsIn(scratch(t))
	//lint:ignore SA1012 the error for such a caller
	wantCode(t, second(waybill.Open(nil, o)), waybill.ErrInvalidArgument) //nolint:staticcheck

	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("the node shuts down")
	cancel(reason)
	_, err := waybill.Open(ctx, o)
	for _, want := range []error{waybill.ErrInterrupted, reason, context.Canceled} {
		wantCode(t, err, want)
	}

	s := open(t, o)
	wantCode(t, second(s.Verify(ctx)), waybill.ErrInterrupted)
	wantCode(t, second(s.Export(ctx, waybill.ExportOptions{})), waybill.ErrInterrupted)
	wantCode(t, second(waybill.Migrate(ctx, waybill.MigrateOptions{})), waybill.ErrInterrupted)
	wantCode(t, second(waybill.Restore(ctx, waybill.RestoreOptions{})), waybill.ErrInterrupted)

	live, stop := context.WithCancel(context.Background())
	defer stop()
	report, err := s.Verify(live)
	errorIf(t, err != nil || !report.Sound, "%+v, %v", report, err)
}

// The context ends while the import runs, which notices it at the next file.
func TestContextStopsAnImport(t *testing.T) {
	directory := scratch(t)
	pulling := filepath.Join(directory, "kubelet", "image_manager", "pulling")
	must(t, os.MkdirAll(pulling, 0o755))
	for i := range 3000 {
		name := "image" + strings.Repeat("x", i)
		must(t, os.WriteFile(filepath.Join(pulling, "sha256-"+hexSHA256(name)), []byte(
			`{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"`+name+`"}`), 0o600))
	}
	o := optionsIn(directory)
	o.KubeletDirectory = filepath.Join(directory, "kubelet")
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	s, err := waybill.Open(ctx, o)
	if err == nil { // it was faster
		must(t, s.Close())
		return
	}
	wantCode(t, err, waybill.ErrInterrupted)
	wantCode(t, err, context.Canceled)
	s = open(t, o)
	intents, err := s.ListIntents()
	errorIf(t, err != nil || len(intents) != 3000, "%d intents after all, %v", len(intents), err)
}

func TestClosed(t *testing.T) {
	ctx := context.Background()
	for name, s := range closedStores(t) {
		t.Run(name, func(t *testing.T) {
			d := s.MustAttemptPull(app, withSecrets(secret))
			errorIf(t, !d.Pull() || d.Result != waybill.CheckError, "%+v", d)
			d, err := s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) {
				t.Error("credentials were fetched")
				return waybill.PodCredentials{}, nil
			})
			errorIf(t, !d.Pull() || err != nil, "%+v, %v", d, err)
			outcome, err := s.EnsureImage(app, waybill.PullIfNotPresent, nil)
			wantCode(t, err, waybill.ErrClosed)
			errorIf(t, outcome.Action != waybill.EnsurePull, "%+v", outcome)
			m := s.Metrics()
			errorIf(t, !reflect.DeepEqual(m, waybill.Metrics{}), "%+v", m)
			each := []error{
				s.Close(), s.Flush(), second(s.RecordPullIntent(waybill.ImageCopy{Image: image})),
				s.RecordImagePulled(waybill.PulledImage{ImageCopy: app}),
				s.RecordImagePullFailed(waybill.ImageCopy{Image: image}, waybill.PullFailed, 0),
				s.PutRecord(waybill.ImagePulledRecord{ImageRef: ref}), s.DeleteRecord(waybill.ImageCopy{ImageRef: ref}),
				s.PutIntent(waybill.ImageCopy{Image: image}), s.DeleteIntent(waybill.ImageCopy{Image: image}),
				s.AdoptUserNamespace(podUID, 65536, 65536),
				second(s.ClearDistrust("reason", waybill.ClearOptions{})),
				second(s.BeginList()), second(s.Prune(nil, waybill.ListToken{})), second(s.PruneBefore(nil, time.Now())),
				second(s.ObserveImages(waybill.ImageList{})), second(s.OpenPulls()), s.DropOpenPull(1, "reason"),
				second(s.Ledger()), s.AddToLedger(waybill.ImageOnNode{ID: ref}, "source", "reason"),
				second(s.SettlePresumed(waybill.ImageCopy{ImageRef: ref}, waybill.SettledClosed, "reason")),
				second(s.RemoveFromLedger(waybill.ImageCopy{ImageRef: ref}, "reason")), second(s.Explain(waybill.ImageCopy{ImageRef: ref})),
				second(s.GetRecord(waybill.ImageCopy{ImageRef: ref})), second(s.ListRecords()), second(s.HasIntent(waybill.ImageCopy{Image: image})),
				second(s.ListIntents()), second(s.ListQuarantine()), second(s.ListPreloaded()),
				second(s.ListRuntimeHandlers()), second(s.ReplaceRuntimeHandlers(nil)),
				second(s.CollapseRuntimeHandlers()), second(s.GetUserNamespace(podUID)),
				second(s.GetOrCreateUserNamespace(waybill.UserNamespaceRequest{PodUID: podUID})),
				second(s.ReleaseUserNamespace(podUID)), second(s.ListUserNamespaces()), second(s.ListHeldPods()),
				second(s.CleanUpUserNamespaces(nil, nil, waybill.ListToken{})), second(s.ReleaseLostUserNamespaces()),
				second(s.GetUserNamespaceStatistics()), second(s.Export(ctx, waybill.ExportOptions{})),
				second(s.ForgetSecret(waybill.CredentialName{Namespace: "a", Name: "b"})),
				second(s.ForgetServiceAccount(waybill.CredentialName{Namespace: "a", Name: "b"})),
				second(s.ForgetNamespace("a")), second(s.ForgetImage(waybill.ImageCopy{ImageRef: ref})), second(s.ForgetCredential("a")),
				second(s.Reconcile(waybill.ExistingCredentials{}, waybill.ListToken{})), s.TidyUp(), second(s.ListRevocations()),
				second(s.Statistics()), second(s.MetricsText()), second(s.Verify(ctx)), second(s.Trust()),
			}
			for i, err := range each {
				errorIf(t, !errors.Is(err, waybill.ErrClosed), "call %d: %v", i, err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestDroppedStoreIsClosed(t *testing.T) {
	o := optionsIn(scratch(t))
	func() {
		s := value(waybill.Open(context.Background(), o))
		intend(t, s, waybill.ImageCopy{Image: image})
	}()
	for range 10_000 {
		runtime.GC()
		s, err := waybill.Open(context.Background(), o)
		if err == nil {
			must(t, s.Close())
			return
		}
		wantCode(t, err, waybill.ErrOwned)
	}
	t.Error("the store is still owned")
}

func TestObserver(t *testing.T) {
	o := optionsIn(scratch(t))
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	wantCode(t, second(waybill.Observe(waybill.ObserveOptions{Directory: o.Directory})), waybill.ErrOwned)
	must(t, s.Close())

	observer := value(waybill.Observe(waybill.ObserveOptions{Directory: o.Directory}))
	defer observer.Close()
	d := observer.MustAttemptPull(app, withSecrets())
	errorIf(t, d.Pull() || d.Reason != waybill.ReasonNodePodsAccessible, "%+v", d)
	wantCode(t, second(observer.RecordPullIntent(waybill.ImageCopy{Image: image})), waybill.ErrNotOwner)
	wantCode(t, second(observer.ForgetNamespace("team-a")), waybill.ErrNotOwner)
	wantCode(t, observer.TidyUp(), waybill.ErrNotOwner)
	revocations, err := observer.ListRevocations()
	errorIf(t, len(revocations) != 0 || err != nil, "%v, %v", revocations, err)
	r := observer.RecoveryReport()
	errorIf(t, r.Records != 0 || r.Created, "%+v", r)
}

// A clock and a policy that only the store refers to survive the garbage collector.
func TestClockAndPolicyLive(t *testing.T) {
	now := time.Date(2031, 5, 6, 7, 8, 9, 123_456_789, time.UTC)
	s := func() *waybill.Store {
		o := optionsIn(scratch(t))
		o.Clock = waybill.NewManualClock(now)
		policy := value(waybill.NewVerificationPolicy(waybill.AlwaysVerify, nil, waybill.AllowlistAnyImage))
		o.Policy = policy
		return open(t, o)
	}()
	for range 5 {
		runtime.GC()
	}
	wantReason(t, s, app, withSecrets(), waybill.ReasonNoRecord)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	record, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref})
	errorIf(t, err != nil || !record.LastUpdatedTime.Equal(now), "%v, %v", record.LastUpdatedTime, err)
}

func TestManualClock(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(-1, 999_999_999), time.Date(1700, 1, 1, 0, 0, 0, 1, time.UTC)} {
		clock := waybill.NewManualClock(at)
		errorIf(t, !clock.Now().Equal(at), "%v became %v", at, clock.Now())
		o := optionsIn(scratch(t))
		o.Clock = clock
		s := open(t, o)
		pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
		if at.Unix() < 0 {
			continue // what the store makes of times before 1970 is its own affair
		}
		record, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref})
		errorIf(t, err != nil || !record.LastUpdatedTime.Equal(at), "stored %v as %v, %v", at, record.LastUpdatedTime, err)
	}
	now := waybill.NewManualClock(time.Time{}).Now()
	errorIf(t, now.Year() != 1677, "the year 1 was cut to %v", now)
	defer func() {
		errorIf(t, recover() == nil, "the zero clock was set")
	}()
	new(waybill.ManualClock).Set(time.Now())
}

func TestVersions(t *testing.T) {
	oldest, newest := waybill.OldestSchema(), waybill.NewestSchema()
	errorIf(t, waybill.Version() == "" || oldest < 1 || newest < oldest, "%v, %v, %v", waybill.Version(), oldest, newest)
}

// With a tested LMDB it changes nothing.
func TestUntestedLMDB(t *testing.T) {
	waybill.AllowUntestedLMDB(true)
	waybill.AllowUntestedLMDB(false)
	mended := newStore(t).RecoveryReport().Mended
	errorIf(t, len(mended) != 0, "%v", mended)
}

// If the witness is gone, the store may be an older copy, unless an operator states otherwise.
func TestMissingWitness(t *testing.T) {
	directory := scratch(t)
	o := optionsIn(directory)
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	must(t, os.Remove(directory+"/witness"))
	wantCode(t, s.Close(), waybill.ErrDamaged)
	o.Witness = waybill.WitnessAnew(directory + "/anew")
	s = open(t, o)
	r := s.RecoveryReport()
	errorIf(t, r.Distrustful || !r.WitnessMade || r.WitnessInStore || len(r.RemovedPaths) != 0, "%+v", r)
	must(t, s.Close())
	must(t, os.Remove(directory+"/anew"))
	s = open(t, o)
	r = s.RecoveryReport()
	errorIf(t, !r.Distrustful || len(r.Findings) != 1 || r.RecordsWithoutCredentials != 1, "%+v", r)
	must(t, s.Close())
}

func TestWitnessThatIsLeft(t *testing.T) {
	directory := scratch(t)
	o := optionsIn(directory)
	o.LeavesWitness = true
	must(t, open(t, o).Close())
	_, err := os.Stat(directory + "/witness")
	errorIf(t, !errors.Is(err, os.ErrNotExist), "%v", err)
}

// A path with a zero byte is not cut at that byte.
func TestPathsWithZeroBytes(t *testing.T) {
	directory := scratch(t)
	for name, change := range map[string]func(*waybill.Options){
		"directory": func(o *waybill.Options) { o.Directory += "\x00x" },
		"witness":   func(o *waybill.Options) { o.Witness = waybill.WitnessAt(directory + "/witness\x00x") },
		"kubelet":   func(o *waybill.Options) { o.KubeletDirectory = directory + "\x00x" },
		"pods":      func(o *waybill.Options) { o.PodsDirectory = directory + "\x00x" },
	} {
		o := optionsIn(directory)
		change(&o)
		s, err := waybill.Open(context.Background(), o)
		if s != nil || err == nil {
			t.Errorf("%s: opened", name)
			s.Close()
		}
	}
}
