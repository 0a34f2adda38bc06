package kubelet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"waybill.dev/go"
	"waybill.dev/go/store"
)

// Waybill forgets credentials, and the kubelet does not. So an answer that is "pull" for us alone may
// come from that; what we open must have been proven by a pull that began after all that it was
// forgotten by, whatever the kubelet says.

const (
	forget    = "forget"
	drawTruth = "drawTruth" // a token, before what exists is read
	tellTruth = "tellTruth"
)

// forgetting is one call.
type forgetting struct {
	revoked waybill.Revoke
	truth   *waybill.RevokeMissing // nil: it is revoked
}

func (f *forgetting) String() string {
	if f.truth != nil {
		return fmt.Sprintf(" all but %q %q", f.truth.Secrets, f.truth.ServiceAccounts)
	}
	return fmt.Sprintf(" %+v", f.revoked)
}

func (f *forgetting) call(store *store.Store, token string) (stored bool, err error) {
	if f.truth != nil {
		truth := *f.truth
		truth.Token, truth.AllowEmpty = token, true
		report, err := store.RevokeMissing(quiet, truth)
		return report.Revoked.Stored, err
	}
	report, err := store.Revoke(quiet, f.revoked)
	if f.revoked.Kind == waybill.RevokeImage && errors.Is(err, waybill.ErrInvalidArgument) {
		return false, nil // a digest of two images
	}
	return report.Stored, err
}

// claim is what a pull proved under an image name, of whatever image.
type claim struct {
	name    string
	all     bool // every pod may use it
	secret  *kubeletconfig.ImagePullSecret
	account *kubeletconfig.ImagePullServiceAccount
	began   int // the step; 0: nobody knows
}

func (a claim) same(b claim) bool {
	return a.name == b.name && a.all == b.all && a.began == b.began &&
		(a.secret == nil) == (b.secret == nil) && (a.secret == nil || *a.secret == *b.secret) &&
		(a.account == nil) == (b.account == nil) && (a.account == nil || *a.account == *b.account)
}

func named(who waybill.CredentialName, namespace, name, uid string) bool {
	return who.Namespace == namespace && who.Name == name && (who.UID == "" || who.UID == uid)
}

// takes says whether it forgets what the claim is about.
func (f *forgetting) takes(c claim) bool {
	secret, account := c.secret, c.account
	if f.truth != nil {
		exists := func(all []waybill.CredentialName, namespace, name, uid string) bool {
			return slices.ContainsFunc(all, func(who waybill.CredentialName) bool { return named(who, namespace, name, uid) })
		}
		return secret != nil && !exists(f.truth.Secrets, secret.Namespace, secret.Name, secret.UID) ||
			account != nil && !exists(f.truth.ServiceAccounts, account.Namespace, account.Name, account.UID)
	}
	who := waybill.CredentialName{Namespace: f.revoked.Namespace, Name: f.revoked.Name, UID: f.revoked.UID}
	switch f.revoked.Kind {
	case waybill.RevokeSecret:
		return secret != nil && named(who, secret.Namespace, secret.Name, secret.UID)
	case waybill.RevokeServiceAccount:
		return account != nil && named(who, account.Namespace, account.Name, account.UID)
	case waybill.RevokeNamespace:
		return secret != nil && secret.Namespace == who.Namespace || account != nil && account.Namespace == who.Namespace
	case waybill.RevokeCredential:
		return secret != nil && secret.CredentialHash == f.revoked.Hash
	}
	return false // of an image: claims do not say which it is
}

// standing is what was forgotten, and what pulls that began until then prove no more.
type standing struct {
	*forgetting
	at int
}

type proofs struct {
	at     int // the step, from 1 on
	begun  map[int]int
	images map[int]string  // of pulls; below 0: of intents that were written
	recent map[int]bool    // those that began in this life
	unsure map[string]bool // images of which a pull ended that nobody announced: likewise
	claims []claim
	stay   []standing
	any    bool // something was forgotten
	token  string
	drawn  int // the token's step; 0: there is none
	counts map[string]int
}

func newProofs() *proofs {
	return &proofs{begun: map[int]int{}, images: map[int]string{}, recent: map[int]bool{}, unsure: map[string]bool{}, counts: map[string]int{}}
}

func (p *proofs) claim(c claim, byPull bool) {
	for _, s := range p.stay {
		// A truth takes what the store has, and what pulls bring; a match may be with what it did not have.
		if s.takes(c) && c.began <= s.at && (byPull || s.truth == nil) {
			return
		}
	}
	if !slices.ContainsFunc(p.claims, c.same) {
		p.claims = append(p.claims, c)
	}
}

func (p *proofs) claimAll(name string, credentials kubeletconfig.ImagePullCredentials, began int) {
	if credentials.NodePodsAccessible {
		p.claim(claim{name: name, all: true, began: began}, true)
	}
	for _, secret := range credentials.KubernetesSecrets {
		p.claim(claim{name: name, secret: &secret, began: began}, true)
	}
	for _, account := range credentials.KubernetesServiceAccounts {
		p.claim(claim{name: name, account: &account, began: began}, true)
	}
}

// forgotHash says whether the hash of a Secret was forgotten, at whatever time.
func (p *proofs) forgotHash(secret kubeletconfig.ImagePullSecret) bool {
	return secret.CredentialHash != "" && slices.ContainsFunc(p.stay, func(s standing) bool { return s.revoked.Hash == secret.CredentialHash })
}

// matches says whether a Secret that is shown matches a known one. By its coordinates alone one with a
// forgotten hash does not.
func (p *proofs) matches(known, shown *kubeletconfig.ImagePullSecret) bool {
	return known.CredentialHash != "" && known.CredentialHash == shown.CredentialHash ||
		known.UID == shown.UID && known.Namespace == shown.Namespace && known.Name == shown.Name && !p.forgotHash(*shown)
}

// inherit gives a Secret that matched what it matched is worth.
func (p *proofs) inherit(name string, secrets []kubeletconfig.ImagePullSecret) {
	for _, known := range slices.Clone(p.claims) {
		for _, secret := range secrets {
			if known.name == name && known.secret != nil && p.matches(known.secret, &secret) {
				p.claim(claim{name: name, secret: &secret, began: known.began}, false)
			}
		}
	}
}

// mayOpen says whether something that counts matches what the pod holds out.
func (p *proofs) mayOpen(s step) bool {
	return slices.ContainsFunc(p.claims, func(c claim) bool {
		if c.name != imageName(s.image) {
			return false
		}
		return c.all || c.account != nil && s.account != nil && *c.account == *s.account ||
			c.secret != nil && slices.ContainsFunc(s.secrets, func(secret kubeletconfig.ImagePullSecret) bool { return p.matches(c.secret, &secret) })
	})
}

// holds says whether each credential of a record counts.
func (p *proofs) holds(record *kubeletconfig.ImagePulledRecord) bool {
	for name, entry := range record.CredentialMapping {
		has := func(same func(c claim) bool) bool {
			return slices.ContainsFunc(p.claims, func(c claim) bool { return c.name == name && same(c) })
		}
		for _, secret := range entry.KubernetesSecrets {
			if !has(func(c claim) bool { return c.secret != nil && *c.secret == secret }) {
				return false
			}
		}
		for _, account := range entry.KubernetesServiceAccounts {
			if !has(func(c claim) bool { return c.account != nil && *c.account == account }) {
				return false
			}
		}
	}
	return true
}

// newest is the step at which the newest such pull began; 0: there is none.
func (p *proofs) newest(is func(pull int) bool) int {
	began := 0
	for pull, at := range p.begun {
		if is(pull) {
			began = max(began, at)
		}
	}
	return began
}

// before a step is done.
func (p *proofs) before(s step) {
	p.at++
	switch s.what {
	case intent:
		p.begun[s.pull], p.images[s.pull], p.recent[s.pull] = p.at, s.image, true
	case writeIntent:
		p.begun[-p.at], p.images[-p.at], p.recent[-p.at] = p.at, s.image, true
	case restart:
		clear(p.recent)
		clear(p.unsure)
	case pulled, failed:
		p.unsure[s.image] = p.unsure[s.image] || p.begun[s.pull] == 0
		began := p.begun[s.pull]
		if p.unsure[s.image] { // then it passes for another one
			began = max(began, p.newest(func(pull int) bool { return p.images[pull] == s.image }))
		}
		if s.what == pulled && s.credentials != nil {
			p.claimAll(imageName(s.image), *s.credentials, began)
		}
	case writeRecord:
		for name, credentials := range s.writeTo.CredentialMapping {
			began := p.newest(func(pull int) bool { return p.recent[pull] && imageName(p.images[pull]) == name })
			p.inherit(name, credentials.KubernetesSecrets)
			for _, account := range credentials.KubernetesServiceAccounts {
				for _, known := range slices.Clone(p.claims) {
					if known.name == name && known.account != nil && *known.account == account {
						p.claim(known, false)
					}
				}
			}
			p.claimAll(name, credentials, began)
		}
	}
}

// act does a step that the kubelet does not know.
func (p *proofs) act(s step, store *store.Store) error {
	if s.what == drawTruth {
		list, err := store.BeginList(quiet)
		p.token, p.drawn = list.Token, p.at
		return err
	}
	at := p.at
	if s.what == tellTruth {
		if at = p.drawn; at == 0 {
			return nil
		}
		p.drawn = 0
	}
	stored, err := s.forgetting.call(store, p.token)
	if err != nil {
		return fmt.Errorf("%s%v: %w", s.what, s.forgetting, err)
	}
	p.any = true
	before := len(p.claims)
	p.claims = slices.DeleteFunc(p.claims, func(c claim) bool { return s.forgetting.takes(c) && c.began <= at })
	p.counts["forgotten"] += before - len(p.claims)
	p.counts[s.what]++
	if stored || s.what == tellTruth {
		p.stay = append(p.stay, standing{s.forgetting, at})
	}
	return nil
}

// judge says what is wrong with an answer of ours, apart from what the kubelet says; "": nothing.
func (p *proofs) judge(s step, got answer) string {
	if s.what != decide || got.pull || got.labels[1] == 0 {
		return ""
	}
	if !p.mayOpen(s) {
		return "it is open by what was forgotten, or was never proven"
	}
	p.counts["opened"]++
	p.inherit(imageName(s.image), s.secrets)
	return ""
}

// withForgetting puts steps into two of three histories in which something is forgotten.
func withForgetting(seed uint64, history []step) []step {
	if seed%3 == 0 {
		return history
	}
	r := rand.New(rand.NewPCG(seed, 1))
	namespace := func() string { return fmt.Sprintf("namespace-%d", r.IntN(3)) }
	secret := func(owner int) waybill.CredentialName {
		return waybill.CredentialName{
			Namespace: fmt.Sprintf("namespace-%d", owner%3), Name: "pull-secret",
			UID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", owner),
		}
	}
	account := func(i, namespace int) waybill.CredentialName {
		return waybill.CredentialName{
			Namespace: fmt.Sprintf("namespace-%d", namespace), Name: "builder", UID: fmt.Sprintf("%08d-1111-4000-8000-000000000000", i),
		}
	}
	var with []step
	for _, s := range history {
		with = append(with, s)
		add := func(what string, f *forgetting) {
			with = append(with, step{what: what, forgetting: f, onNode: s.onNode, strays: s.strays})
		}
		switch n := r.IntN(60); {
		case n < 2:
			add(drawTruth, nil)
		case n < 4:
			truth := &waybill.RevokeMissing{Secrets: []waybill.CredentialName{}, ServiceAccounts: []waybill.CredentialName{}}
			for i := range 3 {
				if r.IntN(3) > 0 {
					truth.Secrets = append(truth.Secrets, secret(i))
				}
				if r.IntN(3) > 0 {
					truth.ServiceAccounts = append(truth.ServiceAccounts, account(i, r.IntN(2)))
				}
			}
			add(tellTruth, &forgetting{truth: truth})
		case n < 8:
			f := &forgetting{}
			of := func(kind waybill.RevocationKind, who waybill.CredentialName) {
				f.revoked = waybill.Revoke{Kind: kind, Namespace: who.Namespace, Name: who.Name, UID: who.UID}
			}
			switch r.IntN(6) {
			case 0:
				of(waybill.RevokeSecret, secret(r.IntN(3)))
			case 1:
				of(waybill.RevokeSecret, secret(r.IntN(3)))
				f.revoked.UID = ""
			case 2:
				of(waybill.RevokeServiceAccount, account(r.IntN(3), r.IntN(2)))
			case 3:
				of(waybill.RevokeNamespace, waybill.CredentialName{Namespace: namespace()})
			case 4:
				f.revoked = waybill.Revoke{Kind: waybill.RevokeCredential, Hash: strings.Repeat(string(rune('a'+r.IntN(3))), 64)}
			default:
				f.revoked = waybill.Revoke{Kind: waybill.RevokeImage, ImageRef: fmt.Sprintf("sha256:%064d", r.IntN(5))}
			}
			add(forget, f)
		}
	}
	return with
}
