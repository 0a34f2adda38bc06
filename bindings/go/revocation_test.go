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

func wantReason(t *testing.T, s *waybill.Store, pod waybill.PodCredentials, want waybill.Reason) {
	t.Helper()
	if d := s.MustAttemptPull(app, pod); d.Reason != want {
		t.Errorf("%v, not %v", d.Reason, want)
	}
}

func wantReport(t *testing.T, got waybill.ForgetReport, err error, want waybill.ForgetReport) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%+v, %v, not %+v", got, err, want)
	}
}

func TestForget(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, bySecret)
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	report, err := s.ForgetSecret(nameOf, waybill.DryRun)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	another := waybill.CredentialName{Namespace: secret.Namespace, Name: secret.Name, UID: "another"}
	report, err = s.ForgetSecret(another)
	wantReport(t, report, err, waybill.ForgetReport{Stored: true})
	report, err = s.ForgetSecret(nameOf)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	wantReason(t, s, ofSecret, unproven)
	must(t, s.TidyUp())

	pull(t, s, image, ref, byAccount)
	wantReason(t, s, ofAccount, waybill.ReasonServiceAccountMatches)
	report, err = s.ForgetServiceAccount(waybill.CredentialName{Namespace: account.Namespace, Name: account.Name})
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, ServiceAccounts: 1, Stored: true})
	wantReason(t, s, ofAccount, unproven)

	pull(t, s, image, ref, bySecret)
	pull(t, s, image, ref, byEqual)
	report, err = s.ForgetNamespace(secret.Namespace)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, EqualHashes: 1, Stored: true})
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches) // team-b proved the same credentials
	report, err = s.ForgetCredential(secret.CredentialHash)
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, Secrets: 1, Stored: true})
	wantReason(t, s, withSecrets(equal), unproven)

	pull(t, s, image, ref, forAll)
	report, err = s.ForgetImage(waybill.ImageCopy{ImageRef: ref})
	wantReport(t, report, err, waybill.ForgetReport{Records: 1, NodePods: 1, Stored: true})
	wantReason(t, s, ofNobody, unproven)

	revocations, err := s.ListRevocations()
	must(t, err)
	got := map[waybill.Revocation]bool{}
	for _, r := range revocations {
		if r.Commit == 0 || time.Since(r.Since) > time.Hour || time.Since(r.Since) < -time.Hour {
			t.Errorf("%+v", r)
		}
		r.Commit, r.Since = 0, time.Time{}
		got[r] = true
	}
	want := map[waybill.Revocation]bool{
		{Kind: waybill.RevokedSecret, Who: nameOf}:  true,
		{Kind: waybill.RevokedSecret, Who: another}: true,
		{Kind: waybill.RevokedServiceAccount, Who: waybill.CredentialName{Namespace: account.Namespace, Name: account.Name}}: true,
		{Kind: waybill.RevokedNamespace, Who: waybill.CredentialName{Namespace: secret.Namespace}}:                           true,
		{Kind: waybill.RevokedCredential, CredentialHash: secret.CredentialHash}:                                             true,
		// By any spelling.
		{Kind: waybill.RevokedImage, ImageRef: ref}:                                true,
		{Kind: waybill.RevokedImage, ImageRef: strings.TrimPrefix(ref, "sha256:")}: true,
	}
	if !reflect.DeepEqual(got, want) || len(revocations) != len(want) {
		t.Errorf("%+v", revocations)
	}
	if statistics, err := s.Statistics(); statistics.Revocations != uint64(len(want)) || err != nil {
		t.Errorf("%+v, %v", statistics, err)
	}
}

func TestForgettingWrongly(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, bySecret)
	noName, noNamespace := waybill.CredentialName{Namespace: "a"}, waybill.CredentialName{Name: "a"}
	token, err := s.BeginList()
	must(t, err)
	future, other := token, token
	future.Commit += 1_000_000
	other.Store++
	some := waybill.ExistingCredentials{Secrets: []waybill.CredentialName{nameOf}}
	for i, err := range []error{
		second(s.ForgetSecret(noName)), second(s.ForgetSecret(noNamespace)),
		second(s.ForgetServiceAccount(noName)), second(s.ForgetServiceAccount(noNamespace)),
		second(s.ForgetNamespace("")), second(s.ForgetImage(waybill.ImageCopy{Image: image})), second(s.ForgetCredential("")),
		second(s.Reconcile(waybill.ExistingCredentials{}, token)),
		second(s.Reconcile(some, future)), second(s.Reconcile(some, other)), second(s.Reconcile(some, waybill.ListToken{})),
		second(s.Reconcile(waybill.ExistingCredentials{Secrets: []waybill.CredentialName{noName}}, token)),
		second(s.Reconcile(waybill.ExistingCredentials{ServiceAccounts: []waybill.CredentialName{noNamespace}}, token)),
	} {
		if wantCode(t, err, waybill.ErrInvalidArgument); err == nil {
			t.Errorf("call %d", i)
		}
	}
	many := waybill.ExistingCredentials{Secrets: make([]waybill.CredentialName, 1_000_001)}
	for i := range many.Secrets {
		many.Secrets[i] = nameOf
	}
	wantCode(t, second(s.Reconcile(many, token)), waybill.ErrLimitExceeded)
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
}

func TestReconcile(t *testing.T) {
	s := newStore(t)
	early, err := s.BeginList()
	must(t, err)
	pull(t, s, image, ref, bySecret)
	pull(t, s, image, ref, byAccount)
	token, err := s.BeginList()
	must(t, err)
	pull(t, s, image, "sha256:newer", byEqual)
	report, err := s.Reconcile(waybill.ExistingCredentials{
		Secrets:         []waybill.CredentialName{nameOf},
		ServiceAccounts: []waybill.CredentialName{{Namespace: account.Namespace, Name: account.Name, UID: "created anew"}},
	}, token)
	want := waybill.ReconcileReport{Forgotten: waybill.ForgetReport{Records: 1, ServiceAccounts: 1, Stored: true}, Known: 1, Gone: 1, Newer: 1}
	if err != nil || report != want {
		t.Errorf("%+v, %v", report, err)
	}
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	wantReason(t, s, ofAccount, waybill.ReasonNoCredentialMatches)
	wantCode(t, second(s.Reconcile(waybill.ExistingCredentials{Secrets: []waybill.CredentialName{nameOf}}, early)), waybill.ErrInvalidArgument)

	token, err = s.BeginList()
	must(t, err)
	report, err = s.Reconcile(waybill.ExistingCredentials{}, token, waybill.AllowEmpty)
	if err != nil || report.Gone != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	wantReason(t, s, ofSecret, unproven)
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
	record, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref})
	must(t, err)
	proofs := record.Proofs[appName]
	if len(proofs.Secrets) != 1 || len(proofs.ServiceAccounts) != 1 || proofs.NodePods != (waybill.Proof{}) {
		t.Fatalf("%+v", record)
	}
	if p := proofs.Secrets[0]; p.Proven != proven || p.PullBegan == 0 {
		t.Errorf("%+v", p)
	}
	if p := proofs.ServiceAccounts[0]; p.Proven != proven.Add(time.Minute) || p.PullBegan <= proofs.Secrets[0].PullBegan {
		t.Errorf("%+v", p)
	}
	records, err := s.ListRecords()
	must(t, err)
	for _, r := range records {
		if p := r.Proofs[appName].NodePods; (r.ImageRef == "sha256:all") != (p.PullBegan != 0) {
			t.Errorf("%+v", r)
		}
	}
	// Proofs are the store's to say.
	record.Proofs[appName].Secrets[0].Proven = clock.Now().Add(time.Hour)
	must(t, s.PutRecord(record))
	again, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref})
	must(t, err)
	if p := again.Proofs[appName].Secrets[0]; p.Proven != proven {
		t.Errorf("%+v", p)
	}

	clock.Set(proven.Add(time.Hour + time.Minute))
	wantReason(t, s, ofAccount, waybill.ReasonServiceAccountMatches)
	clock.Set(proven.Add(time.Hour + time.Minute + time.Second))
	wantReason(t, s, ofAccount, waybill.ReasonProofTooOld)
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	clock.Set(proven.Add(10 * time.Hour))
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	if d := s.MustAttemptPull(waybill.ImageCopy{Image: image, ImageRef: "sha256:all"}, ofNobody); d.Reason != waybill.ReasonProofTooOld || d.Result != waybill.CheckMustAuthenticate {
		t.Errorf("%+v", d)
	}
	clock.Set(proven.Add(10*time.Hour + time.Second))
	wantReason(t, s, ofSecret, waybill.ReasonProofTooOld)
	if r, err := s.GetRecord(waybill.ImageCopy{ImageRef: ref}); err != nil || len(r.CredentialMapping) != 0 || len(r.Proofs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	pull(t, s, image, ref, bySecret)
	wantReason(t, s, ofSecret, waybill.ReasonSecretHashMatches)
	clock.Set(proven.Add(30 * time.Hour))
	must(t, s.Close())

	o.Ages = nil // as the store remembers them
	s = open(t, o)
	wantReason(t, s, ofSecret, waybill.ReasonProofTooOld)
	must(t, s.Close())
	observed := waybill.ObserveOptions{Directory: o.Directory, Clock: clock}
	for _, ages := range []*waybill.AgeLimits{nil, {Credentials: 100 * time.Hour}} {
		observed.Ages = ages
		observer, err := waybill.Observe(observed)
		must(t, err)
		want := waybill.ReasonProofTooOld
		if ages != nil {
			want = waybill.ReasonSecretHashMatches
		}
		wantReason(t, observer, ofSecret, want)
		must(t, observer.Close())
	}
}

func TestAgesAreChecked(t *testing.T) {
	for _, wrong := range []waybill.AgeLimits{
		{Credentials: -1}, {Credentials: 1}, {Credentials: 59 * time.Second}, {Credentials: 11 * 365 * 24 * time.Hour},
		{ServiceAccounts: time.Second}, {NodePods: -time.Hour}, {Credentials: time.Hour, ServiceAccounts: 2 * time.Hour},
		{Revocations: time.Hour}, {Revocations: -1}, {Revocations: 1<<63 - 1},
	} {
		o := optionsIn(scratch(t))
		o.Ages = &wrong
		_, err := waybill.Open(t.Context(), o)
		if wantCode(t, err, waybill.ErrInvalidArgument); err == nil {
			t.Errorf("%+v", wrong)
		}
	}
}
