package waybill_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

var (
	account   = waybill.ImagePullServiceAccount{UID: "3f0c", Namespace: "team-a", Name: "builder"}
	equal     = waybill.ImagePullSecret{UID: "77aa", Namespace: "team-b", Name: "copy", CredentialHash: secret.CredentialHash}
	nameOf    = waybill.CredentialName{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID}
	app       = waybill.ImageCopy{Image: image, ImageRef: ref}
	appName   = "registry.example.com/team-a/app"
	bySecret  = waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}}
	byEqual   = waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{equal}}
	byAccount = waybill.ImagePullCredentials{KubernetesServiceAccounts: []waybill.ImagePullServiceAccount{account}}
	forAll    = waybill.ImagePullCredentials{NodePodsAccessible: true}
	ofAccount = waybill.PodCredentials{ServiceAccount: &account}
	ofNobody  = waybill.PodCredentials{}
	ofSecret  = withSecrets(secret)
	unproven  = waybill.ReasonEntryWithoutCredentials
)

func wantReport(t *testing.T, got waybill.ForgetReport, err error, want waybill.ForgetReport) {
	t.Helper()
	errorIf(t, err != nil || got != want, "%+v, %v, not %+v", got, err, want)
}

func TestForget(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, bySecret)
	report, err := s.ForgetSecret(nameOf, waybill.DryRun)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	wantReason(t, s, app, ofSecret, waybill.ReasonSecretHashMatches)
	report, err = s.ForgetSecret(nameOf)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	wantReason(t, s, app, ofSecret, unproven)
	must(t, s.TidyUp())

	pull(t, s, image, ref, byAccount)
	builder := waybill.CredentialName{Namespace: account.Namespace, Name: account.Name}
	report, err = s.ForgetServiceAccount(builder)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, ServiceAccounts: 1, Stored: true})
	pull(t, s, image, ref, bySecret)
	pull(t, s, image, ref, byEqual)
	report, err = s.ForgetNamespace(secret.Namespace)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, EqualHashes: 1, Stored: true})
	report, err = s.ForgetCredential(secret.CredentialHash)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	pull(t, s, image, ref, forAll)
	report, err = s.ForgetImage(waybill.ImageCopy{ImageRef: ref})
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, NodePods: 1, Stored: true})

	revocations := value(s.ListRevocations())
	got := map[waybill.Revocation]bool{}
	for _, r := range revocations {
		errorIf(t, r.Commit == 0 || time.Since(r.Since) > time.Hour || time.Since(r.Since) < -time.Hour, "%+v", r)
		r.Commit, r.Since = 0, time.Time{}
		got[r] = true
	}
	want := map[waybill.Revocation]bool{
		{Kind: waybill.RevokedSecret, Who: nameOf}:                                                 true,
		{Kind: waybill.RevokedServiceAccount, Who: builder}:                                        true,
		{Kind: waybill.RevokedNamespace, Who: waybill.CredentialName{Namespace: secret.Namespace}}: true,
		{Kind: waybill.RevokedCredential, CredentialHash: secret.CredentialHash}:                   true,
		// By any spelling.
		{Kind: waybill.RevokedImage, ImageRef: ref}:                                true,
		{Kind: waybill.RevokedImage, ImageRef: strings.TrimPrefix(ref, "sha256:")}: true,
	}
	errorIf(t, !reflect.DeepEqual(got, want) || len(revocations) != len(want), "%+v", revocations)
	statistics, err := s.Statistics()
	errorIf(t, statistics.Revocations != uint64(len(want)) || err != nil, "%+v, %v", statistics, err)
	wantCode(t, second(s.ForgetSecret(waybill.CredentialName{Namespace: "a"})), waybill.ErrInvalidArgument)
}

func TestReconcile(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, bySecret)
	pull(t, s, image, ref, byAccount)
	token := value(s.BeginList())
	pull(t, s, image, "sha256:newer", byEqual)
	exist := waybill.ExistingCredentials{
		Secrets:         []waybill.CredentialName{nameOf},
		ServiceAccounts: []waybill.CredentialName{{Namespace: account.Namespace, Name: account.Name, UID: "created anew"}},
	}
	future, other := token, token
	future.Commit += 1_000_000
	other.Store++
	for _, wrong := range []waybill.ListToken{future, other, {}} {
		wantCode(t, second(s.Reconcile(exist, wrong)), waybill.ErrInvalidArgument)
	}
	report, err := s.Reconcile(exist, token)
	want := waybill.ReconcileReport{Forgotten: waybill.ForgetReport{Records: 1, ServiceAccounts: 1, Stored: true}, Known: 1, Gone: 1, Newer: 1}
	errorIf(t, err != nil || report != want, "%+v, %v", report, err)
	wantCode(t, second(s.Reconcile(waybill.ExistingCredentials{}, token)), waybill.ErrInvalidArgument)
	many := waybill.ExistingCredentials{Secrets: make([]waybill.CredentialName, 1_000_001)}
	for i := range many.Secrets {
		many.Secrets[i] = nameOf
	}
	wantCode(t, second(s.Reconcile(many, token)), waybill.ErrLimitExceeded)
	wantReason(t, s, app, ofSecret, waybill.ReasonSecretHashMatches)
	token = value(s.BeginList())
	report, err = s.Reconcile(waybill.ExistingCredentials{}, token, waybill.AllowEmpty)
	errorIf(t, err != nil || report.Gone != 2, "%+v, %v", report, err)
}

func TestAges(t *testing.T) {
	o := optionsIn(scratch(t))
	clock := waybill.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	o.Clock = clock
	// A part of a second counts as a whole one.
	o.Ages = &waybill.AgeLimits{Credentials: 10*time.Hour - 1, ServiceAccounts: time.Hour, NodePods: 5 * time.Hour}
	s := open(t, o)
	pull(t, s, image, ref, bySecret)
	proven := clock.Now().Truncate(time.Second)
	clock.Set(clock.Now().Add(time.Minute))
	pull(t, s, image, ref, byAccount)
	pull(t, s, image, "sha256:all", forAll)
	records := value(s.ListRecords())
	for _, r := range records {
		p := r.Proofs[appName]
		if r.ImageRef == "sha256:all" {
			errorIf(t, p.NodePods.Proven != proven.Add(time.Minute) || p.NodePods.PullBegan == 0 || p.Secrets != nil || p.ServiceAccounts != nil, "%+v", r)
			continue
		}
		fatalIf(t, len(p.Secrets) != 1 || len(p.ServiceAccounts) != 1 || p.NodePods != (waybill.Proof{}), "%+v", r)
		errorIf(t, p.Secrets[0].Proven != proven || p.Secrets[0].PullBegan == 0 ||
			p.ServiceAccounts[0].Proven != proven.Add(time.Minute) || p.ServiceAccounts[0].PullBegan <= p.Secrets[0].PullBegan, "%+v", p)
		// Proofs are the store's to say.
		r.Proofs[appName].Secrets[0].Proven = clock.Now().Add(time.Hour)
		must(t, s.PutRecord(r))
	}
	record, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref})
	errorIf(t, err != nil || record.Proofs[appName].Secrets[0].Proven != proven, "%+v, %v", record, err)

	clock.Set(proven.Add(time.Hour + time.Minute))
	wantReason(t, s, app, ofAccount, waybill.ReasonServiceAccountMatches)
	clock.Set(proven.Add(time.Hour + time.Minute + time.Second))
	wantReason(t, s, app, ofAccount, waybill.ReasonProofTooOld)
	clock.Set(proven.Add(10 * time.Hour))
	wantReason(t, s, app, ofSecret, waybill.ReasonSecretHashMatches)
	wantReason(t, s, waybill.ImageCopy{Image: image, ImageRef: "sha256:all"}, ofNobody, waybill.ReasonProofTooOld)
	clock.Set(proven.Add(10*time.Hour + time.Second))
	wantReason(t, s, app, ofSecret, waybill.ReasonProofTooOld)
	must(t, s.Close())
	for want, ages := range map[waybill.Reason]*waybill.AgeLimits{
		waybill.ReasonProofTooOld:       nil, // as the store remembers them
		waybill.ReasonSecretHashMatches: {Credentials: 100 * time.Hour},
	} {
		observer := value(waybill.Observe(waybill.ObserveOptions{Directory: o.Directory, Clock: clock, Ages: ages}))
		wantReason(t, observer, app, ofSecret, want)
		must(t, observer.Close())
	}
	for _, wrong := range []waybill.AgeLimits{
		{Credentials: -1}, {Credentials: 1}, {ServiceAccounts: time.Second}, {NodePods: -time.Hour}, {Revocations: 1<<63 - 1},
	} {
		o.Ages = &wrong
		_, err := waybill.Open(t.Context(), o)
		if wantCode(t, err, waybill.ErrInvalidArgument); err == nil {
			t.Errorf("%+v", wrong)
		}
	}
}
