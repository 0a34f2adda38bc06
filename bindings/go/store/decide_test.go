package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// Each way in which credentials cross gives the same answer.
func TestDecisions(t *testing.T) {
	s := newStore(t)
	account := waybill.ServiceAccount{UID: "sa", Namespace: "team-a", Name: "builder"}
	pullApp(t, s)
	pull(t, s, image, "sha256:account", waybill.PulledWith{ServiceAccounts: []waybill.ServiceAccount{account}})
	for n := range 40 {
		strangers := many(n)
		wantReason(t, s, app, withSecrets(strangers...), false, "noCredentialMatches")
		for at := range n + 1 {
			all := append(append(append([]waybill.Secret{}, strangers[:at]...), secret), strangers[at:]...)
			wantReason(t, s, app, withSecrets(all...), true, "secretHashMatches")
		}
		ofAccount := store.ImageCopy{Image: image, ImageRef: "sha256:account"}
		wantReason(t, s, ofAccount, store.PodCredentials{Secrets: strangers, ServiceAccount: &account}, true, "serviceAccountMatches")
		wantReason(t, s, ofAccount, withSecrets(strangers...), false, "noCredentialMatches")
	}
	d := s.Decide(app, withSecrets(secret))
	errorIf(t, d.Result.String() != "credentialRecordFound" || !d.CredentialsRead || d.String() != "use: secretHashMatches" ||
		!strings.Contains(d.Reason.Text(), "same credentials"), "%+v %q", d, d.Reason.Text())
	errorIf(t, (store.Decision{}).Use || store.Reason(200).String() != "" || store.Result(9).String() != "", "numbers without a name")
}

// Every field of a secret and of an account reaches the store.
func TestEachFieldOfCredentialsCounts(t *testing.T) {
	s := newStore(t)
	pull(t, s, image, ref, waybill.PulledWith{ServiceAccounts: []waybill.ServiceAccount{{UID: "u", Namespace: "n", Name: "a"}}})
	pull(t, s, image, "sha256:2", waybill.PulledWith{Secrets: []waybill.Secret{secret}})
	for n := range 12 {
		for field := range 4 {
			account, rotated := waybill.ServiceAccount{UID: "u", Namespace: "n", Name: "a"}, secret
			rotated.Hash = fmt.Sprintf("%064d", 1000+4*n+field) // nobody else has it, so it matches by name alone
			switch field {
			case 1:
				account.UID, rotated.UID = "x", "x"
			case 2:
				account.Namespace, rotated.Namespace = "x", "x"
			case 3:
				account.Name, rotated.Name = "x", "x"
			}
			d := s.Decide(app, store.PodCredentials{Secrets: many(n), ServiceAccount: &account})
			errorIf(t, d.Use != (field == 0), "account, field %d: %v", field, d)
			d = s.Decide(store.ImageCopy{Image: image, ImageRef: "sha256:2"}, withSecrets(append(many(n), rotated)...))
			errorIf(t, d.Use != (field == 0), "secret, field %d: %v", field, d)
		}
	}
}

func TestLateCredentials(t *testing.T) {
	s := newStore(t)
	pullApp(t, s)
	fetched := 0
	ask := func(copy store.ImageCopy, credentials store.PodCredentials, err error) (store.Decision, error) {
		return s.DecideLazily(copy, func() (store.PodCredentials, error) { fetched++; return credentials, err })
	}
	for n, want := range map[int]bool{1: true, 5: true, 20: true, 0: false} {
		credentials := withSecrets(many(n)...)
		if want {
			credentials.Secrets[n-1] = secret
		}
		d, err := ask(app, credentials, nil)
		errorIf(t, err != nil || d.Use != want || !d.CredentialsRead, "%d secrets: %v, %v", n, d, err)
	}
	errorIf(t, fetched != 4, "fetched %d times", fetched)
	d, err := ask(store.ImageCopy{Image: image}, withSecrets(secret), nil)
	errorIf(t, fetched != 4 || err != nil || d.Reason.String() != "imageAbsent", "an absent image: %v, %v", d, err)
	away := errors.New("the API server is away")
	d, err = ask(app, withSecrets(secret), away)
	errorIf(t, err != away || d.Use || d.Result.String() != "error", "%v, %v", d, err)
	func() {
		defer func() { errorIf(t, recover() != away, "no panic") }()
		_, _ = s.DecideLazily(app, func() (store.PodCredentials, error) { panic(away) })
	}()
	// What was recorded meanwhile can't make the answer looser.
	d, err = s.DecideLazily(app, func() (store.PodCredentials, error) {
		must(t, s.DeleteImage(t.Context(), waybill.DeleteImage{ImageRef: ref}))
		return withSecrets(secret), nil
	})
	errorIf(t, err != nil || d.Use, "after its record was deleted: %v, %v", d, err)
}

func TestDecisionsOfStoresThatAreNotOpen(t *testing.T) {
	closed := newStore(t)
	pullApp(t, closed)
	must(t, closed.Close())
	for what, s := range map[string]*store.Store{"nil": nil, "zero": {}, "closed": closed} {
		for _, n := range []int{1, 5, 20} {
			d := s.Decide(app, withSecrets(append(many(n-1), secret)...))
			lazily, err := s.DecideLazily(app, func() (store.PodCredentials, error) { return withSecrets(secret), nil })
			errorIf(t, d.Use || lazily.Use || err != nil, "%s: %v, %v, %v", what, d, lazily, err)
		}
	}
}

// What can't be understood is "pull".
func TestTextsOfDecisions(t *testing.T) {
	s := newStore(t)
	pullApp(t, s)
	long := strings.Repeat("x", 1<<20)
	for _, copy := range []store.ImageCopy{{}, {Image: long, ImageRef: ref}, {Image: image, ImageRef: long}, {Image: image, ImageRef: ref, RuntimeHandler: long},
		{Image: "a\xff", ImageRef: ref}, {Image: image + "\x00", ImageRef: ref}, {Image: image, ImageRef: ref + "\x00"}} {
		d := s.Decide(copy, withSecrets(secret))
		errorIf(t, d.Use, "%.40q: %v", fmt.Sprint(copy), d)
	}
	for _, n := range []int{1, 5, 20} {
		odd := append(many(n-1), waybill.Secret{Namespace: long, Name: "\xff", UID: "\x00", Hash: long})
		errorIf(t, s.Decide(app, withSecrets(odd...)).Use, "%d odd secrets", n)
	}
}
