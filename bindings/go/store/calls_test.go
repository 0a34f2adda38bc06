package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

const other = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"

var base = waybill.ListedImage{ID: other, RepoTags: []string{"registry.example.com/base:v1"}}

func TestCallsOfDecisions(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	pullApp(t, s)
	decision, err := s.MustPull(ctx, waybill.MustPull{Image: image, ImageRef: ref, Secrets: []waybill.Secret{secret}})
	errorIf(t, err != nil || decision.Pull || decision.Result != "credentialRecordFound" || decision.Reason != "secretHashMatches" || decision.Why == "",
		"%+v, %v", decision, err)
	ensured, err := s.EnsureImage(ctx, waybill.EnsureImage{PullPolicy: waybill.PullNever, Image: image, ImageRef: ref})
	errorIf(t, err != nil || ensured.Action != "ErrImageNeverPull" || ensured.Message == "" || ensured.Decision == nil, "%+v, %v", ensured, err)
	why, err := s.Explain(ctx, waybill.Explain{Image: image, ImageRef: ref, ServiceAccount: &waybill.ServiceAccount{Namespace: "n", Name: "a"}})
	errorIf(t, err != nil || why.Decision == nil || !why.Decision.Pull || why.Record == nil || len(why.Credentials) != 1 ||
		why.Credentials[0].Kind != waybill.CredentialSecret || why.Credentials[0].Standing != waybill.StandingCounts ||
		why.Credentials[0].Name != secret.Name || why.Credentials[0].Proof == nil || why.Credentials[0].Proof.Verified.IsZero(), "%+v, %v", why, err)
	why, err = s.Explain(ctx, waybill.Explain{Image: image, ImageRef: ref, Secrets: []waybill.Secret{}})
	errorIf(t, err != nil || why.Decision == nil || !why.Decision.Pull, "without credentials: %+v, %v", why, err)
	why, err = s.Explain(ctx, waybill.Explain{Image: image, ImageRef: ref})
	errorIf(t, err != nil || why.Decision != nil, "without a pod: %+v, %v", why, err)
}

func TestCallsOfPulls(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	begun, err := s.BeginPull(ctx, waybill.BeginPull{Image: image, RuntimeHandler: "kata"})
	errorIf(t, err != nil || begun.Pull == 0, "%+v, %v", begun, err)
	listed, err := s.ListPulls(ctx, waybill.ListPulls{Image: new(image), RuntimeHandler: "kata"})
	errorIf(t, err != nil || len(listed.Pulls) != 1 || listed.Pulls[0].Pull != begun.Pull || listed.Pulls[0].State != waybill.StateRunning ||
		time.Since(listed.Pulls[0].Began) > time.Hour || !listed.Pulls[0].Ended.IsZero(), "%+v, %v", listed, err)
	wantError(t, second(s.DropPulls(ctx, waybill.DropPulls{Pull: begun.Pull, Reason: "it runs"})), waybill.ErrConflict)
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

	// As the kubelet's accessor does.
	begun, err = s.BeginPull(ctx, waybill.BeginPull{Image: "intent:1", UnlessRunning: true})
	errorIf(t, err != nil || begun.Pull != 0, "%+v, %v", begun, err)
	dropped, err := s.DropPulls(ctx, waybill.DropPulls{Image: new("intent:1"), DryRun: true})
	errorIf(t, err != nil || dropped.Dropped != 1, "%+v, %v", dropped, err)
	wantError(t, second(s.DropPulls(ctx, waybill.DropPulls{Image: new("intent:1")})), waybill.ErrInvalidArgument) // no reason
	dropped, err = s.DropPulls(ctx, waybill.DropPulls{Image: new("intent:1"), Reason: "it is the test's"})
	errorIf(t, err != nil || dropped.Dropped != 1, "%+v, %v", dropped, err)
	wantError(t, s.EndPull(ctx, waybill.EndPull{Image: image}), waybill.ErrInvalidArgument) // no outcome
	must(t, s.EndPull(ctx, waybill.EndPull{Image: image, Outcome: waybill.OutcomeFailed, Error: "401 Unauthorized"}))
	metrics, err := s.GetMetrics(ctx)
	errorIf(t, err != nil || !strings.Contains(metrics.Text, `class="auth"} 1`), "%v, %s", err, metrics.Text)
}

func TestCallsOfImages(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	list, err := s.BeginList(ctx)
	errorIf(t, err != nil || list.Token == "", "%+v, %v", list, err)
	report, err := s.ClassifyImages(ctx, waybill.ClassifyImages{Images: []waybill.ListedImage{base}, Token: list.Token, Complete: true})
	errorIf(t, err != nil || report.Listed != 1 || report.Opened != 1 || len(report.Classified) != 1 || !report.Classified[0].Open, "%+v, %v", report, err)
	known, err := s.ListImages(ctx, waybill.ListImages{})
	errorIf(t, err != nil || len(known.Preloaded) != 1 || known.Preloaded[0].ImageRef != other || known.Preloaded[0].Source == "" ||
		!slices.Equal(known.Preloaded[0].Names, base.RepoTags), "%+v, %v", known, err)
	changed, err := s.DenyImage(ctx, waybill.DenyImage{ImageRef: other, Reason: "not preloaded"})
	errorIf(t, err != nil || !changed.Changed, "%+v, %v", changed, err)
	known, err = s.ListImages(ctx, waybill.ListImages{ImageRef: other})
	errorIf(t, err != nil || len(known.Records) != 1 || known.Records[0].ClosedBecause == "" || !known.Records[0].ClosedByOperator, "%+v, %v", known, err)
	allowed, err := s.AllowImage(ctx, waybill.AllowImage{Image: base, Reason: "it is the test's"})
	errorIf(t, err != nil || !allowed.Changed, "%+v, %v", allowed, err)
	wantReason(t, s, store.ImageCopy{Image: base.RepoTags[0], ImageRef: other}, store.PodCredentials{}, true, "policyKnownPreloaded")

	put := waybill.PulledRecord{ImageRef: ref, Updated: time.Unix(1_700_000_000, 0), Credentials: map[string]waybill.PulledWith{
		name: {Secrets: []waybill.Secret{secret}}, "a": {EveryPod: true}, "b": {ServiceAccounts: []waybill.ServiceAccount{{Namespace: "n", Name: "s", UID: "u"}}}, "c": {}}}
	must(t, s.PutImage(ctx, waybill.PutImage{Record: put}))
	for hashes, want := range map[bool]string{false: "", true: secret.Hash} {
		known, err = s.ListImages(ctx, waybill.ListImages{ImageRef: ref, Hashes: hashes})
		if err != nil || len(known.Records) != 1 {
			t.Fatalf("%+v, %v", known, err)
		}
		got := known.Records[0]
		errorIf(t, !got.Updated.Equal(put.Updated) || len(got.Credentials) != 4 || !got.Credentials["a"].EveryPod ||
			got.Credentials[name].Secrets[0].Hash != want || got.Credentials[name].Secrets[0].UID != secret.UID, "hashes %v: %+v", hashes, got)
	}
	must(t, s.DeleteImage(ctx, waybill.DeleteImage{ImageRef: ref}))
	must(t, s.DeleteImage(ctx, waybill.DeleteImage{ImageRef: ref}))
	known, err = s.ListImages(ctx, waybill.ListImages{ImageRef: ref})
	errorIf(t, err != nil || len(known.Records) != 0, "%+v, %v", known, err)

	pullApp(t, s)
	wantError(t, second(s.PruneBefore(ctx, waybill.PruneBefore{Images: []waybill.ListedImage{base}})), waybill.ErrInvalidArgument)
	pruned, err := s.PruneBefore(ctx, waybill.PruneBefore{Images: []waybill.ListedImage{base}, Before: time.Now().Add(time.Hour), DryRun: true})
	errorIf(t, err != nil || pruned.Deleted == 0, "%+v, %v", pruned, err)
}

func TestCallsOfRevocations(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	pullApp(t, s)
	revoked, err := s.Revoke(ctx, waybill.Revoke{Kind: waybill.RevokeSecret, Namespace: "team-a", Name: "registry", UID: secret.UID})
	errorIf(t, err != nil || revoked.Images != 1 || revoked.Secrets != 1 || !revoked.Stored, "%+v, %v", revoked, err)
	wantReason(t, s, app, withSecrets(secret), false, "entryWithoutCredentials")
	listed, err := s.ListRevocations(ctx, waybill.ListRevocations{})
	errorIf(t, err != nil || len(listed.Revocations) != 1 || listed.Revocations[0].Kind != waybill.RevokeSecret || listed.Revocations[0].Name != "registry" ||
		listed.Revocations[0].Since.IsZero(), "%+v, %v", listed, err)
	for _, what := range []waybill.Revoke{
		{Kind: waybill.RevokeServiceAccount, Namespace: "n", Name: "a"}, {Kind: waybill.RevokeNamespace, Namespace: "n"},
		{Kind: waybill.RevokeImage, ImageRef: ref}, {Kind: waybill.RevokeCredential, Hash: secret.Hash}} {
		must(t, second(s.Revoke(ctx, what)))
	}
	wantError(t, second(s.Revoke(ctx, waybill.Revoke{Kind: "all"})), waybill.ErrInvalidArgument)

	pullApp(t, s)
	list, err := s.BeginList(ctx)
	must(t, err)
	none := []waybill.CredentialName{}
	part := waybill.RevokeMissing{Secrets: []waybill.CredentialName{{Namespace: "team-b", Name: "other"}}, ServiceAccounts: none, Token: list.Token, More: true}
	missing, err := s.RevokeMissing(ctx, part)
	errorIf(t, err != nil || missing.Missing != 0, "%+v, %v", missing, err)
	wantReason(t, s, app, withSecrets(secret), true, "secretHashMatches")
	wantError(t, second(s.RevokeMissing(ctx, waybill.RevokeMissing{Secrets: none, ServiceAccounts: none, Token: list.Token, PartsBefore: 2})), waybill.ErrInvalidArgument) // a part was lost
	_, err = s.RevokeMissing(ctx, part)
	must(t, err)
	last := waybill.RevokeMissing{Secrets: none, ServiceAccounts: []waybill.CredentialName{{Namespace: "team-b", Name: "a"}}, Token: list.Token, PartsBefore: 1}
	missing, err = s.RevokeMissing(ctx, last)
	errorIf(t, err != nil || missing.Missing != 1 || missing.Revoked.Images != 1, "%+v, %v", missing, err)
	wantReason(t, s, app, withSecrets(secret), false, "entryWithoutCredentials")
}

func TestCallsOfRuntimesAndPods(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	runtimes, err := s.ListRuntimes(ctx)
	errorIf(t, err != nil || len(runtimes.Handlers) != 2, "%+v, %v", runtimes, err)
	guest := append(runtimes.Handlers, waybill.RuntimeHandler{Name: "vm", GuestPlatform: &waybill.Platform{OS: "linux", Architecture: "amd64"}})
	set, err := s.SetRuntimes(ctx, waybill.SetRuntimes{Handlers: guest})
	errorIf(t, err != nil || !slices.Equal(set.Added, []string{"vm"}), "%+v, %v", set, err)
	runtimes, err = s.ListRuntimes(ctx)
	errorIf(t, err != nil || !slices.ContainsFunc(runtimes.Handlers, func(h waybill.RuntimeHandler) bool {
		return h.Name == "vm" && h.GuestPlatform != nil && h.GuestPlatform.Architecture == "amd64"
	}), "%+v, %v", runtimes, err)

	for _, users := range []*bool{nil, new(true)} {
		claimed, err := s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: podUID, HostUsers: users})
		errorIf(t, err != nil || claimed.Mapping != nil, "%+v, %v", claimed, err)
	}
	claimed, err := s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: podUID, HostUsers: new(false)})
	errorIf(t, err != nil || claimed.Mapping == nil || claimed.Mapping.Length != 65536 || claimed.Mapping.HostID < 65536, "%+v, %v", claimed, err)
	wantError(t, second(s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: "p", HostUsers: new(false), RuntimeHandler: "kata"})), waybill.ErrInvalidArgument)
	listed, err := s.ListUserNamespaces(ctx, waybill.ListUserNamespaces{})
	errorIf(t, err != nil || len(listed.Mappings) != 1 || listed.Mappings[0].HostID != claimed.Mapping.HostID || listed.Mappings[0].Created.IsZero() ||
		listed.Mappings[0].Relation != waybill.RelationInPool || listed.Use.Used != 1 || listed.Use.IDsPerPod != 65536, "%+v, %v", listed, err)
	wantError(t, s.AssignUserNamespace(ctx, waybill.AssignUserNamespace{PodUID: "pod-2", HostID: claimed.Mapping.HostID, Length: 65536}), waybill.ErrConflict)
	released, err := s.ReleaseUserNamespace(ctx, waybill.ReleaseUserNamespace{PodUID: podUID})
	errorIf(t, err != nil || !released.Released, "%+v, %v", released, err)
	must(t, second(s.ClaimUserNamespace(ctx, waybill.ClaimUserNamespace{PodUID: "gone", HostUsers: new(false)})))
	list, err := s.BeginList(ctx)
	must(t, err)
	cleaned, err := s.CleanUpUserNamespaces(ctx, waybill.CleanUpUserNamespaces{Existing: []string{"another"}, Running: []string{}, Token: list.Token})
	errorIf(t, err != nil || cleaned.Released != 1 || !slices.Equal(cleaned.ReleasedPods, []string{"gone"}), "%+v, %v", cleaned, err)
}

func TestCallsOfTheStore(t *testing.T) {
	o, ctx := optionsIn(scratch(t)), t.Context()
	o.Settings = waybill.Settings{Mode: waybill.ModeKubelet, MaxAgeSeconds: 3600, MapBytes: 64 << 20, ShortNamesAnywhere: new(false),
		Policy: waybill.Policy{Verification: waybill.NeverVerifyAllowlistedImages, Allowlist: []string{"registry.example.com/*"}, RegistryOnly: []string{"*"}},
		Pool:   waybill.Pool{FirstID: 131072, IDCount: 65536 * 4, MaxPods: 4}}
	s := open(t, o)
	status, err := s.GetStatus(ctx, waybill.GetStatus{})
	got := status.Settings
	errorIf(t, err != nil || got.Mode != waybill.ModeKubelet || got.MaxAgeSeconds != 3600 || *got.ShortNamesAnywhere || got.Policy.RegistryOnly[0] != "*" ||
		got.Policy.Verification != waybill.NeverVerifyAllowlistedImages || got.Policy.Allowlist[0] != "registry.example.com/*" || got.Pool.FirstID != 131072,
		"%+v, %v", got, err)
	errorIf(t, status.StoreUUID == "" || status.SchemaVersion == 0 || status.OwnerPID != int64(os.Getpid()) || status.Opening == nil || !status.Opening.Created ||
		status.Counts.MapBytes != 64<<20 || status.Streams != nil, "%+v", status)
	brief, err := s.GetStatus(ctx, waybill.GetStatus{Brief: true})
	errorIf(t, err != nil || brief.Opening != nil || len(brief.History) != 0 || brief.StoreUUID != status.StoreUUID || brief.Counts.MapBytes != 64<<20, "%+v, %v", brief, err)
	must(t, s.Close())
	o.Settings = waybill.Settings{MapBytes: 64 << 20}
	s = open(t, o)

	must(t, s.Flush(ctx))
	must(t, s.NoteUnrecordedPeriod(ctx, waybill.NoteUnrecordedPeriod{Reason: "the test"}))
	status, err = s.GetStatus(ctx, waybill.GetStatus{})
	errorIf(t, err != nil || !status.Degraded || len(status.History) == 0 || status.History[0].At.IsZero(), "%+v, %v", status, err)
	accepted, err := s.AcceptLoss(ctx, waybill.AcceptLoss{Reason: "the test", Images: []waybill.ListedImage{base}, AllowAll: true})
	errorIf(t, err != nil || accepted.Opened != 1, "%+v, %v", accepted, err)
	verified, err := s.Verify(ctx)
	errorIf(t, err != nil || !verified.Sound || verified.Pages == 0, "%+v, %v", verified, err)
	backup, err := s.MakeBackup(ctx, waybill.MakeBackup{})
	errorIf(t, err != nil || backup.SchemaVersion != status.SchemaVersion || backup.Bytes == 0, "%+v, %v", backup, err)
	written, err := s.MakeBackup(ctx, waybill.MakeBackup{File: filepath.Join(filepath.Dir(o.Directory), "written.mdb")})
	errorIf(t, err != nil || filepath.Base(written.Path) != "written.mdb", "%+v, %v", written, err)
	kubelets := filepath.Join(filepath.Dir(o.Directory), "kubelet")
	must(t, os.Mkdir(kubelets, 0o700))
	pullApp(t, s)
	exported, err := s.ExportKubeletFiles(ctx, waybill.ExportKubeletFiles{KubeletDirectory: kubelets, Images: []waybill.ListedImage{base, {ID: ref, RepoTags: []string{image}}}})
	errorIf(t, err != nil || exported.Records == 0, "%+v, %v", exported, err)
	must(t, s.Close())

	migrated, err := store.Library.Migrate(ctx, waybill.Migrate{Directory: o.Directory, DryRun: true})
	errorIf(t, err != nil || migrated.From != backup.SchemaVersion || migrated.To != migrated.From, "%+v, %v", migrated, err)
	backups, err := store.Library.ListBackups(ctx, waybill.ListBackups{Directory: o.Directory})
	errorIf(t, err != nil || len(backups.Backups) != 1 || backups.Backups[0] != backup, "%+v, %v", backups, err)
	restored, err := store.Library.Restore(ctx, waybill.Restore{Directory: o.Directory, Backup: backup.Path})
	errorIf(t, err != nil || restored.BackupCommit != backup.Commit || restored.DegradedBecause == "", "%+v, %v", restored, err)
}

func TestCallsThatNeedNoStore(t *testing.T) {
	root, ctx := scratch(t), t.Context()
	must(t, os.MkdirAll(filepath.Join(root, "etc/containerd"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "etc/containerd/config.toml"), []byte(`
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."*"]
endpoint = ["http://127.0.0.1:5000", "https://registry.example.com"]
`), 0o644))
	checks, err := store.Library.WhoChecks(ctx, waybill.WhoChecks{Image: image, Runtime: "containerd 1.7.27", Root: root})
	errorIf(t, err != nil || checks.VerifiedBy != waybill.VerifiedByMirror || checks.Registry != "registry.example.com" || len(checks.Others) != 1 ||
		!checks.Others[0].Insecure || checks.Others[0].Host != "127.0.0.1:5000", "%+v, %v", checks, err)
	index := `{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "` + other + `", "size": 7,
		"platform": {"os": "linux", "architecture": "amd64"}}]}`
	chosen, err := store.Library.ChooseManifest(ctx, waybill.ChooseManifest{Index: index, Host: waybill.Platform{OS: "linux", Architecture: "amd64"}})
	errorIf(t, err != nil || chosen.Digest != other || chosen.Size != 7, "%+v, %v", chosen, err)
	wantError(t, second(store.Library.ChooseManifest(ctx, waybill.ChooseManifest{Index: index, Host: waybill.Platform{OS: "linux", Architecture: "s390x"}})), waybill.ErrNotFound)
	parsed, err := store.Library.ParseImage(ctx, waybill.ParseImage{Image: "nginx:1@" + other})
	errorIf(t, err != nil || parsed != (waybill.ParseImageAnswer{Name: "nginx", Path: "nginx", Tag: "1", Digest: other, Full: "docker.io/library/nginx:1@" + other}), "%+v, %v", parsed, err)
	wantError(t, second(store.Library.ParseImage(ctx, waybill.ParseImage{Image: "No Image"})), waybill.ErrInvalidArgument)
	for url, refused := range map[string]bool{"http://127.0.0.1:10250/exec/x": false, "http://192.0.2.1/exec/x": true} {
		address, err := store.Library.CheckStreamUrl(ctx, waybill.CheckStreamUrl{URL: url})
		errorIf(t, err != nil || (address.Refusal != "") != refused || !refused && (address.Host != "127.0.0.1" || address.Port != 10250 || address.Path != "/exec/x"),
			"%s: %+v, %v", url, address, err)
	}
	plan, err := store.Library.PlanStreams(ctx, waybill.PlanStreams{APIServer: "1.36", Kubelet: "1.36"})
	errorIf(t, err != nil || plan.Outcome == "" || plan.Skew != "supported", "%+v, %v", plan, err)
	wantError(t, second(store.Library.GetStatus(ctx, waybill.GetStatus{})), waybill.ErrInvalidArgument) // needs one
}

func TestStreams(t *testing.T) {
	o, ctx := store.StreamsOptions{Directory: filepath.Join(scratch(t), "streams"), LossMarker: store.NoLossMarker, MaxOpen: 2,
		TimeToLiveMS: 60_000, ManualClock: true, UnixNs: 1_900_000_000_000_000_000, BootNs: 1}, t.Context()
	s, err := store.OpenStreams(o)
	must(t, err)
	defer s.Close()
	request := waybill.PrepareStream{Kind: waybill.StreamExec, ContainerID: "c", Command: []string{"sh", "-c", "x"}, Stdout: true, TTY: true}
	prepared, err := s.PrepareStream(ctx, request)
	errorIf(t, err != nil || len(prepared.Token) != 32, "%+v, %v", prepared, err)
	wantError(t, second(s.ConsumeStream(ctx, waybill.ConsumeStream{Token: prepared.Token, Kind: waybill.StreamAttach})), waybill.ErrNotFound)
	listed, err := s.ListStreams(ctx)
	errorIf(t, err != nil || len(listed.Streams) != 1 || listed.Streams[0].Kind != waybill.StreamExec || listed.Streams[0].ExpiresInMS != 60_000, "%+v, %v", listed, err)
	got, err := s.ConsumeStream(ctx, waybill.ConsumeStream{Token: prepared.Token, Kind: waybill.StreamExec})
	errorIf(t, err != nil || !slices.Equal(got.Command, request.Command) || !got.TTY || got.ContainerID != "c", "%+v, %v", got, err)
	wantError(t, second(s.ConsumeStream(ctx, waybill.ConsumeStream{Token: prepared.Token, Kind: waybill.StreamExec})), waybill.ErrNotFound)

	forward := waybill.PrepareStream{Kind: waybill.StreamPortForward, PodSandboxID: "s", Ports: []int64{80, 443}}
	for range 2 {
		must(t, second(s.PrepareStream(ctx, forward)))
	}
	_, err = s.PrepareStream(ctx, forward)
	var full *waybill.Error
	errorIf(t, !errors.As(err, &full) || !errors.Is(err, waybill.ErrLimitExceeded) || full.RetryAfter() <= 0 || full.RetryAfter() > time.Minute+time.Millisecond, "%v", err)
	must(t, s.SetTime(time.Unix(1_900_000_000, 0), 2*time.Minute))
	must(t, second(s.PrepareStream(ctx, forward)))
	status, err := s.GetStatus(ctx, waybill.GetStatus{})
	errorIf(t, err != nil || status.Streams == nil, "%+v, %v", status, err)
	wantError(t, s.Flush(ctx), waybill.ErrInvalidArgument)
	wantError(t, s.Serve(), waybill.ErrInvalidArgument)
}

func TestRateLimit(t *testing.T) {
	limit := store.NewRateLimit(1000, 100, 0)
	errorIf(t, limit.Take(150, 0) != 100 || limit.Take(1, 0) != 0, "more than the burst")
	errorIf(t, limit.Wait(50, 0) != 50*time.Millisecond, "wait %v", limit.Wait(50, 0))
	limit.GiveBack(30)
	errorIf(t, limit.Take(50, 10*time.Millisecond) != 40, "what was given back is lost")
	errorIf(t, new(store.RateLimit).Take(1<<40, 0) != 1<<40, "the zero value has a limit")
}
