package waybill_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"waybill.dev/go"
)

// observe lets the store judge a complete list.
func observe(t testing.TB, s *waybill.Store, images ...waybill.ImageOnNode) waybill.ObserveReport {
	t.Helper()
	token := value(s.BeginList())
	report := value(s.ObserveImages(waybill.ImageList{Images: images, Token: &token, Complete: true}))
	return report
}

func TestLedger(t *testing.T) {
	s := newStore(t)
	const tag, digest = "registry.example.com/base/pause:3.10", "registry.example.com/base/pause@" + ref
	preloaded := waybill.ImageOnNode{ID: ref, RepoTags: []string{tag}, RepoDigests: []string{digest}}
	report := observe(t, s, preloaded, waybill.ImageOnNode{ID: ref}, waybill.ImageOnNode{ID: "sha256:nameless"})
	errorIf(t, report.Listed != 3 || report.Repeated != 1 || report.Preloaded != 1 || report.Closed != 1 || len(report.Judged) != 2, "%+v", report)
	for _, judged := range report.Judged {
		errorIf(t, judged.Preloaded != (judged.ImageRef == ref) || judged.Because == "" || judged.Preloaded && judged.Name != tag, "%+v", judged)
	}
	entries, err := s.Ledger()
	errorIf(t, err != nil || len(entries) != 1 || entries[0].ImageRef != ref || len(entries[0].Names) != 2 || entries[0].Source != waybill.PresumedSource || entries[0].Stamp == 0 || entries[0].Since.IsZero(), "%+v, %v", entries, err)
	statistics, err := s.Statistics()
	errorIf(t, err != nil || statistics.LedgerEntries != 1 || statistics.Spellings == 0, "%+v, %v", statistics, err)

	copy := waybill.ImageCopy{Image: tag, ImageRef: ref}
	m := s.Metrics()
	errorIf(t, m.PresumedImages != 1 || m.PreloadedImages != 1, "%+v", m)
	was, err := s.SettlePresumed(copy, waybill.SettledPreloaded, "ours")
	errorIf(t, !was || err != nil, "%v, %v", was, err)
	entries, err = s.Ledger()
	errorIf(t, err != nil || entries[0].Source != "operator" || entries[0].Reason != "ours", "%+v, %v", entries, err)
	wantCode(t, second(s.SettlePresumed(copy, waybill.Settled(7), "why")), waybill.ErrInvalidArgument)
	was, err = s.RemoveFromLedger(copy, "it is a tenant's", waybill.DryRun)
	errorIf(t, !was || err != nil, "%v, %v", was, err)
	for _, want := range []bool{true, false} {
		was, err := s.RemoveFromLedger(copy, "it is a tenant's")
		errorIf(t, was != want || err != nil, "%v, %v", was, err)
	}
	record, err := s.GetRecord(copy)
	errorIf(t, err != nil || record.ClosedBecause == "", "%+v, %v", record, err)
	x, err := s.Explain(copy, tag)
	errorIf(t, err != nil || x.LedgerEntry != nil || !x.Recorded || x.ClosedBecause == "" || x.Text == "" || x.Hint == "", "%+v, %v", x, err)
	must(t, s.AddToLedger(preloaded, "installer", "of the base image"))
	x, err = s.Explain(copy)
	errorIf(t, err != nil || x.LedgerEntry == nil || x.LedgerEntry.Source != "installer" || x.LedgerEntry.Reason != "of the base image" || x.Text != "", "%+v, %v", x, err)
	trust, err := s.Trust()
	errorIf(t, err != nil || trust.Distrustful || len(trust.Journal) == 0 || trust.Journal[0].Action != waybill.Noted, "%+v, %v", trust, err)
}

func TestExplanationSaysWhatCounts(t *testing.T) {
	directory := scratch(t)
	kubelet := filepath.Join(directory, "kubelet")
	pulled := filepath.Join(kubelet, "image_manager", "pulled")
	must(t, os.MkdirAll(pulled, 0o700))
	must(t, os.WriteFile(filepath.Join(pulled, "sha256-"+hexSHA256(ref)), []byte("{"), 0o600))
	o := optionsIn(directory)
	o.KubeletDirectory = kubelet
	clock := waybill.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o.Clock = clock
	o.Ages = &waybill.AgeLimits{Credentials: 2 * time.Hour, ServiceAccounts: time.Hour}
	o.RuntimeHandlers = []waybill.RuntimeHandler{{Name: "runc", IsDefault: true}, {Name: "kata"}}
	s := open(t, o)
	x, err := s.Explain(app)
	errorIf(t, err != nil || x.Record != nil || x.Credentials != nil || x.ImageNames != nil || x.Unreadable || !x.InQuarantine ||
		len(x.Quarantine) != 1 || x.Quarantine[0].SHA256 != hexSHA256(ref) || x.Quarantine[0].Kind != waybill.QuarantinedImageRef, "%+v, %v", x, err)

	pull(t, s, image, ref, bySecret) // ends the quarantine
	pull(t, s, image, ref, byAccount)
	proven := clock.Now()
	clock.Set(proven.Add(time.Hour + time.Second))
	x, err = s.Explain(app)
	errorIf(t, err != nil || x.Quarantine != nil || x.OtherHandlers != nil || !slices.Contains(x.Spellings, ref) || !slices.Equal(x.ImageNames, []string{appName}), "%+v, %v", x, err)
	r := x.Record
	errorIf(t, r == nil || r.ImageRef != ref || r.CredentialMapping != nil || r.Stamp == 0, "%+v", r)
	for i := range x.Credentials {
		p := &x.Credentials[i].Proof
		errorIf(t, p.Proven != proven || p.PullBegan == 0, "%+v", *p)
		x.Credentials[i].Proof = waybill.Proof{}
	}
	want := []waybill.ExplainedCredential{
		{ImageName: appName, Kind: waybill.ExplainedSecret, Who: nameOf},
		{
			ImageName: appName, Kind: waybill.ExplainedServiceAccount, Standing: waybill.StandingTooOld,
			Who: waybill.CredentialName{Namespace: account.Namespace, Name: account.Name, UID: account.UID},
		},
	}
	errorIf(t, !slices.Equal(x.Credentials, want), "%+v", x.Credentials)
	d := s.MustAttemptPull(app, ofAccount)
	wantEqual(t, x.OtherAnswer(d.Reason), "a pull proves the credential again")
	wantEqual(t, x.OtherAnswer(waybill.ReasonNoCredentialMatches), x.Hint)
	wantEqual(t, x.OtherAnswer(200), "")
	inKata := app
	inKata.RuntimeHandler = "kata"
	x, err = s.Explain(inKata)
	errorIf(t, err != nil || x.Record != nil || !slices.Equal(x.OtherHandlers, []string{""}), "%+v, %v", x, err)

	for got, want := range map[fmt.Stringer]string{
		waybill.ExplainedNodePods: "nodePods", waybill.ExplainedSecret: "secret", waybill.ExplainedServiceAccount: "serviceAccount",
		waybill.ExplainedKind(3): "ExplainedKind(3)", waybill.StandingCounts: "counts", waybill.StandingTooOld: "tooOld",
		waybill.StandingForgotten: "forgotten", waybill.StandingNotByRegistry: "notByRegistry", waybill.CredentialStanding(4): "CredentialStanding(4)",
	} {
		errorIf(t, got.String() != want, "%q, not %q", got, want)
	}
}

func TestOpenPulls(t *testing.T) {
	o := optionsIn(scratch(t))
	boot := waybill.BootTime{BootID: [16]byte{1, 15: 2}, Since: time.Hour}
	o.BootClock = waybill.NewManualBootClock(boot)
	o.Evidence = waybill.Evidence{Grace: 1500 * time.Millisecond, Window: time.Minute}
	s := open(t, o)
	copy := waybill.ImageCopy{Image: image}
	first, next := intend(t, s, copy), intend(t, s, copy)
	errorIf(t, first == 0 || next == first, "%d, %d", first, next)
	must(t, s.RecordImagePullFailed(copy, waybill.PullFailed, first))
	pulls, err := s.OpenPulls()
	fatalIf(t, err != nil || len(pulls) != 2, "%+v, %v", pulls, err)
	for _, p := range pulls {
		runs := p.ID == next
		errorIf(t, p.Image != image || p.Anything || p.Began.IsZero() || p.Stamp == 0 || p.Ended.IsZero() != runs ||
			(p.State == waybill.PullRunning) != runs || !runs && (p.State != waybill.PullStateFailed || p.EndedAt != boot), "%+v", p)
	}
	names := pulls[0].NamesGiven(waybill.ShortNamesAnywhere)
	errorIf(t, len(names) != 2 || names[0] != image, "could have given %q", names)
	short := waybill.OpenPull{Image: "app:v1"}
	for how, want := range map[waybill.ShortNames]string{waybill.ShortNamesAnywhere: "anything", waybill.ShortNamesDockerHub: "docker.io/library/app:v1"} {
		names := short.NamesGiven(how)
		errorIf(t, len(names) == 0 || names[0] != want, "%v: %q", how, names)
	}
	wantCode(t, s.DropOpenPull(next, "reason"), waybill.ErrConflict)
	wantCode(t, s.DropOpenPull(math.MaxUint64, "reason"), waybill.ErrNotFound)
	digest := "registry.example.com/team-a/app@sha256:" + hexSHA256("its manifest")
	must(t, s.RecordImagePulled(waybill.PulledImage{
		ImageCopy: app, Pull: next,
		Entry: &waybill.ImageOnNode{ID: ref, RepoDigests: []string{digest}},
	}))
	// The entry told of a spelling.
	d := s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: digest}, withSecrets())
	errorIf(t, d.Reason != waybill.ReasonEntryWithoutCredentials && d.Reason != waybill.ReasonNoEntryForImageName, "%+v", d)

	x, err := s.Explain(waybill.ImageCopy{Image: image, ImageRef: "sha256:another"}, image)
	errorIf(t, err != nil || len(x.Pulls) != 1 || x.Pulls[0].ID != first, "%+v, %v", x, err)

	// The grace counts from the end of the pull, in whole seconds.
	there := waybill.ImageOnNode{ID: ref, RepoTags: []string{image}}
	for seconds, settled := range []uint64{0, 0, 1, 0} {
		o.BootClock.Set(waybill.BootTime{BootID: boot.BootID, Since: boot.Since + time.Duration(seconds)*time.Second})
		report := observe(t, s, there)
		errorIf(t, report.PullsSettled != settled, "after %d seconds: %+v", seconds, report)
	}
	got := o.BootClock.Now()
	errorIf(t, got.BootID != boot.BootID || got.Since != boot.Since+3*time.Second, "%+v", got)

	// A pull that runs when the process ends has an unknown end, unless the next one goes on with it.
	intend(t, s, copy)
	for _, c := range []struct {
		continues bool
		want      waybill.PullState
	}{{true, waybill.PullRunning}, {false, waybill.PullStateUnknown}} {
		must(t, s.Close())
		o.ContinuesPulls = c.continues
		s = open(t, o)
		pulls, err = s.OpenPulls()
		errorIf(t, err != nil || len(pulls) != 1 || pulls[0].State != c.want, "%+v: %+v, %v", c, pulls, err)
	}
	must(t, s.DropOpenPull(pulls[0].ID, "the registry was never reached", waybill.DryRun))
	must(t, s.DropOpenPull(pulls[0].ID, "the registry was never reached"))
	pulls, err = s.OpenPulls()
	errorIf(t, len(pulls) != 0 || err != nil, "%+v, %v", pulls, err)
}

// Of a pull that was cut: whether it can bring anything any more, and what it did not bring.
func TestListsHaveWhatTheRuntimeShows(t *testing.T) {
	s := newStore(t)
	list := waybill.ImageList{Images: []waybill.ImageOnNode{{ID: ref, RepoTags: []string{image}}}, Complete: true}
	listed := func(change func(drawn *waybill.BootTime)) waybill.ObserveReport {
		token := value(s.BeginList())
		list.Token = &token
		change(&token.Drawn)
		report := value(s.ObserveImages(list))
		return report
	}
	intend(t, s, waybill.ImageCopy{Image: image})
	must(t, s.RecordImagePullFailed(waybill.ImageCopy{Image: image}, waybill.PullOutcomeUnknown, waybill.PullID(0)))
	report := listed(func(*waybill.BootTime) { list.Imported = []string{ref} })
	errorIf(t, report.Preloaded != 1 || report.PullsSettled != 0, "%+v", report)
	report = listed(func(drawn *waybill.BootTime) { list.QuietUntil, list.NamesToCome = drawn, []string{image} })
	errorIf(t, report.PullsSettled != 0, "%+v", report)
	report = listed(func(drawn *waybill.BootTime) { list.QuietUntil, list.NamesToCome = drawn, nil })
	errorIf(t, report.PullsSettled != 1, "%+v", report)
}

func TestFirstStart(t *testing.T) {
	o := optionsIn(scratch(t))
	o.ImagesOnNode = []waybill.ImageOnNode{{ID: ref, RepoTags: []string{image}}}
	o.Preloaded = []waybill.ImageOnNode{{RepoTags: []string{image}}}
	s := open(t, o)
	r := s.RecoveryReport()
	errorIf(t, !r.FirstStart || r.Observed == nil || r.Observed.Preloaded != 1, "%+v", r)
	entries, err := s.Ledger()
	errorIf(t, err != nil || len(entries) != 1 || entries[0].Source != "preloaded-list", "%+v, %v", entries, err)
	wantPull(t, s, app, withSecrets(), false)
}

func TestKubeletRulesHaveNoLedger(t *testing.T) {
	o := optionsIn(scratch(t))
	o.Rules = waybill.RulesKubelet
	s := open(t, o)
	report := observe(t, s, waybill.ImageOnNode{ID: ref, RepoTags: []string{image}})
	errorIf(t, report.Preloaded != 0 || report.NotJudgedBecause == "", "%+v", report)
	e, err := s.Explain(waybill.ImageCopy{ImageRef: ref})
	errorIf(t, err != nil || e.LedgerEntry != nil || e.Recorded, "%+v, %v", e, err)
}

func TestEvidenceOptionsAreChecked(t *testing.T) {
	for name, e := range map[string]waybill.Evidence{
		"grace": {Grace: -time.Nanosecond}, "window": {Window: -time.Hour}, "short names": {ShortNames: 7},
	} {
		o := optionsIn(scratch(t))
		o.Evidence = e
		s, err := waybill.Open(context.Background(), o)
		if s != nil {
			t.Errorf("%s: opened", name)
			s.Close()
		}
		wantCode(t, err, waybill.ErrInvalidArgument)
	}
}

// Whoever reads the clock while it is set gets one of both times, whole.
func TestManualBootClock(t *testing.T) {
	times := []waybill.BootTime{
		{BootID: [16]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, Since: 1},
		{BootID: [16]byte{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, Since: 2},
	}
	o := optionsIn(scratch(t))
	o.BootClock = waybill.NewManualBootClock(times[0])
	s := open(t, o)
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					o.BootClock.Set(times[i%2])
				}
			}
		})
	}
	for range 2000 {
		token := value(s.BeginList())
		fatalIf(t, token.Drawn != times[0] && token.Drawn != times[1], "%+v", token)
	}
	close(done)
	all.Wait()
	defer func() {
		errorIf(t, recover() == nil, "the zero clock was set")
	}()
	new(waybill.ManualBootClock).Set(times[0])
}
