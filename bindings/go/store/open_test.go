package store_test

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

func TestOptionsAreChecked(t *testing.T) {
	directory := scratch(t)
	wantError(t, second(store.Open(store.Options{})), waybill.ErrInvalidArgument)
	wantError(t, second(store.Observe(filepath.Join(directory, "none"))), waybill.ErrNotFound)
	for want, change := range map[error]func(*store.Options){
		waybill.ErrInvalidArgument: func(o *store.Options) { o.LossMarker = "" },
		waybill.ErrNotFound:        func(o *store.Options) { o.Create = new(false) },
		waybill.ErrIO:              func(o *store.Options) { o.Directory = strings.Repeat("/x", 1<<19) },
	} {
		o := optionsIn(directory)
		change(&o)
		s, err := store.Open(o)
		errorIf(t, s != nil, "%v: a store beside an error", want)
		wantError(t, err, want)
	}
	o := optionsIn(directory)
	o.Settings = waybill.Settings{Pool: waybill.Pool{IDsPerPod: 1}}
	wantError(t, second(store.Open(o)), waybill.ErrInvalidArgument)
}

// What is left out is not written, and what is given is; empty lists say more than none.
func TestTheJSONOfOptions(t *testing.T) {
	for want, options := range map[string]any{
		`{}`: store.Options{Directory: "d", LossMarker: "m"},
		`{"settings":{"mode":"kubelet","pool":{"enabled":false}},"images":[],"runtimes":[],"create":false,"migrate":true}`: store.Options{
			Settings: waybill.Settings{Mode: waybill.ModeKubelet, Pool: waybill.Pool{Enabled: new(false)}},
			Images:   []waybill.ListedImage{}, Runtimes: []waybill.RuntimeHandler{}, Create: new(false), Migrate: new(true)},
		`{"keepsTokens":true}`: store.StreamsOptions{KeepsTokens: true},
	} {
		text, err := json.Marshal(options)
		errorIf(t, err != nil || string(text) != want, "%s, not %s; %v", text, want, err)
	}
}

func TestASecondOwnerAndAnObserver(t *testing.T) {
	o, ctx := optionsIn(scratch(t)), t.Context()
	s := open(t, o)
	pullApp(t, s)
	errorIf(t, s.Options().Directory != o.Directory, "%+v", s.Options())
	wantError(t, second(store.Open(o)), waybill.ErrOwned)
	must(t, s.Close())
	observer, err := store.Observe(o.Directory)
	must(t, err)
	wantReason(t, observer, app, withSecrets(secret), true, "secretHashMatches")
	wantError(t, second(observer.BeginPull(ctx, waybill.BeginPull{Image: image})), waybill.ErrNotOwner)
	wantError(t, observer.Serve(), waybill.ErrNotOwner)
	must(t, observer.Close())
	must(t, observer.Close())
	wantError(t, new(store.Store).Close(), waybill.ErrClosed)
	wantError(t, new(store.Store).Flush(ctx), waybill.ErrClosed)
}

func TestAManualClock(t *testing.T) {
	o, ctx := optionsIn(scratch(t)), t.Context()
	now := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	o.ManualClock, o.UnixNs, o.BootNs = true, now.UnixNano(), int64(time.Hour)
	o.Settings.MaxAgeSeconds = 3600
	s := open(t, o)
	pullApp(t, s)
	known, err := s.ListImages(ctx, waybill.ListImages{ImageRef: ref})
	errorIf(t, err != nil || len(known.Records) != 1 || !known.Records[0].Updated.Equal(now), "%+v, %v", known, err)
	wantReason(t, s, app, withSecrets(secret), true, "secretHashMatches")
	must(t, s.SetTime(now.Add(2*time.Hour), 3*time.Hour))
	wantReason(t, s, app, withSecrets(secret), false, "proofTooOld")
	wantError(t, newStore(t).SetTime(now, 0), waybill.ErrInvalidArgument)
}

func TestHashCredentials(t *testing.T) {
	one, err := store.HashCredentials("user", "password", "")
	errorIf(t, err != nil || len(one) != 64, "%q, %v", one, err)
	other, err := store.HashCredentials("user", "password2\xff", "")
	errorIf(t, err != nil || len(other) != 64 || other == one, "%q, %v", other, err)
	errorIf(t, store.Version() == "", "no version")
}

// The garbage collector closes a store that was dropped.
func TestADroppedStoreIsClosed(t *testing.T) {
	o := optionsIn(scratch(t))
	func() {
		s, err := store.Open(o)
		must(t, err)
		pullApp(t, s)
	}()
	for range 200 {
		runtime.GC()
		if s, err := store.Open(o); err == nil {
			must(t, s.Close())
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it is still open")
}
