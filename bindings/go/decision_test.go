package waybill_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"waybill.dev/go"
)

func TestDecisions(t *testing.T) {
	s := newStore(t)
	account := waybill.ImagePullServiceAccount{UID: "sa", Namespace: "team-a", Name: "builder"}
	d := s.MustAttemptPull(app, withSecrets())
	errorIf(t, !d.Pull() || d.Reason != waybill.ReasonNoEvidence || d.Result != waybill.CheckMustAuthenticate, "before: %+v", d)
	pull(t, s, image, ref, waybill.ImagePullCredentials{
		KubernetesSecrets:         []waybill.ImagePullSecret{secret},
		KubernetesServiceAccounts: []waybill.ImagePullServiceAccount{account},
	})
	rotated, other := secret, secret
	rotated.CredentialHash = strings.Repeat("e", 64)
	other.UID, other.CredentialHash = "another", strings.Repeat("d", 64)
	each := []struct {
		name        string
		credentials waybill.PodCredentials
		want        waybill.Reason
	}{
		{"the secret", withSecrets(secret), waybill.ReasonSecretHashMatches},
		{"other's", withSecrets(other), waybill.ReasonNoCredentialMatches},
		{"none", withSecrets(), waybill.ReasonNoCredentialMatches},
		{"the 8th", withSecrets(append(many(7), secret)...), waybill.ReasonSecretHashMatches},
		{"the 9th", withSecrets(append(many(8), secret)...), waybill.ReasonSecretHashMatches},
		{"the 20th", withSecrets(append(many(19), secret)...), waybill.ReasonSecretHashMatches},
		{"none of 5,000", withSecrets(many(5000)...), waybill.ReasonNoCredentialMatches},
		{"service account", waybill.PodCredentials{ServiceAccount: &account}, waybill.ReasonServiceAccountMatches},
		{"after 1", waybill.PodCredentials{Secrets: many(1), ServiceAccount: &account}, waybill.ReasonServiceAccountMatches},
		{"after 8", waybill.PodCredentials{Secrets: many(8), ServiceAccount: &account}, waybill.ReasonServiceAccountMatches},
		{"after 9", waybill.PodCredentials{Secrets: many(9), ServiceAccount: &account}, waybill.ReasonServiceAccountMatches},
		{"rotated", withSecrets(rotated), waybill.ReasonSecretCoordinatesMatch}, // written back
	}
	for _, c := range each {
		d := s.MustAttemptPull(app, c.credentials)
		open := c.want != waybill.ReasonNoCredentialMatches
		errorIf(t, d.Reason != c.want || d.Pull() == open || !d.CredentialsRead, "%s: %+v", c.name, d)
	}
	must(t, s.Flush())
	wantReason(t, s, app, withSecrets(rotated), waybill.ReasonSecretHashMatches)
	d = s.MustAttemptPull(waybill.ImageCopy{Image: image}, withSecrets(secret))
	errorIf(t, d.Reason != waybill.ReasonImageAbsent || d.Result != waybill.CheckNotCounted || d.CredentialsRead, "absent: %+v", d)
	wantReason(t, s, waybill.ImageCopy{Image: image, ImageRef: ref, RuntimeHandler: "kata"}, withSecrets(secret), waybill.ReasonRuntimeHandlerUnknown)
}

// many returns secrets that match nothing.
func many(n int) []waybill.ImagePullSecret {
	secrets := make([]waybill.ImagePullSecret, n)
	for i := range secrets {
		secrets[i] = waybill.ImagePullSecret{
			UID:            fmt.Sprintf("5b1e0f4a-0000-4000-8000-%012d", i),
			Namespace:      "team-b",
			Name:           fmt.Sprintf("registry-%d", i),
			CredentialHash: fmt.Sprintf("%064x", i),
		}
	}
	return secrets
}

func TestLazyCredentials(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	asked := 0
	fetch := func() (waybill.PodCredentials, error) {
		asked++
		return withSecrets(secret), nil
	}
	d, err := s.MustAttemptPullLazily(app, fetch)
	errorIf(t, err != nil || d.Pull() || asked != 1 || !d.CredentialsRead, "%+v, %v, asked %d times", d, err, asked)
	preload(t, s, "docker.io/library/other:v1", "sha256:other")
	d, err = s.MustAttemptPullLazily(waybill.ImageCopy{Image: "other:v1", ImageRef: "sha256:other"}, fetch)
	errorIf(t, err != nil || d.Pull() || asked != 1 || d.CredentialsRead, "not needed: %+v, %v, asked %d times", d, err, asked)

	failure := errors.New("no API server")
	d, err = s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) {
		return withSecrets(secret), failure
	})
	errorIf(t, err != failure || !d.Pull() || d.Result != waybill.CheckError || d.Reason != waybill.ReasonCredentialsUnavailable, "failed: %+v, %v", d, err)
	d, err = s.MustAttemptPullLazily(app, nil)
	errorIf(t, !errors.Is(err, waybill.ErrCredentialsUnavailable) || !d.Pull() || d.Result != waybill.CheckError, "nil: %+v, %v", d, err)

	// Counted: found, allowed, error twice; the first looks are not counted.
	got, want := s.Metrics().MustPullChecks, [5]uint64{0, 1, 1, 0, 2}
	errorIf(t, got != want, "counted %v, want %v", got, want)
}

// fetch may panic, use the store, and even close it.
func TestFetchDoesWhatItLikes(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	func() {
		defer func() {
			errorIf(t, recover() != "a mistake", "the panic did not come through")
		}()
		s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) { panic("a mistake") })
	}()
	d, err := s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) {
		wantPull(t, s, app, withSecrets(secret), false)
		return withSecrets(secret), s.DeleteRecord(waybill.ImageCopy{ImageRef: ref})
	})
	errorIf(t, err != nil || d.Reason != waybill.ReasonNoEvidence, "the record went meanwhile: %+v, %v", d, err)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	d, err = s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) {
		return withSecrets(secret), s.Close()
	})
	errorIf(t, err != nil || !d.Pull(), "closed meanwhile: %+v, %v", d, err)
}

func TestEnsureImage(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	failure := errors.New("no API server")
	with := func(secrets ...waybill.ImagePullSecret) func() (waybill.PodCredentials, error) {
		return func() (waybill.PodCredentials, error) { return withSecrets(secrets...), nil }
	}
	each := map[string]struct {
		image, ref string
		policy     waybill.PullPolicy
		fetch      func() (waybill.PodCredentials, error)
		want       waybill.EnsureAction
		err        error
	}{
		"there":         {image, ref, waybill.PullIfNotPresent, with(secret), waybill.EnsureUsePresent, nil},
		"not for them":  {image, ref, waybill.PullIfNotPresent, with(many(20)...), waybill.EnsurePull, nil},
		"always":        {image, ref, waybill.PullAlways, with(secret), waybill.EnsurePull, nil},
		"never, absent": {image, "", waybill.PullNever, with(secret), waybill.EnsureNeverPull, nil},
		"no name":       {"UPPER CASE", ref, waybill.PullIfNotPresent, with(secret), waybill.EnsureInvalidImageName, nil},
		"unavailable": {image, ref, waybill.PullIfNotPresent, func() (waybill.PodCredentials, error) {
			return waybill.PodCredentials{}, failure
		}, waybill.EnsurePull, failure},
		"no fetch":  {image, ref, waybill.PullIfNotPresent, nil, waybill.EnsurePull, waybill.ErrCredentialsUnavailable},
		"no policy": {image, ref, 9, with(secret), waybill.EnsurePull, waybill.ErrInvalidArgument},
	}
	for name, c := range each {
		outcome, err := s.EnsureImage(waybill.ImageCopy{Image: c.image, ImageRef: c.ref}, c.policy, c.fetch)
		errorIf(t, outcome.Action != c.want || !errors.Is(err, c.err), "%s: %+v, %v", name, outcome, err)
	}
	text, err := s.MetricsText()
	errorIf(t, err != nil || !strings.Contains(text, "kubelet_image_manager_ensure_image_requests_total"), "%v\n%s", err, text)
}

// The decision on strings of any length and any bytes is "pull", and nothing breaks.
func TestHostileStrings(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	for name, text := range map[string]string{
		"1 MiB": strings.Repeat("x", 1<<20), "no UTF-8": "\xff\xfe\x00\xc0", "zeros": "\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			hostile := waybill.ImagePullSecret{UID: text, Namespace: text, Name: text, CredentialHash: text}
			wantPull(t, s, waybill.ImageCopy{Image: text, ImageRef: text, RuntimeHandler: text}, withSecrets(hostile), true)
			wantReason(t, s, app, withSecrets(hostile, hostile, hostile), waybill.ReasonNoCredentialMatches)
			wantPull(t, s, app, withSecrets(hostile, secret), false)
		})
	}
	// Many secrets, larger than any pod's, count as unavailable.
	long := strings.Repeat("x", 64<<20)
	hostile := waybill.ImagePullSecret{UID: long, Namespace: long, Name: long, CredentialHash: long}
	wantPull(t, s, app, withSecrets(hostile, secret), false)
	credentials := withSecrets(append(many(8), hostile, secret)...)
	d := s.MustAttemptPull(app, credentials)
	errorIf(t, d.Reason != waybill.ReasonCredentialsUnavailable || d.Result != waybill.CheckError, "many: %+v", d)
	outcome, err := s.EnsureImage(app, waybill.PullIfNotPresent, func() (waybill.PodCredentials, error) { return credentials, nil })
	errorIf(t, err != nil || outcome.Action != waybill.EnsurePull, "many: %+v, %v", outcome, err)
}

// A decision whose fetch panicked, an outcome that was never made, and zero values say "pull".
func TestZeroDecisionsPull(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.ImagePullCredentials{KubernetesSecrets: []waybill.ImagePullSecret{secret}})
	decide := func() (d waybill.Decision, err error) {
		defer func() { _ = recover() }()
		return s.MustAttemptPullLazily(app, func() (waybill.PodCredentials, error) { panic("no credentials") })
	}
	d, _ := decide()
	errorIf(t, !d.Pull(), "after a panic: %+v", d)
	d = waybill.Decision{}
	errorIf(t, !d.Pull(), "%+v", d)
	o := waybill.EnsureOutcome{}
	errorIf(t, o.Action != waybill.EnsurePull, "%+v", o)
}

func TestDecisionsInTestsOfUsers(t *testing.T) {
	pull := waybill.NewDecision(true, waybill.CheckMustAuthenticate, waybill.ReasonNoCredentialMatches)
	use := waybill.NewDecision(false, waybill.CheckCredentialRecordFound, waybill.ReasonSecretHashMatches)
	errorIf(t, !pull.Pull() || use.Pull(), "%v, %v", pull, use)
	for want, got := range map[string]any{
		"pull: noCredentialMatches":           pull,
		"use present: secretHashMatches":      &use,
		"pull: " + waybill.Reason(0).String(): waybill.Decision{},
	} {
		errorIf(t, fmt.Sprint(got) != want, "%v, not %s", got, want)
	}
}
