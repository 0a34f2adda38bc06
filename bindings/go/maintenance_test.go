package waybill_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"waybill.dev/go"
)

func TestMetricsOfAnObserver(t *testing.T) {
	o := optionsIn(scratch(t))
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	must(t, s.Close())
	observer := value(waybill.Observe(waybill.ObserveOptions{Directory: o.Directory}))
	m := observer.Metrics()
	errorIf(t, m.LiveOwner || !m.Readable || m.OnDiskPulledRecords != 1, "%+v", m)
	text, err := observer.MetricsText()
	errorIf(t, err != nil || strings.Contains(text, "kubelet_") || !strings.Contains(text, "waybill_records{runtime_handler=\"(default)\"} 1\n"), "%s, %v", text, err)
	must(t, observer.Close())
}

func TestStateOfAStore(t *testing.T) {
	ctx := context.Background()
	o := optionsIn(scratch(t))
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{NodePodsAccessible: true})
	intend(t, s, waybill.ImageCopy{Image: "other:v1"})
	s.MustAttemptPull(app, withSecrets())

	statistics, err := s.Statistics()
	errorIf(t, err != nil || statistics.Records != 1 || statistics.Intents != 1 || statistics.SchemaVersion != waybill.NewestSchema() || len(statistics.StoreUUID) != 36 || statistics.MapBytes != 64<<20, "%+v, %v", statistics, err)
	if m := s.Metrics(); m.OnDiskPulledRecords != 1 || m.OnDiskPullIntents != 1 || m.MustPullChecks[waybill.CheckCredentialRecordFound] != 1 || m.InMemoryPullIntentsUsagePercent <= 0 {
		t.Errorf("%+v", m)
	} else if !m.LiveOwner || !m.Readable || m.SchemaVersion != waybill.NewestSchema() || m.CommitSequence != statistics.CommitSequence ||
		!reflect.DeepEqual(m.RecordsByHandler, []waybill.HandlerRecords{{Records: 1}}) || m.OpenPullsByState[waybill.PullRunning] != 1 ||
		m.UsedBytes == 0 || m.Counters == nil || m.Counters.Decisions[waybill.ReasonNodePodsAccessible] != 1 ||
		m.Counters.MustPullChecks != m.MustPullChecks || m.Counters.ReverificationRatio != -1 || m.LastOpening == nil || !m.LastOpening.Created || m.LastOpening.At.IsZero() {
		t.Errorf("%+v, %+v, %+v", m, m.Counters, m.LastOpening)
	}
	report, err := s.Verify(ctx)
	errorIf(t, err != nil || !report.Sound || report.Values == 0 || len(report.Findings) != 0, "%+v, %v", report, err)
	trust, err := s.Trust()
	errorIf(t, err != nil || trust.Distrustful, "%+v, %v", trust, err)
	wantCode(t, second(s.ClearDistrust("", waybill.ClearOptions{})), waybill.ErrInvalidArgument)
	must(t, second(s.ClearDistrust("no bytes of UTF-8: \xff", waybill.ClearOptions{})))
	trust, err = s.Trust()
	errorIf(t, err != nil || len(trust.Journal) != 1 || trust.Journal[0].Reason != "no bytes of UTF-8: \xff" || trust.Journal[0].At.IsZero() ||
		trust.Journal[0].Kind != waybill.TrustOperator || trust.Journal[0].Action != waybill.Trusted, "%+v, %v", trust, err)
	q, err := s.ListQuarantine()
	errorIf(t, len(q) != 0 || err != nil, "%+v, %v", q, err)
	p, err := s.ListPreloaded()
	errorIf(t, len(p) != 0 || err != nil, "%+v, %v", p, err)
}

// To the kubelet's files and back, beside a file that can't be read.
func TestExportAndImport(t *testing.T) {
	ctx := context.Background()
	directory := scratch(t)
	kubelet := filepath.Join(directory, "kubelet")
	must(t, os.MkdirAll(kubelet, 0o700))
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	report, err := s.Export(ctx, waybill.ExportOptions{
		KubeletDirectory: kubelet, ImagesOnNode: []waybill.ImageOnNode{{ID: ref, RepoTags: []string{image}}},
	})
	if err != nil || report.Records != 1 || report.Made != 0 || report.Spellings != 1 { // the ref without "sha256:"
		t.Fatalf("%+v, %v", report, err)
	}
	broken := "sha256-" + hexSHA256("broken")
	must(t, os.WriteFile(filepath.Join(kubelet, "image_manager", "pulled", broken), []byte("{"), 0o600))

	o := optionsIn(directory)
	o.KubeletDirectory = kubelet
	o.ImagesOnNode, o.AllowEmpty = []waybill.ImageOnNode{}, true
	imported := open(t, o)
	recovery := imported.RecoveryReport()
	i := recovery.Import
	errorIf(t, i.Records+i.KnownRefs != 2 || i.Quarantined != 1 || len(i.Problems) != 1 || i.FilesSeen != 3, "%+v", recovery)
	wantPull(t, imported, app, withSecrets(secret), false)
	q, err := imported.ListQuarantine()
	errorIf(t, err != nil || len(q) != 1 || q[0].Kind != waybill.QuarantinedImageRef || q[0].SHA256 != hexSHA256("broken") || !strings.Contains(q[0].Source, broken) || q[0].Since.IsZero(), "%+v, %v", q, err)
}

func TestMigrateAndRestore(t *testing.T) {
	ctx := context.Background()
	o := optionsIn(scratch(t))
	o.RuntimeHandlers = []waybill.RuntimeHandler{{Name: "runc", IsDefault: true}, {Name: "kata"}}
	s := open(t, o)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	must(t, s.PutIntent(waybill.ImageCopy{Image: "other:v1", RuntimeHandler: "kata"}))
	wantCode(t, second(waybill.Migrate(ctx, waybill.MigrateOptions{Directory: o.Directory, To: 1})), waybill.ErrOwned)
	must(t, s.Close())

	newest := waybill.NewestSchema()
	down := waybill.MigrateOptions{Directory: o.Directory, To: waybill.OldestSchema(), DryRun: true, MapBytes: o.MapBytes}
	report, err := waybill.Migrate(ctx, down)
	errorIf(t, err != nil || report.From != newest || report.To != waybill.OldestSchema() || report.Backup != "" || len(report.Steps) != int(newest-waybill.OldestSchema()), "dry: %+v, %v", report, err)
	down.DryRun = false
	wantCode(t, second(waybill.Migrate(ctx, down)), waybill.ErrConflict)
	down.AcceptLoss = true
	report, err = waybill.Migrate(ctx, down)
	fatalIf(t, err != nil || report.Backup == "" || len(report.Losses) == 0 || report.Steps[0].Name == "", "%+v, %v", report, err)

	stays := o
	stays.NoMigration = true
	stays.SkipUnreadable = true // of what can be read it skips nothing
	wantCode(t, second(waybill.Open(ctx, stays)), waybill.ErrOlderSchema)
	s = open(t, o)
	m := s.RecoveryReport().Migration
	errorIf(t, m == nil || m.To != newest || m.Backup == "", "%+v", m)
	must(t, s.Close())

	backups, err := waybill.ListBackups(o.Directory)
	fatalIf(t, err != nil || len(backups) != 2 || backups[0].Path == "" || backups[0].Bytes == 0, "%+v, %v", backups, err)
	restored, err := waybill.Restore(ctx, waybill.RestoreOptions{Directory: o.Directory, Backup: backups[0].Path, MapBytes: o.MapBytes})
	errorIf(t, err != nil || restored.Records != 2 || restored.ReplacedPath == "" || restored.DistrustReason == "", "%+v, %v", restored, err)
	s = open(t, o)
	r := s.RecoveryReport()
	errorIf(t, !r.Distrustful || r.DistrustReason == "", "%+v", r)
	wantCode(t, second(waybill.ListBackups(o.Directory+"/none")), waybill.ErrNotFound)
	wantCode(t, second(waybill.Restore(ctx, waybill.RestoreOptions{Directory: o.Directory, Backup: backups[0].Path})), waybill.ErrOwned)
}

func TestRuntimeHandlers(t *testing.T) {
	s := newStore(t)
	guest := &waybill.Platform{OS: "linux", Architecture: "arm64"}
	want := []waybill.RuntimeHandler{{Name: "kata", GuestPlatform: guest}, {Name: "runc", IsDefault: true, UserNamespaces: true}}
	report, err := s.ReplaceRuntimeHandlers(want)
	errorIf(t, err != nil || !reflect.DeepEqual(report.Added, []string{"kata", "runc"}) || !report.TurnedOn, "%+v, %v", report, err)
	got, err := s.ListRuntimeHandlers()
	errorIf(t, err != nil || !reflect.DeepEqual(got, want), "%+v, %v", got, err)
	id := intend(t, s, waybill.ImageCopy{Image: image, RuntimeHandler: "kata"})
	must(t, s.RecordImagePulled(waybill.PulledImage{
		ImageCopy:   waybill.ImageCopy{Image: image, ImageRef: ref, RuntimeHandler: "kata"},
		Credentials: &waybill.ImagePullCredentials{NodePodsAccessible: true},
		Pull:        id,
		Manifest:    &waybill.PulledManifest{Digest: "sha256:" + strings.Repeat("a", 64), Platform: *guest},
	}))
	record, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref, RuntimeHandler: "kata"})
	errorIf(t, err != nil || !reflect.DeepEqual(record.Platform, guest) || !reflect.DeepEqual(record.GuestPlatform, guest) || record.ManifestDigest == "", "%+v, %v", record, err)
	wantReason(t, s, app, withSecrets(), waybill.ReasonPulledForOtherHandler)
	wantCode(t, second(s.ReplaceRuntimeHandlers([]waybill.RuntimeHandler{{Name: "a/b"}})), waybill.ErrInvalidArgument)
	wantCode(t, second(s.ReplaceRuntimeHandlers(nil)), waybill.ErrInvalidArgument)
	dry, err := s.CollapseRuntimeHandlers(waybill.DryRun)
	errorIf(t, err != nil || dry.Records != 1, "%+v, %v", dry, err)
	collapsed, err := s.CollapseRuntimeHandlers()
	errorIf(t, err != nil || collapsed.Records != 1 || !reflect.DeepEqual(collapsed.Handlers, []string{"kata"}), "%+v, %v", collapsed, err)
}

func TestGaps(t *testing.T) {
	o := optionsIn(scratch(t))
	o.Gap = waybill.GapYes
	o.ImagesOnNode = []waybill.ImageOnNode{{ID: ref, RepoTags: []string{image}}}
	s := open(t, o)
	r := s.RecoveryReport()
	errorIf(t, !r.AfterGap || r.GapReason == "" || r.GapClosed != 1 || !reflect.DeepEqual(r.GapImages, []string{image}), "%+v", r)
	must(t, s.NoteGap("a test"))
	trust, err := s.Trust()
	fatalIf(t, err != nil || !trust.Distrustful, "%+v, %v", trust, err)
	last := trust.Journal[len(trust.Journal)-1]
	errorIf(t, last.Kind != waybill.TrustGap || last.Action != waybill.Distrusted || !last.Distrustful, "%+v", last)
	wantCode(t, s.NoteGap(""), waybill.ErrInvalidArgument)
	report, err := s.ClearDistrust("looked at", waybill.ClearOptions{
		ImagesOnNode: []waybill.ImageOnNode{{ID: "sha256:new", RepoTags: []string{"registry.example.com/base/new:1"}}}, Adopt: true,
	})
	errorIf(t, err != nil || report.Listed != 1 || report.Preloaded != 1, "%+v, %v", report, err)
}
