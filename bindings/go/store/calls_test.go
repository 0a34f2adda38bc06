package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

const other = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

// interface_test.go compares each member of each call; here values of each kind go through the library and come back.
func TestValuesCross(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	begun, err := s.BeginPull(ctx, waybill.BeginPull{Image: image, RuntimeHandler: "kata"})
	errorIf(t, err != nil || begun.Pull == 0, "%+v, %v", begun, err)
	listed, err := s.ListPulls(ctx, waybill.ListPulls{Image: new(image), RuntimeHandler: "kata"})
	errorIf(t, err != nil || len(listed.Pulls) != 1 || listed.Pulls[0].Pull != begun.Pull || listed.Pulls[0].State != waybill.StateRunning ||
		time.Since(listed.Pulls[0].Began) > time.Hour || !listed.Pulls[0].Ended.IsZero(), "%+v, %v", listed, err)
	end := time.Unix(1_900_000_000, 0).UTC()
	must(t, s.EndPull(ctx, waybill.EndPull{
		Image: image, ImageRef: ref, RuntimeHandler: "kata", Pull: begun.Pull, Outcome: waybill.OutcomePulled,
		Credentials: &waybill.PulledWith{ServiceAccounts: []waybill.ServiceAccount{{Namespace: "n", Name: "a", UID: "u"}}},
		VerifiedBy:  waybill.VerifiedByMirror, ValidUntil: end, ManifestDigest: other,
		Platform: &waybill.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"},
		Listed:   &waybill.ListedImage{ID: ref, RepoDigests: []string{"registry.example.com/team-a/app@" + other}},
	}))
	known, err := s.ListImages(ctx, waybill.ListImages{ImageRef: ref, RuntimeHandler: "kata"})
	if err != nil || len(known.Records) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	record := known.Records[0]
	accounts := record.Credentials[name].ServiceAccounts
	errorIf(t, record.ManifestDigest != other || record.Platform == nil || record.Platform.Variant != "v8" || record.RuntimeHandler != "kata" ||
		len(accounts) != 1 || accounts[0].Proof == nil || accounts[0].Proof.VerifiedBy != waybill.VerifiedByMirror || !accounts[0].Proof.ValidUntil.Equal(end),
		"%+v", record)

	put := waybill.PulledRecord{ImageRef: ref, Updated: time.Unix(1_700_000_000, 0), Credentials: map[string]waybill.PulledWith{
		name: {Secrets: []waybill.Secret{secret}}, "a": {EveryPod: true}, "c": {}}}
	must(t, s.PutImage(ctx, waybill.PutImage{Record: put}))
	known, err = s.ListImages(ctx, waybill.ListImages{ImageRef: ref, Hashes: true})
	errorIf(t, err != nil || len(known.Records) != 1 || !known.Records[0].Updated.Equal(put.Updated) || len(known.Records[0].Credentials) != 3 ||
		!known.Records[0].Credentials["a"].EveryPod || known.Records[0].Credentials[name].Secrets[0].Hash != secret.Hash, "%+v, %v", known, err)

	// No list and an empty one are two questions.
	why, err := s.Explain(ctx, waybill.Explain{Image: image, ImageRef: ref, Secrets: []waybill.Secret{}})
	errorIf(t, err != nil || why.Decision == nil || !why.Decision.Pull, "without credentials: %+v, %v", why, err)
	why, err = s.Explain(ctx, waybill.Explain{Image: image, ImageRef: ref})
	errorIf(t, err != nil || why.Decision != nil || why.Record == nil, "without a pod: %+v, %v", why, err)
	decision, err := s.MustPull(ctx, waybill.MustPull{Image: image, ImageRef: ref, Secrets: []waybill.Secret{secret}})
	errorIf(t, err != nil || decision.Pull || decision.Result != "credentialRecordFound" || decision.Reason != "secretHashMatches", "%+v, %v", decision, err)
	for users, mapped := range map[*bool]bool{nil: false, new(true): false, new(false): true} {
		claimed, err := s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: podUID, HostUsers: users})
		errorIf(t, err != nil || (claimed.Mapping != nil) != mapped, "%+v, %v", claimed, err)
	}
}

func TestCallsThatNeedNoStore(t *testing.T) {
	ctx := t.Context()
	parsed, err := store.Library.ParseImage(ctx, waybill.ParseImage{Image: "nginx:1@" + other})
	errorIf(t, err != nil || parsed != (waybill.ParseImageAnswer{Name: "nginx", Path: "nginx", Tag: "1", Digest: other, Full: "docker.io/library/nginx:1@" + other}), "%+v, %v", parsed, err)
	wantError(t, second(store.Library.GetStatus(ctx, waybill.GetStatus{})), waybill.ErrInvalidArgument) // needs one
}

// A store of streams, and an error with all its parts.
func TestStreams(t *testing.T) {
	o, ctx := store.StreamsOptions{Directory: filepath.Join(scratch(t), "streams"), LossMarker: store.NoLossMarker, MaxOpen: 1,
		TimeToLiveMS: 60_000, ManualClock: true, UnixNs: 1_900_000_000_000_000_000, BootNs: 1}, t.Context()
	s, err := store.OpenStreams(o)
	must(t, err)
	defer s.Close()
	request := waybill.PrepareStream{Kind: waybill.StreamPortForward, PodSandboxID: "s", Ports: []int64{80, 443}}
	prepared, err := s.PrepareStream(ctx, request)
	errorIf(t, err != nil || len(prepared.Token) != 32, "%+v, %v", prepared, err)
	_, err = s.PrepareStream(ctx, request)
	var full *waybill.Error
	errorIf(t, !errors.As(err, &full) || !errors.Is(err, waybill.ErrLimitExceeded) || full.RetryAfter() <= 0 || full.RetryAfter() > time.Minute+time.Millisecond ||
		full.Message == "" || full.Hint == "" || !strings.Contains(full.Error(), "; "+full.Hint), "%v", err)
	must(t, s.SetTime(time.Unix(1_900_000_000, 0), 2*time.Minute))
	must(t, second(s.PrepareStream(ctx, request)))
	wantError(t, second(s.ConsumeStream(ctx, waybill.ConsumeStream{Token: prepared.Token, Kind: request.Kind})), waybill.ErrNotFound)
	status, err := s.GetStatus(ctx, waybill.GetStatus{})
	errorIf(t, err != nil || status.Streams == nil, "%+v, %v", status, err)
	wantError(t, s.Flush(ctx), waybill.ErrInvalidArgument)
	wantError(t, s.Serve(), waybill.ErrInvalidArgument)
}
